//! ROUGE, its tokenizers, stemmer and sentence splitter against their reference implementations.
//!
//! Where the expected values come from: `vectors/rouge/README.md`.

use std::fs;

use rapid_eval::metrics::rouge::{Kind, Options, Stemmer, Tokenizer, score};
use rapid_eval::metrics::{porter, punkt, text};
use serde_json::Value;

fn read(file: &str) -> String {
    fs::read_to_string(format!("{}/tests/vectors/rouge/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn lines(file: &str) -> Vec<Value> {
    read(file)
        .split('\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A text, or a unit repeated with a separator between.
fn spelled_out(text: &Value) -> String {
    match text.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let unit = text["unit"].as_str().unwrap();
            let times = text["times"].as_u64().unwrap() as usize;
            vec![unit; times].join(text["sep"].as_str().unwrap())
        }
    }
}

#[test]
fn every_score_is_rouge_scores_to_the_last_bit() {
    let mut compared = 0;
    for case in lines("scores.jsonl") {
        let (prediction, reference) = (spelled_out(&case["prediction"]), spelled_out(&case["reference"]));
        for (stemming, stemmer) in [("plain", Stemmer::None), ("stem", Stemmer::Porter)] {
            for (name, expected) in case["expected"][stemming].as_object().unwrap() {
                let (kind, split_summaries) = match name.strip_suffix("_split") {
                    Some(kind) => (kind, true),
                    None => (name.as_str(), false),
                };
                let kind: Kind = kind.parse().unwrap();
                let options = Options { kind, tokenizer: Tokenizer::Reference, stemmer, split_summaries };
                let score = score(&prediction, &reference, &options).unwrap();
                let expected: Vec<f64> = serde_json::from_value(expected.clone()).unwrap();
                let found = [score.precision, score.recall, score.f_measure];
                assert_eq!(
                    found.map(f64::to_bits),
                    [expected[0], expected[1], expected[2]].map(f64::to_bits),
                    "{} {stemming} {name}: {found:?} instead of {expected:?}",
                    case["id"],
                );
                compared += 3;
            }
        }
    }
    assert_eq!(compared, 586 * 2 * 12 * 3);
}

#[test]
fn every_stem_is_nltks() {
    let words = read("porter.tsv");
    let mut compared = 0;
    for line in words.lines() {
        let (word, stem) = line.split_once('\t').unwrap();
        assert_eq!(porter::stem(word), stem, "{word}");
        compared += 1;
    }
    assert_eq!(compared, 78_819);
}

#[test]
fn every_token_is_rouge_scores() {
    for case in lines("tokens.jsonl") {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<String> = serde_json::from_value(case["tokens"].clone()).unwrap();
        assert_eq!(text::words(text, Tokenizer::Reference), expected, "{text}");
        if text.is_ascii() {
            assert_eq!(text::words(text, Tokenizer::Unicode), expected, "{text}");
        }
    }
}

#[test]
fn every_sentence_is_nltks() {
    for case in lines("tokens.jsonl") {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<String> = serde_json::from_value(case["sentences"].clone()).unwrap();
        assert_eq!(punkt::sentences(text), expected, "{text}");
    }
}
