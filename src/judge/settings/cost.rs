//! What a judge may cost: budgets per time window, and prices to reckon money with.
//!
//! ```toml
//! [judges.budget]
//! tokens = 2000000
//! money = 10.0
//! window_seconds = 86400
//! [judges.prices]     # of a million tokens, in the currency of `money`
//! input = 0.15
//! cached_input = 0.075
//! output = 0.6
//! ```

use serde::Deserialize;

use super::{JudgeSettings, SettingsError};
use crate::judge::Usage;

/// Longest window, in seconds: a year.
const LONGEST_WINDOW: u64 = 366 * 24 * 3600;

/// What a judge may cost in a time.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSettings {
    /// Tokens sent and received in a window. Default: no bound.
    pub tokens: Option<u64>,
    /// Money spent in a window, in the currency of the prices. Default: no bound.
    pub money: Option<f64>,
    /// Seconds of a window, up to a year; the first begins with the first call. Default 86400, a day.
    pub window_seconds: u64,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { tokens: None, money: None, window_seconds: 86_400 }
    }
}

/// Prices of a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Of the prompt.
    pub input: f64,
    /// Of the part of the prompt that the provider's cache held. Default: as `input`.
    #[serde(default)]
    pub cached_input: Option<f64>,
    /// Of the answer, reasoning included.
    pub output: f64,
}

impl Prices {
    /// What so many tokens cost.
    pub fn of(&self, usage: &Usage) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "money is reckoned to a few digits")]
        let million = |tokens: u64| tokens as f64 / 1e6;
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        million(usage.input_tokens - cached) * self.input
            + million(cached) * self.cached_input.unwrap_or(self.input)
            + million(usage.output_tokens) * self.output
    }
}

impl JudgeSettings {
    pub(super) fn check_cost(&self) -> Result<(), SettingsError> {
        let BudgetSettings { tokens, money, window_seconds } = self.budget;
        if !(1..=LONGEST_WINDOW).contains(&window_seconds) {
            return Err(self.error("budget.window_seconds", format!("must be 1 to {LONGEST_WINDOW}")));
        }
        if tokens == Some(0) {
            return Err(self.error("budget.tokens", "must be at least 1"));
        }
        if money.is_some_and(|money| !(money > 0.0 && money.is_finite())) {
            return Err(self.error("budget.money", "must be above 0"));
        }
        if money.is_some() && self.prices.is_none() {
            return Err(self.error("budget.money", "needs prices to reckon with"));
        }
        let prices = self.prices.unwrap_or_default();
        let all = [prices.input, prices.output, prices.cached_input.unwrap_or_default()];
        if all.iter().any(|price| !(*price >= 0.0 && price.is_finite())) {
            return Err(self.error("prices", "must be 0 or above"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_that_of_a_million_tokens() {
        let prices = Prices { input: 2.0, cached_input: Some(0.5), output: 8.0 };
        let usage = Usage {
            input_tokens: 3_000_000,
            cached_input_tokens: 1_000_000,
            output_tokens: 500_000,
            reasoning_tokens: 400_000,
        };
        // 2 · 2 + 1 · 0.5 + 0.5 · 8
        assert_eq!(prices.of(&usage), 8.5);
        assert_eq!(Prices { cached_input: None, ..prices }.of(&usage), 10.0);
    }

    #[test]
    fn a_wrong_budget_is_named() {
        for (text, message) in [
            ("budget = {tokens = 0}", "budget.tokens: must be at least 1"),
            ("budget = {window_seconds = 0}", "budget.window_seconds: must be 1 to 31622400"),
            ("budget = {money = 1.0}", "budget.money: needs prices to reckon with"),
            ("budget = {money = nan}", "budget.money: must be above 0"),
            ("prices = {input = -1.0, output = 1.0}", "prices: must be 0 or above"),
        ] {
            let settings: JudgeSettings =
                toml::from_str(&format!("provider = 'openai'\nmodel = 'm'\n{text}")).unwrap();
            assert_eq!(settings.check().unwrap_err().0, format!("judges.default.{message}"));
        }
    }
}
