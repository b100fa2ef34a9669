//! Keyword match.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use rapid_eval::metrics::keyword_match::{MOST_STEPS, Mode, NoKeywordScore, Options, score, score_until};
use rapid_eval::metrics::{Stop, Unscored};
use unicode_segmentation::UnicodeSegmentation;

use crate::vectors::{field, rows};

const WORDS: Options = Options { mode: Mode::Any, substring: false, case_sensitive: false };

fn found(text: &str, keyword: &str, options: Options) -> bool {
    score(text, &[keyword], &options).unwrap().passed
}

#[test]
fn field_cases_of_keywords_hold() {
    for case in rows("cases/keyword_match.jsonl") {
        let none = Vec::new();
        for step in std::iter::once(&case).chain(case["more"].as_array().unwrap_or(&none)) {
            let request = &step["request"]["keyword_match"];
            let keywords: Vec<String> = serde_json::from_value(request["keywords"].clone()).unwrap();
            let mode = if field(request, "mode") == "all" { Mode::All } else { Mode::Any };
            let found = score(field(request, "response"), &keywords, &Options { mode, ..WORDS });
            match step["expect"]["pass"].as_bool() {
                Some(pass) => assert_eq!(found.unwrap().passed, pass, "{step}"),
                None => assert!(matches!(found, Err(NoKeywordScore::Blank { index: 1 })), "{step}"),
            }
        }
    }
}

#[test]
fn a_keyword_is_found_between_word_boundaries() {
    for (text, keyword, expected) in [
        ("Your Refund was sent.", "refund", true),
        ("non-refundable", "refund", false),
        ("the refund's status", "refund", false),
        ("I can't", "can", false),
        ("I can.", "can", true),
        ("C++ and C#", "c++", true),
        ("C++ and C#", "C#", true),
        ("1,000.50", "000", false),
        ("customer\n  service", "Customer Service", true),
        ("customer service", " service ", true),
        ("我要退款吗", "退款", true),
        ("Große STRASSE", "straße", true),
        ("cafe\u{301} open", "CAFÉ", true),
        ("cafe\u{301}", "cafe", false),
        ("snake_case", "case", false),
        ("👍🏽!", "👍🏽", true),
        ("", "a", false),
        // The first place is inside a word, the one that overlaps it is not.
        ("xa a a", "a a", true),
        ("aab ab", "ab", true),
    ] {
        assert_eq!(found(text, keyword, WORDS), expected, "{keyword:?} in {text:?}");
    }
}

#[test]
fn options_look_inside_words_and_at_case() {
    let inside = Options { substring: true, ..WORDS };
    assert!(found("nonrefundable", "REFUND", inside));
    assert!(!found("a  b", "a b", inside));
    let exact = Options { case_sensitive: true, ..WORDS };
    assert!(found("the Refund", "Refund", exact) && !found("the Refund", "refund", exact));
}

#[test]
fn the_score_is_the_share_found_and_the_mode_decides_who_passes() {
    let any = score("a b", &["a", "b", "c", "d"], &WORDS).unwrap();
    assert_eq!((any.value, any.passed, any.found), (0.5, true, vec![true, true, false, false]));
    let all = Options { mode: Mode::All, ..WORDS };
    assert!(!score("a b", &["a", "c"], &all).unwrap().passed);
    assert!(score("a b", &["a", "b"], &all).unwrap().passed);
    assert!(!score("x", &["a"], &WORDS).unwrap().passed);
}

#[test]
fn blank_and_missing_keywords_are_refused() {
    assert_eq!(score("a", &[] as &[&str], &WORDS), Err(NoKeywordScore::NoKeywords));
    assert_eq!(score("a", &["a", " \u{a0}"], &WORDS), Err(NoKeywordScore::Blank { index: 1 }));
}

#[test]
fn self_similar_texts_take_linear_time() {
    // Found at every place but never at a boundary: a search that starts over would take n·m steps.
    let text = "a".repeat(1 << 20);
    assert!(!found(&text, &text[1..text.len() / 2], WORDS));
}

#[test]
fn too_much_work_is_refused_and_a_raised_stop_ends_it() {
    let text = "a".repeat(1 << 22);
    let keywords = vec!["b"; 1024];
    let refused = score(&text, &keywords, &WORDS);
    let Err(NoKeywordScore::Unscored(Unscored::OverLimit { found, limit, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((found, limit), (1024 * ((1 << 22) + 1), MOST_STEPS));
    let raised = AtomicBool::new(true);
    let stopped = score_until("a", &["a"], &WORDS, Stop::when(&raised));
    assert_eq!(stopped, Err(NoKeywordScore::Unscored(Unscored::Stopped)));
}

/// Whether some run of whole pieces between word boundaries is the keyword.
fn textbook(text: &str, keyword: &str) -> bool {
    let pieces: Vec<&str> = text.split_word_bounds().collect();
    (0..pieces.len()).any(|from| (from + 1..=pieces.len()).any(|to| pieces[from..to].concat() == keyword))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keywords_are_found_as_in_the_textbook(text in "([ab.' é中]){0,14}", keyword in "[ab.'é中]( ?[ab.'é中]){0,3}") {
        let spaced = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(found(&spaced, &keyword, WORDS), textbook(&spaced, &keyword));
        let inside = Options { substring: true, ..WORDS };
        prop_assert_eq!(found(&text, &keyword, inside), text.contains(&keyword));
    }
}
