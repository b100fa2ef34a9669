//! Graders, test methods of agents and summary evaluation through the real server: published scores, cases from the
//! field, the vendors' own examples, a judge's bad days, OpenAI's REST API, and the stream.
//!
//! Where the expected values come from: `tests/vectors/similarity/README.md`, `tests/vectors/cases/README.md`.
#![cfg(feature = "server")]

mod embeddings;
mod models;
mod multi;
mod published;
mod rest;
mod stream;
mod summaries;
mod test_methods;
#[path = "../vectors/mod.rs"]
mod vectors;
#[path = "../world/mod.rs"]
mod world;

use serde_json::{Value, json};

/// A grader in OpenAI's JSON as a request, over these rows.
fn request(grader: &Value, rows: Vec<Value>) -> Value {
    let mut spec = grader.clone();
    let kind = spec.as_object_mut().unwrap().remove("type").unwrap();
    let rows = match kind.as_str().unwrap() {
        "string_check" | "text_similarity" => json!({"metric_spec": spec, "instances": rows}),
        "multi" => {
            for part in spec["graders"].as_object_mut().unwrap().values_mut() {
                let kind = part.as_object_mut().unwrap().remove("type").unwrap();
                *part = json!({(kind.as_str().unwrap()): part});
            }
            json!({"metric_spec": spec, "instance": rows[0]})
        }
        _ => json!({"metric_spec": spec, "instance": rows[0]}),
    };
    let arm = kind.as_str().unwrap().replace("multi", "multi_grader");
    json!({(format!("{arm}_input")): rows})
}

/// A row with what a model made of it.
fn row(item: &Value, output_text: &Value) -> Value {
    json!({"item": item, "sample": {"output_text": output_text}})
}

/// The result of a request with one instance, whatever its arm.
fn result(answer: &Value) -> Value {
    let result = answer.as_object().unwrap().values().next().unwrap();
    match result.as_object().unwrap().values().next() {
        Some(Value::Array(values)) if result.as_object().unwrap().len() == 1 => values[0].clone(),
        _ => result.clone(),
    }
}

/// A judge's answer to a grader.
fn said(result: impl Into<Value>) -> String {
    json!({"steps": [{"description": "Read it", "conclusion": "It is so"}], "result": result.into()})
        .to_string()
}
