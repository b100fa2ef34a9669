//! Computed metrics: text in, number out. No async, no I/O, no wire types.
//!
//! One file a metric, with the same verbs in each: `Options`, `score(prediction, reference, &options)`
//! for a plain call, and `score_until(…, stop)` for a caller who may lose interest while a long
//! text is being worked on.

pub mod bleu;
pub mod cosine;
pub mod exact_match;
pub mod formula;
pub mod fuzzy;
pub mod gleu;
pub mod json;
pub mod keyword_match;
pub mod meteor;
pub mod nltk;
pub mod nltk_bleu;
pub mod porter;
pub mod punkt;
pub mod ratio;
pub mod rouge;
pub mod string_check;
pub mod text;
pub mod token_f1;
pub mod tool_call;
pub mod trajectory;

mod case_folding;
mod hash;
mod lcs;
mod overlap;
mod vocabulary;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a metric gave no score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unscored {
    /// [`Stop`] was raised while the work was going on.
    Stopped,
    /// The texts ask for more work or memory than the metric allows.
    OverLimit {
        /// What there was too much of, such as `"rougeLsum sentence pairs"`.
        what: &'static str,
        /// How much of it these texts ask for.
        found: u64,
        /// How much of it is allowed.
        limit: u64,
    },
}

impl fmt::Display for Unscored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped before the score was known"),
            Self::OverLimit { what, found, limit } => {
                write!(f, "{what}: {found} is over the limit of {limit}")
            }
        }
    }
}

impl std::error::Error for Unscored {}

/// Lets a caller end a long computation: kernels look at it every few thousand steps.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a>(Option<&'a AtomicBool>);

impl<'a> Stop<'a> {
    /// Nobody will ask for an end.
    pub const NEVER: Stop<'static> = Stop(None);

    /// Ends the work soon after `raised` turns true.
    pub const fn when(raised: &'a AtomicBool) -> Self {
        Self(Some(raised))
    }

    /// Go on, or [`Unscored::Stopped`].
    pub fn check(self) -> Result<(), Unscored> {
        match self.0 {
            Some(raised) if raised.load(Ordering::Relaxed) => Err(Unscored::Stopped),
            _ => Ok(()),
        }
    }
}
