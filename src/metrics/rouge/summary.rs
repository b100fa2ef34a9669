//! rougeLsum: the union of longest common subsequences (Lin 2004, section 3.2), with matches clipped
//! to the counts of both texts.

use std::collections::{HashMap, HashSet};

use super::{MOST_STEPS, Scratch};
use crate::metrics::vocabulary::UNKNOWN;
use crate::metrics::{Stop, Unscored, lcs};

/// With this many pairs of sentences, repeated sentences are looked for, so as to compare them once.
const MANY_PAIRS: usize = 4096;

/// How many sentences pass between two looks at [`Stop`].
const PATIENCE: usize = 1024;

/// A reference sentence, and where it starts in the text and so in the union.
#[derive(Debug, Clone, Copy)]
struct Sentence<'a> {
    tokens: &'a [u32],
    start: usize,
}

impl Scratch {
    /// How many reference tokens are in a union and have a partner of their own in the prediction.
    pub(super) fn summary_matches(&mut self, stop: Stop<'_>) -> Result<u64, Unscored> {
        let Self { reader, reference, prediction, counts, lcs, union, .. } = self;

        // A sentence without any word of the other text takes part in no common subsequence.
        let mut candidates: Vec<&[u32]> =
            prediction.sentences().filter(|tokens| tokens.iter().any(|&token| token != UNKNOWN)).collect();
        stop.check()?;
        let mut start = 0;
        let sentences: Vec<Sentence<'_>> = reference
            .sentences()
            .map(|tokens| {
                start += tokens.len();
                Sentence { tokens, start: start - tokens.len() }
            })
            .collect();
        stop.check()?;

        // The union with one sentence twice is the union with it once, and equal sentences have equal unions.
        let mut first_equal: HashMap<&[u32], usize> = HashMap::new();
        let mut distinct = sentences.clone();
        if sentences.len().saturating_mul(candidates.len()) > MANY_PAIRS {
            let mut seen = HashSet::new();
            candidates.retain(|&tokens| seen.insert(tokens));
            stop.check()?;
            distinct.retain(|sentence| {
                let start = first_equal.entry(sentence.tokens).or_insert(sentence.start);
                *start == sentence.start
            });
            stop.check()?;
        }

        let tokens: usize = candidates.iter().map(|tokens| tokens.len()).sum();
        let found = distinct.iter().fold(0_u64, |steps, sentence| {
            let overhead = candidates.len() * lcs::steps_a_pair(sentence.tokens.len());
            steps.saturating_add(lcs::steps(sentence.tokens.len(), tokens + overhead))
        });
        if found > MOST_STEPS {
            return Err(Unscored::OverLimit {
                what: "steps of 64 rougeLsum cells",
                found,
                limit: MOST_STEPS,
            });
        }

        lcs.reset(reader.largest());
        union.clear();
        union.resize(reference.ids.len().div_ceil(64), 0);
        for sentence in &distinct {
            lcs.rows(sentence.tokens);
            for some in candidates.chunks(PATIENCE) {
                stop.check()?;
                for &candidate in some {
                    lcs.mark(sentence.tokens, candidate, union, sentence.start, stop)?;
                }
            }
        }

        counts.clear();
        counts.resize(reader.largest() + 1, 0);
        for &token in &prediction.ids {
            counts[token as usize] += 1;
        }
        stop.check()?;
        // Each reference token is asked once, so its own text's count can't run out before.
        let mut matches = 0;
        for (number, sentence) in sentences.iter().enumerate() {
            if number % PATIENCE == 0 {
                stop.check()?;
            }
            let start = first_equal.get(sentence.tokens).copied().unwrap_or(sentence.start);
            for (row, &token) in sentence.tokens.iter().enumerate() {
                let count = &mut counts[token as usize];
                let bit = start + row;
                if (union[bit / 64] >> (bit % 64)) & 1 == 1 && *count > 0 {
                    *count -= 1;
                    matches += 1;
                }
            }
        }
        Ok(matches)
    }
}
