//! BLEU against sacrebleu, the scores recorded from Vertex AI, and a textbook implementation.

#[cfg(test)]
mod vectors;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use rapid_eval::metrics::bleu::{Options, Score, Smoothing, Tokenizer, score, score_until};
use rapid_eval::metrics::{Stop, Unscored};
use serde_json::Value;
use vectors::{field, rows};

fn bleu(prediction: &str, reference: &str, options: Options) -> Score {
    score(prediction, reference, &options).unwrap()
}

/// A text of a vector: a string, or a unit repeated with a separator.
fn text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let times = usize::try_from(value["times"].as_u64().unwrap()).unwrap();
    vec![field(value, "unit"); times].join(field(value, "sep"))
}

/// Compares within 1e-12 and counts the values that differ in a bit.
#[derive(Default)]
struct Comparison {
    values: usize,
    differing_bits: usize,
}

impl Comparison {
    fn add(&mut self, found: f64, expected: &Value, context: &str) {
        let expected = expected.as_f64().unwrap();
        assert!((found - expected).abs() <= 1e-12, "{context}: {found} is not {expected}");
        self.values += 1;
        self.differing_bits += usize::from(found.to_bits() != expected.to_bits());
    }

    fn print(&self, name: &str) {
        println!("{name}: {} values, {} differ in a bit", self.values, self.differing_bits);
    }
}

#[test]
fn scores_and_counts_equal_sacrebleu() {
    let mut comparison = Comparison::default();
    for row in rows("bleu/sentence.jsonl") {
        let (prediction, reference) = (text(&row["prediction"]), text(&row["reference"]));
        for (name, expected) in row["expected"].as_object().unwrap() {
            let (tokenizer, variant) = name.split_once('-').unwrap_or((name, ""));
            let smoothing = match variant {
                "smooth-none" => Smoothing::None,
                "smooth-floor" => Smoothing::Floor,
                "smooth-add-k" => Smoothing::AddK,
                _ => Smoothing::Exp,
            };
            let tokenizer = tokenizer.parse().unwrap();
            for (key, use_effective_order) in [("eff", true), ("noeff", false)] {
                let Some(value) = expected.get(key) else { continue };
                let lowercase = variant == "lc";
                let options = Options { tokenizer, use_effective_order, lowercase, smoothing, max_order: 4 };
                let found = bleu(&prediction, &reference, options);
                let context = format!("{} {name} {key}", row["id"]);
                comparison.add(found.value, value, &context);
                if let Some(counts) = expected.get("counts") {
                    assert_eq!(Value::from(found.matches), *counts, "{context}");
                    assert_eq!(Value::from(found.totals), expected["totals"], "{context}");
                    assert_eq!(Value::from(found.prediction_length), expected["sys_len"], "{context}");
                    assert_eq!(Value::from(found.reference_length), expected["ref_len"], "{context}");
                }
            }
        }
    }
    comparison.print("sentence.jsonl");
    assert!(comparison.values > 9_000);
}

#[test]
fn random_texts_score_as_in_sacrebleu_at_every_maximal_order() {
    let mut comparison = Comparison::default();
    for row in rows("bleu/random.jsonl") {
        let (prediction, reference) = (field(&row, "prediction"), field(&row, "reference"));
        for (order, expected) in row["orders"].as_object().unwrap() {
            for (key, use_effective_order) in [("eff", true), ("noeff", false)] {
                let max_order = order.parse().unwrap();
                let options = Options { use_effective_order, max_order, ..Options::default() };
                let found = bleu(prediction, reference, options);
                comparison.add(found.value, &expected[key], &format!("{prediction:?} {reference:?} {order}"));
            }
        }
    }
    comparison.print("random.jsonl");
    assert!(comparison.values > 6_000);
}

#[test]
fn tokens_equal_sacrebleu() {
    let random = rows("bleu/random.jsonl").into_iter().map(|row| {
        let prediction = row["prediction"].clone();
        (prediction, row["tokens"].clone())
    });
    let plain = rows("bleu/tokens.jsonl").into_iter().map(|row| (row["text"].clone(), row));
    let mut texts = 0;
    for (line, tokens) in plain.chain(random) {
        for name in ["13a", "intl", "zh", "char"] {
            let tokenizer: Tokenizer = name.parse().unwrap();
            let expected: Vec<&str> = python_split(field(&tokens, name)).collect();
            assert_eq!(tokenizer.tokens(line.as_str().unwrap()), expected, "{name} of {line}");
        }
        texts += 1;
    }
    assert!(texts > 900);
}

#[test]
fn scores_equal_those_recorded_from_vertex() {
    for row in rows("bleu/vertex.jsonl") {
        let expected: Vec<f64> = serde_json::from_value(row["scores"].clone()).unwrap();
        let mut found = Vec::new();
        for (pair, expected) in row["pairs"].as_array().unwrap().iter().zip(expected) {
            let value = bleu(pair[0].as_str().unwrap(), pair[1].as_str().unwrap(), Options::default()).value;
            assert!((value - expected).abs() <= 5e-7, "{pair}: {value}");
            found.push(f64::from(value as f32));
        }
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        let squares: f64 = found.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (found.len() - 1) as f64).sqrt();
        assert!((mean - row["mean"].as_f64().unwrap()).abs() < 1e-6, "{mean}");
        assert!((deviation - row["std"].as_f64().unwrap()).abs() < 1e-6, "{deviation}");
    }
}

#[test]
fn field_cases_of_bleu_hold() {
    vectors::check_cases("cases/bleu.jsonl", |arm, spec, instance| {
        assert_eq!(arm, "bleu_input");
        let options = Options {
            use_effective_order: spec["use_effective_order"].as_bool().unwrap_or(false),
            tokenizer: match spec["tokenizer"].as_str() {
                None => Tokenizer::Intl,
                Some("BLEU_TOKENIZER_13A") => Tokenizer::Mteval13a,
                Some(other) => panic!("no case had {other} before"),
            },
            ..Options::default()
        };
        bleu(field(instance, "prediction"), field(instance, "reference"), options).value
    });
}

#[test]
fn empty_texts_score_zero() {
    for (prediction, reference) in [("", ""), ("a b c d", ""), ("", "a b c d"), (" \n", "\u{1f}")] {
        let found = bleu(prediction, reference, Options::default());
        assert_eq!(found.value, 0.0);
        assert_eq!(found.matches, [0; 4]);
    }
}

#[test]
fn precisions_and_penalty_are_reported() {
    // Tokens a b c d against a b x y z: 2 of 4 unigrams, 1 of 3 bigrams, 0 of 2, 0 of 1; the two zeros become
    // 1/2 of 1/2 and 1/4 of 1/1. Penalty exp(1 - 5/4).
    let found = bleu("a b c d", "a b x y z", Options::default());
    let expected = [0.5, 1.0 / 3.0, 0.25, 0.25];
    for (found, expected) in found.precisions.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15);
    }
    assert_eq!(found.totals, [4, 3, 2, 1]);
    assert!((found.brevity_penalty - (-0.25_f64).exp()).abs() < 1e-15);
    // The fourth root of 1/96.
    assert!((found.value - (-0.25_f64).exp() * (1.0_f64 / 96.0).powf(0.25)).abs() < 1e-15);
}

#[test]
fn an_order_out_of_range_is_refused() {
    let options = Options { max_order: 9, ..Options::default() };
    let refused = score("a", "a", &options);
    assert_eq!(refused, Err(Unscored::OverLimit { what: "BLEU max_order", found: 9, limit: 8 }));
}

#[test]
fn order_zero_is_order_four() {
    let four = Options { max_order: 4, ..Options::default() };
    assert_eq!(bleu("a b c d e", "a b c d", Options::default()), bleu("a b c d e", "a b c d", four));
}

#[test]
fn an_unknown_tokenizer_is_named() {
    let error = "13b".parse::<Tokenizer>().unwrap_err().to_string();
    assert_eq!(error, "unknown BLEU tokenizer \"13b\": choose one of 13a, intl, zh, char, none");
}

#[test]
fn a_raised_stop_ends_the_work() {
    let stop = AtomicBool::new(true);
    let found = score_until("a b", "a b", &Options::default(), Stop::when(&stop));
    assert_eq!(found, Err(Unscored::Stopped));
}

#[test]
fn a_long_run_of_punctuation_is_read() {
    // As in the reference: a run after a letter falls into single marks.
    let text = "a".to_owned() + &"!?".repeat(500_000);
    let found = bleu(&text, &text, Options::default());
    assert_eq!(found.totals, [1_000_001, 1_000_000, 999_999, 999_998]);
    assert_eq!(found.matches, found.totals);
}

/// White space as Python has it.
fn is_white(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn python_split(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_white).filter(|token| !token.is_empty())
}

/// The tokenizers as the passes over the text that their definition is written in.
mod textbook {
    use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

    type Is = fn(char) -> bool;

    /// Replaces pairs of neighbours, left to right, each character at most once.
    fn pairs(text: &str, first: Is, second: Is, write: fn(char, char) -> String) -> String {
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::new();
        let mut at = 0;
        while at < chars.len() {
            if at + 1 < chars.len() && first(chars[at]) && second(chars[at + 1]) {
                out += &write(chars[at], chars[at + 1]);
                at += 2;
            } else {
                out.push(chars[at]);
                at += 1;
            }
        }
        out
    }

    fn around(text: &str, is: Is) -> String {
        text.chars().map(|c| if is(c) { format!(" {c} ") } else { c.to_string() }).collect()
    }

    pub(super) fn intl(text: &str) -> String {
        let number: Is = |c| c.general_category_group() == GeneralCategoryGroup::Number;
        let not_number: Is = |c| c.general_category_group() != GeneralCategoryGroup::Number;
        let mark: Is = |c| c.general_category_group() == GeneralCategoryGroup::Punctuation;
        assert!(number('5'));
        let text = pairs(text, not_number, mark, |x, y| format!("{x} {y} "));
        let text = pairs(&text, mark, not_number, |x, y| format!(" {x} {y}"));
        around(&text, |c| c.general_category_group() == GeneralCategoryGroup::Symbol)
    }

    pub(super) fn core(text: &str) -> String {
        let not_digit: Is = |c| !c.is_ascii_digit();
        let stop: Is = |c| c == '.' || c == ',';
        let text = around(text, |c| "!\"#$%&()*+/:;<=>?@[\\]^_`{|}~".contains(c));
        let text = pairs(&text, not_digit, stop, |x, y| format!("{x} {y} "));
        let text = pairs(&text, stop, not_digit, |x, y| format!(" {x} {y}"));
        pairs(&text, |c| c.is_ascii_digit(), |c| c == '-', |x, y| format!("{x} {y} "))
    }

    pub(super) fn mteval_13a(text: &str) -> String {
        let text = text.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
        let text =
            text.replace("&quot;", "\"").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">");
        core(&format!(" {text} "))
    }
}

/// BLEU as in Papineni et al. with lists and maps of words, smoothing `exp`.
fn textbook_bleu(prediction: &[String], reference: &[String], effective: bool) -> f64 {
    let counts = |tokens: &[String], n: usize| {
        let mut counts: HashMap<Vec<String>, usize> = HashMap::new();
        for ngram in tokens.windows(n) {
            *counts.entry(ngram.to_vec()).or_default() += 1;
        }
        counts
    };
    let mut logs = Vec::new();
    let mut zeros = 0;
    for n in 1..=4 {
        let (predicted, wanted) = (counts(prediction, n), counts(reference, n));
        let total: usize = predicted.values().sum();
        let matches: usize = predicted
            .iter()
            .map(|(ngram, count)| (*count).min(wanted.get(ngram).copied().unwrap_or(0)))
            .sum();
        if n == 1 && matches == 0 {
            return 0.0;
        }
        if total == 0 {
            if effective {
                break;
            }
            return 0.0;
        }
        let share = if matches == 0 {
            zeros += 1;
            1.0 / f64::from(1 << zeros) / total as f64
        } else {
            matches as f64 / total as f64
        };
        logs.push(share.ln());
    }
    let ratio = reference.len() as f64 / prediction.len() as f64;
    let penalty = if ratio > 1.0 { (1.0 - ratio).exp() } else { 1.0 };
    penalty * (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// Texts rich in what tokenizers look at.
fn tricky() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab5.,'!$-]{0,12}",
        "([ab] ){0,12}",
        "[a5.,\\-&;<>qult \n中。，５—€½\u{a0}\u{1c}]{0,16}",
        "(&(amp;)?(lt|quot|gt);|<skipped>|-\n|x){0,6}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_equal_those_of_the_passes(text in tricky()) {
        let stripped = text.trim_end_matches(is_white);
        let expect = |rewritten: String| python_split(&rewritten).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(Tokenizer::Intl.tokens(&text), expect(textbook::intl(stripped)));
        prop_assert_eq!(Tokenizer::Mteval13a.tokens(&text), expect(textbook::mteval_13a(stripped)));
        prop_assert_eq!(Tokenizer::None.tokens(&text), expect(text.clone()));
        prop_assert_eq!(Tokenizer::Char.tokens(&text).concat(), text.replace(is_white, ""));
        if text.is_ascii() {
            prop_assert_eq!(Tokenizer::Zh.tokens(&text), expect(textbook::core(stripped.trim_matches(is_white))));
        }
    }

    #[test]
    fn scores_equal_the_textbook(prediction in tricky(), reference in tricky(), effective: bool) {
        for tokenizer in Tokenizer::ALL {
            let options = Options { tokenizer, use_effective_order: effective, ..Options::default() };
            let expected =
                textbook_bleu(&tokenizer.tokens(&prediction), &tokenizer.tokens(&reference), effective);
            let found = bleu(&prediction, &reference, options).value;
            prop_assert!((found - expected).abs() < 1e-12, "{} {} {}", tokenizer, found, expected);
        }
    }

    #[test]
    fn scores_stay_in_range(prediction in tricky(), reference in tricky(), max_order in 0..=8_u8) {
        for smoothing in [Smoothing::Exp, Smoothing::Floor, Smoothing::AddK, Smoothing::None] {
            let options = Options { max_order, smoothing, ..Options::default() };
            let found = bleu(&prediction, &reference, options);
            prop_assert!((0.0..=1.0).contains(&(found.value as f32)), "{:?}", found);
            prop_assert!(found.precisions.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", found);
        }
    }

    #[test]
    fn a_text_against_itself_scores_one(text in tricky()) {
        let options = Options { use_effective_order: true, ..Options::default() };
        let found = bleu(&text, &text, options);
        let expected = if found.prediction_length == 0 { 0.0 } else { 1.0 };
        prop_assert_eq!(found.value as f32, expected);
    }
}
