//! String checks and token F1 against Python.

use proptest::prelude::*;
use rapid_eval::metrics::string_check::{self, Operation, always_passes};
use rapid_eval::metrics::token_f1;

use crate::vectors::{field, graders, rows};

#[test]
fn checks_equal_pythons() {
    let rows = rows("similarity/checks.jsonl");
    let mut lowered_differently = 0;
    for row in &rows {
        let (prediction, reference) = (field(row, "prediction"), field(row, "reference"));
        for (operation, key) in [
            (Operation::Eq, "eq"),
            (Operation::Ne, "ne"),
            (Operation::Like, "like_contains"),
            (Operation::Ilike, "ilike_contains_casefold"),
        ] {
            let found = string_check::score(prediction, reference, operation);
            assert_eq!(Some(found), row[key].as_f64(), "{operation} of {row}");
        }
        lowered_differently += u32::from(row["ilike_contains_lower"] != row["ilike_contains_casefold"]);
    }
    // The vectors tell full case folding from lower-casing.
    assert_eq!((rows.len(), lowered_differently), (1018, 5));
}

#[test]
fn published_checks_hold() {
    let rows = graders("string_check");
    for row in rows.as_array().unwrap() {
        let operation: Operation = field(row, "operation").parse().unwrap();
        let found = string_check::score(field(row, "input"), field(row, "reference"), operation);
        assert_eq!(Some(found), row["score"].as_f64(), "{row}");
    }
    assert_eq!(rows.as_array().unwrap().len(), 15);
}

#[test]
fn a_check_that_cannot_fail_is_told() {
    assert!(always_passes("", Operation::Like) && always_passes("", Operation::Ilike));
    assert!(!always_passes("", Operation::Eq) && !always_passes("", Operation::Ne));
    assert!(!always_passes(" ", Operation::Like));
}

#[test]
fn operations_are_known_by_name() {
    for operation in [Operation::Eq, Operation::Ne, Operation::Like, Operation::Ilike] {
        assert_eq!(operation.name().parse(), Ok(operation));
    }
    assert_eq!("neq".parse(), Ok(Operation::Ne));
    let unknown = "regex".parse::<Operation>().unwrap_err().to_string();
    assert_eq!(unknown, "unknown string check operation \"regex\": choose one of eq, ne, like, ilike");
}

#[test]
fn token_f1_equals_azures_to_the_last_bit() {
    for row in rows("similarity/checks.jsonl") {
        let found = token_f1::score(field(&row, "prediction"), field(&row, "reference")).unwrap();
        assert_eq!(found.value.to_bits(), row["token_f1"].as_f64().unwrap().to_bits(), "{row}");
    }
}

#[test]
fn articles_are_dropped_wherever_they_stand_alone() {
    // "the—end" loses its article, "theend" is a word; "a-b" loses its hyphen and is "ab".
    let found = token_f1::score("the—end a-b theend", "—end ab x").unwrap();
    assert_eq!((found.matches, found.precision, found.recall), (2, 2.0 / 3.0, 2.0 / 3.0));
    assert_eq!(token_f1::score("a", "a").unwrap().value, 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_passes_its_own_checks(a in any::<String>(), b in any::<String>()) {
        let whole = format!("{a}{b}");
        prop_assert_eq!(string_check::score(&whole, &b, Operation::Like), 1.0);
        prop_assert_eq!(string_check::score(&whole.to_uppercase(), &b.to_uppercase(), Operation::Ilike), 1.0);
        let equal = string_check::score(&a, &b, Operation::Eq);
        prop_assert_eq!(equal + string_check::score(&a, &b, Operation::Ne), 1.0);
        prop_assert_eq!(string_check::score(&a, &a, Operation::Eq), 1.0);
    }

    #[test]
    fn token_f1_is_symmetric_and_in_range(a in "([abx] ){0,9}", b in "([abx] ){0,9}") {
        let found = token_f1::score(&a, &b).unwrap().value;
        prop_assert!((0.0..=1.0).contains(&found));
        prop_assert_eq!(found, token_f1::score(&b, &a).unwrap().value);
    }
}
