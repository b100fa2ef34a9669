//! How long an endpoint takes: a moving average to balance by, and the last answers in order of length.
//!
//! The average jumps up to a longer time at once and comes down slowly, and is halved for every ten seconds without
//! news, so that an endpoint that was slow gets asked again (the "peak EWMA" of Finagle's balancer).

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Answers remembered.
const REMEMBERED: usize = 128;
/// Fewer say nothing about quantiles.
const ENOUGH: usize = 16;
/// Weight of a new, shorter time in the average.
const WEIGHT: f64 = 0.2;
/// Seconds without news that halve the average.
const HALVED_AFTER: f64 = 10.0;
/// Quantiles older than this are no reason to refuse anybody.
const STALE: Duration = Duration::from_secs(10);
/// Quantiles are worked out anew after so many answers.
const SORTED_EVERY: u32 = 16;

/// Times of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Latency {
    average: Option<f64>,
    last: Option<Instant>,
    times: VecDeque<Duration>,
    sorted: Vec<Duration>,
    unsorted: u32,
}

impl Latency {
    /// An answer took so long.
    pub(super) fn observe(&mut self, now: Instant, time: Duration) {
        self.average_in(now, time.as_secs_f64());
        self.remember(time);
    }

    /// A call was given up after so long. What nobody waited for the end of would else be missing from the slow ones.
    pub(super) fn at_least(&mut self, now: Instant, time: Duration) {
        let seconds = time.as_secs_f64();
        if self.average(now).is_some_and(|average| seconds > average) {
            self.average_in(now, seconds);
        }
        if self.quantile(0.95).is_some_and(|late| time >= late) {
            self.remember(time);
        }
    }

    fn remember(&mut self, time: Duration) {
        if self.times.len() == REMEMBERED {
            self.times.pop_front();
        }
        self.times.push_back(time);
        self.unsorted += 1;
        if self.unsorted >= SORTED_EVERY || (self.sorted.is_empty() && self.times.len() >= ENOUGH) {
            self.unsorted = 0;
            self.sorted.clear();
            self.sorted.extend(&self.times);
            self.sorted.sort_unstable();
        }
    }

    fn average_in(&mut self, now: Instant, time: f64) {
        self.average = Some(match self.average(now) {
            Some(average) if time < average => average + WEIGHT * (time - average),
            Some(_) | None => time,
        });
        self.last = Some(now);
    }

    /// The average in seconds; absent before the first answer.
    pub(super) fn average(&self, now: Instant) -> Option<f64> {
        let idle = now.saturating_duration_since(self.last?).as_secs_f64();
        Some(self.average? * 0.5_f64.powf(idle / HALVED_AFTER))
    }

    /// The time within which a share `part`, 0 to 1, of the last answers came; absent when they are few.
    pub(super) fn quantile(&self, part: f64) -> Option<Duration> {
        if self.sorted.len() < ENOUGH {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index below REMEMBERED"
        )]
        let rank = (part * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.clamp(1, self.sorted.len()) - 1).copied()
    }

    /// The time that half of the answers take, if it is known and known of late.
    pub(super) fn usual(&self, now: Instant) -> Option<Duration> {
        let fresh = self.last.is_some_and(|last| now.saturating_duration_since(last) <= STALE);
        self.quantile(0.5).filter(|_| fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_average_jumps_up_comes_down_slowly_and_fades() {
        let (mut latency, now) = (Latency::default(), Instant::now());
        latency.observe(now, Duration::from_secs(1));
        latency.observe(now, Duration::from_secs(3));
        assert_eq!(latency.average(now), Some(3.0));
        latency.observe(now, Duration::from_secs(1));
        // 3 + 0.2 · (1 − 3)
        assert!((latency.average(now).unwrap() - 2.6).abs() < 1e-9);
        assert!((latency.average(now + Duration::from_secs(10)).unwrap() - 1.3).abs() < 1e-9);
    }

    #[tokio::test(start_paused = true)]
    async fn quantiles_are_those_of_the_last_answers() {
        let (mut latency, now) = (Latency::default(), Instant::now());
        for time in 1..=15 {
            latency.observe(now, Duration::from_millis(time));
        }
        assert_eq!(latency.quantile(0.5), None);
        for time in 1..=128 {
            latency.observe(now, Duration::from_millis(time));
        }
        for _ in 0..SORTED_EVERY {
            latency.observe(now, Duration::from_millis(64));
        }
        // 128 answers: 17 to 128 ms once each, and 64 ms sixteen times more. The 64th in order is 64 ms
        // (17 to 63 are 47), the 122nd is the seventh from the top.
        assert_eq!(latency.quantile(0.5), Some(Duration::from_millis(64)));
        assert_eq!(latency.quantile(0.95), Some(Duration::from_millis(122)));
        assert_eq!(latency.usual(now + STALE), Some(Duration::from_millis(64)));
        assert_eq!(latency.usual(now + STALE + Duration::from_millis(1)), None);
    }
}
