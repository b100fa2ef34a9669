//! BLEU: how many of the prediction's n-grams stand in the reference, punished if it is too short.
//!
//! From 0 (nothing in common) to 1 (the same tokens). The score of a single sentence, as sacrebleu 2.6.0's
//! `BLEU.sentence_score` gives it, divided by 100; defaults as Vertex AI computes its `bleu`: tokenizer
//! `intl`, smoothing `exp`, orders 1 to 4, case kept, effective order off. Papineni et al. 2002, "BLEU: a
//! Method for Automatic Evaluation of Machine Translation"; Post 2018, "A Call for Clarity in Reporting
//! BLEU Scores".
//!
//! Rules that surprise:
//! - No token in common is 0, whatever the smoothing.
//! - Without [`Options::use_effective_order`] a prediction of fewer tokens than [`Options::max_order`] is 0,
//!   also if it equals the reference; only [`Smoothing::AddK`] fills the orders it is too short for. With it,
//!   only the orders it is long enough for count.
//! - The score of equal texts can lie a few units of the last place over 1, as the reference's does over 100.
//!   Rounded to 32 bits it is 1.
//!
//! The numbers equal the reference's to the last bit where `log` and `exp` are those of its C library.
//! Time and memory are linear in the texts: at most some 20 bytes for each of theirs, for texts of punctuation
//! alone. Differences: white space and categories come from this build's Unicode tables, newer than Python 3.11's.
//!
//! ```
//! use rapid_eval::metrics::bleu::{Options, score};
//!
//! let bleu = score("The cat lay on the mat.", "The cat sat on the mat.", &Options::default())?;
//! assert!((bleu.value - 0.488923).abs() < 1e-6);
//! assert_eq!(bleu.matches, [6, 4, 2, 1]);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

mod tokenizer;

use std::borrow::Cow;
use std::cell::RefCell;

pub use tokenizer::{Tokenizer, UnknownTokenizer};

use super::overlap::Overlap;
use super::vocabulary::{MAX_BYTES, Vocabulary, expected_words};
use super::{Stop, Unscored};

/// The order taken for [`Options::max_order`] 0.
pub const DEFAULT_ORDER: u8 = 4;

/// The highest [`Options::max_order`].
pub const HIGHEST_ORDER: u8 = 8;

/// How BLEU is computed. The defaults are those of Vertex AI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How texts are cut into tokens.
    pub tokenizer: Tokenizer,
    /// Leave out the orders that the prediction is too short to have n-grams of.
    pub use_effective_order: bool,
    /// Compare without regard to case, by Unicode's full lower-casing.
    pub lowercase: bool,
    /// The longest n-grams to compare, 1 to [`HIGHEST_ORDER`]; 0 is [`DEFAULT_ORDER`].
    pub max_order: u8,
    /// What an order without a match counts as.
    pub smoothing: Smoothing,
}

/// What an order without a match counts as. sacrebleu's methods, with its default values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Smoothing {
    /// Half a match in the first such order, a quarter in the second, and so on (NIST's mteval).
    #[default]
    Exp,
    /// A tenth of a match.
    Floor,
    /// One is added to matches and n-grams of every order from 2 up.
    AddK,
    /// Nothing: the score is 0.
    None,
}

/// A BLEU score and what it is made of. One entry an order in each list.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// BLEU, 0 to 1.
    pub value: f64,
    /// Share of the prediction's n-grams that match, smoothed, 0 to 1. All 0 if there is no match.
    pub precisions: Vec<f64>,
    /// The prediction's n-grams that match, each at most as often as it stands in the reference.
    pub matches: Vec<u64>,
    /// The prediction's n-grams.
    pub totals: Vec<u64>,
    /// Factor for predictions shorter than the reference, 0 to 1.
    pub brevity_penalty: f64,
    /// The prediction's tokens.
    pub prediction_length: u64,
    /// The reference's tokens.
    pub reference_length: u64,
}

/// The BLEU score of `prediction` against one `reference`.
///
/// Fails for a `max_order` over [`HIGHEST_ORDER`] and for texts of more than 1 GiB.
pub fn score(prediction: &str, reference: &str, options: &Options) -> Result<Score, Unscored> {
    score_until(prediction, reference, options, Stop::NEVER)
}

/// As [`score`], and [`Unscored::Stopped`] soon after `stop` is raised.
pub fn score_until(
    prediction: &str,
    reference: &str,
    options: &Options,
    stop: Stop<'_>,
) -> Result<Score, Unscored> {
    let order = match options.max_order {
        0 => DEFAULT_ORDER,
        order => order,
    };
    within("BLEU max_order", order.into(), HIGHEST_ORDER.into())?;
    within("BLEU text bytes", prediction.len().max(reference.len()), MAX_BYTES)?;

    let mut counts = Counts { matches: vec![0; order.into()], prediction: 0, reference: 0 };
    if prediction.len() + reference.len() <= KEPT_SCRATCH {
        SCRATCH
            .with_borrow_mut(|scratch| scratch.count(prediction, reference, options, &mut counts, stop))?;
    } else {
        Scratch::default().count(prediction, reference, options, &mut counts, stop)?;
    }
    Ok(counts.score(options))
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<(), Unscored> {
    if found <= limit {
        return Ok(());
    }
    Err(Unscored::OverLimit { what, found: found as u64, limit: limit as u64 })
}

/// Texts up to this many bytes together use memory that the thread keeps.
const KEPT_SCRATCH: usize = 256 * 1024;

/// Tokens between two looks at [`Stop`].
const TOKENS_PER_CHECK: usize = 1 << 12;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Default)]
struct Scratch {
    words: Vocabulary,
    overlap: Overlap,
    prediction: Vec<u32>,
    reference: Vec<u32>,
}

impl Scratch {
    fn count(
        &mut self,
        prediction: &str,
        reference: &str,
        options: &Options,
        counts: &mut Counts,
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        let Self { words, overlap, .. } = self;
        words.reset(expected_words(reference.len()));
        read(reference, options, &mut self.reference, stop, |token| words.insert(token))?;
        read(prediction, options, &mut self.prediction, stop, |token| words.find(token))?;
        overlap.clipped_matches(&self.prediction, &self.reference, &mut counts.matches, stop)?;
        counts.prediction = self.prediction.len();
        counts.reference = self.reference.len();
        Ok(())
    }
}

/// The ids of the text's tokens.
fn read(
    text: &str,
    options: &Options,
    ids: &mut Vec<u32>,
    stop: Stop<'_>,
    mut id_of: impl FnMut(&[u8]) -> u32,
) -> Result<(), Unscored> {
    let text = match options.lowercase {
        true => Cow::Owned(text.to_lowercase()),
        false => Cow::Borrowed(text),
    };
    ids.clear();
    options.tokenizer.split(&text, |token| {
        if ids.len().is_multiple_of(TOKENS_PER_CHECK) {
            stop.check()?;
        }
        ids.push(id_of(token));
        Ok(())
    })
}

struct Counts {
    matches: Vec<u64>,
    /// Tokens of the prediction.
    prediction: usize,
    /// Tokens of the reference.
    reference: usize,
}

impl Counts {
    /// The reference's arithmetic, in its order: precisions are per cent there.
    fn score(self, options: &Options) -> Score {
        let (prediction, reference) = (self.prediction as f64, self.reference as f64);
        let brevity_penalty = if self.prediction >= self.reference {
            1.0
        } else if self.prediction == 0 {
            0.0
        } else {
            (1.0 - reference / prediction).exp()
        };

        let ngrams = |order: usize| (self.prediction + 1).saturating_sub(order) as u64;
        let totals: Vec<u64> = (1..=self.matches.len()).map(ngrams).collect();
        let mut percents = vec![0.0; totals.len()];
        let mut orders = totals.len();
        let mut halving = 1.0;
        let value = if self.matches.iter().all(|matches| *matches == 0) {
            0.0
        } else {
            for (index, percent) in percents.iter_mut().enumerate() {
                let added = f64::from(u8::from(options.smoothing == Smoothing::AddK && index > 0));
                let matches = self.matches.get(index).map_or(0.0, |it| *it as f64) + added;
                let total = totals.get(index).map_or(0.0, |it| *it as f64) + added;
                if total == 0.0 {
                    break;
                }
                if options.use_effective_order {
                    orders = index + 1;
                }
                *percent = if matches > 0.0 {
                    100.0 * matches / total
                } else {
                    match options.smoothing {
                        Smoothing::Exp => {
                            halving *= 2.0;
                            100.0 / (halving * total)
                        }
                        Smoothing::Floor => 100.0 * 0.1 / total,
                        Smoothing::AddK | Smoothing::None => 0.0,
                    }
                };
            }
            let logs: f64 = percents.iter().take(orders).map(|percent| log(*percent)).sum();
            brevity_penalty * (logs / orders as f64).exp() / 100.0
        };
        Score {
            value,
            precisions: percents.iter().map(|percent| percent / 100.0).collect(),
            matches: self.matches,
            totals,
            brevity_penalty,
            prediction_length: self.prediction as u64,
            reference_length: self.reference as u64,
        }
    }
}

/// The logarithm; of 0 a number so small that the score is 0.
fn log(percent: f64) -> f64 {
    if percent == 0.0 { -9_999_999_999.0 } else { percent.ln() }
}
