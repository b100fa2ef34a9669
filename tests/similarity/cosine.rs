//! Cosine against exact arithmetic.

use proptest::prelude::*;
use rapid_eval::metrics::cosine::{NoCosine, of_vectors, of_words};
use serde_json::Value;

use crate::vectors::rows;

fn vector(value: &Value) -> Vec<f64> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn cosines_are_exact_to_1e_12_of_their_size() {
    let (mut values, mut zeros) = (0, 0);
    for row in rows("similarity/cosine.jsonl") {
        let found = of_vectors(&vector(&row["a"]), &vector(&row["b"])).unwrap();
        match row["cosine"].as_f64() {
            Some(expected) => {
                assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} is not {expected}");
                values += 1;
            }
            None => {
                assert_eq!(found, 0.0, "a vector of zeros");
                zeros += 1;
            }
        }
    }
    assert_eq!((values, zeros), (36, 2));
}

#[test]
fn very_large_and_small_vectors_have_a_cosine() {
    for factor in [1e300, 1e-300, 1e-308, f64::MAX / 4.0] {
        let (a, b) = ([3.0 * factor, 4.0 * factor], [4.0, 3.0]);
        assert!((of_vectors(&a, &b).unwrap() - 0.96).abs() < 1e-12, "{factor}");
    }
}

#[test]
fn vectors_that_do_not_fit_are_refused() {
    assert_eq!(of_vectors(&[1.0], &[1.0, 2.0]), Err(NoCosine::Dimensions { first: 1, second: 2 }));
    assert_eq!(of_vectors(&[f64::NAN], &[1.0]), Err(NoCosine::NotFinite));
    assert_eq!(of_vectors(&[f64::INFINITY], &[1.0]), Err(NoCosine::NotFinite));
    assert_eq!(of_vectors(&[], &[]), Ok(0.0));
}

#[test]
fn word_counts_make_the_vectors_of_texts() {
    // the 2, cat 1, dog 1 against the 1, cat 2: (2·1 + 1·2) / sqrt(6·5).
    let found = of_words("The cat, the dog", "the CAT cat").unwrap();
    assert!((found - 4.0 / 30.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(of_words("Straße 東京", "STRASSE 東 京!").unwrap(), 1.0);
    assert_eq!(of_words("red", "blue").unwrap(), 0.0);
    for (a, b) in [("", ""), ("a", ""), ("...", "...")] {
        assert_eq!(of_words(a, b).unwrap(), 0.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cosines_stay_in_range_and_are_symmetric(a in prop::collection::vec(-1e3..1e3, 1..20)) {
        let b: Vec<f64> = a.iter().rev().copied().collect();
        let found = of_vectors(&a, &b).unwrap();
        prop_assert!((-1.0..=1.0).contains(&found));
        prop_assert_eq!(found, of_vectors(&b, &a).unwrap());
        prop_assert!((of_vectors(&a, &a).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn word_cosines_stay_in_range_and_are_symmetric(a in "([abc] ){0,9}", b in "([abc] ){0,9}") {
        let found = of_words(&a, &b).unwrap();
        prop_assert!((0.0..=1.0).contains(&found));
        prop_assert_eq!(found, of_words(&b, &a).unwrap());
        let expected = f64::from(u8::from(!a.is_empty()));
        prop_assert!((of_words(&a, &a).unwrap() - expected).abs() < 1e-12);
    }
}
