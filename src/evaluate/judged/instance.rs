//! The texts of an instance, by name, whatever message they came in.

use std::borrow::Cow;

use prost::{Message, Name};
use serde_json::{Map, Value};

use crate::error::{Error, Kind, quoted};
use crate::judge::Sampling;
use crate::judge::template::lookup;
use crate::wire::v1::evaluation_instance::{InstanceData, instance_data};
use crate::wire::v1::*;
use crate::wire::{json, part_text, required};

/// The texts of one item. A text that is not set is absent; one that is empty is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Texts(Value);

impl Texts {
    /// The text of this name, or at this dotted path; other JSON values are their JSON text.
    pub(crate) fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        lookup(&self.0, name)
    }

    /// No text may be longer than this.
    pub(crate) fn check(&self, limit: usize) -> Result<(), Error> {
        let Value::Object(texts) = &self.0 else { return Ok(()) };
        let too_long = |value: &Value| value.as_str().is_some_and(|text| text.len() > limit);
        match texts.iter().find(|(_, value)| too_long(value)) {
            None => Ok(()),
            Some((name, _)) => Err(Error {
                field: format!("instance.{}", quoted(name)),
                ..Error::new(Kind::TooLarge, format!("is longer than limits.text_bytes = {limit}"))
            }),
        }
    }

    /// These texts under these names.
    pub(crate) fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(Value::Object(pairs.into_iter().map(|(name, text)| (name, Value::String(text))).collect()))
    }

    /// A JSON object in a string, as SDKs send it: placeholder to value.
    pub(crate) fn of_json(text: &str) -> Result<Self, Error> {
        match serde_json::from_str(text) {
            Ok(Value::Object(texts)) => Ok(Self(Value::Object(texts))),
            Ok(_) => Err(Error::bad_request("instance.json_instance", "is JSON but not an object")),
            Err(error) => Err(Error::bad_request("instance.json_instance", format!("is not JSON: {error}"))),
        }
    }

    fn of_content_map(map: ContentMap) -> Result<Self, Error> {
        let text = |(name, contents): (String, content_map::Contents)| {
            let text = contents_text(&contents.contents).map_err(|error| {
                error.within(format_args!("instance.content_map_instance.values.{}", quoted(&name)))
            })?;
            Ok((name, text))
        };
        Ok(Self::of(map.values.into_iter().map(text).collect::<Result<Vec<_>, Error>>()?))
    }

    /// The instance of a pointwise metric.
    pub(crate) fn of_pointwise(instance: Option<PointwiseMetricInstance>) -> Result<Self, Error> {
        use pointwise_metric_instance::Instance;
        match required(instance.and_then(|instance| instance.instance), "instance")? {
            Instance::JsonInstance(text) => Self::of_json(&text),
            Instance::ContentMapInstance(map) => Self::of_content_map(map),
        }
    }

    /// The instance of a pairwise metric.
    pub(crate) fn of_pairwise(instance: Option<PairwiseMetricInstance>) -> Result<Self, Error> {
        use pairwise_metric_instance::Instance;
        match required(instance.and_then(|instance| instance.instance), "instance")? {
            Instance::JsonInstance(text) => Self::of_json(&text),
            Instance::ContentMapInstance(map) => Self::of_content_map(map),
        }
    }

    /// The instance of the rubric-based metric.
    pub(crate) fn of_rubric_based(
        instance: Option<RubricBasedInstructionFollowingInstance>,
    ) -> Result<Self, Error> {
        use rubric_based_instruction_following_instance::Instance;
        let Instance::JsonInstance(text) =
            required(instance.and_then(|instance| instance.instance), "instance")?;
        Self::of_json(&text)
    }

    /// The instance of the unified form: `prompt`, `response`, `reference`, what is in `other_data` by its own
    /// name, and `agent_data` as JSON.
    pub(crate) fn of_unified(instance: &EvaluationInstance) -> Result<Self, Error> {
        let mut texts = Map::new();
        let named = [
            ("prompt", &instance.prompt),
            ("response", &instance.response),
            ("reference", &instance.reference),
        ];
        for (name, data) in named {
            if let Some(text) =
                data_text(data.as_ref()).map_err(|error| error.within(format_args!("instance.{name}")))?
            {
                texts.insert(name.to_owned(), Value::String(text));
            }
        }
        for (name, data) in instance.other_data.iter().flat_map(|other| &other.map_instance) {
            let text = data_text(Some(data)).map_err(|error| {
                error.within(format_args!("instance.other_data.map_instance.{}", quoted(name)))
            })?;
            // Structured values travel as JSON text; a template may step into them.
            let value = text.map(|text| match serde_json::from_str(&text) {
                Ok(object @ Value::Object(_)) => object,
                Ok(_) | Err(_) => Value::String(text),
            });
            texts.insert(name.clone(), value.unwrap_or_default());
        }
        if let Some(agent) = instance.agent_eval_data.as_ref().filter(|agent| agent.encoded_len() > 0) {
            texts.insert(String::from("agent_data"), Value::String(json::write(agent)?));
        }
        Ok(Self(Value::Object(texts)))
    }

    /// Contents without a name, as rubrics are asked for: all of it is the prompt.
    pub(crate) fn of_contents(contents: &[Content]) -> Result<Self, Error> {
        let text = contents_text(contents).map_err(|error| error.within("contents"))?;
        Ok(Self::of([(String::from("prompt"), text)]))
    }
}

/// The text fields of an instance message that are set, by their names in the schema.
pub(crate) fn fields<M: Message + Name + Default>(instance: Option<M>) -> Result<Texts, Error> {
    let message = json::dynamic(&required(instance, "instance")?)?;
    let set = message
        .fields()
        .filter_map(|(field, value)| Some((field.name().to_owned(), value.as_str()?.to_owned())));
    Ok(Texts::of(set.collect::<Vec<_>>()))
}

/// The parts of the generation config that mean the same to every judge.
pub(crate) fn sampling(config: Option<&GenerationConfig>) -> Result<Sampling, Error> {
    let Some(config) = config else { return Ok(Sampling::default()) };
    let within = |value: Option<f32>, field: &str, most: f64| match value.map(f64::from) {
        Some(value) if !(0.0..=most).contains(&value) => Err(Error::bad_request(
            format!("autorater_config.generation_config.{field}"),
            format!("{value} is not from 0 to {most}"),
        )),
        value => Ok(value),
    };
    let max_tokens = config.max_output_tokens.map(|tokens| {
        u32::try_from(tokens).ok().filter(|tokens| *tokens > 0).ok_or_else(|| {
            Error::bad_request(
                "autorater_config.generation_config.max_output_tokens",
                format!("{tokens} is not positive"),
            )
        })
    });
    Ok(Sampling {
        temperature: within(config.temperature, "temperature", 2.0)?,
        top_p: within(config.top_p, "top_p", 1.0)?,
        seed: config.seed.map(i64::from),
        max_tokens: max_tokens.transpose()?,
        reasoning_effort: None,
    })
}

/// The text of one part of the instance; absent when nothing is set.
pub(crate) fn data_text(data: Option<&InstanceData>) -> Result<Option<String>, Error> {
    match data.and_then(|data| data.data.as_ref()) {
        None => Ok(None),
        Some(instance_data::Data::Text(text)) => Ok(Some(text.clone())),
        Some(instance_data::Data::Contents(contents)) => contents_text(&contents.contents).map(Some),
    }
}

/// The texts of several contents, joined by line breaks. Images, files and the like are refused: a judge that
/// does not see them would judge something else.
fn contents_text(contents: &[Content]) -> Result<String, Error> {
    let text =
        |part| part_text(part).ok_or_else(|| Error::bad_request("parts", "holds something other than text"));
    let texts =
        contents.iter().flat_map(|content| &content.parts).map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join("\n"))
}
