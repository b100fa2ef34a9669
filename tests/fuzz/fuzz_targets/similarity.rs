//! The text similarity metrics against their definitions.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::nltk::Tokenizer;
use rapid_eval::metrics::nltk_bleu::{self, Smoothing};
use rapid_eval::metrics::text::{self, words};
use rapid_eval::metrics::{cosine, fuzzy, gleu, meteor, porter, token_f1};
use rapid_eval_fuzz::texts::Texts;
use rapid_eval_fuzz::words::{lcs_table, ngram_matches};

/// More pairs of characters than this are left to the range checks.
const MOST_CELLS: usize = 1 << 17;

#[derive(Debug)]
struct Input {
    tokenizer: Tokenizer,
    smoothing: Smoothing,
    texts: Texts,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let tokenizers = [
            Tokenizer::Grader,
            Tokenizer::AsciiWord,
            Tokenizer::Word,
            Tokenizer::NistInternational,
            Tokenizer::WhiteSpace,
            Tokenizer::Mteval13a,
        ];
        let smoothings = [
            Smoothing::Method0,
            Smoothing::Method1,
            Smoothing::Method2,
            Smoothing::Method3,
            Smoothing::Method4,
            Smoothing::Method5,
            Smoothing::Method7,
        ];
        Ok(Self {
            tokenizer: *u.choose(&tokenizers)?,
            smoothing: *u.choose(&smoothings)?,
            texts: Texts::arbitrary(u)?,
        })
    }
}

fuzz_target!(|input: Input| {
    let Input { tokenizer, smoothing, texts: Texts { prediction, reference } } = &input;
    let (p, r) = (tokens(prediction, *tokenizer), tokens(reference, *tokenizer));
    let matches: [u64; 4] = std::array::from_fn(|index| ngram_matches(&p, &r, index + 1));

    let bleu = nltk_bleu::Options { tokenizer: *tokenizer, smoothing: *smoothing };
    let bleu = nltk_bleu::score(prediction, reference, &bleu).expect("they are short");
    assert_eq!(bleu.matches, matches);
    assert_eq!((bleu.prediction_length, bleu.reference_length), (p.len() as u64, r.len() as u64));
    // Methods 5 and 7 pass 1, by a half at most: the mean of three numbers of which one can be 2.
    let most = if matches!(smoothing, Smoothing::Method5 | Smoothing::Method7) { 1.5 } else { 1.0 + 1e-9 };
    assert!((0.0..=most).contains(&bleu.value), "{bleu:?}");
    assert_eq!(bleu.value > 0.0, matches[0] > 0 && bleu.brevity_penalty > 0.0, "{bleu:?}");

    gleu_by_definition(*tokenizer, prediction, reference, (&p, &r), &matches);
    meteor_by_definition(*tokenizer, prediction, reference, &p, &r);
    fuzzy_by_definition(prediction, reference);
    cosine_and_f1(prediction, reference);
});

fn tokens(text: &str, tokenizer: Tokenizer) -> Vec<String> {
    let white = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    let tokens = tokenizer.tokens(text);
    assert!(tokens.iter().all(|token| !token.is_empty() && !token.contains(white)), "{tokens:?}");
    if tokenizer == Tokenizer::WhiteSpace {
        assert_eq!(tokens.concat(), text.replace(white, ""));
    }
    tokens
}

fn gleu_by_definition(
    tokenizer: Tokenizer,
    prediction: &str,
    reference: &str,
    (p, r): (&[String], &[String]),
    matches: &[u64],
) {
    let options = gleu::Options { tokenizer };
    let found = gleu::score(prediction, reference, &options).expect("they are short");
    let ngrams = |tokens: &[String]| (0..4).map(|n| tokens.len().saturating_sub(n) as u64).sum::<u64>();
    let (all_p, all_r) = (ngrams(p), ngrams(r));
    assert_eq!((found.prediction_ngrams, found.reference_ngrams), (all_p, all_r));
    assert_eq!(found.matches, matches.iter().sum::<u64>());
    let expected = if all_p.max(all_r) == 0 { 0.0 } else { found.matches as f64 / all_p.max(all_r) as f64 };
    assert_eq!(found.value, expected);
    assert_eq!(gleu::score(reference, prediction, &options).map(|score| score.value), Ok(found.value));
}

fn meteor_by_definition(tokenizer: Tokenizer, prediction: &str, reference: &str, p: &[String], r: &[String]) {
    let options = meteor::Options { tokenizer, ..Default::default() };
    let found = meteor::score(prediction, reference, &options).expect("they are short");
    assert!((0.0..=1.0).contains(&found.value), "{found:?}");

    let lower = |tokens: &[String]| tokens.iter().map(|token| token.to_lowercase()).collect::<Vec<_>>();
    let stems =
        |tokens: &[String]| tokens.iter().map(|word| porter::stem(word).into_owned()).collect::<Vec<_>>();
    let (p, r) = (lower(p), lower(r));
    let mut places = vec![None; p.len()];
    let exact = stage(&p, &r, &mut places);
    let stem = stage(&stems(&p), &stems(&r), &mut places);
    assert_eq!((found.exact_matches, found.stem_matches, found.synonym_matches), (exact, stem, 0));
    let goes_on = |before: Option<usize>, place: usize| before.is_some_and(|before| before + 1 == place);
    let starts = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| places[before]);
        places[*at].is_some_and(|place| !goes_on(before, place))
    };
    assert_eq!(found.chunks, (0..p.len()).filter(starts).count() as u64);
}

/// From last to first, each word takes the last free one that is the same.
fn stage(p: &[String], r: &[String], places: &mut [Option<usize>]) -> u64 {
    let mut matches = 0;
    for (at, word) in p.iter().enumerate().rev() {
        if places[at].is_none()
            && let Some(place) =
                (0..r.len()).rev().find(|place| r[*place] == *word && !places.contains(&Some(*place)))
        {
            places[at] = Some(place);
            matches += 1;
        }
    }
    matches
}

fn fuzzy_by_definition(a: &str, b: &str) {
    let found = fuzzy::score(a, b).expect("they are short");
    assert!((0.0..=1.0).contains(&found));
    assert_eq!(fuzzy::score(b, a), Ok(found));
    assert_eq!(fuzzy::score(a, a), Ok(1.0));
    let characters = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    let (a, b) = (characters(a), characters(b));
    if a.len() * b.len() <= MOST_CELLS && a.len() + b.len() > 0 {
        let common = lcs_table(&a, &b)[a.len()][b.len()];
        let expected = 2.0 * common as f64 / (a.len() + b.len()) as f64;
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

fn cosine_and_f1(a: &str, b: &str) {
    let any_words = |text| !words(text, text::Tokenizer::Unicode).is_empty();
    let found = cosine::of_words(a, b).expect("they are short");
    assert!((0.0..=1.0).contains(&found));
    assert_eq!(cosine::of_words(b, a), Ok(found));
    let same = cosine::of_words(a, a).expect("they are short");
    assert!((same - f64::from(u8::from(any_words(a)))).abs() < 1e-12, "{same}");

    let vector = |text: &str| text.bytes().take(8).map(|byte| f64::from(byte) - 64.0).collect::<Vec<_>>();
    let (x, y) = (vector(a), vector(b));
    if x.len() == y.len() {
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let lengths = dot(&x, &x) * dot(&y, &y);
        let expected = if lengths == 0.0 { 0.0 } else { dot(&x, &y) / lengths.sqrt() };
        let found = cosine::of_vectors(&x, &y).expect("they are finite and of one length");
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    let found = token_f1::score(a, b).expect("they are short");
    for value in [found.value, found.precision, found.recall] {
        assert!((0.0..=1.0).contains(&value), "{found:?}");
    }
    let other = token_f1::score(b, a).expect("they are short");
    assert_eq!((found.value, found.precision), (other.value, other.recall));
    let same = token_f1::score(a, a).expect("they are short").value;
    assert!(same == 0.0 || same == 1.0);
}
