//! Tests of `rate.rs`: arithmetic of the buckets, and endpoints simulated in steps of a millisecond.

use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[tokio::test(start_paused = true)]
async fn six_hundred_a_minute_are_ten_at_once_and_one_each_tenth_of_a_second() {
    let now = Instant::now();
    let mut rate = Rate::new(Some(600), None, now);
    for _ in 0..10 {
        assert_eq!(rate.ready_at(now, 0), None);
        rate.take(now, 0);
    }
    let next = rate.ready_at(now, 0).unwrap();
    assert!((next - now).abs_diff(ms(100)) < ms(1), "{:?}", next - now);
    assert_eq!(rate.ready_at(now + ms(100), 0), None);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_reserved_by_estimate_and_settled_with_what_was_used() {
    let now = Instant::now();
    // 6,000 a minute: 100 a second, 600 at once.
    let mut rate = Rate::new(None, Some(6000), now);
    rate.take(now, 500);
    // 100 are left: 300 more take 2 s.
    assert_eq!(rate.ready_at(now, 300), Some(now + ms(2000)));
    rate.settle(now, 500, 200);
    assert_eq!(rate.ready_at(now, 300), None);
    // An estimate that was too low is paid for later: 400 left, less 1,000 more than reserved.
    rate.settle(now, 0, 1000);
    assert_eq!(rate.ready_at(now, 100), Some(now + ms(7000)));
}

#[tokio::test(start_paused = true)]
async fn a_call_larger_than_the_bucket_passes_when_it_is_full() {
    let now = Instant::now();
    let mut rate = Rate::new(None, Some(6000), now);
    assert_eq!(rate.ready_at(now, 50_000), None);
    rate.take(now, 50_000);
    // 49,400 in debt and 1 to have, at 100 a second.
    assert_eq!(rate.ready_at(now, 1), Some(now + ms(494_010)));
}

#[tokio::test(start_paused = true)]
async fn rests_without_a_name_double_to_eight_seconds() {
    let mut now = Instant::now();
    let mut rate = Rate::new(None, None, now);
    for rest in [500, 1000, 2000, 4000, 8000, 8000] {
        rate.take(now, 0);
        assert_eq!(rate.refused(now, now, None), now + ms(rest));
        now += ms(rest);
        while let Some(at) = rate.ready_at(now, 0) {
            now = at;
        }
    }
}

/// How an endpoint counts requests.
#[derive(Clone, Copy)]
enum Law {
    /// A bucket that holds so many and is filled with `R` a second.
    Bucket(f64),
    /// `R` in each second of its own clock.
    Window,
}

/// An endpoint that takes `per_second` and refuses what is beyond with `Retry-After: 1`.
struct Endpoint {
    law: Law,
    per_second: f64,
    level: f64,
    at: u64,
}

impl Endpoint {
    fn takes(&mut self, now: u64) -> bool {
        match self.law {
            Law::Bucket(capacity) => {
                self.level = (self.level + (now - self.at) as f64 / 1000.0 * self.per_second).min(capacity);
            }
            Law::Window if now / 1000 != self.at / 1000 => self.level = self.per_second,
            Law::Window => {}
        }
        self.at = now;
        let takes = self.level >= 1.0;
        self.level -= f64::from(u8::from(takes));
        takes
    }
}

/// Endless demand, 64 calls at a time, for ten minutes. Answers take 50 ms, refusals 5. After the first minute: the share
/// of `per_second` that was used, and the share of calls that were refused.
fn ten_minutes(law: Law, per_second: f64) -> (f64, f64) {
    let began = Instant::now();
    let mut rate = Rate::new(None, None, began);
    let mut endpoint = Endpoint { law, per_second, level: per_second, at: 0 };
    let mut open: Vec<(u64, u64, bool)> = Vec::new();
    let (mut taken, mut refused, mut rests_until) = (0.0, 0.0, 0);
    for now in 0..600_000 {
        let at = |time: u64| began + ms(time);
        let (ended, still): (Vec<_>, Vec<_>) = open.into_iter().partition(|(end, ..)| *end <= now);
        open = still;
        for (_, sent, taken) in ended {
            if taken {
                rate.accepted();
            } else {
                rate.refused(at(now), at(sent), Some(ms(1000)));
                rests_until = now + 1000;
            }
        }
        while open.len() < 64 && rate.ready_at(at(now), 0).is_none() {
            assert!(now >= rests_until, "sent {} ms before its Retry-After", rests_until - now);
            rate.take(at(now), 0);
            let takes = endpoint.takes(now);
            open.push((now + if takes { 50 } else { 5 }, now, takes));
            if now >= 60_000 {
                *(if takes { &mut taken } else { &mut refused }) += 1.0;
            }
        }
    }
    (taken / (per_second * 540.0), refused / (taken + refused))
}

#[test]
fn what_an_endpoint_takes_is_found_and_used() {
    for per_second in [5.0, 20.0, 100.0, 400.0] {
        for (name, law) in [
            ("a bucket of a second", Law::Bucket(per_second)),
            ("a bucket of five", Law::Bucket(5.0)),
            ("a window of a second", Law::Window),
        ] {
            let (used, refused) = ten_minutes(law, per_second);
            println!("{per_second}/s, {name}: {used:.3} used, {refused:.4} refused");
            assert!(used >= 0.9, "{per_second}/s, {name}: {used:.3} used");
            assert!(refused < 0.01, "{per_second}/s, {name}: {refused:.4} refused");
        }
    }
}
