//! The cosine of two texts by their embeddings, from the endpoint that is configured.
//!
//! Equal texts of a call are asked for once. A call with many texts goes through them in parts, so that few vectors
//! are held at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::embeddings::{Embedder, Name, Text};
use crate::error::{Error, Reason};
use crate::evaluate::Evaluator;
use crate::evaluate::judged::failed;
use crate::judge::JudgeError;
use crate::judge::autorater::Cause;
use crate::judge::providers::embeddings::Vector;
use crate::metrics::cosine;

/// Two texts to compare.
pub(super) type Pair = [Text; 2];

impl Evaluator {
    /// The cosine of each pair, -1 to 1, in order. An empty text has no direction, and the cosine 0 with any other.
    pub(super) async fn cosines(
        &self,
        embedder: &Embedder,
        pairs: &[Pair],
        deadline: Option<Instant>,
    ) -> Result<Vec<f64>, Error> {
        let mut cosines = Vec::with_capacity(pairs.len());
        let mut rest = pairs;
        while !rest.is_empty() {
            let part = Part::of(rest, embedder);
            let (pairs, others) = rest.split_at(part.pairs);
            let vectors = part.vectors(embedder, deadline).await?;
            let vectors = pairs.iter().map(|pair| vectors_of(pair, &vectors)).collect::<Result<_, _>>()?;
            let bytes = |pair: &Option<[Vector; 2]>| pair.iter().flatten().map(|v| size_of_val(&**v)).sum();
            let model = embedder.model().to_owned();
            let some = self.workers.score_each(vectors, bytes, move |_, pair, _| match pair {
                Some([first, second]) => cosine::of_vectors(first, second)
                    .map_err(|no| unembedded(Cause::NoVerdict, None, &model, no.to_string())),
                None => Ok(0.0),
            });
            cosines.extend(some.await?);
            rest = others;
        }
        Ok(cosines)
    }
}

/// As many pairs as are worked on at one time.
struct Part<'p> {
    pairs: usize,
    known: HashMap<&'p Name, Vector>,
    asked: Vec<&'p Text>,
}

impl<'p> Part<'p> {
    /// The first of these pairs: at least one, and no more texts than keep the endpoint's calls busy.
    fn of(pairs: &'p [Pair], embedder: &Embedder) -> Self {
        let mut part = Self { pairs: 0, known: HashMap::new(), asked: Vec::new() };
        let mut seen = HashSet::new();
        for pair in pairs {
            let more = pair.iter().filter(|text| !seen.contains(text.name())).count();
            if part.pairs > 0 && seen.len() + more > embedder.texts_at_once() {
                break;
            }
            for text in pair.iter().filter(|text| !text.is_empty()) {
                if seen.insert(text.name()) {
                    match embedder.kept(text) {
                        Some(vector) => drop(part.known.insert(text.name(), vector)),
                        None => part.asked.push(text),
                    }
                }
            }
            part.pairs += 1;
        }
        part
    }

    async fn vectors(
        self,
        embedder: &Embedder,
        deadline: Option<Instant>,
    ) -> Result<HashMap<&'p Name, Vector>, Error> {
        let Self { mut known, asked, .. } = self;
        let found = embedder.vectors(&asked, deadline).await.map_err(|error| {
            let JudgeError { kind, retry_after, .. } = error;
            unembedded(Cause::of(kind), retry_after, embedder.model(), error.to_string())
        })?;
        known.extend(asked.iter().map(|text| text.name()).zip(found));
        Ok(known)
    }
}

/// `None` = one of the texts is empty.
fn vectors_of(pair: &Pair, vectors: &HashMap<&Name, Vector>) -> Result<Option<[Vector; 2]>, Error> {
    let [first, second] = pair;
    if first.is_empty() || second.is_empty() {
        return Ok(None);
    }
    let vector = |text: &Text| {
        vectors
            .get(text.name())
            .map(Arc::clone)
            .ok_or_else(|| Error::internal("a text was left without a vector"))
    };
    Ok(Some([vector(first)?, vector(second)?]))
}

/// Why there is no cosine, as an error that says whether asking again can help.
fn unembedded(cause: Cause, rest: Option<Duration>, model: &str, message: String) -> Error {
    let word = match cause {
        Cause::Unavailable => "EMBEDDINGS_UNAVAILABLE",
        Cause::OutOfTime => "EMBEDDINGS_OUT_OF_TIME",
        Cause::OverBudget => "EMBEDDINGS_OVER_BUDGET",
        Cause::TooLong => "TEXT_TOO_LONG",
        Cause::Misconfigured => "EMBEDDINGS_MISCONFIGURED",
        Cause::Refused => "EMBEDDINGS_REFUSED",
        Cause::NoVerdict => "NO_EMBEDDINGS",
    };
    let facts = vec![(String::from("model"), model.to_owned())];
    failed(cause, rest, Reason { word, facts }, format!("embeddings: {message}"))
}
