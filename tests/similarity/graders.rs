//! Templates, and the field cases of graders that need no judge.

use rapid_eval::grader::template::{MOST_BYTES, Template, TemplateError};
use rapid_eval::metrics::fuzzy;
use rapid_eval::metrics::meteor;
use rapid_eval::metrics::nltk::Tokenizer;
use rapid_eval::metrics::string_check::{self, Operation, always_passes};
use serde_json::{Value, json};

use crate::vectors::{field, graders, rows};

fn render(template: &str, item: &Value, sample: &Value) -> Result<String, TemplateError> {
    template.parse::<Template>()?.render(item, sample)
}

#[test]
fn published_templates_hold() {
    let templates = graders("templates");
    let (item, sample) = (&templates["scope"]["item"], &templates["scope"]["sample"]);
    let ok = templates["ok"].as_array().unwrap();
    for row in ok {
        assert_eq!(render(field(row, "template"), item, sample).unwrap(), field(row, "text"), "{row}");
    }
    let invalid = templates["invalid_variable_error"].as_array().unwrap();
    for template in invalid {
        let template = template.as_str().unwrap();
        let path = template.trim_matches(['{', '}']).to_owned();
        assert_eq!(render(template, item, sample), Err(TemplateError::NoValue(path)));
    }
    assert_eq!((ok.len(), invalid.len()), (14, 3));
}

#[test]
fn values_are_put_in_as_json_unless_they_are_strings() {
    let item = json!({
        "null": null, "yes": true, "one": 1, "half": 0.5, "list": [1, "a"], "object": {"k": [null]}, "empty": "",
        "spaced name": "x", "né": "y", "json": "[{\"deep\": \"{\\\"er\\\": 7}\"}]", "2": "two",
    });
    for (template, expected) in [
        ("{{item.null}}", "null"),
        ("{{item.yes}}{{item.one}}{{item.half}}", "true10.5"),
        ("{{item.list}} {{item.object}}", "[1,\"a\"] {\"k\":[null]}"),
        ("<{{item.empty}}>", "<>"),
        ("{{item.spaced name}} {{ item.né\t}} {{item.2}}", "x y two"),
        ("{{item.json[0].deep.er}}", "7"),
        ("{{{item.one}}}", "{1}"),
        ("{ {\"a\": {{item.one}}}", "{ {\"a\": 1}"),
        ("}} {", "}} {"),
        ("", ""),
    ] {
        assert_eq!(render(template, &item, &json!({})).unwrap(), expected, "{template}");
    }
    assert_eq!(render("{{sample}}", &item, &json!({"a": 1})).unwrap(), "{\"a\":1}");
}

#[test]
fn faults_are_named() {
    let item = json!({ "text": "not json", "list": [1], "null": null });
    for template in
        ["{{item.text.x}}", "{{item.list.x}}", "{{item.list[1]}}", "{{item.null.x}}", "{{item[0]}}"]
    {
        let path = template.trim_matches(['{', '}']).to_owned();
        assert_eq!(render(template, &item, &json!({})), Err(TemplateError::NoValue(path)));
    }
    for path in [
        "",
        "x",
        "items.a",
        "item.",
        "item..a",
        "item.a[",
        "item.a[x]",
        "item.a[-1]",
        "item.a[]",
        "item.a]b",
        "item a",
        "sample[1",
        "item.a[99999999999999999999]",
        "item.{a",
    ] {
        let found = format!("{{{{{path}}}}}").parse::<Template>();
        assert_eq!(found, Err(TemplateError::NotAPath(path.to_owned())), "{path}");
    }
    assert_eq!("ab {{item.x".parse::<Template>(), Err(TemplateError::Unclosed { at: 3 }));
    let error = render("{{ item.answr }}", &json!({"answer": 1}), &json!({})).unwrap_err();
    assert_eq!(error.to_string(), "template: there is no value at item.answr");
}

#[test]
fn a_long_result_and_much_json_are_refused() {
    let item = json!({ "text": "x".repeat(1 << 20), "json": format!("[{}]", "1,".repeat(1 << 19) + "1") });
    let writes = "{{item.text}}".repeat(MOST_BYTES / (1 << 20) + 1);
    assert_eq!(render(&writes, &item, &json!({})), Err(TemplateError::TooLong));
    let reads = "{{item.json[0]}}".repeat(MOST_BYTES / (1 << 20) + 1);
    assert_eq!(render(&reads, &item, &json!({})), Err(TemplateError::TooLong));
    let deep = json!({ "json": "[".repeat(100_000) });
    assert_eq!(
        render("{{item.json[0]}}", &deep, &json!({})),
        Err(TemplateError::NoValue("item.json[0]".to_owned()))
    );
}

/// Grades one request of the field cases, or says why it can't be graded.
fn grade(request: &Value) -> Result<f64, String> {
    let grader = &request["grader"];
    let sample = json!({ "output_text": request["model_sample"] });
    let text = |key| render(field(grader, key), &request["item"], &sample).map_err(|error| error.to_string());
    let (input, reference) = (text("input")?, text("reference")?);
    match field(grader, "type") {
        "string_check" => {
            let operation: Operation = field(grader, "operation").parse().unwrap();
            if always_passes(&reference, operation) {
                return Err("always passes".to_owned());
            }
            Ok(string_check::score(&input, &reference, operation))
        }
        _ => Ok(match field(grader, "evaluation_metric") {
            "fuzzy_match" => fuzzy::score(&input, &reference).unwrap(),
            "meteor" => {
                let options = meteor::Options { tokenizer: Tokenizer::Grader, ..Default::default() };
                meteor::score(&input, &reference, &options).unwrap().value
            }
            other => panic!("no case has {other}"),
        }),
    }
}

#[test]
fn field_cases_of_graders_hold() {
    let mut compared = 0;
    for case in rows("cases/graders.jsonl") {
        let none = Vec::new();
        for step in std::iter::once(&case).chain(case["more"].as_array().unwrap_or(&none)) {
            let found = grade(&step["request"]);
            match step["expect"]["grader"]["score"].as_f64() {
                Some(expected) => {
                    let tolerance = step["expect"]["grader"]["tol"].as_f64().unwrap_or(0.0);
                    let found = found.unwrap();
                    assert!((found - expected).abs() <= tolerance, "{}: {found}", case["id"]);
                }
                None => {
                    let message = found.unwrap_err();
                    for piece in step["expect"]["error"]["message_mentions"].as_array().unwrap_or(&none) {
                        assert!(message.contains(piece.as_str().unwrap()), "{message}");
                    }
                }
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 10);
}
