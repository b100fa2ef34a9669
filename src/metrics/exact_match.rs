//! Exact match: 1 if prediction and reference are the same string, else 0.
//!
//! By default the comparison is byte for byte, as Vertex AI documents its `exact_match`: nothing is trimmed,
//! folded or normalized, so `"42\n"` is not `"42"` and a composed `é` is not a decomposed one. Each option
//! loosens that by one rule of the Unicode standard, applied to both texts in this order: normalization,
//! case folding, removal of punctuation, trimming, and normalization again (folding and removal can
//! undo it).
//!
//! ```
//! use rapid_eval::metrics::exact_match::{Options, score};
//!
//! assert_eq!(score("42\n", "42", &Options::default()), 0.0);
//! assert_eq!(score("42\n", "42", &Options { trim_whitespace: true, ..Options::default() }), 1.0);
//! ```

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfkc};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::case_folding::case_folded;

/// What two texts may differ in and still be the same. Nothing, by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// White space (Unicode's) at the start and the end does not count.
    pub trim_whitespace: bool,
    /// Case does not count, by Unicode's full case folding: `STRASSE` is `straße`.
    pub ignore_case: bool,
    /// Characters of general category P do not count. White space around them does.
    pub ignore_punctuation: bool,
    /// Which spellings of a character are one.
    pub normalization: Normalization,
}

/// Unicode normalization forms (UAX #15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Normalization {
    /// As sent.
    #[default]
    None,
    /// Composed and decomposed spellings are one.
    Nfc,
    /// Also full-width, superscript, ligature and other compatibility forms.
    Nfkc,
}

/// 1 if the texts are the same under `options`, else 0.
pub fn score(prediction: &str, reference: &str, options: &Options) -> f64 {
    let same = prediction == reference
        || *options != Options::default() && loosened(prediction, options) == loosened(reference, options);
    f64::from(u8::from(same))
}

fn loosened<'a>(text: &'a str, options: &Options) -> Cow<'a, str> {
    let mut text = normalized(Cow::Borrowed(text), options.normalization);
    if options.ignore_case {
        text = Cow::Owned(case_folded(&text));
    }
    if options.ignore_punctuation && text.contains(is_punctuation) {
        text = Cow::Owned(text.replace(is_punctuation, ""));
    }
    if options.trim_whitespace {
        text = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
    }
    normalized(text, options.normalization)
}

fn normalized(text: Cow<'_, str>, normalization: Normalization) -> Cow<'_, str> {
    match normalization {
        Normalization::Nfc if !is_nfc(&text) => Cow::Owned(text.nfc().collect()),
        Normalization::Nfkc if !is_nfkc(&text) => Cow::Owned(text.nfkc().collect()),
        Normalization::None | Normalization::Nfc | Normalization::Nfkc => text,
    }
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        // ASCII's other marks are symbols (S).
        c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
    } else {
        c.general_category_group() == GeneralCategoryGroup::Punctuation
    }
}
