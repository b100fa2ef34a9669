//! Requests and tokens per minute of one endpoint, for all processes together.
//!
//! Where processes share a Redis, an endpoint's configured limits are those of all of them: a token bucket kept there, by
//! Redis's own clock, under `rapid-eval:quota:` and the names of judge and endpoint. Without an answer the process goes on
//! with its own bucket alone. The learned rate needs no sharing: each process learns what is left to it.

use std::time::Duration;

use redis::{AsyncCommands, Script};

use super::member::Terms;
use super::rate::per_second;
use crate::judge::shared::Link;

/// Takes from both buckets, or says how many microseconds are missing. A rate of 0 is no limit.
const CLAIM: &str = "
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local kept = redis.call('HMGET', KEYS[1], 'at', 'requests', 'tokens')
local since = math.max(0, now - (tonumber(kept[1]) or now))
local costs, levels, wait = {1, tonumber(ARGV[5])}, {0, 0}, 0
for i = 1, 2 do
  local rate, capacity = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  if rate > 0 then
    levels[i] = math.min(capacity, (tonumber(kept[i + 1]) or capacity) + since * rate)
    wait = math.max(wait, (math.min(costs[i], capacity) - levels[i]) / rate)
  end
end
if wait <= 0 then
  levels = {levels[1] - costs[1], levels[2] - costs[2]}
end
redis.call('HSET', KEYS[1], 'at', string.format('%.6f', now), 'requests', levels[1], 'tokens', levels[2])
redis.call('EXPIRE', KEYS[1], 3600)
return math.max(0, math.ceil(wait * 1e6))
";

/// The share of one endpoint's limits that this process may claim.
#[derive(Debug)]
pub(super) struct Quota {
    link: Link,
    name: String,
    script: Script,
    requests: (f64, f64),
    tokens: (f64, f64),
}

impl Quota {
    /// That of an endpoint of `judge`; absent when it has no limits.
    pub(super) fn new(link: &Link, judge: &str, terms: &Terms) -> Option<Self> {
        let limits = [terms.requests_per_minute, terms.tokens_per_minute];
        limits.iter().any(Option::is_some).then(|| {
            let [requests, tokens] = per_second(limits[0], limits[1]).map(Option::unwrap_or_default);
            let name = format!("rapid-eval:quota:{judge}/{}", terms.name);
            Self { link: link.clone(), name, script: Script::new(CLAIM), requests, tokens }
        })
    }

    /// Claims a call of so many tokens. Zero when it is granted, or when nobody knows; else how long to wait.
    pub(super) async fn claim(&self, tokens: u64) -> Duration {
        let claim = |mut redis| async move {
            let mut call = self.script.prepare_invoke();
            call.key(&self.name);
            for number in [self.requests.0, self.requests.1, self.tokens.0, self.tokens.1] {
                call.arg(number);
            }
            call.arg(tokens).invoke_async::<u64>(&mut redis).await
        };
        self.link.attempt(claim).await.map_or(Duration::ZERO, Duration::from_micros)
    }

    /// A call for which `reserved` tokens were claimed used `used`.
    pub(super) fn settle(&self, reserved: u64, used: u64) {
        if self.tokens.0 <= 0.0 || reserved == used {
            return;
        }
        let back = i64::try_from(reserved).unwrap_or(i64::MAX).saturating_sub_unsigned(used);
        let name = self.name.clone();
        self.link.write(move |mut redis| async move {
            redis.hincr::<_, _, _, f64>(name, "tokens", f64_of(back)).await.map(drop)
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "tokens of one call stay far below 2^52")]
fn f64_of(count: i64) -> f64 {
    count as f64
}
