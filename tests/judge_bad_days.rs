//! A judge's bad days on a real socket: for each the right error or the right reply, within the caller's time,
//! and never a key in a message.
#![cfg(feature = "server")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rapid_eval::judge::settings::JudgeSettings;
use rapid_eval::judge::stack::{ConfiguredJudge, connect_in};
use rapid_eval::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply, Speaker, Turn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const KEY: &str = "sk-test-0123456789abcdef";
const GOOD: &str =
    r#"{"id":"1","model":"m","choices":[{"message":{"content":"fine"},"finish_reason":"stop"}]}"#;

/// What the server does with one request.
#[derive(Clone)]
enum Act {
    /// Sends this and closes.
    Send(String),
    /// Closes with a reset, unread data and all.
    Reset,
    /// Sends this and then nothing, with the connection open.
    SendThenSilence(String),
    /// Sends this and then a byte every few milliseconds, for ever.
    SendThenDrip(String),
    /// Sends this and then as much as the client takes.
    SendThenFlood(String),
}

/// A server that acts out `acts` in order, one a request, the last one repeating.
struct Stage {
    base: String,
    requests: Arc<Mutex<Vec<String>>>,
    /// Connections that the client has closed while the server was still acting.
    abandoned: Arc<AtomicUsize>,
}

impl Stage {
    async fn play(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stage = Self {
            base: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            abandoned: Arc::default(),
        };
        let (requests, abandoned) = (stage.requests.clone(), stage.abandoned.clone());
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (acts, requests, abandoned) = (acts.clone(), requests.clone(), abandoned.clone());
                tokio::spawn(async move {
                    if act(socket, &acts, &requests).await.is_err() {
                        abandoned.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        stage
    }

    fn judge(&self, more: &str) -> ConfiguredJudge {
        let text = format!(
            "name = 'main'\nprovider = 'openai'\nmodel = 'm'\nbase_url = '{}/v1'\nkey_env = 'K'\n{more}",
            self.base
        );
        let settings: JudgeSettings = toml::from_str(&text).unwrap();
        let judge = connect_in(&settings, &|name| (name == "K").then(|| KEY.to_owned())).unwrap();
        assert!(!format!("{settings:?} {judge:?}").contains(KEY));
        judge
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn act(mut socket: TcpStream, acts: &[Act], requests: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let request = read_request(&mut socket).await?;
    let act = {
        let mut requests = requests.lock().unwrap();
        requests.push(request);
        acts[(requests.len() - 1).min(acts.len() - 1)].clone()
    };
    match act {
        Act::Send(text) => {
            socket.write_all(text.as_bytes()).await?;
            socket.shutdown().await
        }
        Act::Reset => {
            socket.set_zero_linger()?;
            Ok(())
        }
        Act::SendThenSilence(text) => {
            socket.write_all(text.as_bytes()).await?;
            match socket.read_u8().await {
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            }
        }
        Act::SendThenDrip(text) => {
            socket.write_all(text.as_bytes()).await?;
            loop {
                socket.write_all(b" ").await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        Act::SendThenFlood(text) => {
            socket.write_all(text.as_bytes()).await?;
            let block = vec![b' '; 64 * 1024];
            loop {
                socket.write_all(&block).await?;
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> std::io::Result<String> {
    let mut seen = Vec::new();
    loop {
        let mut block = [0; 4096];
        let count = socket.read(&mut block).await?;
        seen.extend_from_slice(&block[..count]);
        let text = String::from_utf8_lossy(&seen);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok())
            .unwrap_or(0);
        if body.len() >= length || count == 0 {
            return Ok(text.into_owned());
        }
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Send(format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    ))
}

fn good() -> Act {
    answer("200 OK", "content-type: application/json\r\n", GOOD)
}

fn question() -> Question {
    let turns = vec![Turn { speaker: Speaker::User, text: "rate it".to_owned() }];
    Question { turns, ..Question::default() }
}

async fn ask(judge: &ConfiguredJudge) -> Result<Reply, JudgeError> {
    let answer = judge.ask(&question()).await;
    if let Err(error) = &answer {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(KEY), "{shown}");
        assert!(error.to_string().starts_with("judge main: "), "{error}");
    }
    answer
}

async fn fails(acts: Vec<Act>, more: &str) -> (JudgeError, Stage) {
    let stage = Stage::play(acts).await;
    let error = ask(&stage.judge(more)).await.unwrap_err();
    (error, stage)
}

#[tokio::test]
async fn a_good_day() {
    let stage = Stage::play(vec![good()]).await;
    assert_eq!(ask(&stage.judge("")).await.unwrap().text, "fine");
    let request = &stage.requests()[0];
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {KEY}")), "{request}");
    assert!(request.contains(concat!("user-agent: rapid-eval/", env!("CARGO_PKG_VERSION"))), "{request}");
}

#[tokio::test]
async fn a_reset_connection_is_tried_again() {
    let stage = Stage::play(vec![Act::Reset, good()]).await;
    assert_eq!(ask(&stage.judge("")).await.unwrap().text, "fine");
    assert_eq!(stage.requests().len(), 2);
    let (error, _) = fails(vec![Act::Reset], "attempts = 2").await;
    assert_eq!((error.kind, error.attempts), (JudgeErrorKind::Unreachable, 2));
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let stage = Stage::play(vec![good()]).await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let judge = Stage { base: format!("http://{free}"), ..stage }.judge("attempts = 1");
    let error = ask(&judge).await.unwrap_err();
    assert_eq!(error.kind, JudgeErrorKind::Unreachable);
    assert!(error.message.starts_with("no connection: "), "{error}");
}

#[tokio::test]
async fn too_many_requests_with_a_wait_is_waited_for() {
    let busy =
        answer("429 Too Many Requests", "retry-after: 1\r\n", "{\"error\":{\"message\":\"slow down\"}}");
    let stage = Stage::play(vec![busy, good()]).await;
    let started = Instant::now();
    assert_eq!(ask(&stage.judge("")).await.unwrap().text, "fine");
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn too_many_requests_without_a_wait_is_backed_off_from() {
    let stage = Stage::play(vec![answer("429 Too Many Requests", "", "{}"), good()]).await;
    assert_eq!(ask(&stage.judge("")).await.unwrap().text, "fine");
}

#[tokio::test]
async fn a_wait_beyond_the_callers_time_is_told_at_once() {
    let stage = Stage::play(vec![answer("429 Too Many Requests", "retry-after: 60\r\n", "{}")]).await;
    let deadline = Some(Instant::now() + Duration::from_secs(30));
    let error = stage.judge("").ask(&Question { deadline, ..question() }).await.unwrap_err();
    assert_eq!((error.kind, error.attempts), (JudgeErrorKind::Throttled, 1));
    assert_eq!(error.retry_after, Some(Duration::from_secs(60)));
    assert!(deadline > Some(Instant::now()));
}

#[tokio::test]
async fn failing_and_overloaded_servers_are_asked_again() {
    for status in ["500 Internal Server Error", "529 Overloaded", "503 Service Unavailable"] {
        let stage = Stage::play(vec![answer(status, "", "{}"), good()]).await;
        assert_eq!(ask(&stage.judge("")).await.unwrap().text, "fine", "{status}");
    }
}

#[tokio::test]
async fn a_reply_that_never_ends_is_cut_at_the_limit_and_its_connection_closed() {
    let drip = Act::SendThenDrip("HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n{".to_owned());
    let (error, stage) = fails(vec![drip], "timeout_seconds = 0.3\nattempts = 1").await;
    assert_eq!((error.kind, error.attempts), (JudgeErrorKind::TimedOut, 1));
    closes(&stage).await;
}

#[tokio::test]
async fn a_reply_without_measure_is_not_read_into_memory() {
    let flood = Act::SendThenFlood("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{".to_owned());
    let (error, stage) = fails(vec![flood], "attempts = 1").await;
    assert_eq!(error.kind, JudgeErrorKind::Unreadable);
    assert!(error.message.contains("4 MiB"), "{error}");
    closes(&stage).await;
}

#[tokio::test]
async fn headers_and_then_silence_end_with_the_callers_deadline() {
    let silence = Act::SendThenSilence("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n".to_owned());
    let stage = Stage::play(vec![silence]).await;
    let deadline = Some(Instant::now() + Duration::from_millis(300));
    let error = stage.judge("").ask(&Question { deadline, ..question() }).await.unwrap_err();
    assert_eq!(error.kind, JudgeErrorKind::OutOfTime);
    assert_eq!(stage.requests().len(), 1);
    closes(&stage).await;
}

#[tokio::test]
async fn a_dropped_question_closes_its_connection() {
    let stage = Stage::play(vec![Act::SendThenSilence(String::new())]).await;
    let judge = stage.judge("");
    let asked = question();
    tokio::select! {
        _ = judge.ask(&asked) => panic!("nobody answers"),
        () = async { while stage.requests().is_empty() { tokio::task::yield_now().await } } => {}
    }
    closes(&stage).await;
}

/// Ends once the client has closed a connection that the server was still serving.
async fn closes(stage: &Stage) {
    let closed = async {
        while stage.abandoned.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("the connection stays open");
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_tried_again() {
    let short = Act::Send(format!("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{GOOD}"));
    let stage = Stage::play(vec![short.clone(), good()]).await;
    assert_eq!(ask(&stage.judge("")).await.unwrap().text, "fine");
    let (error, _) = fails(vec![short], "attempts = 1").await;
    assert_eq!(error.kind, JudgeErrorKind::Unreachable);
    assert!(error.message.starts_with("the answer broke off"), "{error}");
}

#[tokio::test]
async fn a_page_instead_of_json_is_no_verdict() {
    let page = answer("200 OK", "content-type: text/html\r\n", "<html>please sign in</html>");
    let (error, stage) = fails(vec![page], "").await;
    assert_eq!(error.kind, JudgeErrorKind::Unreadable);
    assert_eq!(stage.requests().len(), 1);
}

#[tokio::test]
async fn an_error_that_calls_itself_a_success_is_an_error() {
    let (error, _) = fails(vec![answer("200 OK", "", r#"{"error":{"message":"no","code":401}}"#)], "").await;
    assert_eq!(error.kind, JudgeErrorKind::Credentials);
}

#[tokio::test]
async fn a_key_that_the_server_quotes_is_not_passed_on() {
    let quoted = format!(r#"{{"error":{{"message":"wrong key {KEY}, asked with Bearer {KEY}"}}}}"#);
    for status in ["401 Unauthorized", "200 OK", "500 Internal Server Error"] {
        let (error, _) = fails(vec![answer(status, "", &quoted)], "attempts = 1").await;
        assert!(error.message.contains("wrong key ***"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_carries_nothing_elsewhere() {
    let elsewhere = Stage::play(vec![good()]).await;
    let moved = answer("307 Temporary Redirect", &format!("location: {}/v1\r\n", elsewhere.base), "");
    let (error, _) = fails(vec![moved], "").await;
    assert_eq!(error.kind, JudgeErrorKind::BadRequest);
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_refused_temperature_costs_one_request_among_many() {
    let refusal = r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.",
        "type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#;
    let stage = Stage::play(vec![answer("400 Bad Request", "", refusal), good()]).await;
    let judge = stage.judge("temperature = 0.2");
    let answers = futures_util::future::join_all((0..8).map(|_| ask(&judge))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let requests = stage.requests();
    assert_eq!(requests.len(), 9);
    assert_eq!(requests.iter().filter(|request| request.contains("temperature")).count(), 1);
}
