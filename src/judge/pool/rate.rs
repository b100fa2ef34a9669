//! How many requests and tokens an endpoint is sent in a time.
//!
//! Two limits are configured (requests and tokens per minute) and one is learned: the rate that an endpoint takes
//! without answering 429. All three are token buckets. Tokens are reserved by estimate before a call and settled with what
//! it used, so a bucket may be in debt. A call that needs more tokens than the bucket holds passes when it is full.
//!
//! **The learned rate.** After a 429 nothing is sent before its `Retry-After`. What the endpoint answered in
//! the time before is what it takes: that becomes the plateau. From 5 % below it
//! the rate grows by a cubic curve as in CUBIC (Ha, Rhee, Xu 2008; RFC 9438), flat around the plateau, so that most of
//! the time is spent close to what the endpoint takes, and steep far beyond, so that a raised limit is found. The
//! curve only advances while calls wait for it. All 429s to calls sent before the rest began are one signal.

use std::time::Duration;

use tokio::time::Instant;

/// The rest after a 429 that names none; doubled for each further one in a row, up to [`LONGEST_UNNAMED`].
const UNNAMED: Duration = Duration::from_millis(500);
const LONGEST_UNNAMED: Duration = Duration::from_secs(8);
/// Seconds from below the plateau to the plateau.
const FLAT_AFTER: f64 = 30.0;
/// The same where the plateau is a guess: from fewer answers than [`EVIDENCE`], or far from the one before.
const FLAT_AFTER_GUESS: f64 = 5.0;
const EVIDENCE: u64 = 20;
const AGREEMENT: f64 = 0.15;
/// What was answered longer ago than one to two of these counts no more.
const WINDOW: Duration = Duration::from_secs(10);
/// After such a time without calls the count begins anew.
const IDLE: Duration = Duration::from_secs(5);
/// How far below the plateau the rate begins again.
const STEP_BACK: f64 = 0.05;
/// Slack for rounding when a bucket is asked the instant it should be full enough.
const EPSILON: f64 = 1e-6;

/// What may still be sent to one endpoint.
#[derive(Debug)]
pub(super) struct Rate {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// Until when other processes have used up what they share with this one.
    held: Option<Instant>,
    learned: Learned,
}

/// Limits per minute as rate per second and bucket: a second's worth of requests at once, six seconds' worth of
/// tokens.
pub(super) fn per_second(requests: Option<u32>, tokens: Option<u32>) -> [Option<(f64, f64)>; 2] {
    let limit = |per_minute: u32, part: f64| {
        let per_minute = f64::from(per_minute);
        (per_minute / 60.0, (per_minute * part).max(1.0))
    };
    [requests.map(|count| limit(count, 1.0 / 60.0)), tokens.map(|count| limit(count, 0.1))]
}

impl Rate {
    /// With these limits per minute, if any.
    pub(super) fn new(
        requests_per_minute: Option<u32>,
        tokens_per_minute: Option<u32>,
        now: Instant,
    ) -> Self {
        let [requests, tokens] = per_second(requests_per_minute, tokens_per_minute)
            .map(|limit| limit.map(|(rate, capacity)| Bucket::full(rate, capacity, now)));
        Self { requests, tokens, held: None, learned: Learned::default() }
    }

    /// Until when the endpoint itself wants to be left alone; absent = it does not.
    pub(super) fn rests_until(&self, now: Instant) -> Option<Instant> {
        self.learned.resume.filter(|resume| *resume > now)
    }

    /// When a call of so many tokens may be sent; absent = now.
    pub(super) fn ready_at(&mut self, now: Instant, tokens: u64) -> Option<Instant> {
        self.learned.roll(now);
        let requests = self.requests.as_ref().and_then(|bucket| bucket.ready_at(now, 1.0));
        let tokens = self.tokens.as_ref().and_then(|bucket| bucket.ready_at(now, as_f64(tokens)));
        let held = self.held.filter(|held| *held > now);
        [requests, tokens, held, self.learned.ready_at(now)].into_iter().flatten().max()
    }

    /// Nothing may be sent before.
    pub(super) fn hold(&mut self, until: Instant) {
        self.held = Some(until);
    }

    /// A call of so many tokens is sent.
    pub(super) fn take(&mut self, now: Instant, tokens: u64) {
        if let Some(bucket) = &mut self.requests {
            bucket.take(now, 1.0);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.take(now, as_f64(tokens));
        }
        self.learned.take(now);
    }

    /// A call for which `reserved` tokens were taken used `used`.
    pub(super) fn settle(&mut self, now: Instant, reserved: u64, used: u64) {
        if let Some(bucket) = &mut self.tokens {
            bucket.take(now, as_f64(used) - as_f64(reserved));
        }
    }

    /// A call was answered.
    pub(super) fn accepted(&mut self) {
        self.learned.accepted += 1;
        self.learned.in_a_row = 0;
    }

    /// A call that was sent at `sent` was answered with 429, and with the rest that it wants. Until when the
    /// endpoint rests.
    pub(super) fn refused(&mut self, now: Instant, sent: Instant, wait: Option<Duration>) -> Instant {
        self.learned.refused(now, sent, wait)
    }
}

#[derive(Debug)]
struct Bucket {
    per_second: f64,
    capacity: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn full(per_second: f64, capacity: f64, now: Instant) -> Self {
        Self { per_second, capacity, level: capacity, at: now }
    }

    fn level(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        (self.level + since * self.per_second).min(self.capacity)
    }

    fn ready_at(&self, now: Instant, amount: f64) -> Option<Instant> {
        let missing = amount.min(self.capacity) - self.level(now);
        (missing > EPSILON).then(|| now + seconds(missing / self.per_second))
    }

    fn take(&mut self, now: Instant, amount: f64) {
        self.level = (self.level(now) - amount).min(self.capacity);
        self.at = now;
    }
}

/// The rate that the endpoint is found to take.
#[derive(Debug, Default)]
struct Learned {
    /// When the current cycle began: with the first call, or at the end of a rest.
    began: Option<Instant>,
    /// Calls answered in this cycle.
    accepted: u64,
    /// What belongs to this cycle but was counted in the window before: answers, and seconds.
    earlier: (u64, f64),
    last_call: Option<Instant>,
    /// The end of the rest that ends this cycle, once a 429 has come.
    resume: Option<Instant>,
    /// When the first 429 of this cycle came.
    refused_at: Option<Instant>,
    /// 429s without an answer between.
    in_a_row: u32,
    /// Absent until the first 429.
    curve: Option<Curve>,
}

#[derive(Debug)]
struct Curve {
    /// Calls per second.
    plateau: f64,
    /// Seconds on the curve, counted while calls wait for it.
    age: f64,
    flat_after: f64,
    /// The end of the rest before it.
    began: Instant,
    bucket: Bucket,
}

impl Curve {
    fn new(plateau: f64, flat_after: f64, now: Instant) -> Self {
        let mut curve =
            Self { plateau, age: 0.0, flat_after, began: now, bucket: Bucket::full(plateau, 1.0, now) };
        curve.adopt();
        curve
    }

    fn rate(&self) -> f64 {
        let from_flat = (self.age - self.flat_after) / self.flat_after;
        self.plateau * (1.0 + STEP_BACK * from_flat.powi(3))
    }

    fn adopt(&mut self) {
        self.bucket.per_second = self.rate();
        // What timers oversleep is caught up with; more would be a burst.
        self.bucket.capacity = (self.bucket.per_second * 0.02).max(1.0);
    }
}

impl Learned {
    /// Closes the cycle when its rest is over.
    fn roll(&mut self, now: Instant) {
        let (Some(resume), Some(began)) = (self.resume, self.began) else { return };
        if now < resume {
            return;
        }
        let refused_at = self.refused_at.unwrap_or(began);
        let rest = resume.saturating_duration_since(refused_at).as_secs_f64();
        let active = (refused_at.saturating_duration_since(began).as_secs_f64() + self.earlier.1).max(0.001);
        let accepted = self.accepted + self.earlier.0;
        // What was refused soon lived on what the rest had saved up, so the rest counts. However little was answered:
        // one call for each rest finds out more.
        let counted = if active > 10.0 * rest { active } else { active + rest };
        let found = (as_f64(accepted) / counted).max(1.0 / rest.max(1.0));
        let (plateau, is_sure) = match &self.curve {
            None => (found, accepted >= EVIDENCE),
            Some(curve) => {
                let plateau = found.clamp(curve.rate() / 2.0, curve.rate() * 0.98);
                (plateau, (plateau / curve.plateau - 1.0).abs() <= AGREEMENT)
            }
        };
        let flat_after = if is_sure { FLAT_AFTER } else { FLAT_AFTER_GUESS };
        *self = Self {
            began: Some(resume),
            in_a_row: self.in_a_row,
            curve: Some(Curve::new(plateau, flat_after, now)),
            ..Self::default()
        };
    }

    fn ready_at(&self, now: Instant) -> Option<Instant> {
        let rest = self.resume.filter(|resume| *resume > now);
        let paced = self.curve.as_ref().and_then(|curve| curve.bucket.ready_at(now, 1.0));
        rest.max(paced)
    }

    fn take(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let idle = self.last_call.is_some_and(|last| now.saturating_duration_since(last) > IDLE);
        if idle && self.refused_at.is_none() {
            (self.began, self.accepted, self.earlier) = (Some(now), 0, (0, 0.0));
        } else if self.refused_at.is_none() && now.saturating_duration_since(began) > WINDOW {
            self.earlier = (self.accepted, now.saturating_duration_since(began).as_secs_f64());
            (self.began, self.accepted) = (Some(now), 0);
        }
        self.last_call = Some(now);
        if let Some(curve) = &mut self.curve {
            let since = now.saturating_duration_since(curve.bucket.at).as_secs_f64();
            // A bucket that was not full when this call came was being waited for.
            if curve.bucket.level + since * curve.bucket.per_second < 2.0 * curve.bucket.capacity {
                curve.age += since;
            }
            curve.bucket.take(now, 1.0);
            curve.adopt();
        }
    }

    fn refused(&mut self, now: Instant, sent: Instant, wait: Option<Duration>) -> Instant {
        // What was sent before the last rest was over is no finding about the time after.
        let is_old = self.curve.as_ref().is_some_and(|curve| sent < curve.began);
        if !is_old && self.refused_at.is_none() {
            self.refused_at = Some(now);
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
        let unnamed =
            UNNAMED.saturating_mul(1 << self.in_a_row.saturating_sub(1).min(5)).min(LONGEST_UNNAMED);
        let resume = now + wait.unwrap_or(unnamed);
        // A straggler's wish counts too, but as a rest and not as a finding.
        let resume = self.resume.map_or(resume, |earlier| earlier.max(resume));
        self.resume = Some(resume);
        resume
    }
}

fn seconds(count: f64) -> Duration {
    Duration::try_from_secs_f64(count).unwrap_or(Duration::from_secs(24 * 3600))
}

#[expect(clippy::cast_precision_loss, reason = "counts of calls and tokens stay far below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
