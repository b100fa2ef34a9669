//! How many n-grams two texts share, each counted at most as often as it stands in the reference.

use super::vocabulary::{Pairs, UNKNOWN};
use super::{Stop, Unscored};

/// How many steps a loop takes between two looks at [`Stop`].
const STEPS_PER_CHECK: usize = 1 << 14;

/// Counts shared n-grams order by order.
///
/// An n-gram is the pair of the two (n-1)-grams it is made of, so only those that both texts have can be part of
/// a shared one: each order looks at what the order before left. Whether a token matches can't be foreseen, and
/// a branch that is guessed wrong costs more than the arithmetic of both its sides: hence the sums in place of `if`.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    reference: Vec<Gram>,
    prediction: Vec<Gram>,
    pairs: Pairs,
    /// By the number of the n-gram.
    counts: Vec<Count>,
}

/// An n-gram at a position of a text.
#[derive(Debug, Clone, Copy, Default)]
struct Gram {
    at: u32,
    id: u32,
    /// The (n-1)-gram one position on, until this one has its own number.
    next: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// How often it stands in the reference and is not matched yet.
    left: u32,
    /// 1 if both texts have it, else 0.
    shared: u32,
}

impl Overlap {
    /// Writes to `matches[n-1]` how many n-grams of `prediction` also stand in `reference`: the sum over
    /// n-grams of the smaller of the two counts.
    ///
    /// Tokens are numbers of one [`Vocabulary`](super::vocabulary::Vocabulary), [`UNKNOWN`] ones match nothing.
    /// Takes `matches.len()` times the length of both texts in time.
    pub(crate) fn clipped_matches(
        &mut self,
        prediction: &[u32],
        reference: &[u32],
        matches: &mut [u64],
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        matches.fill(0);
        let unigrams = |(at, id): (u32, &u32)| Gram { at, id: *id, next: UNKNOWN };
        self.prediction.clear();
        self.prediction.extend((0..).zip(prediction).map(unigrams));
        self.reference.clear();
        self.reference.extend((0..).zip(reference).map(unigrams));
        let mut largest = prediction.iter().chain(reference).max().map_or(0, |id| *id as usize);
        for (index, matches) in matches.iter_mut().enumerate() {
            if index > 0 {
                join(&mut self.reference, stop)?;
                join(&mut self.prediction, stop)?;
                self.pairs.reset(self.reference.len());
                each(&mut self.reference, stop, |gram| gram.id = self.pairs.insert(gram.id, gram.next))?;
                each(&mut self.prediction, stop, |gram| gram.id = self.pairs.find(gram.id, gram.next))?;
                largest = self.pairs.len();
            }
            *matches = self.match_clipped(largest, stop)?;
            if *matches == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Counts the matches of this order and leaves the n-grams that both texts have.
    fn match_clipped(&mut self, largest: usize, stop: Stop<'_>) -> Result<u64, Unscored> {
        let Self { reference, prediction, counts, .. } = self;
        counts.clear();
        counts.resize(largest + 1, Count::default());
        each(reference, stop, |gram| counts[gram.id as usize].left += 1)?;
        counts[UNKNOWN as usize].left = 0;
        let mut matches = 0;
        each(prediction, stop, |gram| {
            let count = &mut counts[gram.id as usize];
            let matched = u32::from(count.left > 0);
            count.left -= matched;
            count.shared |= matched;
            matches += u64::from(matched);
        })?;
        retain(reference, stop, |gram, _| counts[gram.id as usize].shared == 1)?;
        retain(prediction, stop, |gram, _| counts[gram.id as usize].shared == 1)?;
        Ok(matches)
    }

    /// Bytes held, used or not.
    pub(crate) fn capacity(&self) -> usize {
        (self.reference.capacity() + self.prediction.capacity()) * size_of::<Gram>()
            + self.counts.capacity() * size_of::<Count>()
            + self.pairs.capacity()
    }
}

/// Leaves the n-grams that are followed by another, with its number beside theirs.
fn join(grams: &mut Vec<Gram>, stop: Stop<'_>) -> Result<(), Unscored> {
    retain(grams, stop, |gram, next| {
        gram.next = next.id;
        next.at == gram.at + 1
    })
}

/// Leaves the n-grams that `is_kept`, which also sees the one behind (after the last one: one at position 0).
fn retain(
    grams: &mut Vec<Gram>,
    stop: Stop<'_>,
    mut is_kept: impl FnMut(&mut Gram, Gram) -> bool,
) -> Result<(), Unscored> {
    let mut kept = 0;
    for start in (0..grams.len()).step_by(STEPS_PER_CHECK) {
        stop.check()?;
        for index in start..grams.len().min(start + STEPS_PER_CHECK) {
            let mut gram = grams[index];
            let is_kept = is_kept(&mut gram, grams.get(index + 1).copied().unwrap_or_default());
            grams[kept] = gram;
            kept += usize::from(is_kept);
        }
    }
    grams.truncate(kept);
    Ok(())
}

fn each(grams: &mut [Gram], stop: Stop<'_>, mut step: impl FnMut(&mut Gram)) -> Result<(), Unscored> {
    for chunk in grams.chunks_mut(STEPS_PER_CHECK) {
        stop.check()?;
        chunk.iter_mut().for_each(&mut step);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_clipped_order_by_order() {
        // the the the the / the cat the the: three of the four unigrams, "the the" once, no trigram.
        let mut matches = [9; 4];
        let (prediction, reference) = ([1, 1, 1, 1], [1, 2, 1, 1]);
        let mut overlap = Overlap::default();
        overlap.clipped_matches(&prediction, &reference, &mut matches, Stop::NEVER).unwrap();
        assert_eq!(matches, [3, 1, 0, 0]);
        // Unknown tokens match nothing, not even each other.
        overlap.clipped_matches(&[UNKNOWN, 1, 2, UNKNOWN], &[1, 2], &mut matches, Stop::NEVER).unwrap();
        assert_eq!(matches, [2, 1, 0, 0]);
    }

    #[test]
    fn an_ngram_whose_parts_are_shared_but_apart_is_not_shared() {
        // a b c against b c . a b: both bigrams are shared, the trigram is not.
        let mut matches = [9; 3];
        let mut overlap = Overlap::default();
        overlap.clipped_matches(&[1, 2, 3], &[2, 3, 4, 1, 2], &mut matches, Stop::NEVER).unwrap();
        assert_eq!(matches, [3, 2, 0]);
    }
}
