//! Keyword match: which of a list of words and phrases a text holds.
//!
//! The score, 0 to 1, is the share of keywords found; it passes if any, or all, of them are. A keyword
//! is found where it begins and ends at word boundaries of the text (Unicode Standard Annex 29): `refund` is
//! in `Refund, please`, not in `refundable` or `refund's`, `can` is not in `can't`, `C++` is in `C++17 (or C++)`.
//! Case does not count (full case folding), composed and decomposed characters are the same, and one run of
//! white space equals any other. Options look for the keyword inside words too, or with its case.
//!
//! A blank keyword is refused: it would be in every text.
//!
//! ```
//! use rapid_eval::metrics::keyword_match::{Options, score};
//!
//! let found = score("Your Refund was sent.", &["refund", "voucher"], &Options::default())?;
//! assert_eq!((found.value, found.passed), (0.5, true));
//! # Ok::<(), rapid_eval::metrics::keyword_match::NoKeywordScore>(())
//! ```

use std::cell::OnceCell;
use std::fmt;

use unicode_normalization::{UnicodeNormalization, is_nfc};
use unicode_segmentation::UnicodeSegmentation;

use super::case_folding::case_folded;
use super::{Stop, Unscored};

/// The most bytes of text that one call may go through, counted again for each keyword: a few seconds.
pub const MOST_STEPS: u64 = 1 << 32;

/// What counts as found, and as passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How many keywords have to be there.
    pub mode: Mode,
    /// Find keywords inside words, too; their white space then counts as it stands.
    pub substring: bool,
    /// Find keywords in their own case only.
    pub case_sensitive: bool,
}

/// How many keywords have to be there to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// At least one.
    #[default]
    Any,
    /// Each of them.
    All,
}

/// Which keywords a text holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The share of the keywords that were found, 0 to 1.
    pub value: f64,
    /// Whether enough of them were.
    pub passed: bool,
    /// For each keyword, in order, whether it was found.
    pub found: Vec<bool>,
}

/// Why there is no score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoKeywordScore {
    /// There are no keywords to look for.
    NoKeywords,
    /// A keyword is empty or white space.
    Blank {
        /// Which one, from 0.
        index: usize,
    },
    /// The work was stopped or is over a limit.
    Unscored(Unscored),
}

impl fmt::Display for NoKeywordScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeywords => f.write_str("no keywords to look for"),
            Self::Blank { index } => write!(f, "keywords[{index}] is blank, which every text would match"),
            Self::Unscored(unscored) => unscored.fmt(f),
        }
    }
}

impl std::error::Error for NoKeywordScore {}

impl From<Unscored> for NoKeywordScore {
    fn from(unscored: Unscored) -> Self {
        Self::Unscored(unscored)
    }
}

/// Looks for each of `keywords` in `text`.
///
/// # Errors
/// [`NoKeywordScore`], also for more work than [`MOST_STEPS`].
pub fn score(text: &str, keywords: &[impl AsRef<str>], options: &Options) -> Result<Score, NoKeywordScore> {
    score_until(text, keywords, options, Stop::NEVER)
}

/// As [`score`], for a caller who may lose interest.
///
/// # Errors
/// As [`score`]; [`Unscored::Stopped`] soon after `stop` was raised.
pub fn score_until(
    text: &str,
    keywords: &[impl AsRef<str>],
    options: &Options,
    stop: Stop<'_>,
) -> Result<Score, NoKeywordScore> {
    if keywords.is_empty() {
        return Err(NoKeywordScore::NoKeywords);
    }
    if let Some(index) = keywords.iter().position(|keyword| keyword.as_ref().trim().is_empty()) {
        return Err(NoKeywordScore::Blank { index });
    }
    let steps: u64 = keywords.iter().map(|keyword| (text.len() + keyword.as_ref().len()) as u64).sum();
    if steps > MOST_STEPS {
        let what = "bytes of text to look for keywords in";
        return Err(Unscored::OverLimit { what, found: steps, limit: MOST_STEPS }.into());
    }

    let text = Text { content: comparable(text, options), boundaries: OnceCell::new() };
    let mut found = Vec::with_capacity(keywords.len());
    for keyword in keywords {
        stop.check()?;
        let keyword = comparable(keyword.as_ref(), options);
        found.push(match options.substring {
            true => text.content.contains(&keyword),
            false => text.holds_words(keyword.trim(), stop)?,
        });
    }
    let hits = found.iter().filter(|found| **found).count();
    Ok(Score {
        value: hits as f64 / found.len() as f64,
        passed: match options.mode {
            Mode::Any => hits > 0,
            Mode::All => hits == found.len(),
        },
        found,
    })
}

/// The form in which texts and keywords are compared.
fn comparable(text: &str, options: &Options) -> String {
    let mut comparable = match options.case_sensitive {
        true => text.to_owned(),
        false => case_folded(text),
    };
    if !is_nfc(&comparable) {
        comparable = comparable.nfc().collect();
    }
    if !options.substring {
        let mut after_space = false;
        comparable.retain(|c| !std::mem::replace(&mut after_space, c.is_whitespace()) || !c.is_whitespace());
        if comparable.contains(|c: char| c.is_whitespace() && c != ' ') {
            comparable = comparable.replace(char::is_whitespace, " ");
        }
    }
    comparable
}

struct Text {
    content: String,
    boundaries: OnceCell<Boundaries>,
}

impl Text {
    /// Whether `keyword` stands somewhere between two word boundaries. Linear in both.
    fn holds_words(&self, keyword: &str, stop: Stop<'_>) -> Result<bool, Unscored> {
        let Some(first) = self.content.find(keyword) else { return Ok(false) };
        let boundaries = match self.boundaries.get() {
            Some(boundaries) => boundaries,
            None => {
                let boundaries = Boundaries::of(&self.content, stop)?;
                self.boundaries.get_or_init(|| boundaries)
            }
        };
        if boundaries.has(first) && boundaries.has(first + keyword.len()) {
            return Ok(true);
        }
        self.holds_words_after(first, keyword.as_bytes(), boundaries, stop)
    }

    /// The same from byte `start` on. Occurrences may overlap, so this is Knuth, Morris and Pratt's search.
    fn holds_words_after(
        &self,
        start: usize,
        keyword: &[u8],
        boundaries: &Boundaries,
        stop: Stop<'_>,
    ) -> Result<bool, Unscored> {
        const PATIENCE: usize = 1 << 16;
        let borders = borders(keyword);
        let mut matched = 0;
        for (at, byte) in self.content.bytes().enumerate().skip(start) {
            if at.is_multiple_of(PATIENCE) {
                stop.check()?;
            }
            matched = extended(keyword, &borders, matched, byte);
            if matched == keyword.len() {
                if boundaries.has(at + 1) && boundaries.has(at + 1 - keyword.len()) {
                    return Ok(true);
                }
                matched = borders.last().copied().unwrap_or_default();
            }
        }
        Ok(false)
    }
}

/// For each prefix of `keyword` the length of the longest shorter one that it ends with.
fn borders(keyword: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; keyword.len().min(1)];
    let mut matched = 0;
    for byte in keyword.iter().skip(1) {
        matched = extended(keyword, &borders, matched, *byte);
        borders.push(matched);
    }
    borders
}

/// How much of `keyword` is matched with one more `byte`.
fn extended(keyword: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    while keyword.get(matched) != Some(&byte) {
        match matched.checked_sub(1).and_then(|last| borders.get(last)) {
            Some(border) => matched = *border,
            None => return 0,
        }
    }
    matched + 1
}

/// Where words may begin and end, a bit for each byte of the text.
struct Boundaries(Vec<u64>);

impl Boundaries {
    fn of(text: &str, stop: Stop<'_>) -> Result<Self, Unscored> {
        const PATIENCE: usize = 1 << 14;
        let mut bits = vec![0; text.len() / 64 + 1];
        let ends = std::iter::once(text.len());
        let places = text.split_word_bound_indices().map(|(start, _)| start).chain(ends);
        for (number, place) in places.enumerate() {
            if number.is_multiple_of(PATIENCE) {
                stop.check()?;
            }
            if let Some(word) = bits.get_mut(place / 64) {
                *word |= 1 << (place % 64);
            }
        }
        Ok(Self(bits))
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}
