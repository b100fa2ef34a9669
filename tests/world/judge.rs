//! A judge that a test has under its thumb: a server on this machine that speaks chat completions, or gives embeddings.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rapid_eval::embeddings::EmbeddingSettings;
use rapid_eval::judge::settings::JudgeSettings;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How the judge answers: the n-th call gets the n-th reply, the last one repeats. A reply is
/// `{"text", "status", "headers", "delay_ms", "finish_reason", "body"}`, each part optional.
#[derive(Debug, Clone)]
pub(crate) enum Conduct {
    Replies(Vec<Value>),
    /// Gives the first so many of these texts at once, as many as `n` says.
    Chooses(Vec<String>),
    /// Refuses requests with `temperature` or `max_tokens`, otherwise answers with this.
    RefusesKnobs(Vec<Value>),
    /// Prefers whichever of the two answers stands first in the question.
    PrefersFirst {
        candidate: String,
        baseline: String,
    },
    /// Prefers the answer with this text, wherever it stands.
    PrefersText(String),
    /// After these replies: each text of a request for embeddings is its own vector, such as `[0.5, 1]`, given after a
    /// while.
    Embeds {
        first: Vec<Value>,
        delay_ms: u64,
    },
}

/// The judge's server.
#[derive(Debug, Clone)]
pub(crate) struct StubJudge {
    pub(crate) address: SocketAddr,
    desk: Arc<Desk>,
}

#[derive(Debug)]
struct Desk {
    conduct: Conduct,
    calls: AtomicUsize,
    given_up: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
    keys: Mutex<Vec<String>>,
    asked: Mutex<Vec<Value>>,
    traced: Mutex<Vec<String>>,
}

impl StubJudge {
    pub(crate) async fn start(conduct: Conduct) -> Self {
        let desk = Arc::new(Desk {
            conduct,
            calls: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            keys: Mutex::default(),
            asked: Mutex::default(),
            traced: Mutex::default(),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&desk));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, desk }
    }

    /// The settings of a judge that is asked here.
    pub(crate) fn settings(&self) -> JudgeSettings {
        format!("openai:http://{}/v1#stub", self.address).parse().unwrap()
    }

    /// The settings of embeddings that come from here.
    pub(crate) fn embeddings(&self) -> EmbeddingSettings {
        EmbeddingSettings {
            base_url: format!("http://{}", self.address),
            model: String::from("stub-embeds"),
            ..EmbeddingSettings::default()
        }
    }

    /// The bodies of all calls.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.desk.asked.lock().unwrap().clone()
    }

    /// What each call that has one says in `authorization`.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.desk.keys.lock().unwrap().clone()
    }

    /// The most calls that were open at one time.
    pub(crate) fn most_open(&self) -> usize {
        self.desk.most_open.load(Ordering::SeqCst)
    }

    /// How many calls came in.
    pub(crate) fn calls(&self) -> usize {
        self.desk.calls.load(Ordering::SeqCst)
    }

    /// How many calls were dropped by their caller before they were answered.
    pub(crate) fn given_up(&self) -> usize {
        self.desk.given_up.load(Ordering::SeqCst)
    }

    /// The texts of all messages of each call, joined.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.desk.asked.lock().unwrap().iter().map(texts).collect()
    }

    /// The `traceparent` of each call that has one.
    pub(crate) fn traced(&self) -> Vec<String> {
        self.desk.traced.lock().unwrap().clone()
    }
}

/// Counts a call that ends, and one that ends before its answer.
struct GivenUp<'a>(&'a Desk, bool);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.given_up.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn texts(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}

async fn answer(State(desk): State<Arc<Desk>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let call = desk.calls.fetch_add(1, Ordering::SeqCst);
    let open = desk.open.fetch_add(1, Ordering::SeqCst) + 1;
    desk.most_open.fetch_max(open, Ordering::SeqCst);
    let mut given_up = GivenUp(&desk, false);
    let prompt = texts(&body);
    let reply = match &desk.conduct {
        Conduct::Replies(replies) => nth(replies, call),
        Conduct::Chooses(texts) => choices(texts, body["n"].as_u64().unwrap_or(1)),
        Conduct::RefusesKnobs(replies) => {
            match ["temperature", "max_tokens"].into_iter().find(|knob| body.get(*knob).is_some()) {
                Some(knob) => json!({"status": 400, "body": {"error": {
                    "message": format!("Unsupported parameter: '{knob}' is not supported with this model."),
                    "type": "invalid_request_error", "param": knob, "code": "unsupported_parameter",
                }}}),
                None => nth(replies, call),
            }
        }
        Conduct::PrefersFirst { candidate, baseline } => {
            let first = if prompt.find(candidate.as_str()) < prompt.find(baseline.as_str()) {
                candidate
            } else {
                baseline
            };
            choice_of(&prompt, first)
        }
        Conduct::PrefersText(text) => choice_of(&prompt, text),
        Conduct::Embeds { first, delay_ms } => {
            first.get(call).cloned().unwrap_or_else(|| embeddings(&body, *delay_ms))
        }
    };
    desk.asked.lock().unwrap().push(body);
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    desk.keys.lock().unwrap().extend(key);
    let traced = headers.get("traceparent").map(|parent| parent.to_str().unwrap().to_owned());
    desk.traced.lock().unwrap().extend(traced);
    if let Some(delay) = reply["delay_ms"].as_u64() {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    given_up.1 = true;
    respond(&reply)
}

fn nth(replies: &[Value], call: usize) -> Value {
    replies.get(call).or(replies.last()).cloned().unwrap()
}

fn choices(texts: &[String], count: u64) -> Value {
    let of = |(index, text)| {
        let message = json!({"role": "assistant", "content": text});
        json!({"index": index, "message": message, "finish_reason": "stop"})
    };
    let choices: Vec<Value> = (0..count).zip(texts).map(of).collect();
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20 * count});
    json!({"body": {"id": "1", "model": "stub-1", "choices": choices, "usage": usage}})
}

/// Last things first: an answer may have any order.
fn embeddings(asked: &Value, delay_ms: u64) -> Value {
    let texts = asked["input"].as_array().unwrap().iter().enumerate().rev();
    let data: Vec<Value> = texts
        .map(|(index, text)| {
            let vector: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
            json!({"object": "embedding", "index": index, "embedding": vector})
        })
        .collect();
    json!({"delay_ms": delay_ms, "body": {"object": "list", "model": asked["model"], "data": data,
                                          "usage": {"prompt_tokens": 1, "total_tokens": 1}}})
}

/// A verdict for the label under which `text` is shown.
fn choice_of(prompt: &str, text: &str) -> Value {
    let place = prompt.find(text).expect("the judge is shown both answers");
    let label = ["response_a", "response_b"]
        .into_iter()
        .max_by_key(|label| prompt[..place].rfind(label).map_or(-1, |at| i64::try_from(at).unwrap()))
        .unwrap();
    let choice = if label.ends_with('a') { "A" } else { "B" };
    json!({"text": json!({"explanation": format!("{choice} it is"), "choice": choice}).to_string()})
}

fn respond(reply: &Value) -> Response {
    let status = reply["status"]
        .as_u64()
        .map_or(StatusCode::OK, |status| StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap());
    let body = match (reply.get("body"), reply["text"].as_str()) {
        (Some(body), _) => body.clone(),
        (None, Some(text)) => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": "stub-1",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text},
                         "finish_reason": reply["finish_reason"].as_str().unwrap_or("stop")}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }),
        (None, None) => json!({"error": {"message": "staged", "type": "staged", "code": null}}),
    };
    let mut response = (status, Json(body)).into_response();
    for (name, value) in reply["headers"].as_object().into_iter().flatten() {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        response.headers_mut().insert(name, HeaderValue::from_str(value.as_str().unwrap()).unwrap());
    }
    response
}
