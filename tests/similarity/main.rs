//! Text similarity, checks and formulas of graders, against their reference libraries and published scores.
//!
//! Where the expected values come from: `tests/vectors/similarity/README.md`.

mod checks;
mod cosine;
mod formula;
mod fuzzy;
#[cfg(feature = "server")]
mod graders;
mod keywords;
mod nltk;
mod published;
mod vectors;
