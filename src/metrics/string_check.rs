//! String check: 1 if a text is, is not, or contains another, else 0.
//!
//! The operations of the hosted `string_check` grader. `like` and `ilike` look for the reference inside the
//! input; `%`, `_` and `*` are ordinary characters there. Nothing is trimmed or normalized. `ilike` compares
//! under Unicode's full case folding (`STRASSE` is in `Große Straße`).
//!
//! An empty reference is in every text, so `like` and `ilike` score 1 whatever the input. Such a check
//! can't fail, which is a mistake more often than not: ask [`always_passes`] before.
//!
//! ```
//! use rapid_eval::metrics::string_check::{Operation, score};
//!
//! assert_eq!(score("It is Paris.", "paris", Operation::Like), 0.0);
//! assert_eq!(score("It is Paris.", "paris", Operation::Ilike), 1.0);
//! ```

use std::fmt;
use std::str::FromStr;

use super::case_folding::case_folded;

/// What is checked of an input and a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `eq`: both are the same.
    Eq,
    /// `ne`: they are not.
    Ne,
    /// `like`: the input contains the reference.
    Like,
    /// `ilike`: the same without regard to case.
    Ilike,
}

/// A name that no [`Operation`] has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownOperation(String);

impl fmt::Display for UnknownOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown string check operation {:?}: choose one of eq, ne, like, ilike", self.0)
    }
}

impl std::error::Error for UnknownOperation {}

impl Operation {
    /// Its name in a grader.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Like => "like",
            Self::Ilike => "ilike",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    /// Reads a name; `neq`, which one of the vendors' pages writes, is `ne`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "eq" => Ok(Self::Eq),
            "ne" | "neq" => Ok(Self::Ne),
            "like" => Ok(Self::Like),
            "ilike" => Ok(Self::Ilike),
            unknown => Err(UnknownOperation(unknown.chars().take(40).collect())),
        }
    }
}

/// 1 if `input` passes the check against `reference`, else 0. Time is linear in both.
pub fn score(input: &str, reference: &str, operation: Operation) -> f64 {
    let passes = match operation {
        Operation::Eq => input == reference,
        Operation::Ne => input != reference,
        Operation::Like => input.contains(reference),
        Operation::Ilike => case_folded(input).contains(&case_folded(reference)),
    };
    f64::from(u8::from(passes))
}

/// Whether every input passes this check, because each text contains the empty one.
pub fn always_passes(reference: &str, operation: Operation) -> bool {
    match operation {
        Operation::Like | Operation::Ilike => reference.is_empty(),
        Operation::Eq | Operation::Ne => false,
    }
}
