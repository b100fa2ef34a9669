//! Trajectories: which calls are equal and how they are paired. Expected values are counted by hand.

#[cfg(test)]
mod vectors;

use proptest::prelude::*;
use rapid_eval::metrics::Stop;
use rapid_eval::metrics::trajectory::{self, Call, Ratio};
use serde_json::Value;

const NEVER: Stop<'static> = Stop::NEVER;

fn call<'a>(name: &'a str, input: &'a str) -> Call<'a> {
    Call { name, input: Some(input) }
}

/// One call without input for each letter.
fn calls(letters: &str) -> Vec<Call<'_>> {
    letters.split("").filter(|name| !name.is_empty()).map(|name| Call { name, input: None }).collect()
}

fn exact(predicted: &str, reference: &str) -> f64 {
    trajectory::exact_match(&calls(predicted), &calls(reference), NEVER).unwrap()
}

fn in_order(predicted: &str, reference: &str) -> f64 {
    trajectory::in_order_match(&calls(predicted), &calls(reference), NEVER).unwrap()
}

fn any_order(predicted: &str, reference: &str) -> f64 {
    trajectory::any_order_match(&calls(predicted), &calls(reference), NEVER).unwrap()
}

fn precision(predicted: &str, reference: &str) -> Ratio {
    trajectory::precision(&calls(predicted), &calls(reference), NEVER).unwrap()
}

fn recall(predicted: &str, reference: &str) -> Ratio {
    trajectory::recall(&calls(predicted), &calls(reference), NEVER).unwrap()
}

fn ratio(matches: u64, total: u64) -> Ratio {
    Ratio { matches, total }
}

fn equal(a: Call<'_>, b: Call<'_>) -> bool {
    trajectory::exact_match(&[a], &[b], NEVER).unwrap() == 1.0
}

#[test]
fn field_cases_of_trajectories_hold() {
    fn read<'a>(instance: &'a Value, key: &str) -> Vec<Call<'a>> {
        let calls = instance[key]["tool_calls"].as_array().unwrap();
        let call = |call: &'a Value| Call {
            name: vectors::field(call, "tool_name"),
            input: call["tool_input"].as_str(),
        };
        calls.iter().map(call).collect()
    }
    vectors::check_cases("cases/trajectory.jsonl", |arm, _, instance| {
        let (predicted, reference) =
            (read(instance, "predicted_trajectory"), read(instance, "reference_trajectory"));
        match arm {
            "trajectory_exact_match_input" => trajectory::exact_match(&predicted, &reference, NEVER).unwrap(),
            "trajectory_in_order_match_input" => {
                trajectory::in_order_match(&predicted, &reference, NEVER).unwrap()
            }
            "trajectory_any_order_match_input" => {
                trajectory::any_order_match(&predicted, &reference, NEVER).unwrap()
            }
            "trajectory_precision_input" => {
                trajectory::precision(&predicted, &reference, NEVER).unwrap().value()
            }
            "trajectory_recall_input" => trajectory::recall(&predicted, &reference, NEVER).unwrap().value(),
            _ => panic!("{arm} is not compared here"),
        }
    });
}

#[test]
fn exact_match_wants_the_same_calls_in_the_same_order() {
    assert_eq!(exact("abc", "abc"), 1.0);
    for predicted in ["acb", "ab", "abcc", "abd"] {
        assert_eq!(exact(predicted, "abc"), 0.0, "{predicted}");
    }
}

#[test]
fn in_order_match_allows_calls_in_between() {
    for predicted in ["abc", "xaxbxc", "ababc", "abcabc"] {
        assert_eq!(in_order(predicted, "abc"), 1.0, "{predicted}");
    }
    for predicted in ["acb", "ab", "cab", ""] {
        assert_eq!(in_order(predicted, "abc"), 0.0, "{predicted}");
    }
    assert_eq!(in_order("ab", "aba"), 0.0);
}

#[test]
fn any_order_match_counts_repetitions() {
    for predicted in ["abc", "cba", "xcaxb", "aabbcc"] {
        assert_eq!(any_order(predicted, "abc"), 1.0, "{predicted}");
    }
    assert_eq!(any_order("ab", "aab"), 0.0);
    assert_eq!(any_order("baa", "aab"), 1.0);
}

#[test]
fn precision_and_recall_pair_each_call_once() {
    // a pairs twice, b once, c and x have no partner.
    assert_eq!(precision("aaabx", "aabbc"), ratio(3, 5));
    assert_eq!(recall("aaabx", "aabbc"), ratio(3, 5));
    assert_eq!(precision("aaaa", "a"), ratio(1, 4));
    assert_eq!(recall("aaaa", "a"), ratio(1, 1));
}

#[test]
fn nothing_wanted_and_nothing_done_is_one() {
    assert_eq!((exact("", ""), in_order("", ""), any_order("", "")), (1.0, 1.0, 1.0));
    assert_eq!((precision("", "").value(), recall("", "").value()), (1.0, 1.0));
}

#[test]
fn the_ratio_with_nothing_to_divide_is_zero() {
    assert_eq!((precision("", "ab").value(), recall("", "ab").value()), (0.0, 0.0));
    assert_eq!((precision("ab", "").value(), recall("ab", "").value()), (0.0, 0.0));
    assert_eq!((exact("", "a"), exact("a", "")), (0.0, 0.0));
    // Every one of no calls was made.
    assert_eq!((in_order("a", ""), any_order("a", "")), (1.0, 1.0));
}

#[test]
fn inputs_are_equal_as_json_values() {
    assert!(equal(call("f", r#"{"a": 1, "b": [2]}"#), call("f", r#"{"b":[2.0],"a":1e0}"#)));
    assert!(!equal(call("f", r#"{"a": 1}"#), call("f", r#"{"a": true}"#)));
    assert!(!equal(call("f", "{}"), call("g", "{}")));
    assert!(!equal(call("f", "[1, 2]"), call("f", "[2, 1]")));
}

#[test]
fn inputs_that_are_not_json_are_equal_as_text() {
    assert!(equal(call("f", "x = 1"), call("f", "x = 1")));
    assert!(!equal(call("f", "x = 1"), call("f", "x=1")));
    assert!(!equal(call("f", "text"), call("f", "\"text\"")));
    assert!(!equal(call("f", "f"), call("f", "\"f\"")));
}

#[test]
fn no_input_is_the_empty_object() {
    let nothing = Call { name: "f", input: None };
    assert!(equal(nothing, nothing));
    assert!(equal(nothing, call("f", " { } ")));
    assert!(!equal(nothing, call("f", "null")));
    assert!(!equal(nothing, call("f", "")));
}

#[test]
fn single_tool_use_looks_for_the_name() {
    assert_eq!(trajectory::single_tool_use(&calls("abc"), "b"), 1.0);
    assert_eq!(trajectory::single_tool_use(&calls("abc"), "d"), 0.0);
    assert_eq!(trajectory::single_tool_use(&[], ""), 0.0);
    assert_eq!(trajectory::single_tool_use(&[call("book", "{}")], "Book"), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scores_equal_the_definitions_done_slowly(predicted in "[a-c]{0,6}", reference in "[a-c]{0,5}") {
        let mut left: Vec<char> = predicted.chars().collect();
        let mut matches = 0;
        for wanted in reference.chars() {
            if let Some(at) = left.iter().position(|made| *made == wanted) {
                left.remove(at);
                matches += 1;
            }
        }
        let (made, wanted) = (predicted.len(), reference.len());
        let share = |whole: usize| match (made, wanted) {
            (0, 0) => 1.0,
            _ if whole == 0 => 0.0,
            _ => f64::from(matches) / whole as f64,
        };
        prop_assert_eq!(precision(&predicted, &reference).value(), share(made));
        prop_assert_eq!(recall(&predicted, &reference).value(), share(wanted));
        prop_assert_eq!(any_order(&predicted, &reference) == 1.0, matches as usize == wanted);
        prop_assert_eq!(exact(&predicted, &reference) == 1.0, predicted == reference);
        // All ways to choose calls of the prediction: is one of them the reference?
        let chosen = |bits: u32| predicted.chars().enumerate().filter(move |(at, _)| bits >> at & 1 == 1);
        let found = (0..1_u32 << made).any(|bits| chosen(bits).map(|(_, made)| made).eq(reference.chars()));
        prop_assert_eq!(in_order(&predicted, &reference) == 1.0, found);
    }
}
