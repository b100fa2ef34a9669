//! Tokens, BLEU, GLEU and METEOR against NLTK. Where the vectors come from: `vectors/similarity/README.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use rapid_eval::metrics::meteor::{self, WordNet};
use rapid_eval::metrics::nltk::Tokenizer;
use rapid_eval::metrics::nltk_bleu::{self, Smoothing};
use rapid_eval::metrics::{Stop, Unscored, gleu, porter};

use crate::vectors::{Comparison, field, rows, text};

const TOKENIZERS: [(&str, Tokenizer); 4] = [
    ("split", Tokenizer::WhiteSpace),
    ("word_tokenize", Tokenizer::Word),
    ("nist_or_word", Tokenizer::AsciiWord),
    ("13a", Tokenizer::Mteval13a),
];

const METHODS: [(&str, Smoothing); 7] = [
    ("method0", Smoothing::Method0),
    ("method1", Smoothing::Method1),
    ("method2", Smoothing::Method2),
    ("method3", Smoothing::Method3),
    ("method4", Smoothing::Method4),
    ("method5", Smoothing::Method5),
    ("method7", Smoothing::Method7),
];

fn wordnet_in(folder: &Path) -> WordNet {
    WordNet::read(|file| std::fs::read_to_string(folder.join(file))).unwrap()
}

/// As much of WordNet as the vectors touch.
static WORDNET: LazyLock<WordNet> = LazyLock::new(|| {
    wordnet_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/similarity/wordnet"))
});

fn with_synonyms(tokenizer: Tokenizer, wordnet: &WordNet) -> meteor::Options<'_> {
    meteor::Options { tokenizer, synonyms: Some(wordnet), ..Default::default() }
}

#[test]
fn tokens_equal_nltks() {
    let mut texts = 0;
    for row in rows("similarity/tokens.jsonl").iter().chain(&rows("similarity/random.jsonl")) {
        let text = field(row, "text");
        assert_eq!(serde_json::json!(Tokenizer::Word.tokens(text)), row["word_tokenize"], "{text:?}");
        let found = Tokenizer::NistInternational.tokens(text);
        assert_eq!(serde_json::json!(found), row["nist_international"], "{text:?}");
        texts += 1;
    }
    assert_eq!(texts, 557 + 1500);
}

#[test]
fn bleu_equals_nltks() {
    let mut comparison = Comparison::default();
    let mut rational = Comparison::default();
    for row in rows("similarity/scores.jsonl") {
        let (prediction, reference) = (text(&row["prediction"]), text(&row["reference"]));
        for (name, tokenizer) in TOKENIZERS {
            for (method, smoothing) in METHODS {
                // Smoothing sees no more than counts; one method is enough for the few long texts.
                if prediction.len() > 20_000 && smoothing != Smoothing::Method4 {
                    continue;
                }
                let options = nltk_bleu::Options { tokenizer, smoothing };
                let found = nltk_bleu::score(&prediction, &reference, &options).unwrap().value;
                let expected = &row["bleu"][name][method];
                let which = match smoothing {
                    Smoothing::Method5 | Smoothing::Method7 => &mut rational,
                    Smoothing::Method0
                    | Smoothing::Method1
                    | Smoothing::Method2
                    | Smoothing::Method3
                    | Smoothing::Method4 => &mut comparison,
                };
                which.add(found, expected, &format!("{} {name} {method}", row["id"]));
            }
        }
    }
    comparison.print("BLEU, methods 0 to 4");
    rational.print("BLEU, methods 5 and 7");
    assert_eq!(comparison.values + rational.values, 16_312);
}

#[test]
fn gleu_equals_nltks_to_the_last_bit() {
    let mut comparison = Comparison::default();
    for row in rows("similarity/scores.jsonl") {
        let (prediction, reference) = (text(&row["prediction"]), text(&row["reference"]));
        for (name, tokenizer) in TOKENIZERS {
            let found = gleu::score(&prediction, &reference, &gleu::Options { tokenizer }).unwrap();
            comparison.add(found.value, &row["gleu"][name], &format!("{} {name}", row["id"]));
        }
    }
    assert_eq!((comparison.values, comparison.differing_bits), (586 * 4, 0));
}

fn check_meteor(wordnet: &WordNet) {
    let mut comparison = Comparison::default();
    for row in rows("similarity/scores.jsonl") {
        let (prediction, reference) = (text(&row["prediction"]), text(&row["reference"]));
        for (name, tokenizer) in &TOKENIZERS[..3] {
            let expected = &row["meteor"][*name];
            let context = format!("{} {name}", row["id"]);
            let options = with_synonyms(*tokenizer, wordnet);
            let found = meteor::score(&prediction, &reference, &options).unwrap();
            let counts = [
                ("exact", found.exact_matches),
                ("stem", found.stem_matches),
                ("syn", found.synonym_matches),
                ("chunks", found.chunks),
                ("hyp_len", found.prediction_length),
                ("ref_len", found.reference_length),
            ];
            for (count, found) in counts {
                assert_eq!(Some(found), expected[count].as_u64(), "{context} {count}");
            }
            assert!(found.used_synonyms);
            comparison.add(found.value, &expected["score"], &context);
            let options = meteor::Options { alpha: 0.8, beta: 1.5, gamma: 0.3, ..options };
            let found = meteor::score(&prediction, &reference, &options).unwrap().value;
            comparison.add(found, &expected["alpha0.8_beta1.5_gamma0.3"], &context);
        }
    }
    comparison.print("METEOR");
    assert_eq!(comparison.values, 586 * 3 * 2);
}

#[test]
fn meteor_equals_nltks_in_every_count_and_score() {
    check_meteor(&WORDNET);
}

#[test]
#[ignore = "needs the folder of all of WordNet 3.0 in the environment variable WORDNET"]
fn meteor_equals_nltks_with_all_of_wordnet() {
    check_meteor(&wordnet_in(&PathBuf::from(std::env::var("WORDNET").unwrap())));
}

#[test]
fn graders_choose_the_tokenizer_by_printable_ascii() {
    let both = |text: &str| (Tokenizer::Grader.tokens(text), Tokenizer::AsciiWord.tokens(text));
    let (word, nist) = (Tokenizer::Word, Tokenizer::NistInternational);
    // "didn't" shows which: did n't, or didn ' t.
    for (text, grader, azure) in [
        ("I didn't.", word, word),
        ("I didn't.\n", nist, word),
        ("I\tdidn't.", nist, word),
        ("I didn't\u{7f}.", nist, word),
        ("I didn't, café.", nist, nist),
    ] {
        assert_eq!(both(text), (grader.tokens(text), azure.tokens(text)), "{text:?}");
    }
}

#[test]
fn texts_without_a_common_word_score_zero() {
    for (prediction, reference) in [("", ""), ("", "a b"), ("a b", ""), ("Rome", "Paris"), (" \n", "\u{1f}")]
    {
        let bleu = nltk_bleu::score(prediction, reference, &nltk_bleu::Options::default()).unwrap();
        let gleu = gleu::score(prediction, reference, &gleu::Options::default()).unwrap();
        let meteor = meteor::score(prediction, reference, &meteor::Options::default()).unwrap();
        assert_eq!((bleu.value, gleu.value, meteor.value), (0.0, 0.0, 0.0), "{prediction:?} {reference:?}");
    }
}

#[test]
fn bleu_with_method_5_can_pass_one() {
    // Equal texts of five tokens: (2+1+1)/3, (4/3+2)/3, (10/9+2)/3, (28/27+2)/3; the fourth root of the product.
    let options = nltk_bleu::Options { smoothing: Smoothing::Method5, ..Default::default() };
    let found = nltk_bleu::score("a b c d e", "a b c d e", &options).unwrap().value;
    let expected = (4.0 / 3.0 * 10.0 / 9.0 * 28.0 / 27.0 * 82.0 / 81.0_f64).powf(0.25);
    assert!((found - expected).abs() < 1e-12);
}

#[test]
fn without_wordnet_only_words_and_stems_match() {
    let found = meteor::score("the auto is red", "the car is red", &meteor::Options::default()).unwrap();
    assert_eq!((found.exact_matches, found.synonym_matches, found.used_synonyms), (3, 0, false));
    let options = with_synonyms(Tokenizer::Grader, &WORDNET);
    let found = meteor::score("the auto is red", "the car is red", &options).unwrap();
    assert_eq!((found.exact_matches, found.synonym_matches, found.used_synonyms), (3, 1, true));
}

#[test]
fn a_missing_or_broken_wordnet_file_is_named() {
    let missing = WordNet::read(|_| Err(std::io::ErrorKind::NotFound.into())).unwrap_err();
    assert!(missing.to_string().starts_with("WordNet file data.noun: "), "{missing}");
    for (file, line) in [("data.noun", "00001740 03 n 02 entity 0"), ("index.noun", "dog n 2 0 2 0 00001740")]
    {
        let broken = WordNet::read(|name| {
            Ok(if name == file { format!("  1 licence\n{line}\n") } else { String::new() })
        });
        let message = broken.unwrap_err().to_string();
        assert_eq!(message, format!("WordNet file {file}: line 2 is malformed"));
    }
}

#[test]
fn the_files_of_wordnet_are_the_ones_asked_for() {
    let mut asked = Vec::new();
    let empty = WordNet::read(|file| {
        asked.push(file);
        Ok(String::new())
    });
    assert!(empty.is_ok());
    asked.sort_unstable();
    let mut named = WordNet::FILES;
    named.sort_unstable();
    assert_eq!(asked, named);
}

#[test]
fn a_raised_stop_ends_the_work() {
    let raised = AtomicBool::new(true);
    let stop = Stop::when(&raised);
    let stopped = Some(Unscored::Stopped);
    assert_eq!(nltk_bleu::score_until("a", "a", &nltk_bleu::Options::default(), stop).err(), stopped);
    assert_eq!(gleu::score_until("a", "a", &gleu::Options::default(), stop).err(), stopped);
    assert_eq!(meteor::score_until("a", "a", &meteor::Options::default(), stop).err(), stopped);
}

#[test]
fn long_runs_of_marks_are_read() {
    for unit in ["'", ".", "\"", ",'", ".)", "`", "' ", "a'", "-", "，a", "cannot", "'t"] {
        let text = unit.repeat(20_000);
        let found = meteor::score(&text, &text, &with_synonyms(Tokenizer::Grader, &WORDNET)).unwrap();
        assert_eq!(found.exact_matches, found.prediction_length, "{unit:?}");
    }
}

/// Sentence BLEU with smoothing 4, from lists and maps.
fn textbook_bleu(prediction: &[String], reference: &[String]) -> f64 {
    let length = prediction.len() as f64;
    let mut logs = 0.0;
    let mut unmatched = 0;
    for order in 1..=4 {
        let matches = shared(prediction, reference, order) as f64;
        if order == 1 && matches == 0.0 {
            return 0.0;
        }
        let all = (prediction.len() + 1).saturating_sub(order).max(1) as f64;
        let matches = if matches == 0.0 && length > 1.0 {
            unmatched += 1;
            length.ln() / (5.0 * f64::from(1 << unmatched))
        } else {
            matches
        };
        if matches > 0.0 {
            logs += (matches / all).ln() / 4.0;
        }
    }
    let penalty = (1.0 - reference.len() as f64 / length).min(0.0).exp();
    penalty * logs.exp()
}

/// The n-grams two lists share, each as often as both have it.
fn shared(prediction: &[String], reference: &[String], order: usize) -> usize {
    let mut left: HashMap<&[String], usize> = HashMap::new();
    for ngram in reference.windows(order) {
        *left.entry(ngram).or_default() += 1;
    }
    let mut matches = 0;
    for ngram in prediction.windows(order) {
        if let Some(left) = left.get_mut(ngram).filter(|left| **left > 0) {
            *left -= 1;
            matches += 1;
        }
    }
    matches
}

/// METEOR's alignment by looking at every pair of words, without synonyms.
fn textbook_meteor(prediction: &[String], reference: &[String]) -> (usize, usize) {
    let keyed = |list: &[String], stem: bool| -> Vec<String> {
        let lowered = list.iter().map(|word| word.to_lowercase());
        lowered.map(|word| if stem { porter::stem(&word).into_owned() } else { word }).collect()
    };
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for stem in [false, true] {
        let (predicted, wanted) = (keyed(prediction, stem), keyed(reference, stem));
        for at in (0..predicted.len()).rev() {
            let found = (0..wanted.len()).rev().find(|to| {
                let free = pairs.iter().all(|(a, b)| *a != at && b != to);
                free && predicted[at] == wanted[*to]
            });
            pairs.extend(found.map(|to| (at, to)));
        }
    }
    pairs.sort_unstable();
    let breaks = pairs.windows(2).filter(|pair| pair[1] != (pair[0].0 + 1, pair[0].1 + 1)).count();
    (pairs.len(), if pairs.is_empty() { 0 } else { breaks + 1 })
}

fn few_words() -> impl Strategy<Value = String> {
    prop_oneof!["((cat|cats|Cat|run|running|a|b) ){0,10}", "([abc] ){0,12}", any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scores_equal_the_textbook(prediction in few_words(), reference in few_words()) {
        for (_, tokenizer) in TOKENIZERS {
            let (predicted, wanted) = (tokenizer.tokens(&prediction), tokenizer.tokens(&reference));
            let options = nltk_bleu::Options { tokenizer, ..Default::default() };
            let bleu = nltk_bleu::score(&prediction, &reference, &options).unwrap().value;
            prop_assert!((bleu - textbook_bleu(&predicted, &wanted)).abs() < 1e-12);

            let gleu = gleu::score(&prediction, &reference, &gleu::Options { tokenizer }).unwrap();
            prop_assert_eq!(gleu.matches as usize, (1..=4).map(|n| shared(&predicted, &wanted, n)).sum::<usize>());

            let options = meteor::Options { tokenizer, ..Default::default() };
            let meteor = meteor::score(&prediction, &reference, &options).unwrap();
            let matches = (meteor.exact_matches + meteor.stem_matches) as usize;
            prop_assert_eq!((matches, meteor.chunks as usize), textbook_meteor(&predicted, &wanted));
        }
    }

    #[test]
    fn scores_stay_in_range_and_gleu_is_symmetric(a in few_words(), b in few_words()) {
        let options = nltk_bleu::Options::default();
        let bleu = nltk_bleu::score(&a, &b, &options).unwrap().value;
        let there = gleu::score(&a, &b, &gleu::Options::default()).unwrap().value;
        let back = gleu::score(&b, &a, &gleu::Options::default()).unwrap().value;
        let meteor = meteor::score(&a, &b, &with_synonyms(Tokenizer::Grader, &WORDNET)).unwrap().value;
        for value in [bleu as f32 as f64, there, meteor as f32 as f64] {
            prop_assert!((0.0..=1.0).contains(&value), "{}", value);
        }
        prop_assert_eq!(there, back);
    }

    #[test]
    fn a_text_against_itself_has_no_gap(a in few_words()) {
        let found = meteor::score(&a, &a, &meteor::Options::default()).unwrap();
        prop_assert_eq!(found.exact_matches, found.prediction_length);
        let whole = gleu::score(&a, &a, &gleu::Options::default()).unwrap();
        prop_assert_eq!(whole.value, if whole.prediction_ngrams == 0 { 0.0 } else { 1.0 });
    }

    #[test]
    fn tokens_are_never_blank(a in any::<String>()) {
        for (_, tokenizer) in TOKENIZERS {
            prop_assert!(tokenizer.tokens(&a).iter().all(|token| !token.trim().is_empty()));
        }
    }
}
