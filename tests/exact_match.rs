//! Exact match against Python's string equality, Unicode functions, and the scores recorded from Vertex AI.

#[cfg(test)]
mod vectors;

use proptest::prelude::*;
use rapid_eval::metrics::exact_match::{Normalization, Options, score};
use vectors::{field, lines, rows};

const STRICT: Options = Options {
    trim_whitespace: false,
    ignore_case: false,
    ignore_punctuation: false,
    normalization: Normalization::None,
};
const ANY_CASE: Options = Options { ignore_case: true, ..STRICT };
const NO_PUNCTUATION: Options = Options { ignore_punctuation: true, ..STRICT };

/// Every set of options, with the name that the vectors give it.
fn all_options() -> Vec<(String, Options)> {
    let mut all = Vec::new();
    for (form, normalization) in
        [("", Normalization::None), ("NFC", Normalization::Nfc), ("NFKC", Normalization::Nfkc)]
    {
        for bits in 0..8_u8 {
            let options = Options {
                ignore_case: bits & 1 != 0,
                ignore_punctuation: bits & 2 != 0,
                trim_whitespace: bits & 4 != 0,
                normalization,
            };
            let named = [
                (form, !form.is_empty()),
                ("case", options.ignore_case),
                ("punctuation", options.ignore_punctuation),
                ("trim", options.trim_whitespace),
            ];
            let names: Vec<&str> = named.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
            all.push((names.join(" "), options));
        }
    }
    all
}

fn character(hexadecimal: &str) -> char {
    char::from_u32(u32::from_str_radix(hexadecimal, 16).unwrap()).unwrap()
}

#[test]
fn strict_scores_equal_string_equality() {
    let rows = rows("exact_match/pairs.jsonl");
    for row in &rows {
        let found = score(field(row, "prediction"), field(row, "reference"), &Options::default());
        assert_eq!(Some(found), row["score"].as_f64(), "{}", row["id"]);
    }
    assert_eq!(rows.len(), 1_018);
}

#[test]
fn loose_scores_equal_pythons_unicode_functions() {
    let mut equal = 0;
    for row in rows("exact_match/loose.jsonl") {
        let names: Vec<&str> =
            row["equal"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for (name, options) in all_options() {
            let expected = if names.contains(&name.as_str()) { 1.0 } else { 0.0 };
            let found = score(field(&row, "prediction"), field(&row, "reference"), &options);
            assert_eq!(found, expected, "{name:?} of {row}");
            equal += names.len();
        }
    }
    assert!(equal > 0);
}

#[test]
fn every_character_folds_as_in_python() {
    let table: Vec<(char, String)> = lines("exact_match/casefold.tsv")
        .iter()
        .map(|line| {
            let (from, to) = line.split_once('\t').unwrap();
            (character(from), to.split(' ').map(character).collect())
        })
        .collect();
    for (from, to) in &table {
        assert_eq!(score(&from.to_string(), to, &ANY_CASE), 1.0, "{from:?} {to:?}");
        assert_eq!(score(&from.to_string(), to, &STRICT), 0.0, "{from:?} {to:?}");
    }
    assert_eq!(table.len(), 1_530);
}

#[test]
fn characters_that_fold_to_themselves_stay_apart() {
    // Dotless i, long-s ligature's parts and Cherokee capitals have no other form under full folding.
    for (a, b) in [("ı", "i"), ("ı", "I"), ("ſ", "f"), ("Ꭰ", "Ꭱ"), ("ɐ", "a")] {
        assert_eq!(score(a, b, &ANY_CASE), 0.0, "{a} {b}");
    }
}

#[test]
fn every_punctuation_mark_can_be_ignored() {
    let mut marks = 0;
    for line in lines("exact_match/punctuation.tsv") {
        let (first, last) = line.split_once('\t').unwrap();
        for mark in character(first)..=character(last) {
            assert_eq!(score(&format!("a{mark}b"), "ab", &NO_PUNCTUATION), 1.0, "{mark:?}");
            marks += 1;
        }
    }
    assert_eq!(marks, 819);
}

#[test]
fn symbols_are_no_punctuation() {
    for symbol in "$+<=>^`|~€©😀".chars() {
        assert_eq!(score(&format!("a{symbol}"), "a", &NO_PUNCTUATION), 0.0, "{symbol}");
    }
}

#[test]
fn punctuation_goes_before_the_trimming() {
    let options = Options { trim_whitespace: true, ..NO_PUNCTUATION };
    assert_eq!(score("Paris .", "Paris", &options), 1.0);
    assert_eq!(score("Paris .", "Paris", &NO_PUNCTUATION), 0.0);
}

#[test]
fn scores_equal_those_recorded_from_vertex() {
    for row in rows("exact_match/vertex.jsonl") {
        for (pair, expected) in row["pairs"].as_array().unwrap().iter().zip(row["scores"].as_array().unwrap())
        {
            let (prediction, reference) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
            assert_eq!(Some(score(prediction, reference, &STRICT)), expected.as_f64(), "{pair}");
        }
    }
}

#[test]
fn field_cases_of_exact_match_hold() {
    vectors::check_cases("cases/exact_match.jsonl", |arm, _, instance| {
        assert_eq!(arm, "exact_match_input");
        score(field(instance, "prediction"), field(instance, "reference"), &STRICT)
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strict_is_equality_of_strings(a in any::<String>(), b in any::<String>()) {
        prop_assert_eq!(score(&a, &b, &STRICT), f64::from(u8::from(a == b)));
        prop_assert_eq!(score(&a, &a, &STRICT), 1.0);
    }

    #[test]
    fn looser_options_never_part_what_was_equal(text in any::<String>(), pad in "[ \t\n]{0,3}") {
        for (name, options) in all_options() {
            prop_assert_eq!(score(&text, &text.clone(), &options), 1.0, "{}", name);
            if options.trim_whitespace {
                prop_assert_eq!(score(&format!("{pad}{text}{pad}"), &text, &options), 1.0, "{}", name);
            }
        }
    }

    #[test]
    fn prediction_and_reference_can_change_places(a in "[aAéÉe\u{301}ßs. ]{0,4}", b in "[aAéÉe\u{301}ßs. ]{0,4}") {
        for (name, options) in all_options() {
            prop_assert_eq!(score(&a, &b, &options), score(&b, &a, &options), "{}", name);
        }
    }
}
