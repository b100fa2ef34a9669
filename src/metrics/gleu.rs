//! GLEU, "Google BLEU": the share of n-grams that match, of whichever text has more of them.
//!
//! From 0 to 1. All n-grams of orders 1 to 4 are pooled; the score is the smaller of precision and
//! recall. Wu et al. 2016, "Google's Neural Machine Translation System", section 4.3. Follows
//! `nltk.translate.gleu_score.sentence_gleu` of NLTK 3.10.4 to the last bit; tokens as the hosted graders
//! cut them by default, case kept. Two texts without tokens score 0.
//!
//! ```
//! use rapid_eval::metrics::gleu::{Options, score};
//!
//! // 9 of the 22 n-grams of "Paris is the capital of France ." are in the other sentence.
//! let gleu = score("The capital of France is Paris.", "Paris is the capital of France.", &Options::default())?;
//! assert_eq!((gleu.matches, gleu.prediction_ngrams, gleu.value), (9, 22, 9.0 / 22.0));
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use super::nltk::{Tokenizer, shared_ngrams, within_limits};
use super::{Stop, Unscored};

/// How GLEU is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How texts are cut into tokens; as the hosted graders do by default.
    pub tokenizer: Tokenizer,
}

/// A GLEU score and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// GLEU, 0 to 1.
    pub value: f64,
    /// N-grams of the prediction that also stand in the reference, each at most as often as there.
    pub matches: u64,
    /// The prediction's n-grams of orders 1 to 4.
    pub prediction_ngrams: u64,
    /// The reference's n-grams of orders 1 to 4.
    pub reference_ngrams: u64,
}

/// The GLEU score of `prediction` against one `reference`. Both may change places.
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
    within_limits(prediction, reference, "bytes of text for GLEU")?;
    let shared = shared_ngrams::<4>(prediction, reference, options.tokenizer, stop)?;
    let matches: u64 = shared.matches.iter().sum();
    let prediction_ngrams: u64 = shared.prediction_ngrams().iter().sum();
    let reference_ngrams: u64 = shared.reference_ngrams().iter().sum();
    let value = match prediction_ngrams.max(reference_ngrams) {
        0 => 0.0,
        all => matches as f64 / all as f64,
    };
    Ok(Score { value, matches, prediction_ngrams, reference_ngrams })
}
