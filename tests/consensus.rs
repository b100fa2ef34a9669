//! Consensus against a slow reference that shares no code with it, and early stopping against arithmetic.
#![cfg(feature = "server")]

use rapid_eval::judge::consensus::{Choice, Next, NoConsensus, choices, next, next_wave, scores};

/// SplitMix64 (Steele, Lea, Flood 2014): the same stream on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // the upper half, scaled: less than the number of sides
        u32::try_from((((z ^ (z >> 31)) >> 32) * u64::from(sides)) >> 32).unwrap_or_default()
    }
}

/// A random vote vector: 1 to 32 samples over whole scores, some of them failed.
fn votes(dice: &mut Dice) -> Vec<Option<i64>> {
    let samples = 1 + dice.below(32);
    let lowest = i64::from(dice.below(6)) - 3;
    let levels = 1 + dice.below(6);
    let failing = dice.below(10);
    (0..samples)
        .map(|_| {
            let fails = dice.below(10) < failing;
            (!fails).then(|| lowest + i64::from(dice.below(levels)))
        })
        .collect()
}

/// The rule on whole numbers: try every candidate answer against every other one.
fn slow_score(votes: &[Option<i64>]) -> Option<(i64, usize, usize)> {
    let valid: Vec<i64> = votes.iter().filter_map(|vote| *vote).collect();
    if valid.len() <= votes.len() - valid.len() {
        return None;
    }
    let count = |label: i64| valid.iter().filter(|vote| **vote == label).count();
    let far = |label: i64| valid.iter().map(|vote| label - vote).sum::<i64>().abs();
    let label = *valid.iter().find(|&&mine| {
        valid.iter().all(|&other| {
            count(mine) > count(other)
                || count(mine) == count(other)
                    && (far(mine) < far(other) || far(mine) == far(other) && mine <= other)
        })
    })?;
    Some((label, count(label), votes.iter().position(|vote| *vote == Some(label))?))
}

fn as_scores(votes: &[Option<i64>]) -> Vec<Option<f64>> {
    votes.iter().map(|vote| vote.map(|vote| vote as f64)).collect()
}

#[test]
fn ten_thousand_random_votes_agree_with_the_reference() {
    let mut dice = Dice(1);
    let (mut with_answer, mut without) = (0, 0);
    for _ in 0..10_000 {
        let votes = votes(&mut dice);
        let answer = scores(&as_scores(&votes), votes.len());
        match slow_score(&votes) {
            Some((label, count, first)) => {
                let answer = answer.unwrap();
                assert_eq!(answer.label, label as f64, "{votes:?}");
                assert_eq!(answer.votes, count, "{votes:?}");
                assert_eq!(answer.spokesman, Some(first), "{votes:?}");
                assert_eq!(answer.confidence, count as f64 / votes.len() as f64, "{votes:?}");
                with_answer += 1;
            }
            None => {
                assert!(matches!(answer, Err(NoConsensus::NoQuorum { .. })), "{votes:?}");
                without += 1;
            }
        }
    }
    assert!(with_answer > 2_000 && without > 2_000, "both sides are tried: {with_answer} and {without}");
}

#[test]
fn ten_thousand_random_choices_agree_with_the_reference() {
    let mut dice = Dice(2);
    for _ in 0..10_000 {
        let votes: Vec<Option<Choice>> = votes(&mut dice)
            .into_iter()
            .map(|vote| {
                vote.map(|vote| match vote.rem_euclid(3) {
                    0 => Choice::Baseline,
                    1 => Choice::Candidate,
                    _ => Choice::Tie,
                })
            })
            .collect();
        let count = |choice| votes.iter().filter(|vote| **vote == Some(choice)).count();
        let (baseline, candidate, tie) =
            (count(Choice::Baseline), count(Choice::Candidate), count(Choice::Tie));
        let answer = choices(&votes, votes.len());
        if 2 * (baseline + candidate + tie) <= votes.len() {
            assert!(answer.is_err(), "{votes:?}");
        } else if baseline > candidate && baseline > tie {
            assert_eq!(answer.unwrap().label, Choice::Baseline, "{votes:?}");
        } else if candidate > baseline && candidate > tie {
            assert_eq!(answer.unwrap().label, Choice::Candidate, "{votes:?}");
        } else {
            assert_eq!(answer.unwrap().label, Choice::Tie, "{votes:?}");
            assert_eq!(answer.unwrap().votes, tie, "{votes:?}");
        }
    }
}

/// Asks one at a time until told to stop; how many were asked.
fn asked_until_decided(votes: &[Option<i64>]) -> (usize, Next) {
    for asked in 0..votes.len() {
        let said = next(&votes[..asked], votes.len());
        if said != Next::Ask {
            return (asked, said);
        }
    }
    (votes.len(), Next::Ask)
}

#[test]
fn stopping_early_changes_no_answer() {
    let mut dice = Dice(3);
    let mut stopped = 0;
    for _ in 0..10_000 {
        let votes = votes(&mut dice);
        let (asked, said) = asked_until_decided(&votes);
        let full = scores(&as_scores(&votes), votes.len());
        match said {
            Next::Decided => {
                let early = scores(&as_scores(&votes[..asked]), asked).unwrap();
                assert_eq!(early.label, full.unwrap().label, "{votes:?}");
                stopped += 1;
            }
            Next::Lost => assert!(full.is_err(), "{votes:?}"),
            Next::Ask => {}
        }
    }
    assert!(stopped > 1_000, "{stopped}");
}

#[test]
fn one_at_a_time_asks_as_often_as_arithmetic_says() {
    // Expected draws of the label rule, computed exactly over all multinomial paths.
    let table: [(&[u32], [f64; 6]); 4] = [
        (&[95, 5], [2.09, 3.1425, 3.16, 5.26, 9.47, 17.89]),
        (&[80, 20], [2.32, 3.48, 3.63, 6.16, 11.24, 21.25]),
        (&[60, 30, 10], [2.54, 3.76, 4.19, 6.89, 13.18, 25.64]),
        (&[40, 30, 20, 10], [2.70, 3.90, 4.61, 7.41, 14.67, 29.26]),
    ];
    let mut dice = Dice(4);
    for (percents, expected) in table {
        for (planned, expected) in [3, 4, 5, 8, 16, 32].into_iter().zip(expected) {
            let runs = 20_000;
            let mut total = 0;
            for _ in 0..runs {
                let votes: Vec<Option<i64>> = (0..planned)
                    .map(|_| {
                        let mut left = dice.below(100);
                        let label = percents.iter().position(|percent| match left.checked_sub(*percent) {
                            Some(rest) => {
                                left = rest;
                                false
                            }
                            None => true,
                        });
                        label.and_then(|label| i64::try_from(label).ok())
                    })
                    .collect();
                total += asked_until_decided(&votes).0;
            }
            let mean = total as f64 / f64::from(runs);
            assert!((mean / expected - 1.0).abs() < 0.03, "{percents:?} N={planned}: {mean} for {expected}");
        }
    }
}

#[test]
fn waves_ask_no_more_than_one_at_a_time() {
    let mut dice = Dice(5);
    let (mut waves, mut samples) = (0, 0);
    for _ in 0..10_000 {
        let votes: Vec<_> = votes(&mut dice).into_iter().map(|vote| vote.or(Some(0))).collect();
        let mut asked = 0;
        while next(&votes[..asked], votes.len()) == Next::Ask && asked < votes.len() {
            let wave = next_wave(&votes[..asked], votes.len());
            assert!(wave >= 1 && asked + wave <= votes.len(), "{wave} after {asked} of {votes:?}");
            asked += wave;
            waves += 1;
        }
        assert_eq!(asked, asked_until_decided(&votes).0, "{votes:?}");
        samples += asked;
    }
    assert!(waves * 2 < samples, "{waves} waves for {samples} samples");
}
