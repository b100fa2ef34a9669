//! Evaluation of LLM outputs: a library of metrics, and the service around it.
//!
//! Without the feature `server` (on by default) only [`metrics`] is here: text in, number out,
//! no async, no I/O, no wire types.

#[cfg(feature = "server")]
pub mod judge;
pub mod metrics;
#[cfg(feature = "server")]
pub mod wire;
