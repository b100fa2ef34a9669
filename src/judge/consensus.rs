//! Votes counted: many samples of one question, one answer.
//!
//! Follows self-consistency (Wang et al. 2022, arXiv:2203.11171): the answer is the label with most votes and
//! its confidence the share of votes. Where that leaves things open:
//!
//! - **Confidence** = votes for the answer / samples asked, 0 to 1. A sample that gave no verdict stays in the
//!   denominator.
//! - **Quorum**: more than half of the samples asked gave a verdict, or there is no answer.
//! - **Ties**: a score nearest to the mean of all valid votes, then the lower one; a choice is a tie; labels
//!   that have no order are no answer.
//! - **Explanation**: of the first sample, by index, that voted for the answer.
//!
//! Votes are in the order of the samples, `None` where a sample gave no verdict. Everything is pure.

/// Which of two answers is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The one compared against.
    Baseline,
    /// The one under test.
    Candidate,
    /// Neither.
    Tie,
}

/// What the samples agree on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Consensus<L> {
    /// The answer.
    pub label: L,
    /// How many samples voted for it. 0 when a choice is a tie that nobody voted for.
    pub votes: usize,
    /// How many samples gave a verdict.
    pub valid: usize,
    /// `votes` / samples asked, 0 to 1.
    pub confidence: f64,
    /// The sample whose explanation stands for the answer; `None` when nobody voted for it.
    pub spokesman: Option<usize>,
}

/// Why there is no consensus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoConsensus {
    /// Half of the samples or more gave no verdict.
    NoQuorum {
        /// How many did.
        valid: usize,
    },
    /// Labels without an order have equally many votes.
    Split,
}

/// What to do with samples that are not asked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask them.
    Ask,
    /// The answer cannot change any more.
    Decided,
    /// A quorum cannot be reached any more.
    Lost,
}

/// The consensus of scores.
///
/// ```
/// use rapid_eval::judge::consensus::scores;
/// let consensus = scores(&[Some(4.0), Some(4.0), Some(5.0), None], 4).unwrap();
/// assert_eq!((consensus.label, consensus.confidence), (4.0, 0.5));
/// ```
pub fn scores(votes: &[Option<f64>], asked: usize) -> Result<Consensus<f64>, NoConsensus> {
    let tally = Tally::of(votes);
    tally.check_quorum(asked)?;
    let sum: f64 = votes.iter().flatten().sum();
    #[expect(clippy::cast_precision_loss, reason = "there are at most 32 samples")]
    let count = tally.valid as f64;
    // |v − Σ/V| scaled by V: exact for whole numbers, so that equal distances are equal
    let distance = |value: f64| (value * count - sum).abs();
    tally
        .leaders()
        .min_by(|a, b| distance(a.label).total_cmp(&distance(b.label)).then(a.label.total_cmp(&b.label)))
        .map(|leader| leader.consensus(tally.valid, asked))
        .ok_or(NoConsensus::NoQuorum { valid: 0 })
}

/// The consensus of choices between two answers.
pub fn choices(votes: &[Option<Choice>], asked: usize) -> Result<Consensus<Choice>, NoConsensus> {
    let tally = Tally::of(votes);
    tally.check_quorum(asked)?;
    let mut leaders = tally.leaders();
    let first = leaders.next();
    let is_tied = leaders.next().is_some();
    match first {
        None => Err(NoConsensus::NoQuorum { valid: 0 }),
        Some(leader) if !is_tied => Ok(leader.consensus(tally.valid, asked)),
        Some(_) => {
            let ties = tally.counts.iter().find(|count| count.label == Choice::Tie).copied();
            let nobody = Count { label: Choice::Tie, votes: 0, first: None };
            Ok(ties.unwrap_or(nobody).consensus(tally.valid, asked))
        }
    }
}

/// The consensus of labels that have no order, by their index.
pub fn labels(votes: &[Option<usize>], asked: usize) -> Result<Consensus<usize>, NoConsensus> {
    let tally = Tally::of(votes);
    tally.check_quorum(asked)?;
    let mut leaders = tally.leaders();
    match (leaders.next(), leaders.next()) {
        (Some(leader), None) => Ok(leader.consensus(tally.valid, asked)),
        (Some(_), Some(_)) => Err(NoConsensus::Split),
        (None, _) => Err(NoConsensus::NoQuorum { valid: 0 }),
    }
}

/// Whether samples that are not asked yet can change anything; `votes` are those asked so far, out of `planned`.
/// After [`Next::Decided`] the answer is that of all `planned` samples, whatever the rest would say or fail to.
pub fn next<L: PartialEq + Copy>(votes: &[Option<L>], planned: usize) -> Next {
    let tally = Tally::of(votes);
    let left = planned.saturating_sub(votes.len());
    if (tally.valid + left) * 2 <= planned {
        return Next::Lost;
    }
    let (best, second) = tally.two_best();
    // the quorum too: the rest may fail
    if best > second + left && tally.valid * 2 > planned { Next::Decided } else { Next::Ask }
}

/// How many samples to ask at once: the fewest that can decide when all of them agree. Asking in such waves costs as
/// many samples as asking one by one, while none of them fails, and takes less time.
///
/// ```
/// use rapid_eval::judge::consensus::next_wave;
/// assert_eq!(next_wave::<u8>(&[], 8), 5);
/// // Four to one of eight: one more decides if it agrees.
/// assert_eq!(next_wave(&[Some(1), Some(1), Some(2), Some(1), Some(1)], 8), 1);
/// ```
pub fn next_wave<L: PartialEq + Copy>(votes: &[Option<L>], planned: usize) -> usize {
    let tally = Tally::of(votes);
    let left = planned.saturating_sub(votes.len());
    let (best, second) = tally.two_best();
    // k more votes for the best decide when best + k > second + (left - k), and when they make the quorum.
    let ahead = best - second;
    let deciding = if left < ahead { 1 } else { (left - ahead) / 2 + 1 };
    let quorum = (planned / 2 + 1).saturating_sub(tally.valid);
    deciding.max(quorum).min(left)
}

/// The mean of the scores that were given; `None` without any.
pub fn mean(votes: &[Option<f64>]) -> Option<f64> {
    let given: Vec<f64> = votes.iter().flatten().copied().collect();
    #[expect(clippy::cast_precision_loss, reason = "there are at most 32 samples")]
    let count = given.len() as f64;
    (!given.is_empty()).then(|| given.iter().sum::<f64>() / count)
}

/// One vote between two answers, mapped back from the order in which the judge saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairVote {
    /// The verdict.
    pub choice: Choice,
    /// Whether the candidate stood first.
    pub candidate_first: bool,
}

/// The share of votes, ties aside, that went to the answer shown first: 0.5 = no bias of position.
/// `None` when all were ties.
pub fn first_position_rate(votes: &[Option<PairVote>]) -> Option<f64> {
    let decided = votes.iter().flatten().filter(|vote| vote.choice != Choice::Tie);
    let firsts = decided.clone().filter(|vote| (vote.choice == Choice::Candidate) == vote.candidate_first);
    share(firsts.count(), decided.count())
}

/// The share of neighbouring samples in opposite orders that gave the same verdict; `None` without such pairs.
pub fn flip_consistency(votes: &[Option<PairVote>]) -> Option<f64> {
    let pairs = votes.as_chunks::<2>().0.iter().filter_map(|pair| match pair {
        [Some(a), Some(b)] if a.candidate_first != b.candidate_first => Some(a.choice == b.choice),
        [Some(_) | None, Some(_) | None] => None,
    });
    share(pairs.clone().filter(|same| *same).count(), pairs.count())
}

fn share(part: usize, whole: usize) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "there are at most 32 samples")]
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Votes for one label.
#[derive(Debug, Clone, Copy)]
struct Count<L> {
    label: L,
    votes: usize,
    first: Option<usize>,
}

impl<L> Count<L> {
    fn consensus(self, valid: usize, asked: usize) -> Consensus<L> {
        let confidence = share(self.votes, asked).unwrap_or(0.0);
        Consensus { label: self.label, votes: self.votes, valid, confidence, spokesman: self.first }
    }
}

struct Tally<L> {
    counts: Vec<Count<L>>,
    valid: usize,
}

impl<L: Copy + PartialEq> Tally<L> {
    /// Votes for the most frequent label, and for the one after it.
    fn two_best(&self) -> (usize, usize) {
        let mut counts: Vec<usize> = self.counts.iter().map(|count| count.votes).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        (counts.first().copied().unwrap_or(0), counts.get(1).copied().unwrap_or(0))
    }

    fn of(votes: &[Option<L>]) -> Self {
        let mut counts: Vec<Count<L>> = Vec::new();
        for (index, label) in votes.iter().enumerate().filter_map(|(index, vote)| Some((index, (*vote)?))) {
            match counts.iter_mut().find(|count| count.label == label) {
                Some(count) => count.votes += 1,
                None => counts.push(Count { label, votes: 1, first: Some(index) }),
            }
        }
        let valid = counts.iter().map(|count| count.votes).sum();
        Self { counts, valid }
    }

    fn check_quorum(&self, asked: usize) -> Result<(), NoConsensus> {
        if self.valid * 2 > asked { Ok(()) } else { Err(NoConsensus::NoQuorum { valid: self.valid }) }
    }

    fn leaders(&self) -> impl Iterator<Item = Count<L>> {
        let most = self.counts.iter().map(|count| count.votes).max().unwrap_or(0);
        self.counts.iter().filter(move |count| count.votes == most).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(votes: &[i32], failed: usize) -> Result<Consensus<f64>, NoConsensus> {
        let mut all: Vec<Option<f64>> = votes.iter().map(|vote| Some(f64::from(*vote))).collect();
        all.resize(votes.len() + failed, None);
        scores(&all, all.len())
    }

    #[test]
    fn the_majority_wins_and_its_share_is_the_confidence() {
        let consensus = score(&[5, 4, 4, 4, 4], 0).unwrap();
        assert_eq!((consensus.label, consensus.confidence, consensus.spokesman), (4.0, 0.8, Some(1)));
    }

    #[test]
    fn failed_samples_stay_in_the_denominator() {
        assert_eq!(score(&[4, 4, 4], 1).unwrap().confidence, 0.75);
    }

    #[test]
    fn half_of_the_samples_is_no_quorum() {
        assert_eq!(score(&[4, 4], 2), Err(NoConsensus::NoQuorum { valid: 2 }));
        assert_eq!(score(&[], 0), Err(NoConsensus::NoQuorum { valid: 0 }));
        assert!(score(&[4, 4, 4], 2).is_ok());
    }

    #[test]
    fn a_tie_of_scores_goes_to_the_one_nearest_to_the_mean() {
        // mean of 1,1,4,4,5 is 3: 4 is 1 away, 1 is 2 away
        assert_eq!(score(&[1, 1, 4, 4, 5], 0).unwrap().label, 4.0);
        // mean of 1,2,2,5,5 is 3: 2 is 1 away, 5 is 2 away
        assert_eq!(score(&[5, 5, 2, 2, 1], 0).unwrap().label, 2.0);
    }

    #[test]
    fn a_tie_at_equal_distance_goes_to_the_lower_score() {
        assert_eq!(score(&[5, 2], 0).unwrap().label, 2.0);
        // mean of -1,-1,2,2 is 1/2, 3/2 away from both
        assert_eq!(score(&[2, 2, -1, -1], 0).unwrap().label, -1.0);
    }

    #[test]
    fn tied_choices_are_a_tie_even_when_nobody_said_so() {
        let votes = [Some(Choice::Candidate), Some(Choice::Baseline)];
        let consensus = choices(&votes, 2).unwrap();
        assert_eq!((consensus.label, consensus.votes, consensus.spokesman), (Choice::Tie, 0, None));
        assert_eq!(consensus.confidence, 0.0);
    }

    #[test]
    fn labels_without_order_do_not_win_by_their_place_in_the_list() {
        assert_eq!(labels(&[Some(0), Some(1)], 2), Err(NoConsensus::Split));
        assert_eq!(labels(&[Some(0), Some(1), Some(1)], 3).unwrap().label, 1);
    }

    #[test]
    fn a_decision_waits_for_the_quorum() {
        // two of five agree, two failed, one is left: 2 > 0 + 1, but the last one may fail as well
        assert_eq!(next(&[Some(1), Some(1), None, None], 5), Next::Ask);
        assert_eq!(next(&[Some(1), Some(1), Some(1)], 4), Next::Decided);
        assert_eq!(next::<i32>(&[None, None], 4), Next::Lost);
    }

    #[test]
    fn a_judge_that_prefers_the_first_place_shows_in_the_rate() {
        let vote = |choice, candidate_first| Some(PairVote { choice, candidate_first });
        let biased =
            [vote(Choice::Baseline, false), vote(Choice::Candidate, true), vote(Choice::Tie, true), None];
        assert_eq!(first_position_rate(&biased), Some(1.0));
        assert_eq!(flip_consistency(&biased), Some(0.0));
        let steady = [vote(Choice::Candidate, false), vote(Choice::Candidate, true)];
        assert_eq!(first_position_rate(&steady), Some(0.5));
        assert_eq!(flip_consistency(&steady), Some(1.0));
        assert_eq!(first_position_rate(&[]), None);
    }
}
