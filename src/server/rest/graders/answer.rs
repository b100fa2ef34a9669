//! What became of a grader, in the JSON of OpenAI's API.
//!
//! `metadata.errors.details` is ours: what the flags mean in this case.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::evaluate::graders::{Failure, FailureSort, Graded, Run};
use crate::grader::WrongGrader;
use crate::grader::openai::{Named, Single};
use crate::judge::Usage;

/// The answer of a grader that ran.
pub(super) fn graded(named: &Named, run: &Run, took: Duration) -> Value {
    let parts: Vec<(&str, Result<&Graded, &Failure>)> =
        run.parts.iter().map(|(name, outcome)| (name.as_str(), outcome.as_ref())).collect();
    let failures = parts
        .iter()
        .filter_map(|(name, outcome)| Some((*name, outcome.err()?)))
        .chain(run.failure.as_ref().map(|failure| ("", failure)));
    let is_multi = matches!(named.grader, Single::Multi(_));
    let mut errors = Errors::default();
    for (name, failure) in failures {
        errors.add(if is_multi { name } else { "" }, failure);
    }
    let score = |outcome: &Result<&Graded, &Failure>| outcome.map_or(0.0, |graded| graded.score);
    let scores: Map<String, Value> =
        parts.iter().map(|(name, outcome)| ((*name).to_owned(), json!(score(outcome)))).collect();
    let judged: Vec<&Graded> = parts.iter().filter_map(|(_, outcome)| outcome.ok()).collect();
    let model = judged.iter().map(|graded| graded.model.as_str()).find(|model| !model.is_empty());
    json!({
        "reward": run.reward.unwrap_or(0.0),
        "metadata": {
            "name": named.name,
            "type": named.kind,
            "errors": errors.written(),
            "execution_time": took.as_secs_f64(),
            "scores": scores,
            "token_usage": usage_of_all(&judged),
            "sampled_model_name": model,
        },
        "sub_rewards": if is_multi { Value::Object(scores.clone()) } else { json!({}) },
        "model_grader_token_usage_per_model": usage_per_model(&judged),
    })
}

/// The answer of a multi grader whose formula cannot be read.
pub(super) fn unread_formula(grader: &Value, wrong: &WrongGrader, took: Duration) -> Value {
    let errors = Errors { formula_parse: true, details: vec![wrong.to_string()], ..Errors::default() };
    json!({
        "reward": 0.0,
        "metadata": {
            "name": grader["name"],
            "type": "multi",
            "errors": errors.written(),
            "execution_time": took.as_secs_f64(),
            "scores": {},
            "token_usage": null,
            "sampled_model_name": null,
        },
        "sub_rewards": {},
        "model_grader_token_usage_per_model": {},
    })
}

/// The flags, over all parts.
#[derive(Debug, Default)]
struct Errors {
    formula_parse: bool,
    invalid_variable: bool,
    model_server: bool,
    model_refusal: bool,
    model_parse: bool,
    other: bool,
    server_details: Vec<String>,
    details: Vec<String>,
}

impl Errors {
    fn add(&mut self, name: &str, Failure { sort, error }: &Failure) {
        let detail = if name.is_empty() { error.text() } else { format!("{name}: {}", error.text()) };
        match sort {
            FailureSort::InvalidVariable => self.invalid_variable = true,
            FailureSort::ModelRefusal => self.model_refusal = true,
            FailureSort::ModelParse => self.model_parse = true,
            FailureSort::Other => self.other = true,
            FailureSort::ModelServer => {
                self.model_server = true;
                self.server_details.push(detail.clone());
            }
        }
        self.details.push(detail);
    }

    fn written(&self) -> Value {
        let joined = |texts: &[String]| (!texts.is_empty()).then(|| texts.join("; "));
        json!({
            "formula_parse_error": self.formula_parse,
            "sample_parse_error": false,
            "truncated_observation_error": false,
            "unresponsive_reward_error": false,
            "invalid_variable_error": self.invalid_variable,
            "other_error": self.other,
            "python_grader_server_error": false,
            "python_grader_server_error_type": null,
            "python_grader_runtime_error": false,
            "python_grader_runtime_error_details": null,
            "model_grader_server_error": self.model_server,
            "model_grader_refusal_error": self.model_refusal,
            "model_grader_parse_error": self.model_parse,
            "model_grader_server_error_details": joined(&self.server_details),
            "details": joined(&self.details),
        })
    }
}

fn usage_of_all(judged: &[&Graded]) -> Value {
    let mut all = Usage::default();
    judged.iter().for_each(|graded| all += graded.usage);
    if all == Usage::default() { Value::Null } else { usage(all) }
}

fn usage_per_model(judged: &[&Graded]) -> Value {
    let mut models: BTreeMap<&str, Usage> = BTreeMap::new();
    for graded in judged.iter().filter(|graded| graded.usage != Usage::default()) {
        *models.entry(&graded.model).or_default() += graded.usage;
    }
    models.into_iter().map(|(model, tokens)| (model.to_owned(), usage(tokens))).collect::<Map<_, _>>().into()
}

fn usage(tokens: Usage) -> Value {
    json!({
        "prompt_tokens": tokens.input_tokens,
        "total_tokens": tokens.input_tokens + tokens.output_tokens,
        "completion_tokens": tokens.output_tokens,
        "cached_tokens": tokens.cached_input_tokens,
    })
}
