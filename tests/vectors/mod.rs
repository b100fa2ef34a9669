//! Reads the test vectors beside this file.

#![allow(dead_code, reason = "each test file uses its own part of this one")]

use std::path::Path;

use serde_json::Value;

/// The lines of a JSONL file.
pub(crate) fn rows(file: &str) -> Vec<Value> {
    lines(file).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of a file. Texts hold other line ends on purpose.
pub(crate) fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
    let content =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    content.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The string at `key`.
pub(crate) fn field<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("no string {key} in {row}"))
}

/// The requests of a file of cases with what to expect of each, their large texts written out. What a further request
/// of a case does not have is the case's own.
pub(crate) fn steps(file: &str) -> Vec<Value> {
    let mut steps = Vec::new();
    for mut case in rows(file) {
        if let Some(generate) = case.get("generate").cloned() {
            fill(&mut case["request"], &generate);
        }
        let more = case["more"].as_array().cloned().unwrap_or_default();
        steps.push(case.clone());
        for further in more {
            let mut step = case.clone();
            step.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
            steps.push(step);
        }
    }
    steps
}

/// Runs each instance of each request through `score(arm, metric_spec, instance)` and compares. Requests that are to
/// fail as a whole belong to the service's tests and are passed over.
pub(crate) fn check_cases(file: &str, score: impl Fn(&str, &Value, &Value) -> f64) {
    let mut compared = 0;
    for step in steps(file) {
        let Some(scores) = step["expect"]["scores"].as_array() else { continue };
        let tolerance = step["expect"]["tol"].as_f64().unwrap();
        let (arm, input) = step["request"].as_object().unwrap().iter().next().unwrap();
        let instances = input["instances"].as_array().unwrap();
        assert_eq!(instances.len(), scores.len());
        for (instance, expected) in instances.iter().zip(scores) {
            let found = score(arm, &input["metric_spec"], instance);
            let also = step["expect"]["also"].as_array().cloned().unwrap_or_default();
            let close = |expected: &Value| (found - expected.as_f64().unwrap()).abs() <= tolerance;
            assert!(close(expected) || also.iter().any(close), "{}: {found}, not {expected}", step["id"]);
            compared += 1;
        }
    }
    assert!(compared > 0);
}

/// Writes the generated texts into the request.
fn fill(request: &mut Value, generate: &Value) {
    for entry in generate.as_array().unwrap() {
        let mut text = String::new();
        for piece in entry["concat"].as_array().unwrap() {
            match piece["repeat"].as_str() {
                Some(unit) => {
                    text += &unit.repeat(usize::try_from(piece["times"].as_u64().unwrap()).unwrap());
                }
                None => text += field(piece, "text"),
            }
        }
        let path = field(entry, "path").replace('[', "/").replace(']', "").replace('.', "/");
        *request.pointer_mut(&format!("/{path}")).unwrap() = text.into();
    }
}
