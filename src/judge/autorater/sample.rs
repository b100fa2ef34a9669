//! One sample: asked, read, and asked once more when the reply cannot be read.
//!
//! The second time the judge sees its own reply and what is wrong with it. There is no third time.

use std::fmt;

use super::super::verdict::{self, Material, Reading, Unreadable, Verdict, shorten};
use super::super::{Judge, JudgeError, JudgeErrorKind, Question, Reply, Speaker, Turn, Usage};

/// As much of its own unreadable reply a judge is shown, in characters.
const SHOWN_CHARS: usize = 8_000;

/// What one sample came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<V> {
    /// The verdict, or why there is none.
    pub verdict: Result<Verdict<V>, Failure>,
    /// The last reply, as it came; empty when there was none.
    pub raw: String,
    /// Whether this sample saw the two texts of a comparison in the other order.
    pub flipped: bool,
    /// How often the judge was asked: 1 or 2.
    pub asks: u32,
    /// The model that answered, as it names itself.
    pub model: String,
    /// Tokens of all its replies.
    pub usage: Usage,
}

/// Why a sample has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The judge gave no answer.
    Unanswered(JudgeError),
    /// Its answer is no verdict, twice.
    Unreadable(Unreadable),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(error) => error.fmt(f),
            Self::Unreadable(unreadable) => unreadable.fmt(f),
        }
    }
}

impl<V> Sample<V> {
    /// The same sample with its value as what it is a vote for, given whether it was flipped.
    pub(super) fn map<L>(self, vote: fn(&V, bool) -> L) -> Sample<L> {
        let Self { verdict, raw, flipped, asks, model, usage } = self;
        let verdict = verdict.map(|Verdict { value, explanation, repaired }| Verdict {
            value: vote(&value, flipped),
            explanation,
            repaired,
        });
        Sample { verdict, raw, flipped, asks, model, usage }
    }
}

/// What a sample needs.
pub(super) struct Call<'a, J, R> {
    pub(super) judge: &'a J,
    pub(super) reading: &'a R,
    pub(super) material: &'a Material,
    pub(super) question: Question,
    pub(super) flipped: bool,
}

/// Asks, reads, and asks once more when the reply is no verdict.
pub(super) async fn take_sample<J: Judge, R: Reading>(call: Call<'_, J, R>) -> Sample<R::Value> {
    let mut sample = Sample {
        verdict: Err(Failure::Unreadable(Unreadable { reason: String::new(), said: String::new() })),
        raw: String::new(),
        flipped: call.flipped,
        asks: 0,
        model: String::new(),
        usage: Usage::default(),
    };
    let mut question = call.question;
    loop {
        sample.asks += 1;
        let answer = call.judge.ask(&question).await;
        let reason = match answer {
            Ok(reply) => {
                let verdict = verdict::read(call.reading, &reply, call.material);
                sample.usage += reply.usage;
                sample.model = reply.model.clone();
                sample.raw.clone_from(&reply.text);
                if verdict.is_err() {
                    call.judge.disown(&question);
                }
                sample.verdict = verdict.map_err(Failure::Unreadable);
                match &sample.verdict {
                    Ok(_) | Err(Failure::Unanswered(_)) => return sample,
                    Err(Failure::Unreadable(unreadable)) => {
                        Repair { reply, reason: unreadable.reason.clone() }
                    }
                }
            }
            Err(error) => {
                let is_unreadable = error.kind == JudgeErrorKind::Unreadable;
                let reason = error.message.clone();
                // a second call that fails says less than the reply to the first one
                if sample.asks == 1 {
                    sample.verdict = Err(Failure::Unanswered(error));
                }
                if !is_unreadable {
                    return sample;
                }
                Repair { reply: Reply::default(), reason }
            }
        };
        if sample.asks == 2 {
            return sample;
        }
        reason.ask_again(&mut question);
    }
}

/// A reply that is no verdict, and why.
struct Repair {
    reply: Reply,
    reason: String,
}

impl Repair {
    fn ask_again(self, question: &mut Question) {
        let note = format!(
            "Your reply could not be used: {}. Give your verdict again, in the form that was described, and \
             keep the explanation short.",
            self.reason
        );
        let shown = self.reply.text.trim();
        if shown.is_empty() {
            // providers refuse an empty turn
            if let Some(last) = question.turns.last_mut() {
                last.text.push_str("\n\n");
                last.text.push_str(&note);
            }
        } else {
            question.turns.push(Turn { speaker: Speaker::Judge, text: shorten(shown, SHOWN_CHARS) });
            question.turns.push(Turn { speaker: Speaker::User, text: note });
        }
    }
}
