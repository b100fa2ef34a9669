//! A judge that reads its replies from a file: for demos and tests, without a model.
//!
//! The file is a JSON array of entries, or JSON Lines with one entry a line. Blank lines and lines that begin
//! with `//` are skipped. An entry is
//!
//! | entry | meaning |
//! | --- | --- |
//! | `"text"` | a reply |
//! | `{"reply": "text"}` | the same; a reply that is an object or array is sent as its JSON |
//! | `{"when": "Paris", "reply": …}` | a reply for conversations that contain `Paris`; a list of texts = all of them |
//! | `{"replies": [a, b, c]}` | three replies, `when` as above |
//! | `{"status": 429, "retry_after": 1}` | a failure, as that HTTP status with this `Retry-After`; `body` = its text |
//! | `{"hang": true}` | no answer ever |
//!
//! and each object may have `delay_ms`, the pause before it. A reply may also have `truncated` (bool), `model`,
//! and `alternatives`: per token a list of `{"token", "logprob"}`.
//!
//! **Which entry answers.** The entries with `when` that the conversation (system text and turns, as sent to the
//! judge) contains are looked at first: the first such `when` counts, with all entries that have the same one.
//! If there is none, the entries without `when`. Of these, sample number *n* gets reply *n*, counted from 0, and
//! the last reply for every *n* beyond; each reply that the judge has already given in the conversation (a repair)
//! counts one further. A failure stands in front of the reply that follows it: each question due that reply meets
//! the failure once, then gets the reply. Failures behind the last reply, or without any reply, are met always.
//! So the answer depends on the question alone, however many are asked at once.
//!
//! `builtin:prefer_first_shown` instead of a file is a judge with a bias: it fills a schema with the first value
//! allowed everywhere (a choice out of `A`, `B`, `SAME` is `A`), and says `A` where no form is given.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{failure, with_text};
use crate::judge::{Judge, JudgeError, Question, Reply, ReplyForm, Speaker, TokenChance};

/// Name of the judge with a bias, in place of a file.
const PREFER_FIRST_SHOWN: &str = "builtin:prefer_first_shown";
/// Questions whose failures are remembered; beyond that all are forgotten.
const MOST_REMEMBERED: usize = 10_000;

/// A judge that reads its replies from a file.
#[derive(Debug)]
pub struct Scripted {
    policy: Policy,
    /// How many failures each question has met.
    met: Mutex<HashMap<u64, usize>>,
}

#[derive(Debug)]
enum Policy {
    Script(Vec<Rule>),
    PreferFirstShown,
}

/// All entries with the same condition, in order.
#[derive(Debug)]
struct Rule {
    when: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Reply { reply: Reply, delay: Duration },
    Failure { status: StatusCode, headers: HeaderMap, body: String, delay: Duration },
    Hang,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Text(String),
    Full(Box<Full>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    #[serde(default)]
    when: Option<When>,
    #[serde(default)]
    reply: Option<Value>,
    #[serde(default)]
    replies: Vec<Value>,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    model: String,
    #[serde(default)]
    alternatives: Vec<Vec<Chance>>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    retry_after: Option<f64>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    hang: bool,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum When {
    One(String),
    All(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chance {
    token: String,
    logprob: f64,
}

impl Scripted {
    /// Reads a file of replies, or takes a builtin by its name.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, or an entry of it (counted from 1) is none.
    pub fn open(script: &Path) -> Result<Self, String> {
        if script.as_os_str() == PREFER_FIRST_SHOWN {
            return Ok(Self { policy: Policy::PreferFirstShown, met: Mutex::default() });
        }
        if script.to_string_lossy().starts_with("builtin:") {
            return Err(format!("unknown builtin, known is {PREFER_FIRST_SHOWN}"));
        }
        let text = std::fs::read_to_string(script)
            .map_err(|error| format!("{} cannot be read: {}", script.display(), error.kind()))?;
        Self::from_script(&text)
    }

    /// Reads the text of a file of replies.
    ///
    /// # Errors
    /// A sentence: the text holds no entry, or an entry (counted from 1) is none.
    pub fn from_script(text: &str) -> Result<Self, String> {
        let entries: Vec<Value> = match serde_json::from_str(text) {
            Ok(Value::Array(entries)) => entries,
            _ => text
                .lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
                .map(|(at, line)| {
                    serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
                })
                .collect::<Result<_, _>>()?,
        };
        let mut rules: Vec<Rule> = Vec::new();
        for (at, entry) in entries.into_iter().enumerate() {
            let (when, steps) = read(entry).map_err(|error| format!("entry {}: {error}", at + 1))?;
            match rules.iter_mut().find(|rule| rule.when == when) {
                Some(rule) => rule.steps.extend(steps),
                None => rules.push(Rule { when, steps }),
            }
        }
        if rules.is_empty() {
            return Err("no entries".to_owned());
        }
        // A condition that always holds comes last, wherever it is written.
        rules.sort_by_key(|rule| rule.when.is_empty());
        Ok(Self { policy: Policy::Script(rules), met: Mutex::default() })
    }

    fn step(&self, rules: &[Rule], question: &Question) -> Option<Step> {
        let said = |text: &String| {
            question.system.contains(text) || question.turns.iter().any(|turn| turn.text.contains(text))
        };
        let (at, rule) = rules.iter().enumerate().find(|(_, rule)| rule.when.iter().all(said))?;
        let given = question.turns.iter().filter(|turn| turn.speaker == Speaker::Judge).count();
        let due = (question.sample as usize).saturating_add(given);
        let replies: Vec<usize> = (0..rule.steps.len())
            .filter(|at| matches!(rule.steps.get(*at), Some(Step::Reply { .. })))
            .collect();
        let reply = replies.get(due).or(replies.last()).copied();
        // Failures in front: from behind the reply before this one, up to it.
        let (first, end) = match reply {
            Some(reply) => (replies.iter().rev().find(|at| **at < reply).map_or(0, |at| at + 1), reply),
            None => (0, rule.steps.len()),
        };
        let trailing = replies.last().is_some_and(|last| due >= replies.len() && last + 1 < rule.steps.len());
        let (first, end, reply) = match replies.last() {
            Some(last) if trailing => (last + 1, rule.steps.len(), None),
            _ => (first, end, reply),
        };
        if first == end {
            return rule.steps.get(reply?).cloned();
        }
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if met.len() >= MOST_REMEMBERED {
            met.clear();
        }
        let met = met.entry(fingerprint(at, question)).or_default();
        let step = match (first + *met < end, reply) {
            (true, _) => first + *met,
            (false, Some(reply)) => reply,
            (false, None) => end - 1,
        };
        *met += usize::from(*met < end - first);
        rule.steps.get(step).cloned()
    }
}

fn fingerprint(rule: usize, question: &Question) -> u64 {
    let mut hasher = DefaultHasher::new();
    (rule, question.sample, &question.system).hash(&mut hasher);
    for turn in &question.turns {
        (turn.speaker, &turn.text).hash(&mut hasher);
    }
    hasher.finish()
}

fn read(entry: Value) -> Result<(Vec<String>, Vec<Step>), String> {
    let full = match serde_json::from_value(entry.clone()) {
        Ok(Entry::Text(text)) => return Ok((Vec::new(), vec![reply(&text.into(), &Full::default())])),
        Ok(Entry::Full(full)) => *full,
        // The untagged error says nothing; that of the object does.
        Err(_) => serde_json::from_value(entry).map_err(|error| error.to_string())?,
    };
    let delay = Duration::from_millis(full.delay_ms);
    let mut steps: Vec<Step> =
        full.reply.iter().chain(&full.replies).map(|text| reply(text, &full)).collect();
    if let Some(status) = full.status {
        let status = StatusCode::from_u16(status).map_err(|_| format!("{status} is no HTTP status"))?;
        let mut headers = HeaderMap::new();
        if let Some(seconds) = full.retry_after {
            headers.extend(seconds.to_string().parse().ok().map(|value| (http::header::RETRY_AFTER, value)));
        }
        steps.push(Step::Failure { status, headers, body: full.body.clone().unwrap_or_default(), delay });
    }
    if full.hang {
        steps.push(Step::Hang);
    }
    if steps.is_empty() {
        return Err("has neither reply, replies, status nor hang".to_owned());
    }
    let when = match full.when {
        None => Vec::new(),
        Some(When::One(text)) => vec![text],
        Some(When::All(texts)) => texts,
    };
    Ok((when, steps))
}

fn reply(text: &Value, full: &Full) -> Step {
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    let chance = |chance: &Chance| TokenChance { token: chance.token.clone(), logprob: chance.logprob };
    let model = if full.model.is_empty() { "scripted" } else { &full.model };
    Step::Reply {
        reply: Reply {
            text,
            model: model.to_owned(),
            truncated: full.truncated,
            alternatives: full
                .alternatives
                .iter()
                .map(|position| position.iter().map(chance).collect())
                .collect(),
            ..Reply::default()
        },
        delay: Duration::from_millis(full.delay_ms),
    }
}

/// No delay is none: the shortest sleep takes a millisecond.
async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

impl Judge for Scripted {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let rules = match &self.policy {
            Policy::PreferFirstShown => return Ok(prefer_first_shown(question)),
            Policy::Script(rules) => rules,
        };
        let answer = match self.step(rules, question) {
            None => Err(super::unreadable("the script has no reply for this question")),
            Some(Step::Hang) => std::future::pending().await,
            Some(Step::Reply { reply, delay }) => {
                pause(delay).await;
                with_text(reply)
            }
            Some(Step::Failure { status, headers, body, delay }) => {
                pause(delay).await;
                Err(failure::read(status, &headers, body.as_bytes()))
            }
        };
        answer.map_err(|error| JudgeError { attempts: 1, ..error })
    }
}

fn prefer_first_shown(question: &Question) -> Reply {
    let model = "prefer_first_shown".to_owned();
    match &question.form {
        ReplyForm::Text => Reply { text: "A".to_owned(), model, ..Reply::default() },
        ReplyForm::Json { schema, .. } => {
            Reply { text: first_allowed_object(schema).to_string(), model, ..Reply::default() }
        }
        ReplyForm::Label { labels } => {
            let text = labels.first().cloned().unwrap_or_default();
            let others = labels.len().saturating_sub(1).max(1) as f64;
            let chance = |(at, token): (usize, &String)| TokenChance {
                token: token.clone(),
                logprob: if at == 0 { 0.9_f64.ln() } else { (0.1 / others).ln() },
            };
            let alternatives = vec![labels.iter().enumerate().map(chance).collect()];
            Reply { text, model, alternatives, ..Reply::default() }
        }
    }
}

fn first_allowed_object(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let filled: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), first_allowed(schema)))
        .collect();
    filled.into()
}

/// One value; what is nested deeper stays empty, no schema here needs it.
fn first_allowed(schema: &Value) -> Value {
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    match super::text_at(schema, "/type") {
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(1.into()),
        "boolean" => true.into(),
        "array" => Value::Array(Vec::new()),
        "object" => Map::new().into(),
        _ => "what is shown first is preferred".into(),
    }
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
