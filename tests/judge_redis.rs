//! Answers of judges shared between processes in a real Redis, which may die at any time.
//!
//! Needs `redis-server` in PATH. Without it these tests say so and pass, unless `RAPID_EVAL_REQUIRE_REDIS` is set.
#![cfg(feature = "server")]

mod world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::sleep;
use world::judge::{Conduct, StubJudge};
use world::process::Process;

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(120);

/// `redis-server` on a port of this machine, keeping nothing on disk; killed when dropped.
struct Redis {
    address: SocketAddr,
    child: Child,
}

impl Redis {
    /// Absent where there is none to start.
    fn start() -> Option<Self> {
        let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        if found.is_err() {
            let required = std::env::var_os("RAPID_EVAL_REQUIRE_REDIS").is_some();
            assert!(!required, "redis-server is not in PATH, and RAPID_EVAL_REQUIRE_REDIS is set");
            println!("skipped: redis-server is not in PATH");
            return None;
        }
        let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        Some(Self { address, child: serve(address) })
    }

    fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        self.child = serve(self.address);
    }

    /// How many answers it holds.
    fn size(&self) -> usize {
        say(self.address, "DBSIZE").unwrap().trim_start_matches(':').trim().parse().unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(address: SocketAddr) -> Child {
    let port = address.port().to_string();
    let child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while say(address, "PING").is_none_or(|answer| !answer.starts_with("+PONG")) {
        assert!(began.elapsed() < LONG, "redis-server does not answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

/// An inline command and the first line of its answer.
fn say(address: SocketAddr, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.lines().next().map(str::to_owned)
}

async fn judge() -> StubJudge {
    StubJudge::start(Conduct::Replies(vec![json!({"text": "{\"explanation\": \"fine\", \"score\": 4}"})]))
        .await
}

fn service(redis: &Redis, judge: &StubJudge, more: &[(&str, &str)]) -> Process {
    let flag = format!("openai:http://{}/v1#stub", judge.address);
    let url = redis.url();
    // A generous time limit: what is slow on a busy machine is not dead.
    let mut settings =
        vec![("judge.cache.redis_url", url.as_str()), ("judge.cache.redis_timeout_ms", "20000")];
    settings.extend(more);
    Process::start_with(&settings, &[], &["--judge", &flag])
}

fn fluency(prediction: &str) -> Value {
    json!({"fluency_input": {"metric_spec": {}, "instance": {"prediction": prediction}}})
}

/// Asks for the texts of these numbers, four samples each.
async fn ask(process: &Process, numbers: std::ops::Range<usize>) {
    let caller = process.caller();
    let requests: Vec<Value> = numbers.map(|number| fluency(&format!("text {number}"))).collect();
    for answer in join_all(requests.into_iter().map(|request| caller.evaluate(request))).await {
        answer.unwrap();
    }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "still not: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_process_asked_another_does_not_ask_again() {
    let Some(redis) = Redis::start() else { return };
    let judge = judge().await;
    let (one, other) = (service(&redis, &judge, &[]), service(&redis, &judge, &[]));
    ask(&one, 0..10).await;
    assert_eq!(judge.calls(), 40);
    until("all answers are in the store", || redis.size() == 40).await;
    ask(&other, 0..10).await;
    assert_eq!(judge.calls(), 40, "the other process asked again");
    ask(&other, 5..15).await;
    assert_eq!(judge.calls(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_when_redis_dies_and_comes_back() {
    let Some(mut redis) = Redis::start() else { return };
    let judge = judge().await;
    // Nothing in memory, so that every question goes by way of Redis.
    let process = service(&redis, &judge, &[("judge.cache.memory_bytes", "0")]);
    ask(&process, 0..10).await;
    until("all answers are in the store", || redis.size() == 40).await;
    let (_, ()) = tokio::join!(ask(&process, 10..60), async { redis.kill() });
    ask(&process, 60..70).await;
    redis.start_again();
    let mut next = 70;
    while redis.size() == 0 {
        assert!(next < 10_000, "it is not used again");
        ask(&process, next..next + 1).await;
        next += 1;
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_together_keep_to_one_rate() {
    let Some(redis) = Redis::start() else { return };
    let judge = judge().await;
    // Ten a second, ten at once.
    let config = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("one_rate.toml");
    let text = format!(
        "[[judges]]\nprovider = \"openai\"\nmodel = \"stub\"\nbase_url = \"http://{}/v1\"\nrequests_per_minute = 600\n\
         [judge]\nsampling_count = 1\n[judge.cache]\nredis_url = \"{}\"\nredis_timeout_ms = 20000\n",
        judge.address,
        redis.url()
    );
    std::fs::write(&config, text).unwrap();
    let start = || Process::start_with(&[], &[], &["--config", config.to_str().unwrap()]);
    let (one, other) = (start(), start());
    let began = Instant::now();
    tokio::join!(ask(&one, 0..25), ask(&other, 25..50));
    // 50 less the ten at once, at ten a second. Each on its own would have needed a second and a half.
    assert!(began.elapsed() >= Duration::from_millis(3900), "{:?}", began.elapsed());
    assert_eq!(judge.calls(), 50);
}
