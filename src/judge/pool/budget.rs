//! What a judge may cost in a window of time: reserved by estimate before a call, settled with what it used.
//!
//! A call that was given up, or that ran out of time, is charged its estimate: the provider may have answered all the
//! same, and nobody says. A call that failed otherwise costs nothing. What was reserved in one window and is
//! settled in the next is charged to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::judge::settings::{BudgetSettings, JudgeSettings, Prices};
use crate::judge::{JudgeError, JudgeErrorKind, Usage};

/// The account of one judge.
#[derive(Debug)]
pub struct Budget {
    judge: String,
    limits: BudgetSettings,
    prices: Prices,
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    /// The end of the window; absent before the first call.
    ends: Option<Instant>,
    /// Spent and reserved.
    tokens: u64,
    money: f64,
}

/// What has been set aside for a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reserve {
    estimate: Usage,
    window: Instant,
}

impl Budget {
    /// As configured; absent when nothing is bounded.
    pub fn new(settings: &JudgeSettings) -> Option<Self> {
        let limits = settings.budget;
        (limits.tokens.is_some() || limits.money.is_some()).then(|| Self {
            judge: settings.name.clone(),
            limits,
            prices: settings.prices.unwrap_or_default(),
            account: Mutex::default(),
        })
    }

    fn account(&self, now: Instant) -> MutexGuard<'_, Account> {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        if account.ends.is_none_or(|ends| now >= ends) {
            let ends = now + Duration::from_secs(self.limits.window_seconds);
            *account = Account { ends: Some(ends), ..Account::default() };
        }
        account
    }

    /// Sets aside what a call may use.
    ///
    /// # Errors
    /// `OverBudget`, naming what is spent and when it is not.
    pub(super) fn reserve(&self, now: Instant, estimate: Usage) -> Result<Reserve, JudgeError> {
        let mut account = self.account(now);
        let (tokens, money) =
            (account.tokens.saturating_add(estimate.total()), account.money + self.prices.of(&estimate));
        let window = account.ends.unwrap_or(now);
        let over = |key: &str, limit: String, spent: String| {
            let message = format!(
                "judges.{}.budget.{key}: of {limit} in {} s {spent} are spent or set aside, and this call may use more \
                 than the rest",
                self.judge, self.limits.window_seconds
            );
            let error = JudgeError::new(JudgeErrorKind::OverBudget, message);
            Err(JudgeError { retry_after: Some(window.saturating_duration_since(now)), ..error })
        };
        if let Some(limit) = self.limits.tokens.filter(|limit| tokens > *limit) {
            return over("tokens", limit.to_string(), account.tokens.to_string());
        }
        if let Some(limit) = self.limits.money.filter(|limit| money > *limit) {
            return over("money", limit.to_string(), format!("{:.6}", account.money));
        }
        (account.tokens, account.money) = (tokens, money);
        Ok(Reserve { estimate, window })
    }

    /// A call used so much.
    pub(super) fn settle(&self, now: Instant, reserve: Reserve, used: Usage) {
        let mut account = self.account(now);
        if account.ends == Some(reserve.window) {
            account.tokens = account.tokens.saturating_sub(reserve.estimate.total());
            account.money -= self.prices.of(&reserve.estimate);
        }
        account.tokens = account.tokens.saturating_add(used.total());
        account.money = (account.money + self.prices.of(&used)).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(text: &str) -> Budget {
        let text = format!("name = 'main'\nprovider = 'openai'\nmodel = 'm'\n{text}");
        Budget::new(&toml::from_str(&text).unwrap()).unwrap()
    }

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_set_aside_settled_and_free_again_in_the_next_window() {
        let (budget, now) = (budget("budget = {tokens = 1000, window_seconds = 60}"), Instant::now());
        let first = budget.reserve(now, usage(500, 400)).unwrap();
        let error = budget.reserve(now, usage(90, 11)).unwrap_err();
        assert_eq!(
            (error.kind, error.retry_after),
            (JudgeErrorKind::OverBudget, Some(Duration::from_secs(60)))
        );
        assert!(error.message.starts_with("judges.main.budget.tokens: of 1000 in 60 s 900 are "), "{error}");
        budget.settle(now, first, usage(480, 20));
        // 500 are spent.
        let second = budget.reserve(now, usage(400, 100)).unwrap();
        assert!(budget.reserve(now, usage(0, 1)).is_err());
        let next = now + Duration::from_secs(60);
        assert!(budget.reserve(next, usage(0, 900)).is_ok());
        // What was reserved before is charged now: 900 + 100.
        budget.settle(next, second, usage(90, 10));
        assert!(budget.reserve(next, usage(0, 1)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn money_is_reckoned_with_prices() {
        let text = "budget = {money = 1.0}\nprices = {input = 1.0, output = 10.0}";
        let (budget, now) = (budget(text), Instant::now());
        // 0.5 + 0.4
        budget.reserve(now, usage(500_000, 40_000)).unwrap();
        let error = budget.reserve(now, usage(0, 20_000)).unwrap_err();
        assert!(
            error.message.starts_with("judges.main.budget.money: of 1 in 86400 s 0.900000 are "),
            "{error}"
        );
        assert!(budget.reserve(now, usage(0, 9_000)).is_ok());
    }
}
