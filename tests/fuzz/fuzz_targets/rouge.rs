//! ROUGE of every kind against its definition.

#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::rouge::{Kind, Options, Stemmer, score};
use rapid_eval::metrics::text::{Tokenizer, words};
use rapid_eval::metrics::{porter, punkt};
use rapid_eval_fuzz::texts::Texts;
use rapid_eval_fuzz::words::{lcs_table, ngram_matches};
use rust_stemmers::Algorithm;

/// More cells than this are left to the range checks.
const MOST_CELLS: usize = 1 << 17;

#[derive(Debug)]
struct Input {
    options: Options,
    texts: Texts,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let kind = match u.int_in_range(0..=15_u8)? {
            n @ 1..=9 => Kind::N(n),
            10..=12 => Kind::L,
            _ => Kind::LSum,
        };
        let tokenizer = *u.choose(&[Tokenizer::Unicode, Tokenizer::Reference])?;
        let snowball = [Algorithm::English, Algorithm::German, Algorithm::Turkish, Algorithm::Arabic];
        let stemmer = match u.int_in_range(0..=7_u8)? {
            0..=2 => Stemmer::None,
            3..=5 => Stemmer::Porter,
            _ => Stemmer::Snowball(*u.choose(&snowball)?),
        };
        let split_summaries = u.ratio(1, 2)?;
        let options = Options { kind, tokenizer, stemmer, split_summaries };
        Ok(Self { options, texts: Texts::arbitrary(u)? })
    }
}

fuzz_target!(|input: Input| {
    let Input { options, texts: Texts { prediction, reference } } = &input;
    let found = score(prediction, reference, options).expect("they are short");
    for value in [found.precision, found.recall, found.f_measure] {
        assert!((0.0..=1.0).contains(&value), "{found:?}");
    }
    assert!(found.matches <= found.prediction_units.min(found.reference_units), "{found:?}");

    let same = score(reference, reference, options).expect("they are short");
    let expected = if same.reference_units > 0 { 1.0 } else { 0.0 };
    assert_eq!([same.precision, same.recall, same.f_measure], [expected; 3]);

    if options.kind != Kind::LSum {
        let other = score(reference, prediction, options).expect("they are short");
        assert_eq!((found.f_measure, found.precision), (other.f_measure, other.recall));
    }
    by_definition(input.options, prediction, reference, found.matches);
});

fn by_definition(options: Options, prediction: &str, reference: &str, found: u64) {
    let (p, r) = (sentences(options, prediction), sentences(options, reference));
    let (all_p, all_r) = (p.concat(), r.concat());
    let expected = match options.kind {
        Kind::N(n) => ngram_matches(&all_p, &all_r, n.into()),
        Kind::L | Kind::LSum if all_p.len() * all_r.len() > MOST_CELLS => return,
        Kind::L => lcs_table(&all_r, &all_p)[all_r.len()][all_p.len()],
        Kind::LSum => summary_matches(&p, &r),
    };
    assert_eq!(found, expected, "{options:?}");
}

/// The words of each sentence as they are compared.
fn sentences(options: Options, text: &str) -> Vec<Vec<String>> {
    let sentences = match options.kind {
        Kind::LSum if options.split_summaries => punkt::sentences(text),
        Kind::LSum => text.split('\n').collect(),
        Kind::N(_) | Kind::L => vec![text],
    };
    let stem = |word: String| match options.stemmer {
        _ if word.chars().count() <= 3 => word,
        Stemmer::Porter if word.is_ascii() => porter::stem(&word).into_owned(),
        Stemmer::Snowball(algorithm) if word.len() <= 1024 => {
            rust_stemmers::Stemmer::create(algorithm).stem(&word).into_owned()
        }
        Stemmer::None | Stemmer::Porter | Stemmer::Snowball(_) => word,
    };
    let words = |sentence| words(sentence, options.tokenizer).into_iter().map(stem).collect();
    sentences.into_iter().map(words).collect()
}

fn summary_matches(prediction: &[Vec<String>], reference: &[Vec<String>]) -> u64 {
    let mut left: HashMap<&str, u64> = HashMap::new();
    for token in prediction.iter().flatten() {
        *left.entry(token).or_default() += 1;
    }
    let mut matches = 0;
    for sentence in reference {
        let mut union = vec![false; sentence.len()];
        for other in prediction {
            mark(sentence, other, &mut union);
        }
        for (token, _) in sentence.iter().zip(&union).filter(|(_, marked)| **marked) {
            if let Some(count) = left.get_mut(token.as_str()).filter(|count| **count > 0) {
                *count -= 1;
                matches += 1;
            }
        }
    }
    matches
}

/// Walks the table back from the far corner; on a tie the reference's token is dropped.
fn mark(sentence: &[String], other: &[String], union: &mut [bool]) {
    let table = lcs_table(sentence, other);
    let (mut i, mut j) = (sentence.len(), other.len());
    while i > 0 && j > 0 {
        if sentence[i - 1] == other[j - 1] {
            union[i - 1] = true;
            (i, j) = (i - 1, j - 1);
        } else if table[i][j - 1] > table[i - 1][j] {
            j -= 1;
        } else {
            i -= 1;
        }
    }
}
