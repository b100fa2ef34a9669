//! Keys: kept out of every message, log and `Debug` output.

use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;
use http::HeaderValue;
use serde::Deserialize;

use super::{JudgeError, JudgeErrorKind};

/// Keys shorter than this are placeholders such as `EMPTY` or `ollama`: not worth hiding, and cutting them
/// out of an answer would maim ordinary words.
const SHORTEST_REAL_KEY: usize = 8;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one who sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text as a header value that header dumps leave out; absent when a header cannot hold it.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where the key of an endpoint comes from.
#[derive(Debug, Clone)]
pub enum Key {
    /// The endpoint is asked without one.
    None,
    /// Read once, at start.
    Fixed(Secret),
    /// Read for each call, because bearer tokens in files are short-lived and get replaced.
    File(PathBuf),
}

impl Key {
    /// The key to send now.
    ///
    /// # Errors
    /// `Credentials` when the file cannot be read or holds nothing.
    pub async fn read(&self) -> Result<Option<Secret>, JudgeError> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(secret) => Ok(Some(secret.clone())),
            Self::File(path) => match tokio::fs::read_to_string(path).await {
                Ok(text) if !text.trim().is_empty() => Ok(Some(Secret::new(text.trim()))),
                Ok(_) => Err(JudgeError::new(JudgeErrorKind::Credentials, "the key file is empty")),
                Err(error) => Err(JudgeError::new(
                    JudgeErrorKind::Credentials,
                    format!("the key file cannot be read: {}", error.kind()),
                )),
            },
        }
    }
}

/// Cuts `secret` out of an answer before anybody reads it: some gateways quote the key they refuse.
pub(crate) fn cut_out(secret: &Secret, body: Bytes) -> Bytes {
    let needle = secret.expose().as_bytes();
    if needle.len() < SHORTEST_REAL_KEY || !contains(&body, needle) {
        return body;
    }
    let mut clean = Vec::with_capacity(body.len());
    let mut rest = &body[..];
    while let Some(at) = find(rest, needle) {
        let (before, after) = rest.split_at(at);
        clean.extend_from_slice(before);
        clean.extend_from_slice(b"***");
        rest = after.get(needle.len()..).unwrap_or_default();
    }
    clean.extend_from_slice(rest);
    clean.into()
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    find(text, needle).is_some()
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    // Most bytes are not the key's first one, so this scan is linear in practice; a key is at most a few
    // kilobytes and the body is capped.
    text.windows(needle.len()).position(|window| window.first() == Some(&first) && window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_cut_out_wherever_an_answer_quotes_it() {
        let secret = Secret::new("sk-12345678");
        let body = Bytes::from_static(b"bad key sk-12345678, really sk-12345678");
        assert_eq!(cut_out(&secret, body), "bad key ***, really ***");
    }

    #[test]
    fn a_placeholder_key_does_not_maim_the_answer() {
        let body = Bytes::from_static(b"the glass is EMPTY");
        assert_eq!(cut_out(&Secret::new("EMPTY"), body.clone()), body);
    }

    #[test]
    fn a_secret_does_not_show_in_debug_output() {
        let debug = format!("{:?}", Key::Fixed(Secret::new("sk-12345678")));
        assert_eq!(debug, "Fixed(***)");
    }

    #[tokio::test]
    async fn a_missing_key_file_is_a_credentials_error() {
        let error = Key::File("/does/not/exist".into()).read().await.unwrap_err();
        assert_eq!(error.kind, JudgeErrorKind::Credentials);
    }
}
