//! A score read off token probabilities, after G-Eval (Liu et al. 2023, arXiv:2303.16634).
//!
//! p_k is the probability of all alternatives that are label k, m = Σ p_k, score = Σ v_k·p_k / m. Two
//! differences: the tokens are looked at by value, never by position in the text, because a token list may
//! hold what the server took out of the text; and a mass m under one half is no answer, where G-Eval would
//! average what little there is.

use super::super::TokenChance;
use super::tidy;

/// With less probability on the labels than this the judge was about to say something else.
const LEAST_MASS: f64 = 0.5;

/// An expected score.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// Expected level, within the scale.
    pub score: f64,
    /// The probability that the labels had together, 0.5 to 1.
    pub mass: f64,
    /// The probability of each level among the labels, in the order of the scale; adds up to 1.
    pub probabilities: Vec<f64>,
}

impl Weighted {
    /// The probability of the likeliest level, 0 to 1.
    pub fn confidence(&self) -> f64 {
        self.probabilities.iter().copied().fold(0.0, f64::max)
    }
}

/// The labels of these levels as single tokens; `None` when a level is not a digit, since `10` or `-2` may be
/// two tokens and the first one would look like another level.
pub fn labels_of(levels: &[f64]) -> Option<Vec<String>> {
    let is_digit = |level: &f64| (0.0..=9.0).contains(level) && level.fract() == 0.0;
    (levels.len() > 1 && levels.iter().all(is_digit)).then(|| levels.iter().map(f64::to_string).collect())
}

/// The expected score at the first token that is a label with at least half of the probability.
/// `None`: there is no such token, or these levels cannot be read off single tokens.
pub fn weighted_score(alternatives: &[Vec<TokenChance>], levels: &[f64]) -> Option<Weighted> {
    let labels = labels_of(levels)?;
    alternatives.iter().find_map(|token| {
        let chances: Vec<f64> = labels.iter().map(|label| chance_of(label, token)).collect();
        let mass: f64 = chances.iter().sum();
        if mass.is_nan() || mass < LEAST_MASS {
            return None;
        }
        let probabilities: Vec<f64> = chances.iter().map(|chance| chance / mass).collect();
        let score = probabilities.iter().zip(levels).map(|(chance, level)| chance * level).sum();
        Some(Weighted { score, mass: mass.min(1.0), probabilities })
    })
}

fn chance_of(label: &str, token: &[TokenChance]) -> f64 {
    token
        .iter()
        .filter(|chance| !chance.logprob.is_nan() && tidy(&chance.token) == label)
        // a logarithm above 0 is no probability; servers round
        .map(|chance| chance.logprob.min(0.0).exp())
        .sum()
}
