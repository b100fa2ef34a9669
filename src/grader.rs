//! Graders: what is done around the metrics to grade a model's output against an item.

pub mod template;
