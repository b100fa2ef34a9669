//! The autorater: one question asked several times, the replies made into one grade.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `sample.rs` | one sample: asked, read, and asked once more when it cannot be read |
//! | `ungraded.rs` | why there is no grade |
//! | `rubrics.rs` | rubrics written for an item, and verdicts on them |
//!
//! Samples are asked at the same time. Nothing is spawned: dropping the future of a grade drops every call.
//! How votes become an answer is in [`super::consensus`].

mod rubrics;
mod sample;
mod ungraded;

use futures_util::future::join_all;
use tokio::time::Instant;

pub use rubrics::{GeneratedRubrics, RubricGrade, generate_rubrics, judge_rubrics};
pub use sample::{Failure, Sample};
pub use ungraded::{Cause, Ungraded};

use super::consensus::{self, Choice, Consensus, Next, NoConsensus, PairVote};
use super::prompt::{PairPrompt, Prompt};
use super::verdict::{
    Graded, Label, Pair, Reading, Scale, Score, Shown, Steps, Weighted, labels_of, weighted_score,
};
use super::{Judge, Question, Reply, ReplyForm, Reuse, Sampling, Speaker, Turn, Usage};
use crate::telemetry;
use sample::{Call, take_sample};

/// How a judge is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// How often, 1 to 32; what is outside is moved to the nearer end.
    pub count: u32,
    /// Comparisons only: half of the samples see the two texts in the other order.
    pub flip: bool,
    /// Ask no more once the answer cannot change. The answer is that of all samples, the confidence is that of
    /// those asked.
    pub early_stop: bool,
    /// Scores only: how a score is got.
    pub readout: Readout,
    /// Sampling parameters. A seed is moved on by one for every sample, or all of them would say the same.
    pub sampling: Sampling,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// On whose behalf; see [`Question::caller`].
    pub caller: u64,
    /// Whether answers to equal questions may be used.
    pub reuse: Reuse,
}

impl Default for Samples {
    /// Four samples, flipped, none left out: the defaults of Vertex.
    fn default() -> Self {
        Self {
            count: 4,
            flip: true,
            early_stop: false,
            readout: Readout::Replies,
            sampling: Sampling::default(),
            deadline: None,
            caller: 0,
            reuse: Reuse::Allowed,
        }
    }
}

impl Samples {
    fn planned(&self) -> usize {
        self.count.clamp(1, 32) as usize
    }
}

/// How a score is got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Readout {
    /// From written verdicts.
    Replies,
    /// From the probabilities of one token, in one call; from written verdicts when that does not work out.
    LogProbs,
}

/// What a judge, asked several times, says.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade<V> {
    /// The answer.
    pub value: V,
    /// Why, in the judge's words.
    pub explanation: String,
    /// The share of samples that gave this answer, 0 to 1; for a readout the probability of its likeliest level.
    pub confidence: f64,
    /// What `confidence` could still become if samples that were left out were asked.
    pub confidence_range: (f64, f64),
    /// The mean of all scores that were given; scores only.
    pub mean_score: Option<f64>,
    /// Comparisons only: see [`consensus::first_position_rate`].
    pub first_position_rate: Option<f64>,
    /// Comparisons only: see [`consensus::flip_consistency`].
    pub flip_consistency: Option<f64>,
    /// Scores read off probabilities only.
    pub readout: Option<Weighted>,
    /// Every sample that was asked, in order; verdicts of comparisons are mapped back.
    pub samples: Vec<Sample<V>>,
    /// Tokens of all samples and of a readout.
    pub usage: Usage,
    /// How often the judge was asked: samples, their repairs, and a readout.
    pub asks: u32,
    /// True when samples were left out.
    pub stopped_early: bool,
}

/// Asks for a score.
///
/// # Errors
///
/// There was no quorum: see [`Ungraded`].
pub async fn grade<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    scale: &Scale,
    samples: &Samples,
) -> Result<Grade<f64>, Ungraded> {
    let mut spent = Spent::default();
    if samples.readout == Readout::LogProbs
        && let Scale::Levels(levels) = scale
    {
        match read_out(judge, prompt, levels, samples).await {
            Ok(grade) => return Ok(grade),
            Err(in_vain) => spent = in_vain,
        }
    }
    let reading = Score { scale: scale.clone() };
    let asked = Asked { judge, reading: &reading, samples, orders: Orders::One(prompt) };
    match asked.grade(|score, _| *score, consensus::scores).await {
        Ok(mut grade) => {
            grade.mean_score = consensus::mean(&votes(&grade.samples));
            grade.usage += spent.usage;
            grade.asks += spent.asks;
            Ok(grade)
        }
        Err(mut ungraded) => {
            ungraded.usage += spent.usage;
            Err(ungraded)
        }
    }
}

/// Asks for a label; the value is its index in `labels`.
///
/// # Errors
///
/// There was no quorum, or two labels have equally many votes.
pub async fn grade_label<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    labels: &[String],
    samples: &Samples,
) -> Result<Grade<usize>, Ungraded> {
    let reading = Label { labels: labels.to_vec() };
    let asked = Asked { judge, reading: &reading, samples, orders: Orders::One(prompt) };
    asked.grade(|label, _| *label, consensus::labels).await
}

/// Asks for steps and a result, as graders do; the value of a label is its index.
///
/// # Errors
///
/// There was no quorum, or two labels have equally many votes.
pub async fn grade_steps<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    result: &Graded,
    samples: &Samples,
) -> Result<Grade<f64>, Ungraded> {
    let reading = Steps { result: result.clone() };
    let asked = Asked { judge, reading: &reading, samples, orders: Orders::One(prompt) };
    match result {
        Graded::Number(_) | Graded::Clamped { .. } => {
            let mut grade = asked.grade(|score, _| *score, consensus::scores).await?;
            grade.mean_score = consensus::mean(&votes(&grade.samples));
            Ok(grade)
        }
        Graded::Label(_) => asked.grade(|index, _| *index, one_index).await,
    }
}

/// Labels in the shape of scores, without the order of scores.
fn one_index(votes: &[Option<f64>], asked: usize) -> Result<Consensus<f64>, NoConsensus> {
    let consensus = consensus::scores(votes, asked)?;
    let rivals = votes.iter().flatten().filter(|vote| **vote != consensus.label);
    let is_split = rivals
        .clone()
        .any(|rival| votes.iter().flatten().filter(|vote| *vote == rival).count() == consensus.votes);
    if is_split { Err(NoConsensus::Split) } else { Ok(consensus) }
}

/// Asks which of two texts is better.
///
/// # Errors
///
/// There was no quorum.
pub async fn grade_pairwise<J: Judge>(
    judge: &J,
    prompt: &PairPrompt,
    samples: &Samples,
) -> Result<Grade<Choice>, Ungraded> {
    let asked = Asked { judge, reading: &Pair, samples, orders: Orders::Two(prompt) };
    let mut grade = asked.grade(unflipped, consensus::choices).await?;
    let seen: Vec<Option<PairVote>> = grade
        .samples
        .iter()
        .map(|sample| {
            let choice = sample.verdict.as_ref().ok()?.value;
            Some(PairVote { choice, candidate_first: sample.flipped != prompt.shows_b_first })
        })
        .collect();
    grade.first_position_rate = consensus::first_position_rate(&seen);
    grade.flip_consistency = consensus::flip_consistency(&seen);
    if grade.explanation.is_empty() && grade.value == Choice::Tie {
        let count = |choice| seen.iter().flatten().filter(|vote| vote.choice == choice).count();
        grade.explanation = format!(
            "The judge is undecided: of {} samples {} prefer the candidate and {} the baseline.",
            grade.samples.len(),
            count(Choice::Candidate),
            count(Choice::Baseline)
        );
    }
    Ok(grade)
}

fn unflipped(shown: &Shown, flipped: bool) -> Choice {
    match (shown, flipped) {
        (Shown::Same, _) => Choice::Tie,
        (Shown::A, false) | (Shown::B, true) => Choice::Baseline,
        (Shown::B, false) | (Shown::A, true) => Choice::Candidate,
    }
}

/// Replies as they are, for callers who read them themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct RawOutputs {
    /// One text for every sample that was answered, in order.
    pub outputs: Vec<String>,
    /// Tokens of all samples.
    pub usage: Usage,
}

/// Asks for free text: no form is asked for, nothing is read and nothing is flipped.
///
/// # Errors
///
/// Half of the samples or more were not answered.
pub async fn ask_raw<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    samples: &Samples,
) -> Result<RawOutputs, Ungraded> {
    let planned = samples.planned();
    let (system, user) = prompt.with_form("");
    let replies = join_all((0..planned).map(|index| {
        let question = question(prompt, (&system, &user), ReplyForm::Text, samples, index);
        async move { judge.ask(&question).await }
    }))
    .await;
    let mut usage = Usage::default();
    let mut outputs = Vec::new();
    let mut failures = Vec::new();
    for (index, reply) in replies.into_iter().enumerate() {
        match reply {
            Ok(Reply { text, usage: tokens, .. }) => {
                usage += tokens;
                outputs.push(text);
            }
            Err(error) => failures.push((index, Failure::Unanswered(error))),
        }
    }
    if outputs.len() * 2 > planned {
        Ok(RawOutputs { outputs, usage })
    } else {
        Err(Ungraded::without_quorum(outputs.len(), planned, &failures, usage))
    }
}

/// What a readout that did not work out has cost.
#[derive(Debug, Default)]
struct Spent {
    usage: Usage,
    asks: u32,
}

/// One call that asks for a single token and reads the score off its alternatives.
async fn read_out<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    levels: &[f64],
    samples: &Samples,
) -> Result<Grade<f64>, Spent> {
    let labels = labels_of(levels).ok_or_else(Spent::default)?;
    let (system, user) = prompt.with_bare_score(&labels);
    let question = question(prompt, (&system, &user), ReplyForm::Label { labels }, samples, 0);
    let reply = judge.ask(&question).await.map_err(|_| Spent { asks: 1, ..Spent::default() })?;
    let weighted =
        weighted_score(&reply.alternatives, levels).ok_or(Spent { usage: reply.usage, asks: 1 })?;
    let confidence = weighted.confidence();
    telemetry::evaluation::graded(confidence, None, 1, 1, false);
    Ok(Grade {
        value: weighted.score,
        explanation: String::new(),
        confidence,
        confidence_range: (confidence, confidence),
        mean_score: Some(weighted.score),
        first_position_rate: None,
        flip_consistency: None,
        readout: Some(weighted),
        samples: Vec::new(),
        usage: reply.usage,
        asks: 1,
        stopped_early: false,
    })
}

/// A question: what the prompt has before its last turn, the system text, and that turn.
fn question(
    prompt: &Prompt,
    (system, user): (&str, &str),
    form: ReplyForm,
    samples: &Samples,
    index: usize,
) -> Question {
    let last = Turn { speaker: Speaker::User, text: user.to_owned() };
    let mut sampling = samples.sampling.clone();
    let sample = u32::try_from(index).unwrap_or(u32::MAX);
    sampling.seed = sampling.seed.map(|seed| seed.wrapping_add(i64::from(sample)));
    Question {
        system: system.to_owned(),
        turns: prompt.earlier().iter().cloned().chain([last]).collect(),
        form,
        sampling,
        sample,
        has_siblings: samples.planned() > 1,
        deadline: samples.deadline,
        caller: samples.caller,
        reuse: samples.reuse,
        ..Question::default()
    }
}

/// The prompts of one item.
enum Orders<'p> {
    One(&'p Prompt),
    Two(&'p PairPrompt),
}

impl Orders<'_> {
    /// The prompt of a sample, and whether it is the flipped one. Samples alternate; where they begin is up to
    /// the content of the item, so that single samples do not always see the same text first.
    fn of_sample(&self, index: usize, flip: bool) -> (&Prompt, bool) {
        match self {
            Self::One(prompt) => (prompt, false),
            Self::Two(pair) => {
                let flipped = flip && (index % 2 == 1) != pair.plain.coin();
                (if flipped { &pair.flipped } else { &pair.plain }, flipped)
            }
        }
    }
}

/// How votes, out of so many samples, become an answer.
type Count<L> = fn(&[Option<L>], usize) -> Result<Consensus<L>, NoConsensus>;

/// One item before a judge.
struct Asked<'a, J, R> {
    judge: &'a J,
    reading: &'a R,
    samples: &'a Samples,
    orders: Orders<'a>,
}

impl<J: Judge, R: Reading> Asked<'_, J, R> {
    /// Asks all samples and counts: `vote` says what a verdict is a vote for, given whether it was flipped.
    async fn grade<L>(&self, vote: fn(&R::Value, bool) -> L, count: Count<L>) -> Result<Grade<L>, Ungraded>
    where
        L: Copy + PartialEq + Send,
    {
        let planned = self.samples.planned();
        let mut taken: Vec<Sample<L>> = Vec::with_capacity(planned);
        while consensus::next(&votes(&taken), planned) == Next::Ask && taken.len() < planned {
            let wave = match self.samples.early_stop {
                true => consensus::next_wave(&votes(&taken), planned),
                false => planned,
            };
            let asked = join_all((taken.len()..taken.len() + wave).map(|index| self.sample(index))).await;
            taken.extend(asked.into_iter().map(|sample| sample.map(vote)));
        }
        let mut usage = Usage::default();
        taken.iter().for_each(|sample| usage += sample.usage);
        let asked = taken.len();
        // what was lost early is lost for all samples planned
        let valid = taken.iter().filter(|sample| sample.verdict.is_ok()).count();
        let out_of = if consensus::next(&votes(&taken), planned) == Next::Lost { planned } else { asked };
        match count(&votes(&taken), out_of) {
            Ok(consensus) => Ok(self.granted(consensus, taken, usage)),
            Err(NoConsensus::NoQuorum { .. }) => {
                let failures: Vec<(usize, Failure)> = taken
                    .into_iter()
                    .enumerate()
                    .filter_map(|(index, sample)| Some((index, sample.verdict.err()?)))
                    .collect();
                Err(Ungraded::without_quorum(valid, planned, &failures, usage))
            }
            Err(NoConsensus::Split) => Err(Ungraded::split(valid, planned, usage)),
        }
    }

    async fn sample(&self, index: usize) -> Sample<R::Value> {
        let (prompt, flipped) = self.orders.of_sample(index, self.samples.flip);
        let form = self.reading.instructions();
        let (system, user) = prompt.with_form(&form);
        let question = question(prompt, (&system, &user), self.reading.form(), self.samples, index);
        take_sample(Call {
            judge: self.judge,
            reading: self.reading,
            material: prompt.material(),
            question,
            flipped,
        })
        .await
    }

    fn granted<L: Copy>(&self, consensus: Consensus<L>, samples: Vec<Sample<L>>, usage: Usage) -> Grade<L> {
        let planned = self.samples.planned();
        let left = planned - samples.len().min(planned);
        let spokesman = consensus.spokesman.and_then(|index| samples.get(index)?.verdict.as_ref().ok());
        let share = |votes: usize| {
            #[expect(clippy::cast_precision_loss, reason = "there are at most 32 samples")]
            (votes as f64 / planned as f64)
        };
        let asks = samples.iter().map(|sample| sample.asks).sum();
        let verdicts = samples.iter().filter(|sample| sample.verdict.is_ok()).count();
        let asked = samples.len();
        telemetry::evaluation::graded(consensus.confidence, Some(consensus.votes), verdicts, asked, left > 0);
        Grade {
            value: consensus.label,
            explanation: spokesman.map(|verdict| verdict.explanation.clone()).unwrap_or_default(),
            confidence: consensus.confidence,
            confidence_range: (share(consensus.votes), share(consensus.votes + left)),
            mean_score: None,
            first_position_rate: None,
            flip_consistency: None,
            readout: None,
            samples,
            usage,
            asks,
            stopped_early: left > 0,
        }
    }
}

fn votes<L: Copy>(samples: &[Sample<L>]) -> Vec<Option<L>> {
    samples.iter().map(|sample| sample.verdict.as_ref().ok().map(|verdict| verdict.value)).collect()
}

#[cfg(test)]
mod tests;
