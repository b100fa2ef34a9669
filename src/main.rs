//! The `rapid-eval` command.

fn main() {}
