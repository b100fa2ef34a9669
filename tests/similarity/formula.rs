//! Formulas against published examples and arithmetic.

use proptest::prelude::*;
use rapid_eval::metrics::formula::{Formula, MOST_BYTES, NoValue, Problem, SyntaxError};

use crate::vectors::{field, graders};

fn value(formula: &str, a: f64) -> Result<f64, NoValue> {
    Formula::compile(formula, &["a"]).unwrap_or_else(|error| panic!("{error}")).evaluate(|_| Some(a))
}

fn fault(formula: &str) -> SyntaxError {
    Formula::compile(formula, &["a", "b"]).expect_err(formula)
}

#[test]
fn published_formulas_give_their_values() {
    let formulas = graders("formulas");
    for row in formulas["ok"].as_array().unwrap() {
        let scores = row["scores"].as_object().unwrap();
        let names: Vec<&String> = scores.keys().collect();
        let formula = Formula::compile(field(row, "formula"), &names).unwrap();
        let found = formula.evaluate(|name| scores.get(name)?.as_f64()).unwrap();
        assert!((found - row["value"].as_f64().unwrap()).abs() < 1e-12, "{row}: {found}");
    }
    assert_eq!(formulas["ok"].as_array().unwrap().len(), 12);
}

#[test]
fn published_faults_are_found() {
    let formulas = graders("formulas");
    for row in formulas["bad"].as_array().unwrap() {
        let scores = row["scores"].as_object().unwrap();
        let names: Vec<&String> = scores.keys().collect();
        let compiled = Formula::compile(field(row, "formula"), &names);
        if field(row, "expect").starts_with("formula_parse_error") {
            assert!(compiled.is_err(), "{row}");
        } else {
            let found = compiled.unwrap().evaluate(|name| scores.get(name)?.as_f64());
            assert!(matches!(found, Err(NoValue::NotFinite { .. })), "{row}: {found:?}");
        }
    }
    assert_eq!(formulas["bad"].as_array().unwrap().len(), 7);
}

#[test]
fn operators_bind_as_in_mathematics() {
    for (formula, expected) in [
        ("2 + 3 * 4", 14.0),
        ("(2 + 3) * 4", 20.0),
        ("10 - 4 - 3", 3.0),
        ("24 / 4 / 2", 3.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("(-2) ^ 2", 4.0),
        ("2 ^ -1", 0.5),
        ("2 ^ -1 * 3", 1.5),
        ("2 ^ -2 ^ 2", 0.0625),
        ("- - 3", 3.0),
        ("3 - -2", 5.0),
        ("+3 * -2", -6.0),
        ("-a * 2 + a", -0.5),
        ("min(3)", 3.0),
        ("max(1, min(5, 4), 2) + abs(-1)", 5.0),
        ("floor(-1.5) + ceil(1.2)", 0.0),
        ("exp(log(5)) - 5 + sqrt(9) ^ 2", 9.0),
        (".5 + 1. + 2e1 + 1E-1", 21.6),
        (" \t(\n1 ) ", 1.0),
    ] {
        let found = value(formula, 0.5).unwrap();
        assert!((found - expected).abs() < 1e-12, "{formula}: {found}");
    }
}

#[test]
fn faults_say_where_they_are() {
    for (formula, position, problem) in [
        ("", 1, Problem::NoOperand),
        ("a +", 4, Problem::NoOperand),
        ("a ** 2", 4, Problem::NoOperand),
        ("min()", 5, Problem::NoOperand),
        ("(a,)", 3, Problem::StrayComma),
        ("a, b", 2, Problem::StrayComma),
        ("a b", 3, Problem::NoOperator),
        ("a (b)", 1, Problem::UnknownFunction("a".to_owned())),
        ("(a) (b)", 5, Problem::NoOperator),
        ("2a", 1, Problem::BadNumber),
        ("1.2.3", 1, Problem::BadNumber),
        ("1e999", 1, Problem::BadNumber),
        (".", 1, Problem::BadNumber),
        ("a + nope", 5, Problem::UnknownName("nope".to_owned())),
        ("inf", 1, Problem::UnknownName("inf".to_owned())),
        ("sin(a)", 1, Problem::UnknownFunction("sin".to_owned())),
        ("é; 1", 1, Problem::UnknownName("é".to_owned())),
        ("a; 1", 2, Problem::UnknownCharacter(';')),
        ("a + 'b'", 5, Problem::UnknownCharacter('\'')),
        ("(a", 1, Problem::UnmatchedParenthesis),
        ("max(a, b", 1, Problem::UnmatchedParenthesis),
        ("a)", 2, Problem::UnmatchedParenthesis),
        ("1 + sqrt(a, b)", 5, Problem::TooManyArguments("sqrt")),
        ("__import__('os')", 1, Problem::UnknownFunction("__import__".to_owned())),
    ] {
        assert_eq!(fault(formula), SyntaxError { position, problem }, "{formula}");
    }
    assert_eq!(fault("1 + x").to_string(), "formula, character 5: no grader has the name \"x\"");
}

#[test]
fn a_step_that_is_not_finite_is_an_error_even_where_the_result_would_be() {
    assert_eq!(value("min(1, a / 0)", 1.0), Err(NoValue::NotFinite { position: 10 }));
    assert_eq!(value("max(0, sqrt(a))", -1.0), Err(NoValue::NotFinite { position: 8 }));
    assert_eq!(value("a", f64::NAN), Err(NoValue::NotFinite { position: 1 }));
    assert_eq!(value("exp(a)", 1e9), Err(NoValue::NotFinite { position: 1 }));
}

#[test]
fn names_are_those_of_scores() {
    let formula =
        Formula::compile("tone_2 + größe + tone_2 + max", &["größe", "max", "other", "tone_2"]).unwrap();
    assert_eq!(formula.names().collect::<Vec<_>>(), ["tone_2", "größe", "max"]);
    let found = formula.evaluate(|name| (name != "max").then_some(1.0));
    assert_eq!(found, Err(NoValue::MissingScore("max".to_owned())));
}

#[test]
fn nesting_costs_no_stack() {
    for (open, close) in [("(", ")"), ("abs(", ")"), ("-", ""), ("2^", "")] {
        let times = MOST_BYTES / (open.len() + close.len()) - 1;
        let formula = open.repeat(times) + "1" + &close.repeat(times);
        let compiled = Formula::compile(&formula, &[] as &[&str]).unwrap();
        // A tower of powers of 2 overflows after a few steps; the others are 1 or -1.
        let found = compiled.evaluate(|_| None);
        assert_eq!(found.is_err(), open == "2^", "{found:?}");
    }
    assert_eq!(fault(&"1".repeat(MOST_BYTES + 1)).problem, Problem::TooLong);
}

/// A formula written with all its parentheses, and its value.
fn expression() -> impl Strategy<Value = (String, f64)> {
    let leaf = (-9_i32..=9).prop_map(|n| (format!("({n})"), f64::from(n)));
    leaf.prop_recursive(5, 40, 2, |inner| {
        (inner.clone(), inner, 0..6_usize).prop_map(|((a, x), (b, y), which)| match which {
            0 => (format!("({a}+{b})"), x + y),
            1 => (format!("({a} - {b})"), x - y),
            2 => (format!("({a}*{b})"), x * y),
            3 => (format!("min({a},{b})"), x.min(y)),
            4 => (format!("abs({a})"), x.abs()),
            _ => (format!("(-{a})"), -x),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_equal_those_of_the_tree((formula, expected) in expression()) {
        prop_assert_eq!(value(&formula, 0.0), Ok(expected));
    }

    #[test]
    fn any_text_is_a_formula_or_an_error(text in "[-ab1.e+*/^(),minx \u{e9};]{0,24}") {
        if let Ok(formula) = Formula::compile(&text, &["a", "b"]) {
            let found = formula.evaluate(|_| Some(0.5));
            prop_assert!(found.is_err() || found.is_ok_and(f64::is_finite));
        }
    }
}
