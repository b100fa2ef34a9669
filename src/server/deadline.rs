//! The caller's deadline: `grpc-timeout`, or `x-server-timeout` in seconds at the REST door, bounded by
//! `limits.request_seconds`. When it passes, the work is dropped and the answer is DEADLINE_EXCEEDED.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Extensions, HeaderMap};
use tokio::time::Instant;

use crate::error::{Error, Kind};
use crate::server::door::Door;

/// As long as gRPC can say in seconds.
const LONGEST_SECONDS: f64 = 99_999_999.0;

/// When the answer is due; an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(pub Instant);

impl Deadline {
    /// That of a request; `None` = there is no bound.
    pub fn of(extensions: &Extensions) -> Option<Instant> {
        extensions.get::<Self>().map(|deadline| deadline.0)
    }
}

/// How long a stream may take, which its requests reach one by one; an extension of the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamTime {
    /// When its caller stops waiting for all of it; `None` = never.
    pub until: Option<Instant>,
    /// How long the answer to one request may take; `None` = there is no bound.
    pub each: Option<Duration>,
}

impl StreamTime {
    /// When the answer to a request that came in now is due.
    pub fn of_one(self) -> Option<Instant> {
        let each = self.each.map(|each| Instant::now() + each);
        self.until.into_iter().chain(each).min()
    }
}

/// Ends the call at its deadline. A stream begins to answer at once and keeps [`StreamTime`] by itself.
pub async fn keep(
    State((door, limit)): State<(Door, Option<Duration>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let asked = match door {
        Door::Grpc => grpc_timeout(request.headers()),
        Door::Rest | Door::OpenAi => server_timeout(request.headers()),
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return door.refuse(error),
    };
    let until = asked.map(|asked| Instant::now() + asked);
    request.extensions_mut().insert(StreamTime { until, each: limit });
    let Some(time) = asked.into_iter().chain(limit).min() else { return next.run(request).await };
    let deadline = Instant::now() + time;
    request.extensions_mut().insert(Deadline(deadline));
    tokio::time::timeout_at(deadline, next.run(request)).await.unwrap_or_else(|_| {
        let bound = if asked == Some(time) { "the caller's deadline of" } else { "limits.request_seconds =" };
        door.refuse(Error::new(Kind::DeadlineExceeded, format!("not answered within {bound} {time:?}")))
    })
}

/// At most eight digits and a unit, as the gRPC protocol has it.
fn grpc_timeout(headers: &HeaderMap) -> Result<Option<Duration>, Error> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let read = || {
        let text = value.to_str().ok()?;
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let amount: u64 = digits.parse().ok()?;
        Some(match unit {
            "H" => Duration::from_secs(amount * 3600),
            "M" => Duration::from_secs(amount * 60),
            "S" => Duration::from_secs(amount),
            "m" => Duration::from_millis(amount),
            "u" => Duration::from_micros(amount),
            "n" => Duration::from_nanos(amount),
            _ => return None,
        })
    };
    read()
        .map(Some)
        .ok_or_else(|| Error::bad_request("grpc-timeout", "is not up to eight digits and one of H M S m u n"))
}

/// Seconds, with or without a fraction.
fn server_timeout(headers: &HeaderMap) -> Result<Option<Duration>, Error> {
    let Some(value) = headers.get("x-server-timeout") else { return Ok(None) };
    value
        .to_str()
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST_SECONDS)
        .map(|seconds| Some(Duration::from_secs_f64(seconds)))
        .ok_or_else(|| {
            Error::bad_request(
                "x-server-timeout",
                format!("is not a number of seconds up to {LONGEST_SECONDS}"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Option<Duration>> {
        let headers =
            HeaderMap::from_iter([(http::HeaderName::from_static("grpc-timeout"), text.parse().unwrap())]);
        grpc_timeout(&headers).ok()
    }

    #[test]
    fn every_unit_of_the_protocol_is_read() {
        assert_eq!(read("2H"), Some(Some(Duration::from_secs(7200))));
        assert_eq!(read("3M"), Some(Some(Duration::from_secs(180))));
        assert_eq!(read("99999999S"), Some(Some(Duration::from_secs(99_999_999))));
        assert_eq!(read("500m"), Some(Some(Duration::from_millis(500))));
        assert_eq!(read("7u"), Some(Some(Duration::from_micros(7))));
        assert_eq!(read("0n"), Some(Some(Duration::ZERO)));
    }

    #[test]
    fn what_is_no_timeout_is_refused() {
        for text in ["", "S", "5", "5s", "-1S", "+1S", "999999999S", "1.5S"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn seconds_at_the_rest_door_may_have_a_fraction() {
        let read = |text: &str| {
            let name = http::HeaderName::from_static("x-server-timeout");
            server_timeout(&HeaderMap::from_iter([(name, text.parse().unwrap())])).ok().flatten()
        };
        assert_eq!(read("60"), Some(Duration::from_secs(60)));
        assert_eq!(read("0.25"), Some(Duration::from_millis(250)));
        for text in ["", "0", "-1", "NaN", "inf", "1e300", "60s"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
