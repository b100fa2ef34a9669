//! The n-grams that two texts share.

use crate::metrics::nltk::Tokenizer;
use crate::metrics::overlap::Overlap;
use crate::metrics::vocabulary::{MAX_BYTES, Vocabulary};
use crate::metrics::{Stop, Unscored};

/// What n-gram metrics count, for orders 1 to `N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::metrics) struct SharedNgrams<const N: usize> {
    /// N-grams of the prediction that also stand in the reference, each at most as often as there.
    pub(in crate::metrics) matches: [u64; N],
    /// Tokens of the prediction.
    pub(in crate::metrics) prediction_length: u64,
    /// Tokens of the reference.
    pub(in crate::metrics) reference_length: u64,
}

/// How many n-grams a text of `length` tokens has.
pub(in crate::metrics) fn ngrams_of(length: u64, order: usize) -> u64 {
    (length + 1).saturating_sub(order as u64)
}

impl<const N: usize> SharedNgrams<N> {
    /// The prediction's n-grams, by order.
    pub(in crate::metrics) fn prediction_ngrams(&self) -> [u64; N] {
        std::array::from_fn(|index| ngrams_of(self.prediction_length, index + 1))
    }

    /// The reference's n-grams, by order.
    pub(in crate::metrics) fn reference_ngrams(&self) -> [u64; N] {
        std::array::from_fn(|index| ngrams_of(self.reference_length, index + 1))
    }
}

/// The bytes a text may have for tokens and their spaces to stay countable in 32 bits.
const MOST_BYTES: usize = MAX_BYTES / 4;

/// Refuses texts of more than 256 MiB.
pub(in crate::metrics) fn within_limits(
    prediction: &str,
    reference: &str,
    what: &'static str,
) -> Result<(), Unscored> {
    let found = prediction.len().max(reference.len());
    if found <= MOST_BYTES {
        return Ok(());
    }
    Err(Unscored::OverLimit { what, found: found as u64, limit: MOST_BYTES as u64 })
}

/// Cuts both texts and compares their n-grams, in time linear in both.
pub(in crate::metrics) fn shared_ngrams<const N: usize>(
    prediction: &str,
    reference: &str,
    tokenizer: Tokenizer,
    stop: Stop<'_>,
) -> Result<SharedNgrams<N>, Unscored> {
    stop.check()?;
    let mut tokens = Vocabulary::default();
    let mut reference_ids = Vec::new();
    tokenizer.each_token(reference, stop, |token| {
        reference_ids.push(tokens.insert(token.as_bytes()));
        Ok(())
    })?;
    let mut prediction_ids = Vec::new();
    tokenizer.each_token(prediction, stop, |token| {
        prediction_ids.push(tokens.find(token.as_bytes()));
        Ok(())
    })?;
    let mut matches = [0; N];
    Overlap::default().clipped_matches(&prediction_ids, &reference_ids, &mut matches, stop)?;
    Ok(SharedNgrams {
        matches,
        prediction_length: prediction_ids.len() as u64,
        reference_length: reference_ids.len() as u64,
    })
}
