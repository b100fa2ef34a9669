//! Words by both rules, the stemmers and the sentence splitter.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::rouge::{Kind, Options, Stemmer, score};
use rapid_eval::metrics::text::{Tokenizer, words};
use rapid_eval::metrics::{porter, punkt};
use rapid_eval_fuzz::texts::Texts;
use unicode_normalization::UnicodeNormalization;

const LANGUAGES: [&str; 18] = [
    "ar", "da", "nl", "en", "fi", "fr", "de", "el", "hu", "it", "no", "pt", "ro", "ru", "es", "sv", "ta",
    "tr",
];

fuzz_target!(|input: (u8, Texts)| {
    let (language, Texts { prediction: text, .. }) = &input;
    ascii_words(text);
    unicode_words(text);
    porter_stems(text);
    sentences(text);

    let language = LANGUAGES[usize::from(*language) % LANGUAGES.len()];
    let stemmer = Stemmer::for_language(language).expect("it has a stemmer");
    for tokenizer in [Tokenizer::Unicode, Tokenizer::Reference] {
        let options = Options { kind: Kind::N(1), tokenizer, stemmer, split_summaries: false };
        let score = score(text, text, &options).expect("it is short");
        assert_eq!(score.f_measure, if score.matches == 0 { 0.0 } else { 1.0 }, "{language}");
        assert_eq!(score.matches, words(text, tokenizer).len() as u64, "{language}");
    }
});

fn ascii_words(text: &str) {
    let lower = text.to_lowercase();
    let expected = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let expected: Vec<&str> = expected.collect();
    assert_eq!(words(text, Tokenizer::Reference), expected);
    if text.is_ascii() {
        assert_eq!(words(text, Tokenizer::Unicode), expected);
    }
}

/// Composition and case make no difference.
fn unicode_words(text: &str) {
    let found = words(text, Tokenizer::Unicode);
    assert!(found.iter().all(|word| !word.is_empty()));
    assert_eq!(words(&text.nfc().collect::<String>(), Tokenizer::Unicode), found, "composed");
    assert_eq!(words(&text.nfd().collect::<String>(), Tokenizer::Unicode), found, "decomposed");
    let lower = |c: char| {
        let mut lower = c.to_lowercase();
        if lower.len() == 1 { lower.next().unwrap_or(c) } else { c }
    };
    let lower: String = text.chars().map(lower).collect();
    assert_eq!(words(&lower, Tokenizer::Unicode), found, "lower case");
}

fn porter_stems(text: &str) {
    for word in words(text, Tokenizer::Unicode).iter().map(String::as_str).chain([text]) {
        let stem = porter::stem(word);
        let (before, after) = (word.chars().count(), stem.chars().count());
        assert!(after <= before + 1, "{word} {stem}");
        if before <= 2 {
            assert_eq!(stem, word);
        }
    }
}

/// Sentences are pieces of the text in order, and only white space is between them.
fn sentences(text: &str) {
    let white = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let mut end = 0;
    for sentence in punkt::sentences(text) {
        let start = sentence.as_ptr() as usize - text.as_ptr() as usize;
        assert!(start >= end && !sentence.is_empty(), "{sentence:?}");
        assert!(text[end..start].chars().all(white), "{:?} is lost", &text[end..start]);
        end = start + sentence.len();
    }
    assert!(text[end..].chars().all(white), "{:?} is lost", &text[end..]);
}
