//! What fuzz inputs are made of.

pub mod json;
pub mod texts;
pub mod words;
