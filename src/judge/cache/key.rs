//! Which questions are equal: those for which an endpoint is sent the same, and which are the same sample.
//!
//! A key is the SHA-256 of all that shapes what is sent (the judge's settings and the question), each part with its length
//! before it, so that no two ways of cutting a text have the same key. Which endpoint is asked, on whose behalf and
//! until when is no part of it.

use sha2::{Digest, Sha256};

use crate::judge::settings::JudgeSettings;
use crate::judge::{Question, ReplyForm, Sampling, Speaker};

/// Changes when what is kept under a key changes its meaning.
const VERSION: &str = "rapid-eval judge reply 1";

/// The name of a question among all that were ever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    /// In hexadecimal digits.
    pub(super) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What all questions to one judge have in common.
#[derive(Debug, Clone)]
pub struct Identity(Sha256);

impl Identity {
    /// That of the judge of these settings. Where its endpoints are is no part of it.
    pub fn of(settings: &JudgeSettings) -> Self {
        let mut parts = Parts(Sha256::new());
        parts.text(VERSION);
        parts.text(&settings.name);
        parts.text(&settings.provider.to_string());
        parts.text(&settings.model);
        for endpoint in &settings.endpoints {
            parts.option(endpoint.model.as_deref());
            parts.option(endpoint.script.as_deref().map(|path| path.to_string_lossy()).as_deref());
        }
        parts.sampling(&Sampling {
            temperature: settings.temperature,
            top_p: settings.top_p,
            seed: settings.seed,
            max_tokens: settings.max_tokens,
            reasoning_effort: settings.reasoning_effort.clone(),
        });
        parts.text(&format!("{:?}", settings.structured));
        parts.option(settings.api_version.as_deref());
        parts.number(settings.num_ctx.map(i64::from));
        parts.option(settings.script.as_deref().map(|path| path.to_string_lossy()).as_deref());
        for (name, value) in &settings.headers {
            parts.text(name);
            parts.text(value.expose());
        }
        parts.text(&serde_json::Value::Object(settings.extra_body.clone()).to_string());
        Self(parts.0)
    }

    /// The key of a question to this judge.
    pub(super) fn key(&self, question: &Question) -> Key {
        let mut parts = Parts(self.0.clone());
        parts.number(Some(i64::from(question.sample)));
        parts.text(&question.system);
        for turn in &question.turns {
            parts.text(match turn.speaker {
                Speaker::User => "user",
                Speaker::Judge => "judge",
            });
            parts.text(&turn.text);
        }
        match &question.form {
            ReplyForm::Text => parts.text("text"),
            ReplyForm::Json { name, schema } => {
                parts.text("json");
                parts.text(name);
                parts.text(&schema.to_string());
            }
            ReplyForm::Label { labels } => {
                parts.text("label");
                labels.iter().for_each(|label| parts.text(label));
            }
        }
        parts.sampling(&question.sampling);
        Key(parts.0.finalize().into())
    }
}

struct Parts(Sha256);

impl Parts {
    fn text(&mut self, text: &str) {
        self.0.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(text);
    }

    fn option(&mut self, text: Option<&str>) {
        self.text(if text.is_some() { "some" } else { "none" });
        self.text(text.unwrap_or_default());
    }

    fn number(&mut self, number: Option<i64>) {
        self.option(number.map(|number| number.to_string()).as_deref());
    }

    fn sampling(&mut self, sampling: &Sampling) {
        // Bits: two numbers are the same when they are sent as the same.
        let bits = |number: Option<f64>| number.map(|number| format!("{:016x}", number.to_bits()));
        self.option(bits(sampling.temperature).as_deref());
        self.option(bits(sampling.top_p).as_deref());
        self.number(sampling.seed);
        self.number(sampling.max_tokens.map(i64::from));
        self.option(sampling.reasoning_effort.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::judge::providers::testing::{everything, labels, verdict};
    use crate::judge::{Reuse, Turn};

    fn judge(more: &str) -> Identity {
        let text = format!("provider = 'openai'\nmodel = 'm'\n{more}");
        Identity::of(&toml::from_str(&text).unwrap())
    }

    #[test]
    fn whatever_is_sent_makes_another_key() {
        let identity = judge("");
        let base = everything();
        let mut others: Vec<Question> = vec![base.clone(), verdict(), labels(), Question::default()];
        let mut change = |change: fn(&mut Question)| {
            let mut question = base.clone();
            change(&mut question);
            others.push(question);
        };
        change(|question| question.sample = 1);
        change(|question| question.system.push('!'));
        change(|question| question.turns[0].text.push('!'));
        change(|question| question.turns[1].speaker = Speaker::User);
        change(|question| {
            let last = question.turns.pop().unwrap();
            question.turns[1].text.push_str(&last.text);
        });
        change(|question| question.form = ReplyForm::Text);
        change(|question| question.sampling.temperature = None);
        change(|question| question.sampling.top_p = Some(0.8));
        change(|question| question.sampling.seed = Some(8));
        change(|question| question.sampling.max_tokens = Some(301));
        change(|question| question.sampling.reasoning_effort = None);
        let keys: std::collections::HashSet<Key> =
            others.iter().map(|question| identity.key(question)).collect();
        assert_eq!(keys.len(), others.len());
    }

    #[test]
    fn texts_cut_elsewhere_make_another_key() {
        let said = |texts: [&str; 2]| {
            let turns = texts.map(|text| Turn { speaker: Speaker::User, text: text.to_owned() });
            judge("").key(&Question { turns: turns.into(), ..Question::default() })
        };
        assert_ne!(said(["ab", "c"]), said(["a", "bc"]));
    }

    #[test]
    fn who_asks_until_when_and_where_makes_no_other_key() {
        let base = verdict();
        let other = Question {
            caller: 7,
            deadline: Some(Instant::now()),
            reuse: Reuse::Refused,
            failed_at: vec!["a".into()],
            without: [crate::judge::Field::Seed].into(),
            ..base.clone()
        };
        let here = judge("base_url = 'http://a'\nkey_env = 'A'\nmax_concurrency = 3").key(&base);
        let there = judge("endpoints = [{base_url = 'http://b', priority = 1}, {base_url = 'http://c'}]");
        assert_eq!(judge("").key(&other), judge("").key(&base));
        assert_eq!(here, judge("").key(&base));
        // Endpoints that ask for another model are another judge.
        let elsewhere = judge("endpoints = [{base_url = 'http://b', model = 'n'}]");
        assert_ne!(elsewhere.key(&base), there.key(&base));
    }

    #[test]
    fn another_judge_has_other_keys() {
        let base = judge("").key(&verdict());
        for setting in [
            "name = 'other'",
            "temperature = 0.0",
            "seed = 1",
            "max_tokens = 5",
            "structured = 'none'",
            "extra_body = {a = 1}",
            "headers = {a = 'b'}",
            "reasoning_effort = 'low'",
        ] {
            assert_ne!(judge(setting).key(&verdict()), base, "{setting}");
        }
    }
}
