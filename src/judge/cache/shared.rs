//! Answers shared with other processes, in Redis or Valkey.
//!
//! Keys are `rapid-eval:reply:` and a hash; values are JSON; both end with the TTL. Writing waits for nobody.

use std::time::Duration;

use redis::{AsyncCommands, SetExpiry, SetOptions};
use serde::{Deserialize, Serialize};

use super::key::Key;
use crate::judge::shared::Link;
use crate::judge::{Reply, TokenChance, Usage};

/// Answers that processes share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    link: Link,
    ttl: Duration,
}

impl Shared {
    /// Answers are kept for `ttl`.
    pub(super) fn new(link: Link, ttl: Duration) -> Self {
        Self { link, ttl }
    }

    /// An answer that some process has kept.
    pub(super) async fn get(&self, key: &Key) -> Option<Reply> {
        let name = name(key);
        let text: Option<String> =
            self.link.attempt(|mut redis| async move { redis.get(name).await }).await?;
        let kept: Kept = serde_json::from_str(&text?).ok()?;
        Some(kept.into())
    }

    /// Keeps an answer, some time soon.
    pub(super) fn put(&self, key: &Key, reply: &Reply) {
        let Ok(text) = serde_json::to_string(&Kept::from(reply)) else { return };
        let options = SetOptions::default().with_expiration(SetExpiry::EX(self.ttl.as_secs()));
        let name = name(key);
        self.link.write(|mut redis| async move { redis.set_options::<_, _, ()>(name, text, options).await });
    }

    /// Keeps it no longer.
    pub(super) fn forget(&self, key: &Key) {
        let name = name(key);
        self.link.write(|mut redis| async move { redis.del::<_, ()>(name).await });
    }
}

fn name(key: &Key) -> String {
    format!("rapid-eval:reply:{}", key.hex())
}

/// An answer as it is kept; how it was got is not.
#[derive(Serialize, Deserialize)]
struct Kept {
    text: String,
    model: String,
    id: String,
    truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<Vec<(String, f64)>>,
}

impl From<&Reply> for Kept {
    fn from(reply: &Reply) -> Self {
        let pair = |chance: &TokenChance| (chance.token.clone(), chance.logprob);
        Self {
            text: reply.text.clone(),
            model: reply.model.clone(),
            id: reply.id.clone(),
            truncated: reply.truncated,
            alternatives: reply.alternatives.iter().map(|token| token.iter().map(pair).collect()).collect(),
        }
    }
}

impl From<Kept> for Reply {
    fn from(kept: Kept) -> Self {
        let chance = |(token, logprob)| TokenChance { token, logprob };
        Self {
            text: kept.text,
            model: kept.model,
            id: kept.id,
            truncated: kept.truncated,
            usage: Usage::default(),
            alternatives: kept
                .alternatives
                .into_iter()
                .map(|token| token.into_iter().map(chance).collect())
                .collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_as_it_was_but_free_of_charge() {
        let reply = Reply {
            text: String::from("a \"text\"\n"),
            model: String::from("m"),
            id: String::from("1"),
            truncated: true,
            usage: Usage { input_tokens: 5, ..Usage::default() },
            alternatives: vec![vec![TokenChance { token: String::from("4"), logprob: -0.25 }]],
            ..Reply::default()
        };
        let text = serde_json::to_string(&Kept::from(&reply)).unwrap();
        let back = Reply::from(serde_json::from_str::<Kept>(&text).unwrap());
        assert_eq!(back, Reply { usage: Usage::default(), ..reply });
    }
}
