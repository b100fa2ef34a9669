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

#[test]
fn faults_reported_of_other_implementations_are_not_here() {
    for case in lines("cases.jsonl") {
        let spec = &case["spec"];
        let stemmer = if spec["use_stemmer"] == true { Stemmer::Porter } else { Stemmer::None };
        let options = Options {
            kind: spec["rouge_type"].as_str().unwrap().parse().unwrap(),
            stemmer,
            ..Options::default()
        };
        let instances = case["instances"].as_array().unwrap();
        for (instance, expected) in instances.iter().zip(case["scores"].as_array().unwrap()) {
            let text = |name: &str| instance[name].as_str().unwrap();
            let score = score(text("prediction"), text("reference"), &options).unwrap();
            assert!(
                (score.f_measure - expected.as_f64().unwrap()).abs() < 1e-5,
                "{score:?} instead of {case}"
            );
        }
    }
}

#[test]
fn scores_are_those_the_vertex_service_returned() {
    let known: Value = serde_json::from_str(&read("vertex.json")).unwrap();
    let mut compared = 0;
    for case in known["cases"].as_array().unwrap() {
        for (kind, recorded) in case["recorded"].as_object().unwrap() {
            let kind = if kind.is_empty() { Kind::default() } else { kind.parse().unwrap() };
            let options = Options { kind, ..Options::default() };
            let scores: Vec<f64> = case["pairs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| {
                    let score =
                        score(pair[0].as_str().unwrap(), pair[1].as_str().unwrap(), &options).unwrap();
                    // The wire carries 32 bits.
                    f64::from(score.f_measure as f32)
                })
                .collect();
            if let Some(expected) = recorded["scores"].as_array() {
                assert_eq!(scores.len(), expected.len());
                for (score, expected) in scores.iter().zip(expected) {
                    assert!(
                        (score - expected.as_f64().unwrap()).abs() <= 0.5e-6,
                        "{score} instead of {expected}"
                    );
                    compared += 1;
                }
            }
            let count = scores.len() as f64;
            let mean = scores.iter().sum::<f64>() / count;
            if let Some(expected) = recorded["mean"].as_f64() {
                assert!((mean - expected).abs() < 1e-6, "mean {mean} instead of {expected} of {kind}");
                compared += 1;
            }
            if let Some(expected) = recorded["std"].as_f64() {
                let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (count - 1.0);
                assert!(
                    (variance.sqrt() - expected).abs() < 1e-6,
                    "deviation {variance} instead of {expected}²"
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 3 + 3 + 2 + 1 + 3 + 2 + 1);
}

#[test]
fn identical_texts_of_any_script_score_one() {
    for text in [
        "שלום עולם",
        "שָׁלוֹם עוֹלָם",
        "यह एक वाक्य है।",
        "今天天气很好。",
        "東京は日本の首都です。",
        "ประเทศไทย",
        "한국어 문장",
        "Größere Übung",
        "مرحبا بالعالم",
        "Ωραία μέρα",
    ] {
        for kind in [Kind::N(1), Kind::N(2), Kind::L, Kind::LSum] {
            let mut options = Options { kind, ..Options::default() };
            if kind == Kind::N(2) && text::words(text, Tokenizer::Unicode).len() < 2 {
                continue;
            }
            assert_eq!(score(text, text, &options).unwrap().f_measure, 1.0, "{text} {kind}");
            // rouge-score sees only the letters a to z: "gr", "ere" and "bung" of the German, none of the rest.
            options.tokenizer = Tokenizer::Reference;
            let expected = if text.starts_with("Grö") { 1.0 } else { 0.0 };
            assert_eq!(score(text, text, &options).unwrap().f_measure, expected, "{text} {kind}");
        }
    }
}

#[test]
fn chinese_is_compared_by_character() {
    // 3 of 4 characters, in order.
    let options = Options { kind: Kind::L, ..Options::default() };
    let score = score("我爱北京", "我在北京", &options).unwrap();
    assert_eq!((score.matches, score.precision, score.recall), (3, 0.75, 0.75));
}

#[test]
fn a_language_brings_its_own_stemmer() {
    let plain = Options { kind: Kind::N(1), ..Options::default() };
    let german = Options { stemmer: Stemmer::for_language("German").unwrap(), ..plain };
    let porter = Options { stemmer: Stemmer::Porter, ..plain };
    // From the sample vocabulary on Snowball's page about its German stemmer.
    let f = |options| score("aufeinander", "aufeinand", &options).unwrap().f_measure;
    assert_eq!((f(plain), f(german)), (0.0, 1.0));
    assert_eq!(Stemmer::for_language("de"), Stemmer::for_language("German"));
    // Porter's stemmer leaves words beyond ASCII alone.
    assert_eq!(score("naïvely naïve", "naïve", &porter).unwrap().matches, 1);
    let unknown = Stemmer::for_language("Klingon").unwrap_err().to_string();
    assert!(unknown.contains("\"Klingon\"") && unknown.contains("german (de)"), "{unknown}");
}

#[test]
fn types_are_read_in_their_usual_spellings() {
    for (name, kind) in [
        ("rouge1", Kind::N(1)),
        ("ROUGE9", Kind::N(9)),
        ("rouge_2", Kind::N(2)),
        ("rougeL", Kind::L),
        ("rougel", Kind::L),
        ("rouge_l", Kind::L),
        ("rougeLsum", Kind::LSum),
        ("ROUGELSUM", Kind::LSum),
        ("rouge_lsum", Kind::LSum),
        ("rouge_l_sum", Kind::LSum),
    ] {
        assert_eq!(name.parse(), Ok(kind), "{name}");
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for name in
        ["", "rouge", "rouge0", "rouge10", "rougen", "rouge__1", "rougeW", "bleu", "röuge1", "rouge1 "]
    {
        let error = name.parse::<Kind>().unwrap_err().to_string();
        assert!(error.contains(&format!("{name:?}")) && error.contains("rougeLsum"), "{error}");
    }
    let error = "x".repeat(1000).parse::<Kind>().unwrap_err().to_string();
    assert!(error.len() < 200, "{error}");
}
