//! Embeddings: OpenAI and every server that speaks its protocol (vLLM, TEI, llama.cpp, Ollama, LiteLLM, …).
//!
//! `POST {base}/embeddings` with a list of texts; each answer is put back by its `index`. An answer without a proper
//! vector for every text is an error as a whole: nothing tells which of the others it can be trusted for.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value};

use super::openai::path_below;
use super::{KeyHeader, Target, body_of, count_at, list_at, unreadable};
use crate::judge::secret::Secret;
use crate::judge::settings::{Auth, Environment, JudgeSettings, SettingsError};
use crate::judge::{JudgeError, Usage};

/// The embedding of a text: at least one component, all of them finite, not all of them 0.
pub(crate) type Vector = Arc<[f64]>;

/// An endpoint with embeddings.
#[derive(Debug)]
pub(crate) struct Embeddings {
    target: Target,
    key_header: KeyHeader,
}

impl Embeddings {
    /// # Errors
    /// The first setting that cannot be used.
    pub(crate) fn new(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Self, SettingsError> {
        let path = path_below(&settings.base()?, "/embeddings");
        Ok(Self {
            target: Target::new(settings, environment, &path)?,
            key_header: KeyHeader::new(Auth::Bearer, "api-key"),
        })
    }

    /// The request for the embeddings of these texts.
    ///
    /// # Errors
    /// `Credentials` for a key that no header can hold.
    pub(crate) fn request<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        key: Option<&Secret>,
    ) -> Result<Request<Bytes>, JudgeError> {
        let mut body = Map::new();
        body.insert(String::from("model"), self.target.model.clone().into());
        body.insert(String::from("input"), texts.collect());
        body.insert(String::from("encoding_format"), "float".into());
        self.target.post(body, key, self.key_header.clone())
    }
}

/// What one answer holds.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// One for each text, in their order.
    pub(crate) vectors: Vec<Vector>,
    /// As the provider counts.
    pub(crate) usage: Usage,
}

/// The embeddings that `response` has for so many texts.
///
/// # Errors
/// What the response complains of; `Unreadable` for an answer without a vector for each text.
pub(crate) fn embedded(response: &Response<Bytes>, texts: usize) -> Result<Embedded, JudgeError> {
    let body = body_of(response)?;
    let data = list_at(&body, "/data");
    if data.len() != texts {
        return Err(unreadable(format!("the answer has {} embeddings for {texts} texts", data.len())));
    }
    let mut vectors: Vec<Option<Vector>> = vec![None; texts];
    for entry in data {
        let index = entry.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        let place = index.and_then(|index| vectors.get_mut(index)).filter(|place| place.is_none());
        let Some(place) = place else {
            return Err(unreadable(format!("the indexes of the embeddings are not 0 to {}", texts - 1)));
        };
        *place = Some(vector(entry)?);
    }
    let vectors: Vec<Vector> = vectors.into_iter().flatten().collect();
    if let [first, others @ ..] = &vectors[..]
        && let Some(other) = others.iter().find(|other| other.len() != first.len())
    {
        let (first, other) = (first.len(), other.len());
        return Err(unreadable(format!("one answer has embeddings of {first} and of {other} dimensions")));
    }
    let usage = Usage { input_tokens: count_at(&body, "/usage/prompt_tokens"), ..Usage::default() };
    Ok(Embedded { vectors, usage })
}

fn vector(entry: &Value) -> Result<Vector, JudgeError> {
    let components = entry.get("embedding").and_then(Value::as_array);
    let components = components.ok_or_else(|| unreadable("an embedding is no list of numbers"))?;
    let vector: Option<Vector> =
        components.iter().map(|component| component.as_f64().filter(|number| number.is_finite())).collect();
    let vector = vector.ok_or_else(|| unreadable("an embedding has a component that is no number"))?;
    if vector.iter().all(|component| *component == 0.0) {
        return Err(unreadable(if vector.is_empty() {
            "an embedding has no components"
        } else {
            "an embedding is 0 in all its components"
        }));
    }
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(data: &Value, texts: usize) -> Result<Vec<Vector>, String> {
        let response = Response::new(Bytes::from(json!({ "data": data }).to_string()));
        embedded(&response, texts).map(|answer| answer.vectors).map_err(|error| error.message)
    }

    #[test]
    fn vectors_are_put_back_by_their_index() {
        let data = json!([{"index": 1, "embedding": [0.5, -2]}, {"index": 0, "embedding": [1, 0]}]);
        let found = read(&data, 2).unwrap();
        assert_eq!(found, [Vector::from([1.0, 0.0]), Vector::from([0.5, -2.0])]);
    }

    #[test]
    fn an_answer_without_a_vector_for_each_text_is_an_error() {
        let one = |embedding: Value| json!([{"index": 0, "embedding": embedding}]);
        for (data, texts, message) in [
            (json!([]), 1, "the answer has 0 embeddings for 1 texts"),
            (one(json!([1])), 2, "the answer has 1 embeddings for 2 texts"),
            (json!([{"embedding": [1]}]), 1, "the indexes of the embeddings are not 0 to 0"),
            (json!([{"index": 1, "embedding": [1]}]), 1, "the indexes of the embeddings are not 0 to 0"),
            (
                json!([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}]),
                2,
                "the indexes of the embeddings are not 0 to 1",
            ),
            (
                json!([{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [2, 3]}]),
                2,
                "one answer has embeddings of 1 and of 2 dimensions",
            ),
            (one(json!([])), 1, "an embedding has no components"),
            (one(json!([0, 0.0])), 1, "an embedding is 0 in all its components"),
            (one(json!([1, null])), 1, "an embedding has a component that is no number"),
            (one(json!([1, "NaN"])), 1, "an embedding has a component that is no number"),
            (one(json!("AACAPw==")), 1, "an embedding is no list of numbers"),
            (json!([{"index": 0}]), 1, "an embedding is no list of numbers"),
        ] {
            assert_eq!(read(&data, texts).unwrap_err(), message, "{data}");
        }
        let not_finite = Bytes::from_static(br#"{"data": [{"index": 0, "embedding": [1, NaN]}]}"#);
        assert!(embedded(&Response::new(not_finite), 1).is_err());
        let too_large = Bytes::from_static(br#"{"data": [{"index": 0, "embedding": [1e999]}]}"#);
        assert!(embedded(&Response::new(too_large), 1).is_err());
    }
}
