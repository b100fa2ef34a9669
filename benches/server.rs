//! What the service costs beside a bare gRPC server: the same messages, the same client, in one run.
//!
//! `cargo bench --bench server` prints requests per second and the ratio to a tonic server that only decodes the
//! request and answers with a response of the same shape. Each server has one thread, the client another.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rapid_eval::config::{AdminListen, Settings};
use rapid_eval::evaluate::Evaluator;
use rapid_eval::server::Server;
use rapid_eval::wire::v1::evaluate_instances_request::MetricInputs;
use rapid_eval::wire::v1::evaluate_instances_response::EvaluationResults;
use rapid_eval::wire::v1::evaluation_service_client::EvaluationServiceClient;
use rapid_eval::wire::v1::evaluation_service_server::{EvaluationService, EvaluationServiceServer};
use rapid_eval::wire::v1::*;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// Calls under way at one time.
const IN_FLIGHT: usize = 64;
/// How long each server is asked in each round.
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 7;

/// Decodes, encodes, and does nothing in between.
struct Echo;

#[tonic::async_trait]
impl EvaluationService for Echo {
    async fn evaluate_instances(
        &self,
        request: Request<EvaluateInstancesRequest>,
    ) -> Result<Response<EvaluateInstancesResponse>, Status> {
        let score = Some(1.0);
        let results = match request.into_inner().metric_inputs {
            Some(MetricInputs::RougeInput(_)) => EvaluationResults::RougeResults(RougeResults {
                rouge_metric_values: vec![RougeMetricValue { score, details: None }],
            }),
            Some(_) | None => EvaluationResults::ExactMatchResults(ExactMatchResults {
                exact_match_metric_values: vec![ExactMatchMetricValue { score }],
            }),
        };
        Ok(Response::new(EvaluateInstancesResponse {
            evaluation_results: Some(results),
            ..Default::default()
        }))
    }
}

fn main() {
    let (echo, service) = (serve_echo(), serve());
    let words =
        |start: usize| (start..start + 100).map(|n| format!("word{}", n % 150)).collect::<Vec<_>>().join(" ");
    let pair = (Some(words(0)), Some(words(20)));
    let requests = [
        (
            "exact_match, 1 instance",
            MetricInputs::ExactMatchInput(ExactMatchInput {
                metric_spec: None,
                instances: vec![ExactMatchInstance {
                    prediction: Some("Paris".into()),
                    reference: Some("Paris".into()),
                }],
            }),
        ),
        (
            "rougeL, 1 instance of 100 tokens",
            MetricInputs::RougeInput(RougeInput {
                metric_spec: Some(RougeSpec { rouge_type: "rougeL".into(), ..Default::default() }),
                instances: vec![RougeInstance { prediction: pair.0, reference: pair.1 }],
            }),
        ),
    ];
    let client = Builder::new_current_thread().enable_all().build().unwrap();
    println!("{IN_FLIGHT} calls in flight, median of {ROUNDS} rounds of {ROUND:?} each");
    println!("{:34} {:>12} {:>12} {:>7}", "", "bare echo/s", "service/s", "ratio");
    for (name, inputs) in requests {
        let request = EvaluateInstancesRequest { metric_inputs: Some(inputs), ..Default::default() };
        client.block_on(rate(echo, &request));
        client.block_on(rate(service, &request));
        let rounds = (0..ROUNDS)
            .map(|_| (client.block_on(rate(echo, &request)), client.block_on(rate(service, &request))));
        let (bare, ours): (Vec<f64>, Vec<f64>) = rounds.unzip();
        let ratios = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
        println!("{name:34} {:12.0} {:12.0} {:7.2}", median(bare), median(ours), median(ratios));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Requests per second over one connection.
async fn rate(address: SocketAddr, request: &EvaluateInstancesRequest) -> f64 {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let callers = (0..IN_FLIGHT).map(|_| {
        let (mut client, request) = (EvaluationServiceClient::new(channel.clone()), request.clone());
        let answered = Arc::clone(&answered);
        tokio::spawn(async move {
            while began.elapsed() < ROUND {
                client.evaluate_instances(request.clone()).await.unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let answered = answered.load(Ordering::Relaxed) as f64;
    answered / began.elapsed().as_secs_f64()
}

/// Runs a server on a thread of its own; gives its address.
fn on_own_thread<F: Future<Output = ()>>(
    run: impl FnOnce(std::sync::mpsc::Sender<SocketAddr>) -> F + Send + 'static,
) -> SocketAddr {
    let (send, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(run(send))
    });
    address.recv().unwrap()
}

fn serve_echo() -> SocketAddr {
    on_own_thread(|address| async move {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        address.send(listener.local_addr().unwrap()).unwrap();
        let server = tonic::transport::Server::builder().add_service(EvaluationServiceServer::new(Echo));
        server.serve_with_incoming(TcpListenerStream::new(listener)).await.unwrap();
    })
}

fn serve() -> SocketAddr {
    on_own_thread(|address| async move {
        let mut settings = Settings::default();
        settings.server.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.server.admin_listen = AdminListen::Off;
        let roster = settings.roster().unwrap();
        let evaluator = Evaluator::start(settings.limits.clone(), 2, roster, settings.judge.clone()).unwrap();
        let server = Server::bind(settings, Arc::new(evaluator)).await.unwrap();
        address.send(server.address().unwrap()).unwrap();
        server.run(CancellationToken::new()).await;
    })
}
