//! How long a provider wants to be left alone, in every spelling met.
//!
//! | spelling | who |
//! | --- | --- |
//! | `retry-after-ms: 350` | OpenAI, Azure |
//! | `retry-after: 20` or a date | everybody |
//! | `x-ratelimit-reset-requests: 6m0s` with `…-remaining-requests: 0` | OpenAI and compatible |
//! | `anthropic-ratelimit-tokens-reset: 2026-11-30T12:00:00Z` with `…-remaining: 0` | Anthropic |
//! | `error.details[].retryDelay: "34.1s"` | Google |
//!
//! The first of the list that is there wins, and the longest of several windows. Values of 0 and below say
//! nothing: some routes of Azure send 0 and -1 for "not counted".

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use serde_json::Value;

use super::list_at;

/// Nobody waits longer; keeps arithmetic on instants away from its edges.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The wait that headers or body ask for, at most a day.
pub(crate) fn wait(headers: &HeaderMap, body: &Value, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|ms| seconds(ms.parse::<f64>().ok()? / 1000.0));
    let plain = || {
        let value = text("retry-after")?;
        match value.parse::<f64>() {
            Ok(count) => seconds(count),
            Err(_) => httpdate::parse_http_date(value).ok()?.duration_since(now).ok(),
        }
    };
    let windows = || {
        let spent = |remaining: &str| text(remaining).is_none_or(|count| count == "0");
        let openai = ["requests", "tokens"].into_iter().filter_map(|unit| {
            let reset = text(&format!("x-ratelimit-reset-{unit}"))?;
            spent(&format!("x-ratelimit-remaining-{unit}")).then(|| duration(reset))?
        });
        let anthropic =
            ["requests", "tokens", "input-tokens", "output-tokens"].into_iter().filter_map(|unit| {
                let reset = text(&format!("anthropic-ratelimit-{unit}-reset"))?;
                let reset: prost_types::Timestamp =
                    spent(&format!("anthropic-ratelimit-{unit}-remaining")).then(|| reset.parse().ok())??;
                SystemTime::try_from(reset).ok()?.duration_since(now).ok()
            });
        openai.chain(anthropic).max()
    };
    let google = || {
        let details = [list_at(body, "/error/details"), list_at(body, "/0/error/details")].concat();
        details.iter().find_map(|detail| duration(detail.get("retryDelay")?.as_str()?))
    };
    milliseconds.or_else(plain).or_else(windows).or_else(google).map(|wait| wait.min(LONGEST))
}

/// `x-should-retry`, where a provider sends it.
pub(crate) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

fn seconds(count: f64) -> Option<Duration> {
    if count.is_nan() || count <= 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(count).map_or(LONGEST, |wait| wait.min(LONGEST)))
}

/// `1h2m3.5s`, `12ms`, or a plain count of seconds.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(count) = text.parse::<f64>() {
        return seconds(count);
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (count, after) = rest.split_at(digits);
        let unit_length = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_length);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += count.parse::<f64>().ok()? * scale;
        rest = after;
    }
    seconds(total)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use serde_json::json;

    use super::*;

    /// 2026-11-30T12:00:00Z.
    fn noon() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_796_040_000)
    }

    fn asked(headers: &[(&'static str, &str)], body: &Value) -> Option<Duration> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        wait(&map, body, noon())
    }

    #[test]
    fn every_spelling_of_a_wait_is_read() {
        let cases: &[(&[(&'static str, &str)], f64)] = &[
            (&[("retry-after", "20")], 20.0),
            (&[("retry-after", "0.25")], 0.25),
            (&[("retry-after", "Mon, 30 Nov 2026 12:00:30 GMT")], 30.0),
            (&[("retry-after-ms", "350"), ("retry-after", "1")], 0.35),
            (&[("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-remaining-requests", "0")], 360.0),
            (&[("x-ratelimit-reset-requests", "12ms"), ("x-ratelimit-reset-tokens", "1s")], 1.0),
            (&[("x-ratelimit-reset-tokens", "1h2m3.5s")], 3723.5),
            (
                &[
                    ("anthropic-ratelimit-input-tokens-reset", "2026-11-30T12:00:07Z"),
                    ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ],
                7.0,
            ),
            (&[("retry-after", "99999999999")], 86_400.0),
        ];
        for (headers, expected) in cases {
            assert_eq!(asked(headers, &Value::Null), Some(Duration::from_secs_f64(*expected)), "{headers:?}");
        }
        let google = json!({"error": {"details": [
            {"@type": "type.googleapis.com/google.rpc.Help"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
        ]}});
        assert_eq!(asked(&[], &google), Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn a_value_that_says_nothing_is_no_wait() {
        for headers in [
            ("retry-after", "0"),
            ("retry-after", "-1"),
            ("retry-after", "NaN"),
            ("retry-after", "soon"),
            ("retry-after", "Mon, 30 Nov 2026 11:00:00 GMT"),
            ("retry-after-ms", "-1"),
            ("x-ratelimit-reset-requests", "-1"),
            ("x-ratelimit-reset-tokens", "0"),
            ("x-ratelimit-reset-tokens", "5 parsecs"),
        ] {
            assert_eq!(asked(&[headers], &Value::Null), None, "{headers:?}");
        }
    }

    #[test]
    fn a_window_that_is_not_spent_asks_for_no_wait() {
        let headers = [("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-remaining-requests", "99")];
        assert_eq!(asked(&headers, &Value::Null), None);
    }
}
