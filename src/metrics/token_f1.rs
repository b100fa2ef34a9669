//! Token F1: how many words two texts share, whatever their order.
//!
//! From 0 to 1, the harmonic mean of precision and recall over words, each counted at most as often as both
//! texts have it. The F1 of question answering (Rajpurkar et al. 2016, "SQuAD"), as the `f1` evaluator of
//! Azure's client library computes it, to the last bit: lower-cased, ASCII punctuation deleted (so `well-known` is
//! one word), `a`, `an` and `the` dropped, cut at white space. Texts without a common word score 0, also
//! two empty ones.
//!
//! ```
//! use rapid_eval::metrics::token_f1::score;
//!
//! // One of one word, one of two.
//! assert_eq!(score("Paris", "It's the Paris!")?.value, 2.0 / 3.0);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use super::nltk::{is_python_word, white_space_tokens, within_limits};
use super::overlap::Overlap;
use super::vocabulary::Vocabulary;
use super::{Stop, Unscored};

/// A token F1 and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// F1, 0 to 1.
    pub value: f64,
    /// Share of the prediction's words that match, 0 to 1.
    pub precision: f64,
    /// Share of the reference's words that match, 0 to 1.
    pub recall: f64,
    /// Words that match.
    pub matches: u64,
}

/// The token F1 of two texts. Both may change places.
///
/// # Errors
/// [`Unscored::OverLimit`] for texts of more than 256 MiB.
pub fn score(prediction: &str, reference: &str) -> Result<Score, Unscored> {
    score_until(prediction, reference, Stop::NEVER)
}

/// As [`score`], for a caller who may lose interest. Time is linear in the texts.
///
/// # Errors
/// As [`score`]; [`Unscored::Stopped`] soon after `stop` was raised.
pub fn score_until(prediction: &str, reference: &str, stop: Stop<'_>) -> Result<Score, Unscored> {
    within_limits(prediction, reference, "bytes of text for token F1")?;
    let mut words = Vocabulary::default();
    let predicted = read(prediction, &mut words, stop)?;
    let wanted = read(reference, &mut words, stop)?;
    let mut matches = [0];
    Overlap::default().clipped_matches(&predicted, &wanted, &mut matches, stop)?;
    let [matches] = matches;
    if matches == 0 {
        return Ok(Score { value: 0.0, precision: 0.0, recall: 0.0, matches });
    }
    let precision = matches as f64 / predicted.len() as f64;
    let recall = matches as f64 / wanted.len() as f64;
    let value = 2.0 * precision * recall / (precision + recall);
    Ok(Score { value, precision, recall, matches })
}

/// The numbers of a text's words.
fn read(text: &str, words: &mut Vocabulary, stop: Stop<'_>) -> Result<Vec<u32>, Unscored> {
    const PATIENCE: usize = 1 << 12;
    let mut ids = Vec::new();
    let lowered = text.to_lowercase();
    let mut buffer = String::new();
    for (number, piece) in white_space_tokens(&lowered).enumerate() {
        if number.is_multiple_of(PATIENCE) {
            stop.check()?;
        }
        buffer.clear();
        buffer.extend(piece.chars().filter(|c| !c.is_ascii_punctuation()));
        each_without_articles(&buffer, |word| ids.push(words.insert(word.as_bytes())));
    }
    Ok(ids)
}

/// Calls `take` with what is left of `piece` before, between and after articles. An article may touch other
/// marks than ASCII's: "the—end" is "—end".
fn each_without_articles(piece: &str, mut take: impl FnMut(&str)) {
    let mut take = |word: &str| {
        if !word.is_empty() {
            take(word);
        }
    };
    let mut kept = 0;
    let mut at = 0;
    while let Some(rest) = piece.get(at..).filter(|rest| !rest.is_empty()) {
        let is_word = rest.starts_with(is_python_word);
        let run = rest.find(|c| is_python_word(c) != is_word).unwrap_or(rest.len());
        if matches!(rest.get(..run), Some("a" | "an" | "the")) {
            take(piece.get(kept..at).unwrap_or_default());
            kept = at + run;
        }
        at += run;
    }
    take(piece.get(kept..).unwrap_or_default());
}
