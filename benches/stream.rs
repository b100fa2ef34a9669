//! A hundred thousand small mixed requests by one stream, and the same ones call by call, from one client on one
//! connection.
//!
//! `cargo bench --bench stream` starts the binary as a process of its own (`-- FILE` another one), checks every answer,
//! and prints requests per second and the resident memory of the service along the way.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use futures_util::StreamExt;
use rapid_eval::wire::json;
use rapid_eval::wire::v1::evaluate_instances_stream_response::Outcome;
use rapid_eval::wire::v1::evaluation_service_client::EvaluationServiceClient;
use rapid_eval::wire::v1::{
    EvaluateInstancesRequest, EvaluateInstancesResponse, EvaluateInstancesStreamRequest,
};
use serde_json::Value;
use tonic::transport::{Channel, Endpoint};

const COUNT: usize = 100_000;
/// Calls under way at one time, as many as a stream answers at one time.
const IN_FLIGHT: usize = 64;

/// Kinds of requests, each with the text of a good and of a bad answer and the two scores.
fn kinds() -> Vec<[(EvaluateInstancesRequest, f64); 2]> {
    let pair =
        |prediction: &str| format!(r#"[{{"prediction": "{prediction}", "reference": "the cat sat"}}]"#);
    let row = |output: &str| {
        format!(r#"[{{"item": {{"truth": "the cat sat"}}, "sample": {{"output_text": "{output}"}}}}]"#)
    };
    let texts = r#""input": "{{sample.output_text}}", "reference": "{{item.truth}}""#;
    let kind = |request: &dyn Fn(&str) -> String| {
        [("the cat sat", 1.0), ("dog", 0.0)]
            .map(|(prediction, score)| (json::read(&request(prediction)).expect("a request"), score))
    };
    vec![
        kind(&|text| format!(r#"{{"rouge_input": {{"instances": {}}}}}"#, pair(text))),
        kind(&|text| format!(r#"{{"exact_match_input": {{"instances": {}}}}}"#, pair(text))),
        kind(&|text| {
            let spec = format!(r#"{{{texts}, "operation": "eq"}}"#);
            format!(r#"{{"string_check_input": {{"metric_spec": {spec}, "instances": {}}}}}"#, row(text))
        }),
        kind(&|text| {
            let spec = format!(r#"{{{texts}, "evaluation_metric": "rouge_l"}}"#);
            format!(r#"{{"text_similarity_input": {{"metric_spec": {spec}, "instances": {}}}}}"#, row(text))
        }),
        kind(&|text| {
            let instance = format!(r#"{{"prediction": "{text}", "keywords": ["cat"]}}"#);
            format!(r#"{{"keyword_match_input": {{"instances": {instance}}}}}"#)
        }),
    ]
}

fn score(response: &EvaluateInstancesResponse) -> f64 {
    let answer: Value = serde_json::from_str(&json::write(response).expect("JSON")).expect("JSON");
    let result = answer.as_object().and_then(|arms| arms.values().next()).expect("an arm");
    let values = result.as_object().and_then(|lists| lists.values().next()).expect("values");
    values[0]["score"].as_f64().expect("a score")
}

struct Service {
    child: Child,
    channel: Channel,
}

impl Service {
    fn start() -> Self {
        let named = std::env::args().skip(1).find(|word| !word.starts_with('-'));
        let mut child = Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_rapid-eval").to_owned()))
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "off"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let (_, rest) = line.split_once("ready on ").unwrap_or_else(|| panic!("{line}"));
        let address = rest.split(';').next().unwrap_or_default();
        let channel = Endpoint::from_shared(format!("http://{address}")).expect("an address").connect_lazy();
        Self { child, channel }
    }

    /// In MiB; nothing where there is no `/proc`.
    fn resident(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
        format!("{:.1} MiB", kib / 1024.0)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may be gone by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::main]
async fn main() {
    let kinds = kinds();
    let request = |number: usize| &kinds[number % kinds.len()][number / kinds.len() % 2];
    let rate = |began: Instant| COUNT as f64 / began.elapsed().as_secs_f64();
    let service = Service::start();

    let mut client = EvaluationServiceClient::new(service.channel.clone());
    println!("at rest: {}", service.resident());
    let all: Vec<EvaluateInstancesStreamRequest> = (0..COUNT)
        .map(|number| EvaluateInstancesStreamRequest {
            id: number.to_string(),
            request: Some(request(number).0.clone()),
        })
        .collect();
    let began = Instant::now();
    let mut answers =
        client.evaluate_instances_stream(tokio_stream::iter(all)).await.expect("a stream").into_inner();
    let mut received = Vec::with_capacity(COUNT);
    while let Some(answer) = answers.message().await.expect("an answer") {
        received.push(answer);
        if received.len().is_multiple_of(COUNT / 5) {
            println!("  {} answered: {}", received.len(), service.resident());
        }
    }
    println!("one stream: {:.0} requests per second", rate(began));
    let mut open: BTreeSet<usize> = (0..COUNT).collect();
    for answer in &received {
        let number: usize = answer.id.parse().expect("an id");
        assert!(open.remove(&number), "{number} twice");
        match answer.outcome.as_ref().expect("an outcome") {
            Outcome::Response(response) => assert_eq!(score(response), request(number).1, "{number}"),
            Outcome::Error(error) => panic!("{number}: {error:?}"),
        }
    }
    assert!(open.is_empty(), "{} were not answered", open.len());

    for in_flight in [1, IN_FLIGHT] {
        let calls: Vec<EvaluateInstancesRequest> =
            (0..COUNT).map(|number| request(number).0.clone()).collect();
        let began = Instant::now();
        let answered = tokio_stream::iter(calls)
            .map(|request| {
                let mut client = client.clone();
                async move { client.evaluate_instances(request).await.expect("an answer") }
            })
            .buffer_unordered(in_flight)
            .count()
            .await;
        assert_eq!(answered, COUNT);
        println!("single calls, {in_flight} at a time: {:.0} requests per second", rate(began));
    }
    println!("at the end: {}", service.resident());
}
