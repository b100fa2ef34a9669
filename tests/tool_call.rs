//! Tool calls: what is one, and how its parameters compare. Expected ratios are counted by hand.

#[cfg(test)]
mod vectors;

use proptest::prelude::*;
use rapid_eval::metrics::Stop;
use rapid_eval::metrics::tool_call::{self, Ratio};
use serde_json::{Map, Value, json};
use vectors::field;

fn valid(prediction: &str) -> f64 {
    tool_call::valid(prediction, Stop::NEVER).unwrap()
}

fn name_match(prediction: &str, reference: &str) -> f64 {
    tool_call::name_match(prediction, reference, Stop::NEVER).unwrap()
}

fn keys(prediction: &str, reference: &str) -> Ratio {
    tool_call::parameter_key_match(prediction, reference, Stop::NEVER).unwrap()
}

fn values(prediction: &str, reference: &str) -> Ratio {
    tool_call::parameter_kv_match(prediction, reference, false, Stop::NEVER).unwrap()
}

fn strict(prediction: &str, reference: &str) -> Ratio {
    tool_call::parameter_kv_match(prediction, reference, true, Stop::NEVER).unwrap()
}

/// A call of `book` with these arguments, as text.
fn book(arguments: &str) -> String {
    format!(r#"{{"content": "", "tool_calls": [{{"name": "book", "arguments": {arguments}}}]}}"#)
}

fn ratio(matches: u64, total: u64) -> Ratio {
    Ratio { matches, total }
}

#[test]
fn field_cases_of_tool_calls_hold() {
    vectors::check_cases("cases/tool_call.jsonl", |arm, spec, instance| {
        let (prediction, reference) = (field(instance, "prediction"), field(instance, "reference"));
        match arm {
            "tool_call_valid_input" => valid(prediction),
            "tool_name_match_input" => name_match(prediction, reference),
            "tool_parameter_key_match_input" => keys(prediction, reference).value(),
            "tool_parameter_kv_match_input" => {
                let strict = spec["use_strict_string_match"].as_bool().unwrap_or(false);
                tool_call::parameter_kv_match(prediction, reference, strict, Stop::NEVER).unwrap().value()
            }
            _ => panic!("{arm} is not a tool metric"),
        }
    });
}

#[test]
fn the_published_example_is_valid() {
    let example = r#"{"content": "", "tool_calls": [{"name":
"book_tickets", "arguments": {"movie": "Mission Impossible Dead Reckoning Part 1", "theater":"Regal Edwards 14",
"location": "Mountain View CA", "showtime": "7:30", "date": "2024-03-30","num_tix": "2"}}]}"#;
    assert_eq!(valid(example), 1.0);
    assert_eq!(name_match(example, example), 1.0);
    assert_eq!(keys(example, example), ratio(6, 6));
    assert_eq!(values(example, example), ratio(6, 6));
    assert_eq!(strict(example, example), ratio(6, 6));
}

#[test]
fn a_call_needs_a_name_and_an_object_of_arguments() {
    let invalid = [
        "",
        "null",
        "[]",
        "{}",
        r#"{"tool_calls": []}"#,
        r#"{"tool_calls": {}}"#,
        r#"{"tool_calls": null}"#,
        r#"{"tool_calls": ""}"#,
        r#"{"tool_calls": "{\"name\": \"a\", \"arguments\": {}}"}"#,
        r#"{"tool_calls": ["name"]}"#,
        r#"{"tool_calls": [{"name": "a"}]}"#,
        r#"{"tool_calls": [{"arguments": {}}]}"#,
        r#"{"tool_calls": [{"name": 1, "arguments": {}}]}"#,
        r#"{"tool_calls": [{"name": null, "arguments": {}}]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": null}]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": []}]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": ""}]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": "[]"}]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": "{\"x\": NaN}"}]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": {}},]}"#,
        r#"{"tool_calls": [{"name": "a", "arguments": {}}]} and more"#,
        r#"[{"name": "a", "arguments": {}}]"#,
    ];
    for prediction in invalid {
        assert_eq!(valid(prediction), 0.0, "{prediction}");
    }
}

#[test]
fn only_the_first_call_is_looked_at() {
    let first_good = r#"{"tool_calls": [{"name": "a", "arguments": {}}, 17]}"#;
    let first_bad = r#"{"tool_calls": [17, {"name": "a", "arguments": {}}]}"#;
    assert_eq!((valid(first_good), valid(first_bad)), (1.0, 0.0));
    assert_eq!(name_match(first_good, first_bad), 0.0);
}

#[test]
fn names_compare_as_strings_not_as_spellings() {
    let escaped = r#"{"tool_calls": [{"name": "b\u006fok", "arguments": {}}]}"#;
    assert_eq!(name_match(escaped, &book("{}")), 1.0);
    assert_eq!(name_match(escaped, &book("{}").replace("book", "Book")), 0.0);
}

#[test]
fn a_name_can_match_without_arguments() {
    assert_eq!(name_match(r#"{"tool_calls": [{"name": "book"}]}"#, &book("{}")), 1.0);
}

#[test]
fn two_calls_without_a_name_do_not_match() {
    let nameless = r#"{"tool_calls": [{"arguments": {}}]}"#;
    assert_eq!(name_match(nameless, nameless), 0.0);
    assert_eq!(name_match("prose", "prose"), 0.0);
}

#[test]
fn parameters_are_counted_over_the_union() {
    // a and b in both, c only predicted, d only wanted: 2 of 4; b's value differs: 1 of 4.
    let prediction = book(r#"{"a": 1, "b": 2, "c": 3}"#);
    let reference = book(r#"{"a": 1.0, "b": "2", "d": 4}"#);
    assert_eq!(keys(&prediction, &reference), ratio(2, 4));
    assert_eq!(values(&prediction, &reference), ratio(1, 4));
    assert_eq!(strict(&prediction, &reference), ratio(0, 4));
}

#[test]
fn another_tool_is_still_compared_by_its_parameters() {
    let prediction = book(r#"{"a": 1}"#).replace("book", "look");
    assert_eq!(values(&prediction, &book(r#"{"a": 1}"#)), ratio(1, 1));
    assert_eq!(name_match(&prediction, &book("{}")), 0.0);
}

#[test]
fn no_parameters_on_either_side_is_one() {
    assert_eq!(keys(&book("{}"), &book("{}")).value(), 1.0);
    assert_eq!(values(&book("{}"), &book("\"{ }\"")).value(), 1.0);
    assert_eq!(strict(&book("{}"), &book("{}")).value(), 1.0);
}

#[test]
fn an_unreadable_side_scores_zero_for_all_parameters() {
    assert_eq!(keys("prose", &book(r#"{"a": 1, "b": 2}"#)), ratio(0, 2));
    assert_eq!(values(&book("{}"), "prose"), ratio(0, 1));
    assert_eq!(strict("prose", "prose"), ratio(0, 1));
}

#[test]
fn the_last_of_a_repeated_parameter_counts() {
    let prediction = book(r#"{"a": 1, "b": 7, "a": 2}"#);
    assert_eq!(values(&prediction, &book(r#"{"a": 2, "b": 7}"#)), ratio(2, 2));
    assert_eq!(strict(&prediction, &book(r#"{"a": 2, "b": 7}"#)), ratio(2, 2));
    assert_eq!(strict(&prediction, &book(r#"{"a": 1, "b": 7}"#)), ratio(1, 2));
}

#[test]
fn strict_compares_the_text_as_sent() {
    let reference = book(r#"{"v": {"a": 1, "b": "é"}}"#);
    assert_eq!(strict(&book(r#"{ "v" : {"a": 1, "b": "é"} }"#), &reference), ratio(1, 1));
    for other in [r#"{"a":1, "b": "é"}"#, r#"{"b": "é", "a": 1}"#, r#"{"a": 1, "b": "\u00e9"}"#] {
        let prediction = book(&format!(r#"{{"v": {other}}}"#));
        assert_eq!(strict(&prediction, &reference), ratio(0, 1), "{other}");
        assert_eq!(values(&prediction, &reference), ratio(1, 1), "{other}");
    }
}

#[test]
fn strict_looks_into_arguments_held_by_a_string() {
    let prediction = book(r#""{\"n\": 2, \"s\": \"x]}\"}""#);
    assert_eq!(strict(&prediction, &book(r#"{"s": "x]}", "n": 2}"#)), ratio(2, 2));
    assert_eq!(strict(&prediction, &book(r#"{"s": "x]}", "n": 2.0}"#)), ratio(1, 2));
}

#[test]
fn a_parameter_named_with_an_escape_is_the_same_parameter() {
    assert_eq!(strict(&book(r#"{"\u0061": 1}"#), &book(r#"{"a": 1}"#)), ratio(1, 1));
    assert_eq!(keys(&book(r#"{"\u0061": 1}"#), &book(r#"{"a": 2}"#)), ratio(1, 1));
}

#[test]
fn deep_arguments_are_read() {
    let depth = 100_000;
    let deep = format!(r#"{{"tree": {}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
    let other = deep.replace('1', "2");
    assert_eq!(valid(&book(&deep)), 1.0);
    assert_eq!(values(&book(&deep), &book(&deep)), ratio(1, 1));
    assert_eq!(values(&book(&deep), &book(&other)), ratio(0, 1));
    assert_eq!(strict(&book(&deep), &book(&deep)), ratio(1, 1));
}

fn arguments() -> impl Strategy<Value = Map<String, Value>> {
    let value =
        prop_oneof![Just(json!(1)), Just(json!(2)), Just(json!("1")), Just(json!(null)), Just(json!([1]))];
    prop::collection::btree_map("[a-d]", value, 0..5).prop_map(|map| map.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ratios_equal_set_arithmetic(predicted in arguments(), wanted in arguments(), wrapped: bool) {
        let text = |arguments: &Map<String, Value>| {
            let object = serde_json::to_string(arguments).unwrap();
            book(&if wrapped { serde_json::to_string(&object).unwrap() } else { object })
        };
        let union = predicted.len() + wanted.keys().filter(|key| !predicted.contains_key(*key)).count();
        let shared = predicted.keys().filter(|key| wanted.contains_key(*key)).count();
        let equal = predicted.iter().filter(|(key, value)| wanted.get(*key) == Some(*value)).count();
        let (prediction, reference) = (text(&predicted), text(&wanted));
        prop_assert_eq!(keys(&prediction, &reference), ratio(shared as u64, union as u64));
        prop_assert_eq!(values(&prediction, &reference), ratio(equal as u64, union as u64));
        prop_assert_eq!(strict(&prediction, &reference), ratio(equal as u64, union as u64));
    }

    #[test]
    fn any_text_has_scores_in_range(prediction in any::<String>(), cut in 0..200_usize) {
        let reference = book(r#"{"a": [1, {"b": "\u00e9"}], "c": "x"}"#);
        let broken = reference.chars().take(cut).chain(prediction.chars()).collect::<String>();
        for text in [&prediction, &broken] {
            prop_assert!([0.0, 1.0].contains(&valid(text)));
            prop_assert!([0.0, 1.0].contains(&name_match(text, &reference)));
            for ratio in [keys(text, &reference), values(text, &reference), strict(text, &reference)] {
                prop_assert!((0.0..=1.0).contains(&ratio.value()));
            }
        }
    }
}
