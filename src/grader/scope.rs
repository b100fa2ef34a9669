//! The row and the sample that templates read.

use serde_json::{Map, Value};

use super::template::Template;

/// Where templates look things up.
#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    /// The row of the data set.
    pub item: Value,
    /// What a model made of it.
    pub sample: Value,
    /// About how long both are, as text.
    pub bytes: usize,
}

impl Scope {
    /// A row and a sample, each with its members, which have about so many bytes.
    pub fn new(item: Map<String, Value>, sample: Map<String, Value>, bytes: usize) -> Self {
        Self { item: Value::Object(item), sample: Value::Object(sample), bytes }
    }

    /// Reads `sample.output_json` from `sample.output_text`, if one of these templates wants it, nothing else is
    /// there, and the text is JSON.
    #[must_use]
    pub fn with_output_json<'t>(mut self, templates: impl IntoIterator<Item = &'t Template>) -> Self {
        const JSON: &str = "output_json";
        let wanted = templates.into_iter().any(|template| template.reads_of_sample(JSON));
        if let Value::Object(sample) = &mut self.sample
            && wanted
            && !sample.contains_key(JSON)
            && let Some(Value::String(text)) = sample.get("output_text")
            && let Ok(json) = serde_json::from_str(text)
        {
            sample.insert(JSON.to_owned(), json);
        }
        self
    }
}
