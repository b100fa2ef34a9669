//! API keys: who has one may call.
//!
//! A caller sends its key as `authorization: Bearer KEY`, `x-goog-api-key: KEY` or `api-key: KEY` (what clients of OpenAI,
//! Google and Azure send), at the REST door also as Google's query parameter `key`. One good key is enough: clients
//! of Google's may send a token of their own beside it.
//!
//! Kept are SHA-256 hashes only. A fast hash without salt is enough for keys that nobody can guess, so short ones are
//! refused. What a caller sends is hashed and compared with every hash to the end, so that the time taken says
//! nothing about either.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::error::{Error, Kind, Reason};
use crate::server::caller::CallerId;
use crate::server::door::Door;

/// Characters of the shortest key.
const SHORTEST: usize = 16;

/// Headers whose whole value is a key.
pub(super) const KEY_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-goog-api-key"), HeaderName::from_static("api-key")];

/// How to come in, for whoever sent nothing.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"rapid-eval\"");

/// The same for whoever sent something else; the word is RFC 6750's.
const CHALLENGE_AGAIN: HeaderValue =
    HeaderValue::from_static("Bearer realm=\"rapid-eval\", error=\"invalid_token\"");

/// The keys that let a caller in, hashed.
#[derive(Clone)]
pub struct Keys {
    hashes: Arc<[[u8; 32]]>,
}

impl Keys {
    /// Keys, each as `name:key` or alone; empty ones and those after a `#` do not count. The name is for whoever keeps
    /// the list.
    ///
    /// # Errors
    /// The number of the entry, from 1, and why it is no key. Never the entry.
    pub fn read<'k>(entries: impl IntoIterator<Item = &'k str>) -> Result<Self, (usize, String)> {
        let mut hashes = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let entry = entry.trim();
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            let key = entry.split_once(':').map_or(entry, |(_, key)| key.trim_start());
            if key.len() < SHORTEST || !key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',') {
                return Err((
                    index + 1,
                    format!(
                        "a key has {SHORTEST} or more visible ASCII characters and no comma; \
                         `openssl rand -hex 32` makes one"
                    ),
                ));
            }
            hashes.push(hash(key.as_bytes()));
        }
        Ok(Self { hashes: hashes.into() })
    }

    /// These and those.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        Self { hashes: self.hashes.iter().chain(others.hashes.iter()).copied().collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    fn admit(&self, key: &[u8]) -> bool {
        let sent = hash(key);
        let found = self.hashes.iter().fold(Choice::from(0), |found, known| found | known.ct_eq(&sent));
        found.into()
    }
}

impl fmt::Debug for Keys {
    /// Only how many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.hashes.len())
    }
}

fn hash(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// Lets in who has a key. What comes after sees the request without its headers of keys.
pub async fn ask(State((door, keys)): State<(Door, Keys)>, mut request: Request, next: Next) -> Response {
    let mut sent = in_headers(request.headers());
    if door == Door::Rest {
        sent.extend(in_query(request.uri()));
    }
    let Some(key) = sent.iter().find(|key| keys.admit(key)) else { return refuse(door, !sent.is_empty()) };
    request.extensions_mut().insert(CallerId::of_key(&hash(key)));
    for name in KEY_HEADERS.into_iter().chain([header::AUTHORIZATION]) {
        request.headers_mut().remove(name);
    }
    next.run(request).await
}

fn refuse(door: Door, sent: bool) -> Response {
    let (word, challenge, message) = if sent {
        ("API_KEY_INVALID", CHALLENGE_AGAIN, "the key that was sent is none of this service's")
    } else {
        (
            "CREDENTIALS_MISSING",
            CHALLENGE,
            "no key was sent; the headers for it are authorization: Bearer KEY, x-goog-api-key and api-key",
        )
    };
    let reason = Some(Box::new(Reason { word, facts: Vec::new() }));
    let mut response = door.refuse(Error { reason, ..Error::new(Kind::Unauthenticated, message) });
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

fn in_headers(headers: &HeaderMap) -> Vec<Vec<u8>> {
    let whole = KEY_HEADERS.into_iter().flat_map(|name| headers.get_all(name)).map(HeaderValue::as_bytes);
    let bearers = headers.get_all(header::AUTHORIZATION).iter().map(|value| bearer(value.as_bytes()));
    whole.chain(bearers).map(|key| key.trim_ascii().to_vec()).filter(|key| !key.is_empty()).collect()
}

/// What stands after the scheme. Another scheme holds no key of ours: it stays whole, and is refused as wrong.
fn bearer(value: &[u8]) -> &[u8] {
    match value.split_at_checked("Bearer ".len()) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"Bearer ") => key,
        _ => value,
    }
}

/// Google's system parameter, with or without its `$`.
fn in_query(uri: &Uri) -> Vec<Vec<u8>> {
    let parameters =
        Query::<Vec<(String, String)>>::try_from_uri(uri).map_or_else(|_| Vec::new(), |query| query.0);
    let keys = parameters
        .into_iter()
        .filter(|(name, key)| matches!(name.as_str(), "key" | "$key") && !key.is_empty());
    keys.map(|(_, key)| key.into_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "0123456789abcdef";

    #[test]
    fn names_comments_and_blank_lines_are_no_part_of_a_key() {
        let text = format!("# for Ann, Bob: soon\n\n  ann:{LONG}-1\nbob: {LONG}:2  \n{LONG}-3\r\n");
        let keys = Keys::read(text.lines()).unwrap();
        assert_eq!(format!("{keys:?}"), "Keys(3)");
        for key in ["-1", ":2", "-3"] {
            assert!(keys.admit(format!("{LONG}{key}").as_bytes()), "{key}");
        }
        for key in ["", LONG, "ann", "# for Ann, Bob: soon"] {
            assert!(!keys.admit(key.as_bytes()), "{key}");
        }
        assert!(!keys.admit(format!("ann:{LONG}-1").as_bytes()));
    }

    #[test]
    fn what_is_no_key_is_refused_by_its_place() {
        for entry in
            ["0123456789abcde", "name:short", "0123456789 abcdef", "0123456789,abcdef", "0123456789äbcdef"]
        {
            let (place, reason) = Keys::read(["", entry]).unwrap_err();
            assert_eq!(place, 2, "{entry}");
            assert!(!reason.contains(entry), "{reason}");
        }
    }

    #[test]
    fn the_hash_is_that_of_fips_180() {
        // The digest of "abc" in the standard's examples.
        assert_eq!(hash(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
