//! The life of the process and of its connections: ready, asked to stop, gone; and what it says on the way.
#![cfg(feature = "server")]

mod world;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rapid_eval::wire::v1::evaluate_instances_request::MetricInputs;
use rapid_eval::wire::v1::{EvaluateInstancesRequest, RougeInput, RougeInstance, RougeSpec};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tonic::Response;
use tonic_health::pb::health_check_response::ServingStatus;
use world::http::{frame_of, get, grpc};
use world::process::Process;
use world::{SERVICES, World, message, scores};

/// Ends a test that would hang; nothing here comes near it.
const FOR_EVER: Duration = Duration::from_secs(300);

fn short() -> Value {
    json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}})
}

/// So many words on either side, and each counts: the work grows with their square.
fn rouge(words: usize) -> EvaluateInstancesRequest {
    let instance = RougeInstance {
        prediction: Some("a b ".repeat(words / 2)),
        reference: Some("b a ".repeat(words / 2)),
    };
    let metric_spec = Some(RougeSpec { rouge_type: String::from("rougeL"), ..Default::default() });
    let input = RougeInput { metric_spec, instances: vec![instance] };
    EvaluateInstancesRequest { metric_inputs: Some(MetricInputs::RougeInput(input)), ..Default::default() }
}

/// Waits until a worker is at work.
async fn in_flight(process: &Process) {
    let working = async {
        while process.busy_workers() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, working).await.unwrap();
}

#[tokio::test]
async fn a_call_in_flight_is_answered_before_the_process_goes() {
    let process = Process::start(&[("server.drain_seconds", "250")]);
    let caller = process.caller();
    let call = tokio::spawn(async move { caller.evaluate_as(SERVICES[0], rouge(100_000)).await });
    in_flight(&process).await;
    process.terminate();
    let answer = tokio::time::timeout(FOR_EVER, call).await.unwrap().unwrap();
    // All but the first word of the reference, in order, and all but the last of the prediction.
    assert_eq!(scores(&answer.map(Response::into_inner).unwrap()), [0.99999]);
    let (status, log) = process.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn a_call_that_outlasts_the_drain_time_does_not_keep_the_process() {
    let process = Process::start(&[("server.drain_seconds", "1")]);
    let caller = process.caller();
    let call = tokio::spawn(async move { caller.evaluate_as(SERVICES[0], rouge(500_000)).await });
    in_flight(&process).await;
    process.terminate();
    let (status, log) = tokio::time::timeout(FOR_EVER, process.ended()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("in flight"), "{log}");
    assert!(call.await.unwrap().is_err());
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_end() {
    // Longer than any test waits: the drain must not be what ends this.
    let process = Process::start(&[("server.drain_seconds", "100000")]);
    let idle = process.caller();
    idle.evaluate(short()).await.unwrap();
    let mut silent = TcpStream::connect(process.address).await.unwrap();
    let old_fashioned = TcpStream::connect(process.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(old_fashioned)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("/").header("host", "localhost").body(Full::<Bytes>::default()).unwrap();
    sender.send_request(request).await.unwrap();

    process.terminate();
    let (status, log) = tokio::time::timeout(FOR_EVER, process.ended()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    let end = silent.read(&mut [0]).await;
    assert!(matches!(&end, Ok(0)) || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn a_half_sent_request_does_not_outlast_the_drain_time() {
    let process = Process::start(&[("server.drain_seconds", "1")]);
    let mut half = TcpStream::connect(process.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut half, b"PRI * HTTP/2.0\r\n").await.unwrap();
    process.caller().evaluate(short()).await.unwrap();
    process.terminate();
    let (status, log) = tokio::time::timeout(FOR_EVER, process.ended()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn before_it_goes_the_service_says_not_ready_and_still_answers() {
    // It never gets to the end of this: the test stops it.
    let process = Process::start(&[("server.not_ready_seconds", "100000")]);
    assert_eq!(get(process.admin, "/readyz").await.status, 200);
    process.terminate();
    let turned_away = async {
        while get(process.admin, "/readyz").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, turned_away).await.unwrap();
    assert_eq!(get(process.admin, "/readyz").await.status, 503);
    assert_eq!(get(process.admin, "/livez").await.status, 200);
    let caller = process.caller();
    for name in SERVICES.into_iter().chain([""]) {
        assert_eq!(caller.health(name).await.unwrap(), ServingStatus::NotServing, "{name:?}");
    }
    assert_eq!(scores(&caller.evaluate(short()).await.unwrap()), [1.0]);
}

#[tokio::test]
async fn a_stopped_library_server_gives_its_port_back() {
    let world = World::new().start().await;
    world.evaluate(short()).await.unwrap();
    let address = world.address;
    tokio::time::timeout(FOR_EVER, world.stop()).await.unwrap();
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn connections_that_grow_old_are_replaced_without_a_failed_call() {
    let world = World::new().set(|settings| settings.server.max_connection_age_seconds = 1).start().await;
    let mut answered = 0;
    for _ in 0..3 {
        let (mut sender, connection) = connect(world.address, |_| {}).await;
        // Steady traffic until the service asks the caller to go. What was not sent by then is the caller's to send
        // again, as gRPC clients do by themselves; what was sent has to be answered.
        loop {
            match sender.try_send_request(grpc_request(world.address)).await {
                Ok(answer) => assert_eq!(answer.status(), 200),
                Err(mut failed) => {
                    assert!(
                        failed.take_message().is_some(),
                        "after {answered} calls: {:?}",
                        failed.into_error()
                    );
                    break;
                }
            }
            answered += 1;
        }
        tokio::time::timeout(FOR_EVER, connection).await.unwrap().unwrap().unwrap();
    }
    assert!(answered > 3, "{answered}");
}

fn grpc_request(address: SocketAddr) -> http::Request<Full<Bytes>> {
    http::Request::post(format!("http://{address}/{}/EvaluateInstances", SERVICES[0]))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(frame_of(&message(&short())).into()))
        .unwrap()
}

type Sender = http2::SendRequest<Full<Bytes>>;

async fn connect(
    address: SocketAddr,
    set: impl FnOnce(&mut http2::Builder<TokioExecutor>),
) -> (Sender, tokio::task::JoinHandle<hyper::Result<()>>) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    set(&mut builder);
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

#[tokio::test]
async fn keepalive_pings_without_calls_are_welcome() {
    let world = World::new().start().await;
    let (mut sender, connection) = connect(world.address, |builder| {
        // Two hundred pings in two seconds are more than any client of good manners sends.
        builder.keep_alive_interval(Duration::from_millis(10));
        builder.keep_alive_timeout(FOR_EVER);
        builder.keep_alive_while_idle(true);
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!connection.is_finished(), "{:?}", connection.await);

    assert_eq!(sender.send_request(grpc_request(world.address)).await.unwrap().status(), 200);
    assert!(!connection.is_finished());
}

#[tokio::test]
async fn the_ready_line_has_a_command_that_works() {
    let process = Process::start(&[]);
    let line = &process.ready_line;
    for piece in [process.address.to_string(), process.admin.to_string(), String::from("no judge configured")]
    {
        assert!(line.contains(&piece), "{piece}: {line}");
    }
    // grpcurl -plaintext -d '{…}' ADDRESS SERVICE/METHOD
    let (_, command) = line.split_once("grpcurl -plaintext -d '").unwrap();
    let (request, target) = command.split_once("' ").unwrap();
    assert_eq!(target, format!("{} {}/EvaluateInstances", process.address, SERVICES[0]));
    let request = message(&serde_json::from_str(request).unwrap());
    let answer = grpc(process.address, frame_of(&request), &[]).await;
    assert_eq!(answer.grpc_status().code(), tonic::Code::Ok);
}
