//! Who calls, as far as judges are concerned: callers wait for a judge in turns, and may refuse kept answers.
//!
//! Callers with the same API key are one; without keys those of one connection are. `x-rapid-eval-cache: off`, as gRPC
//! metadata or as a header, has every judge asked anew for this request.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderMap;

use crate::error::{Error, quoted};
use crate::judge::Reuse;
use crate::judge::caller::Caller;
use crate::server::door::Door;

const CACHE: &str = "x-rapid-eval-cache";

/// One caller among others; an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct CallerId(pub u64);

impl CallerId {
    /// One that nobody has yet, for a new connection.
    pub fn of_connection() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// That of everybody with this key, by its hash.
    pub fn of_key(hash: &[u8; 32]) -> Self {
        let (first, _) = hash.split_first_chunk().expect("a hash has 32 bytes");
        Self(u64::from_be_bytes(*first))
    }
}

/// Answers the request on behalf of its caller.
pub async fn serve(State(door): State<Door>, request: Request, next: Next) -> Response {
    let id = request.extensions().get().map_or(0, |CallerId(id)| *id);
    match reuse(request.headers()) {
        Ok(reuse) => Caller { id, reuse }.on_behalf(next.run(request)).await,
        Err(error) => door.refuse(error),
    }
}

fn reuse(headers: &HeaderMap) -> Result<Reuse, Error> {
    let Some(value) = headers.get(CACHE) else { return Ok(Reuse::Allowed) };
    match value.to_str().unwrap_or_default().trim() {
        word if word.eq_ignore_ascii_case("off") => Ok(Reuse::Refused),
        word if word.eq_ignore_ascii_case("on") => Ok(Reuse::Allowed),
        word => Err(Error::bad_request(CACHE, format!("{:?} is neither on nor off", quoted(word)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_answers_are_refused_by_one_word() {
        let read = |value: &'static str| {
            let header = (http::HeaderName::from_static(CACHE), http::HeaderValue::from_static(value));
            reuse(&HeaderMap::from_iter([header])).map_err(|error| error.text())
        };
        assert_eq!(reuse(&HeaderMap::new()).unwrap(), Reuse::Allowed);
        assert_eq!(read("off"), Ok(Reuse::Refused));
        assert_eq!(read("Off"), Ok(Reuse::Refused));
        assert_eq!(read("on"), Ok(Reuse::Allowed));
        assert_eq!(read("no"), Err(String::from("x-rapid-eval-cache: \"no\" is neither on nor off")));
    }

    #[test]
    fn connections_and_keys_are_told_apart() {
        assert_ne!(CallerId::of_connection().0, CallerId::of_connection().0);
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&[0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(CallerId::of_key(&hash).0, 258);
    }
}
