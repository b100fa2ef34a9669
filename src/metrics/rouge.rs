//! ROUGE: how much of a reference text a prediction repeats, as n-grams or as a common subsequence.
//!
//! C.-Y. Lin, "ROUGE: A Package for Automatic Evaluation of Summaries" (2004). Follows the Python
//! package rouge-score 0.1.2 to the last bit: types `rouge1` to `rouge9`, `rougeL` and `rougeLsum`,
//! each with precision, recall and F-measure in 0..=1. Where it differs:
//!
//! - Text beyond ASCII has Unicode words instead of losing every letter outside `a`–`z`
//!   ([`Tokenizer::Unicode`], the default). [`Tokenizer::Reference`] is the package's rule.
//! - A Snowball stemmer may take the place of the package's Porter stemmer.
//!
//! What the reference leaves open or readers get wrong:
//!
//! - Two texts without a common token score 0, so does an empty text, even against an empty one.
//! - rougeLsum is not a mean over sentences. Each reference sentence takes the union of its longest
//!   common subsequences with all prediction sentences, and a token counts as often as both texts have it.
//! - Sentences are lines. With [`Options::split_summaries`] they are what NLTK's English Punkt splitter
//!   finds, and line breaks no longer separate.
//! - A stemmer sees words of more than three characters. Porter's is for English: it is left out for
//!   words that hold anything but ASCII.
//!
//! Time is linear in the texts for n-grams. Longest common subsequences take one step for 64 cells of
//! the table; a call that would take more than [`MOST_STEPS`] is refused, as are texts of more than
//! [`MOST_BYTES`]. Memory stays within about 256 MiB for texts of 8 MiB.
//!
//! ```
//! use rapid_eval::metrics::rouge::{Kind, Options, score};
//! let options = Options { kind: Kind::L, ..Options::default() };
//! let score = score("the cat", "the cat sat", &options)?;
//! assert_eq!((score.precision, score.recall), (1.0, 2.0 / 3.0));
//! assert_eq!(score.f_measure, 0.8);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use rust_stemmers::Algorithm;

mod reader;
mod summary;

use super::lcs::Lcs;
use super::overlap::Overlap;
pub use super::text::Tokenizer;
use super::{Stop, Unscored};
use reader::Reader;

/// The most steps of 64 LCS cells that one call may take: some seconds of one core.
pub const MOST_STEPS: u64 = 1 << 32;

/// The longest text, in bytes, that can be scored. Callers will want a lower limit.
pub const MOST_BYTES: usize = 1 << 28;

/// Which ROUGE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// N-grams of this length, 1 to 9.
    N(u8),
    /// The longest common subsequence of the whole texts.
    L,
    /// The union of longest common subsequences of sentences.
    #[default]
    LSum,
}

/// A name that is no ROUGE type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKind(String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown ROUGE type {}; there are rouge1 to rouge9, rougeL and rougeLsum", self.0)
    }
}

impl std::error::Error for UnknownKind {}

/// The start of what a caller wrote, quoted, short enough for an error message.
fn quoted(text: &str) -> String {
    const MOST: usize = 24;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    /// Reads `rouge1`, `rougeL`, `rougeLsum` and the like, in any case; `rouge_1`, `rouge_l`,
    /// `rouge_l_sum` and `rouge_lsum` too.
    ///
    /// # Errors
    /// [`UnknownKind`], also for an empty name.
    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let unknown = || UnknownKind(quoted(name));
        let (rouge, kind) = name.split_at_checked(5).ok_or_else(unknown)?;
        if !rouge.eq_ignore_ascii_case("rouge") {
            return Err(unknown());
        }
        match kind.strip_prefix('_').unwrap_or(kind) {
            l if l.eq_ignore_ascii_case("l") => Ok(Self::L),
            sum if sum.eq_ignore_ascii_case("lsum") || sum.eq_ignore_ascii_case("l_sum") => Ok(Self::LSum),
            n => match n.as_bytes() {
                [digit @ b'1'..=b'9'] => Ok(Self::N(digit - b'0')),
                _ => Err(unknown()),
            },
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::N(n) => write!(f, "rouge{n}"),
            Self::L => f.write_str("rougeL"),
            Self::LSum => f.write_str("rougeLsum"),
        }
    }
}

/// What words are reduced to before they are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stemmer {
    /// Nothing.
    #[default]
    None,
    /// NLTK's Porter stem, for words of ASCII characters only.
    Porter,
    /// The Snowball stem of a language, for all words.
    Snowball(Algorithm),
}

/// The languages that have a Snowball stemmer, and their ISO 639-1 codes.
const LANGUAGES: [(&str, &str, Algorithm); 18] = [
    ("arabic", "ar", Algorithm::Arabic),
    ("danish", "da", Algorithm::Danish),
    ("dutch", "nl", Algorithm::Dutch),
    ("english", "en", Algorithm::English),
    ("finnish", "fi", Algorithm::Finnish),
    ("french", "fr", Algorithm::French),
    ("german", "de", Algorithm::German),
    ("greek", "el", Algorithm::Greek),
    ("hungarian", "hu", Algorithm::Hungarian),
    ("italian", "it", Algorithm::Italian),
    ("norwegian", "no", Algorithm::Norwegian),
    ("portuguese", "pt", Algorithm::Portuguese),
    ("romanian", "ro", Algorithm::Romanian),
    ("russian", "ru", Algorithm::Russian),
    ("spanish", "es", Algorithm::Spanish),
    ("swedish", "sv", Algorithm::Swedish),
    ("tamil", "ta", Algorithm::Tamil),
    ("turkish", "tr", Algorithm::Turkish),
];

/// A name that is no language with a stemmer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLanguage(String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no stemmer for language {}; there are ", self.0)?;
        for (index, (name, code, _)) in LANGUAGES.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} ({code})")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownLanguage {}

impl Stemmer {
    /// The Snowball stemmer of a language, by its English name or ISO 639-1 code in any case.
    ///
    /// `english` is Snowball's (Porter 2), not [`Stemmer::Porter`].
    ///
    /// # Errors
    /// [`UnknownLanguage`].
    pub fn for_language(language: &str) -> Result<Self, UnknownLanguage> {
        LANGUAGES
            .iter()
            .find(|(name, code, _)| {
                name.eq_ignore_ascii_case(language) || code.eq_ignore_ascii_case(language)
            })
            .map(|&(_, _, algorithm)| Self::Snowball(algorithm))
            .ok_or_else(|| UnknownLanguage(quoted(language)))
    }
}

/// What to compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Which ROUGE; rougeLsum by default.
    pub kind: Kind,
    /// What a word is.
    pub tokenizer: Tokenizer,
    /// What words are reduced to; nothing by default.
    pub stemmer: Stemmer,
    /// For rougeLsum: find sentences by their punctuation instead of taking lines.
    pub split_summaries: bool,
}

/// A ROUGE score and the counts it is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Matches per unit of the prediction, 0..=1.
    pub precision: f64,
    /// Matches per unit of the reference, 0..=1.
    pub recall: f64,
    /// The harmonic mean of both, 0..=1: "the" ROUGE score.
    pub f_measure: f64,
    /// Units found in both texts.
    pub matches: u64,
    /// N-grams (tokens for rougeL and rougeLsum) of the prediction.
    pub prediction_units: u64,
    /// N-grams (tokens for rougeL and rougeLsum) of the reference.
    pub reference_units: u64,
}

impl Score {
    fn new(matches: u64, prediction_units: u64, reference_units: u64) -> Self {
        let precision = matches as f64 / prediction_units.max(1) as f64;
        let recall = matches as f64 / reference_units.max(1) as f64;
        let sum = precision + recall;
        let f_measure = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        Self { precision, recall, f_measure, matches, prediction_units, reference_units }
    }
}

/// Scores one prediction against one reference.
///
/// # Errors
/// [`Unscored::OverLimit`] for texts over [`MOST_BYTES`] or work over [`MOST_STEPS`].
pub fn score(prediction: &str, reference: &str, options: &Options) -> Result<Score, Unscored> {
    score_until(prediction, reference, options, Stop::NEVER)
}

/// As [`score`], for a caller who may lose interest.
///
/// # Errors
/// As [`score`]; [`Unscored::Stopped`] soon after `stop` was raised.
pub fn score_until(
    prediction: &str,
    reference: &str,
    options: &Options,
    stop: Stop<'_>,
) -> Result<Score, Unscored> {
    let longest = prediction.len().max(reference.len());
    if longest > MOST_BYTES {
        let what = "bytes of text for ROUGE";
        return Err(Unscored::OverLimit { what, found: longest as u64, limit: MOST_BYTES as u64 });
    }
    stop.check()?;
    let mut scratch = SCRATCH.take().unwrap_or_default();
    let score = scratch.score(prediction, reference, options, stop);
    if scratch.capacity() <= KEPT_BYTES {
        SCRATCH.set(Some(scratch));
    }
    score
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Scratch memory over this size is given back after a call.
const KEPT_BYTES: usize = 4 << 20;

/// Memory that calls on the same thread share one after the other.
#[derive(Debug, Default)]
struct Scratch {
    reader: Reader,
    reference: Tokens,
    prediction: Tokens,
    overlap: Overlap,
    counts: Vec<u32>,
    lcs: Lcs,
    union: Vec<u64>,
}

/// The tokens of a text as numbers.
#[derive(Debug, Default)]
struct Tokens {
    ids: Vec<u32>,
    /// Where each sentence ends, if sentences matter; none is empty.
    ends: Vec<u32>,
}

impl Tokens {
    fn sentences(&self) -> impl Iterator<Item = &[u32]> {
        self.ends.iter().scan(0, |start, &end| {
            let sentence = &self.ids[*start..end as usize];
            *start = end as usize;
            Some(sentence)
        })
    }
}

impl Scratch {
    fn score(
        &mut self,
        prediction: &str,
        reference: &str,
        options: &Options,
        stop: Stop<'_>,
    ) -> Result<Score, Unscored> {
        self.reader.reset(reference, prediction, options);
        self.reader.read_reference(reference, &mut self.reference, stop)?;
        self.reader.read_prediction(prediction, &mut self.prediction, stop)?;
        let prediction_units = self.prediction.ids.len() as u64;
        let reference_units = self.reference.ids.len() as u64;
        match options.kind {
            Kind::N(n) => {
                let n = n.clamp(1, 9);
                let mut matches = [0; 9];
                let orders = &mut matches[..usize::from(n)];
                self.overlap.clipped_matches(&self.prediction.ids, &self.reference.ids, orders, stop)?;
                let matches = orders.last().copied().unwrap_or_default();
                let n = u64::from(n);
                let units = |tokens: u64| (tokens + 1).saturating_sub(n);
                Ok(Score::new(matches, units(prediction_units), units(reference_units)))
            }
            Kind::L => {
                self.lcs.reset(self.reader.largest());
                let matches = self.lcs.length(&self.reference.ids, &self.prediction.ids, MOST_STEPS, stop)?;
                Ok(Score::new(matches, prediction_units, reference_units))
            }
            Kind::LSum => {
                let matches = self.summary_matches(stop)?;
                Ok(Score::new(matches, prediction_units, reference_units))
            }
        }
    }

    /// Bytes held, used or not.
    fn capacity(&self) -> usize {
        let tokens = |tokens: &Tokens| tokens.ids.capacity() + tokens.ends.capacity();
        (tokens(&self.reference) + tokens(&self.prediction) + self.counts.capacity()) * size_of::<u32>()
            + self.union.capacity() * 8
            + self.reader.capacity()
            + self.overlap.capacity()
            + self.lcs.capacity()
    }
}
