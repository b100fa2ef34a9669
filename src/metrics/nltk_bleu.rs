//! Sentence BLEU as NLTK computes it: what the hosted text similarity graders call `bleu`.
//!
//! From 0 to 1, orders 1 to 4 with equal weights, case kept. Follows `nltk.translate.bleu_score.sentence_bleu`
//! of NLTK 3.10.4 with one reference (Papineni et al. 2002; smoothing by Chen and Cherry 2014, "A Systematic
//! Comparison of Smoothing Techniques for Sentence-Level BLEU"). By default the tokens and the
//! smoothing of the hosted graders, whose published scores it reproduces. It is not the BLEU of
//! [`bleu`](super::bleu), which is sacrebleu's.
//!
//! Rules that surprise:
//! - No token in common is 0, whatever the smoothing.
//! - A prediction of one token is not smoothed by [`Smoothing::Method4`]; orders without a match are left out,
//!   so one right word scores its brevity penalty.
//! - Methods 5 and 7 can pass 1, as the reference's do: equal texts of five tokens score 1.117.
//!
//! The numbers are the reference's within 1e-12; they equal it to the last bit but for method 5 and 7, where the
//! reference keeps fractions until the end.
//!
//! ```
//! use rapid_eval::metrics::nltk_bleu::{Options, score};
//!
//! let bleu = score("The cat is sitting on the mat.", "The cat sat on the mat.", &Options::default())?;
//! assert!((bleu.value - 0.4111336169).abs() < 1e-9);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use super::nltk::{Tokenizer, shared_ngrams, within_limits};
use super::{Stop, Unscored};

/// How BLEU is computed. The defaults are those of the hosted graders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How texts are cut into tokens.
    pub tokenizer: Tokenizer,
    /// What an order without a match counts as.
    pub smoothing: Smoothing,
}

/// What an order without a match counts as: NLTK's `SmoothingFunction`, with its default values. Method 6
/// is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Smoothing {
    /// The smallest normal number, so that the score is tiny but not 0.
    Method0,
    /// A tenth of a match.
    Method1,
    /// One is added to matches and n-grams of every order from 2 up.
    Method2,
    /// Half a match in the first such order, a quarter in the second, and so on.
    Method3,
    /// As method 3, times a fifth of the logarithm of the prediction's length.
    #[default]
    Method4,
    /// The mean of the smoothed order below, the order itself and the order above.
    Method5,
    /// Method 4, then method 5.
    Method7,
}

/// A BLEU score and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// BLEU, 0 to 1 (1.12 with methods 5 and 7).
    pub value: f64,
    /// Share of the prediction's n-grams that match, smoothed, by order. All 0 if no token matches.
    pub precisions: [f64; 4],
    /// The prediction's n-grams that match, each at most as often as it stands in the reference.
    pub matches: [u64; 4],
    /// Factor for predictions not longer than the reference, 0 to 1.
    pub brevity_penalty: f64,
    /// The prediction's tokens.
    pub prediction_length: u64,
    /// The reference's tokens.
    pub reference_length: u64,
}

/// The BLEU score of `prediction` against one `reference`.
///
/// # Errors
/// [`Unscored::OverLimit`] for texts of more than 256 MiB.
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
    within_limits(prediction, reference, "bytes of text for BLEU")?;
    // Smoothing by method 5 looks one order ahead.
    let shared = shared_ngrams::<5>(prediction, reference, options.tokenizer, stop)?;
    let ngrams = shared.prediction_ngrams();
    let counts: [Count; 5] = std::array::from_fn(|index| Count {
        matches: shared.matches.get(index).map_or(0.0, |matches| *matches as f64),
        ngrams: ngrams.get(index).map_or(1.0, |ngrams| (*ngrams).max(1) as f64),
    });
    let [one, two, three, four, _] = shared.matches;
    let mut score = Score {
        value: 0.0,
        precisions: [0.0; 4],
        matches: [one, two, three, four],
        brevity_penalty: brevity_penalty(shared.prediction_length, shared.reference_length),
        prediction_length: shared.prediction_length,
        reference_length: shared.reference_length,
    };
    if one > 0 {
        score.precisions = options.smoothing.precisions(&counts, shared.prediction_length as f64);
        let logs = score.precisions.map(|share| if share > 0.0 { 0.25 * share.ln() } else { 0.0 });
        score.value = score.brevity_penalty * exact_sum(logs).exp();
    }
    Ok(score)
}

/// An order's matches out of its n-grams.
#[derive(Debug, Clone, Copy)]
struct Count {
    matches: f64,
    ngrams: f64,
}

impl Count {
    fn share(self) -> f64 {
        self.matches / self.ngrams
    }
}

fn brevity_penalty(prediction: u64, reference: u64) -> f64 {
    if prediction > reference {
        1.0
    } else if prediction == 0 {
        0.0
    } else {
        (1.0 - reference as f64 / prediction as f64).exp()
    }
}

impl Smoothing {
    /// The shares of orders 1 to 4, from the counts of orders 1 to 5.
    fn precisions(self, counts: &[Count; 5], length: f64) -> [f64; 4] {
        let [one, two, three, four, five] = *counts;
        let orders = [one, two, three, four];
        let mut unmatched = 0;
        // What an order counts that has no match, given how many such orders came before and itself.
        let mut replaced = |by: &dyn Fn(f64, i32) -> f64| {
            orders.map(|count| {
                if count.matches > 0.0 {
                    return count.share();
                }
                unmatched += 1;
                by(count.ngrams, unmatched)
            })
        };
        match self {
            Self::Method0 => replaced(&|_, _| f64::MIN_POSITIVE),
            Self::Method1 => replaced(&|ngrams, _| 0.1 / ngrams),
            Self::Method2 => {
                let more = |count: Count| (count.matches + 1.0) / (count.ngrams + 1.0);
                [one.share(), more(two), more(three), more(four)]
            }
            Self::Method3 => replaced(&|ngrams, nth| 1.0 / (2_f64.powi(nth) * ngrams)),
            Self::Method4 | Self::Method7 => {
                let smoothed = if length > 1.0 {
                    replaced(&|ngrams, nth| 1.0 / (2_f64.powi(nth) * 5.0 / length.ln()) / ngrams)
                } else {
                    orders.map(Count::share)
                };
                if self == Self::Method7 { averaged(smoothed, five.share()) } else { smoothed }
            }
            Self::Method5 => averaged(orders.map(Count::share), five.share()),
        }
    }
}

/// Each order's mean with the averaged order below (order 1 plus one at the bottom) and the order above.
fn averaged(shares: [f64; 4], fifth: f64) -> [f64; 4] {
    let [one, two, three, four] = shares;
    let mut below = one + 1.0;
    [(one, two), (two, three), (three, four), (four, fifth)].map(|(share, above)| {
        below = (below + share + above) / 3.0;
        below
    })
}

/// The sum of four numbers, rounded once: with partial sums that do not overlap (Shewchuk 1997), as Python's
/// `math.fsum` has it.
fn exact_sum(terms: [f64; 4]) -> f64 {
    let mut partials: Vec<f64> = Vec::with_capacity(terms.len());
    for mut term in terms {
        let mut kept = Vec::with_capacity(terms.len());
        for mut partial in partials {
            if term.abs() < partial.abs() {
                std::mem::swap(&mut term, &mut partial);
            }
            let high = term + partial;
            let low = partial - (high - term);
            if low != 0.0 {
                kept.push(low);
            }
            term = high;
        }
        kept.push(term);
        partials = kept;
    }
    // From the largest down, until something is rounded off. Half-way cases lean on the sign of the next.
    let mut sum = 0.0;
    while let Some(partial) = partials.pop() {
        let high = sum + partial;
        let low = partial - (high - sum);
        sum = high;
        if low != 0.0 {
            if let Some(next) = partials.last()
                && (low < 0.0) == (*next < 0.0)
            {
                let doubled = low * 2.0;
                let further = sum + doubled;
                if doubled == further - sum {
                    sum = further;
                }
            }
            break;
        }
    }
    sum
}
