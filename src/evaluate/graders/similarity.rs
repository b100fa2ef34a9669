//! text_similarity: by embeddings where `cosine` is wanted and an endpoint is configured, else on the workers alone.

use tokio::time::Instant;

use crate::embeddings::{Embedder, Text};
use crate::error::Error;
use crate::evaluate::Evaluator;
use crate::evaluate::graders::computed::Texts;
use crate::evaluate::graders::{Failure, Graded, Row};
use crate::grader::{Similarity, TextSimilarity};
use crate::wire::v1::TextVectors;

/// Rows whose texts may be longer than this, all in all, are not filled in at one time.
const FILLED_BYTES: usize = 16 << 20;

impl Evaluator {
    /// What the grader says of each row, in order. `deadline` is when the caller stops waiting.
    pub(super) async fn similarity(
        &self,
        grader: TextSimilarity,
        rows: Vec<impl Row>,
        deadline: Option<Instant>,
    ) -> Result<Vec<Result<Graded, Failure>>, Error> {
        match &self.embedder {
            Some(embedder) if matches!(grader.metric, Similarity::Cosine) => {
                self.by_embeddings(embedder, &grader, rows, deadline).await
            }
            Some(_) | None => self.compute(grader, rows).await,
        }
    }

    async fn by_embeddings(
        &self,
        embedder: &Embedder,
        grader: &TextSimilarity,
        rows: Vec<impl Row>,
        deadline: Option<Instant>,
    ) -> Result<Vec<Result<Graded, Failure>>, Error> {
        let texts = Texts::of(grader);
        let mut graded = Vec::with_capacity(rows.len());
        let mut rows = rows.into_iter().peekable();
        while let Some(row) = rows.next() {
            let mut bytes = texts.most_bytes(&row);
            let mut some = vec![row];
            while let Some(row) = rows.next_if(|row| {
                bytes = bytes.saturating_add(texts.most_bytes(row));
                bytes <= FILLED_BYTES
            }) {
                some.push(row);
            }
            let filled = self.each_row(texts.clone(), some, |texts, _| Ok(texts.map(Text::new))).await?;
            let mut pairs = Vec::with_capacity(filled.len());
            let failures: Vec<Option<Failure>> =
                filled.into_iter().map(|pair| pair.map(|pair| pairs.push(pair)).err()).collect();
            let mut cosines = self.cosines(embedder, &pairs, deadline).await?.into_iter();
            for failure in failures {
                graded.push(match failure {
                    Some(failure) => Err(failure),
                    None => {
                        let score = cosines.next();
                        let score = score.ok_or_else(|| Error::internal("a row was left ungraded"))?;
                        Ok(Graded {
                            score,
                            passed: grader.pass_threshold.map(|threshold| score >= threshold),
                            vectors: TextVectors::Embeddings,
                            embedding_model: embedder.model().to_owned(),
                            ..Graded::default()
                        })
                    }
                });
            }
        }
        Ok(graded)
    }
}
