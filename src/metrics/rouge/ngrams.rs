//! rougeN: matches of n-grams, each clipped to its count in the other text.

use super::Scratch;
use crate::metrics::vocabulary::UNKNOWN;
use crate::metrics::{Stop, Unscored};

/// How many n-grams pass between two looks at [`Stop`].
const PATIENCE: usize = 4096;

impl Scratch {
    /// How many n-grams of the prediction have one of their own in the reference.
    pub(super) fn ngram_matches(&mut self, n: usize, stop: Stop<'_>) -> Result<u64, Unscored> {
        let Self { reader, reference, prediction, pairs, counts, grams, candidates, .. } = self;
        if reference.ids.len() < n || prediction.ids.len() < n {
            return Ok(0);
        }
        let mut largest = reader.largest();
        grams.clone_from(&reference.ids);
        candidates.clone_from(&prediction.ids);
        // An n-gram is the pair of the (n-1)-gram that starts at the same place and its last token.
        for length in 2..=n {
            pairs.reset(grams.len());
            lengthen(grams, &reference.ids[length - 1..], stop, |gram, token| pairs.insert(gram, token))?;
            lengthen(candidates, &prediction.ids[length - 1..], stop, |gram, token| {
                if gram == UNKNOWN || token == UNKNOWN { UNKNOWN } else { pairs.find(gram, token) }
            })?;
            largest = pairs.len();
        }
        counts.clear();
        counts.resize(largest + 1, 0);
        for chunk in grams.chunks(PATIENCE) {
            stop.check()?;
            for &gram in chunk {
                counts[gram as usize] += 1;
            }
        }
        counts[UNKNOWN as usize] = 0;
        let mut matches = 0;
        for chunk in candidates.chunks(PATIENCE) {
            stop.check()?;
            for &gram in chunk {
                let count = &mut counts[gram as usize];
                let matched = u32::from(*count > 0);
                *count -= matched;
                matches += u64::from(matched);
            }
        }
        Ok(matches)
    }
}

/// Makes (n-1)-grams into n-grams; `last` are the tokens from the n-th on.
fn lengthen(
    grams: &mut Vec<u32>,
    last: &[u32],
    stop: Stop<'_>,
    mut pair: impl FnMut(u32, u32) -> u32,
) -> Result<(), Unscored> {
    grams.truncate(last.len());
    for (grams, last) in grams.chunks_mut(PATIENCE).zip(last.chunks(PATIENCE)) {
        stop.check()?;
        for (gram, &token) in grams.iter_mut().zip(last) {
            *gram = pair(*gram, token);
        }
    }
    Ok(())
}
