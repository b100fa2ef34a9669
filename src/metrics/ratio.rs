//! A share of things that match, kept as two counts until the end.

/// `matches` out of `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// How many match, at most `total`.
    pub matches: u64,
    /// How many there are.
    pub total: u64,
}

impl Ratio {
    /// The share, 0 to 1. None of none is 1: nothing was wanted and nothing was wrong.
    pub fn value(self) -> f64 {
        if self.total == 0 { 1.0 } else { self.matches as f64 / self.total as f64 }
    }
}
