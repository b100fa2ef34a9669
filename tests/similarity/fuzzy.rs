//! Fuzzy match against RapidFuzz.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use rapid_eval::metrics::fuzzy::{MOST_STEPS, score, score_until};
use rapid_eval::metrics::{Stop, Unscored};

use crate::vectors::{field, rows, text};

#[test]
fn ratios_equal_rapidfuzz_to_the_last_bit() {
    let mut values = 0;
    for row in rows("similarity/scores.jsonl") {
        let Some(ratio) = row["fuzzy"]["ratio"].as_f64() else { continue };
        let found = score(&text(&row["prediction"]), &text(&row["reference"])).unwrap();
        assert_eq!(found.to_bits(), (ratio / 100.0).to_bits(), "{}", row["id"]);
        assert!((found - row["fuzzy"]["indel"].as_f64().unwrap()).abs() < 1e-15);
        values += 1;
    }
    assert_eq!(values, 583);
}

#[test]
fn random_ratios_equal_rapidfuzz_to_the_last_bit() {
    let mut before = String::new();
    let rows = rows("similarity/random.jsonl");
    for row in &rows {
        let text = field(row, "text");
        let ratio = row["ratio_to_last"].as_f64().unwrap();
        assert_eq!(score(&before, text).unwrap().to_bits(), (ratio / 100.0).to_bits(), "{before:?} {text:?}");
        text.clone_into(&mut before);
    }
    assert_eq!(rows.len(), 1500);
}

#[test]
fn work_over_the_limit_is_refused_at_once() {
    // Two texts of 8 MiB that share only letters: 2^23 times 2^23 pairs, 64 at a step.
    let (a, b) = ("ab".repeat(1 << 22), "ba".repeat(1 << 22) + "c");
    let Err(Unscored::OverLimit { what, found, limit }) = score(&a, &("c".to_owned() + &b)) else {
        panic!("not refused")
    };
    assert_eq!((what, limit), ("fuzzy_match steps of 64 pairs of characters", MOST_STEPS));
    assert!(found > limit, "{found}");
}

#[test]
fn long_texts_with_equal_ends_are_cheap() {
    let (a, b) = ("é".repeat(4 << 20) + "x", "é".repeat(4 << 20) + "y");
    let both = f64::from(2 * (4 << 20) + 2);
    assert!((score(&a, &b).unwrap() - (both - 2.0) / both).abs() < 1e-12);
}

#[test]
fn a_raised_stop_ends_the_work() {
    let raised = AtomicBool::new(true);
    assert_eq!(score_until("a", "b", Stop::when(&raised)), Err(Unscored::Stopped));
}

/// The longest common subsequence from the full table.
fn textbook_lcs(a: &[char], b: &[char]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (at, y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if x == y { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scores_equal_the_textbook_both_ways(a in "[abc\0é中😀]{0,90}", b in "[abc\0é中😀]{0,90}") {
        let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let both = left.len() + right.len();
        let expected = if both == 0 { 1.0 } else { 2.0 * textbook_lcs(&left, &right) as f64 / both as f64 };
        let found = score(&a, &b).unwrap();
        prop_assert!((found - expected).abs() < 1e-12);
        prop_assert_eq!(found, score(&b, &a).unwrap());
        prop_assert!((0.0..=1.0).contains(&found));
        prop_assert_eq!(score(&a, &a).unwrap(), 1.0);
    }
}
