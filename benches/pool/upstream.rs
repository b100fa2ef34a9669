//! A judge endpoint in a process of its own, with laws of latency and refusal. What it draws depends on its seed alone.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Tokens of every answer.
const TOKENS: (u64, u64) = (100, 20);
/// What is on its way when a 429 is sent is not sent too early.
const GRACE: Duration = Duration::from_millis(50);

/// The process; killed when dropped.
pub(crate) struct Upstream {
    child: Child,
    pub(crate) base: String,
}

impl Upstream {
    /// Starts it with laws such as `delay_ms=50`, `rate=100`, `tail=1`, `slow_after_s=10`.
    pub(crate) fn start(laws: &[&str]) -> Self {
        let program = std::env::current_exe().expect("a program knows where it is");
        let mut child = Command::new(program)
            .arg("upstream")
            .args(laws)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program can start itself");
        let mut base = String::new();
        let mut lines = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        lines.read_line(&mut base).expect("it says where it listens");
        Self { child, base: base.trim().to_owned() }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What it counted: `answered`, `refused`, `early`, `tokens`.
    pub(crate) async fn counts(&self) -> Value {
        let answer = reqwest::get(format!("{}/counts", self.base)).await.expect("it answers");
        answer.json().await.expect("it answers in JSON")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Desk {
    laws: BTreeMap<String, f64>,
    began: Instant,
    state: Mutex<Ledger>,
}

struct Ledger {
    dice: u64,
    level: f64,
    at: Instant,
    refused_at: Option<Instant>,
    answered: u64,
    refused: u64,
    early: u64,
    tokens: u64,
}

/// The process itself: prints its address and serves until it is killed.
pub(crate) async fn serve(laws: impl Iterator<Item = String>) {
    let laws: BTreeMap<String, f64> = laws
        .filter_map(|law| {
            let (name, value) = law.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        })
        .collect();
    let now = Instant::now();
    let seed = laws.get("seed").map_or(1, |seed| seed.to_bits());
    let state = Ledger {
        dice: seed,
        level: laws.get("rate").copied().unwrap_or_default(),
        at: now,
        refused_at: None,
        answered: 0,
        refused: 0,
        early: 0,
        tokens: 0,
    };
    let desk = Arc::new(Desk { laws, began: now, state: Mutex::new(state) });
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    println!("http://{}", listener.local_addr().expect("it is bound"));
    let router = Router::new().route("/counts", get(counts)).fallback(answer).with_state(desk);
    axum::serve(listener, router).await.expect("it serves until it is killed");
}

async fn counts(State(desk): State<Arc<Desk>>) -> Json<Value> {
    let ledger = desk.state.lock().expect("nobody panics with the ledger");
    Json(json!({
        "answered": ledger.answered, "refused": ledger.refused, "early": ledger.early, "tokens": ledger.tokens,
    }))
}

impl Desk {
    fn law(&self, name: &str) -> f64 {
        self.laws.get(name).copied().unwrap_or_default()
    }

    /// How long the answer takes; absent = it is refused.
    fn arrival(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut ledger = self.state.lock().expect("nobody panics with the ledger");
        let rate = self.law("rate");
        if rate > 0.0 {
            let since = now.saturating_duration_since(ledger.at).as_secs_f64();
            ledger.level = (ledger.level + since * rate).min(rate);
            ledger.at = now;
            if let Some(refused_at) = ledger.refused_at {
                let since = now.saturating_duration_since(refused_at);
                ledger.early += u64::from(since > GRACE && since < Duration::from_secs(1) - GRACE / 5);
            }
            if ledger.level < 1.0 {
                ledger.refused += 1;
                ledger.refused_at = Some(now);
                return None;
            }
            ledger.level -= 1.0;
        }
        let mut delay = self.law("delay_ms") / 1000.0;
        let slow_after = self.law("slow_after_s");
        if slow_after > 0.0 && self.began.elapsed().as_secs_f64() > slow_after {
            delay *= 10.0;
        }
        if self.law("tail") > 0.0 {
            // Pareto with exponent 1.1: one answer in a hundred takes 66 times as long as the fastest, or longer.
            delay = (delay * uniform(&mut ledger.dice).powf(-1.0 / 1.1)).min(30.0);
        }
        Some(Duration::from_secs_f64(delay))
    }
}

/// Above 0, up to 1: SplitMix64 (Steele, Lea, Flood 2014).
fn uniform(dice: &mut u64) -> f64 {
    *dice = dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *dice;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
}

async fn answer(State(desk): State<Arc<Desk>>, _body: axum::body::Bytes) -> Response {
    let Some(delay) = desk.arrival() else {
        let headers = [("retry-after", "1")];
        return (StatusCode::TOO_MANY_REQUESTS, headers, Json(json!({"error": {"message": "slow down"}})))
            .into_response();
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let mut ledger = desk.state.lock().expect("nobody panics with the ledger");
    ledger.answered += 1;
    ledger.tokens += TOKENS.0 + TOKENS.1;
    let content = "{\"explanation\": \"fine\", \"score\": 4}";
    Json(json!({
        "id": "1", "model": "upstream",
        "choices": [{"message": {"content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": TOKENS.0, "completion_tokens": TOKENS.1},
    }))
    .into_response()
}
