//! One endpoint as a judge: a provider's words over a connection.

use std::fmt;

use ::http::{Request, Response};
use bytes::Bytes;

use super::http::Http;
use super::providers::Provider;
use super::secret::{Key, Secret, cut_out};
use super::{Judge, JudgeError, Question, Reply};

/// A judge that is asked over HTTP.
pub struct Endpoint {
    provider: Box<dyn Provider>,
    key: Key,
    http: Http,
}

impl Endpoint {
    /// Asks in `provider`'s words, with `key`, over `http`.
    pub fn new(provider: Box<dyn Provider>, key: Key, http: Http) -> Self {
        Self { provider, key, http }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Judge for Endpoint {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let key = self.key.read().await?;
        let request = self.provider.request(question, key.as_ref())?;
        let sent = async {
            let response = exchange(&self.http, request, key.as_ref()).await?;
            let mut reply = self.provider.reply(response)?;
            // Some answer more often than they were asked to.
            reply.more_choices.truncate(question.more_choices as usize);
            Ok(reply)
        };
        sent.await.map_err(|error| JudgeError { attempts: 1, ..error })
    }
}

/// The answer to `request`, which may hold `key`; the answer does not.
///
/// # Errors
/// As [`Http::send`].
pub(crate) async fn exchange(
    http: &Http,
    request: Request<Bytes>,
    key: Option<&Secret>,
) -> Result<Response<Bytes>, JudgeError> {
    let response = http.send(request).await?;
    Ok(match key {
        Some(key) => response.map(|body| cut_out(key, body)),
        None => response,
    })
}
