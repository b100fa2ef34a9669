//! More work than the service can do: whose turn it is, when a call ends, who is sent away.
#![cfg(feature = "server")]

mod world;

use std::net::SocketAddr;
use std::time::Duration;

use rapid_eval::wire::v1::evaluate_instances_request::MetricInputs;
use rapid_eval::wire::v1::{EvaluateInstancesRequest, RougeInput, RougeInstance, RougeSpec};
use serde_json::{Value, json};
use tonic::{Code, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_types::StatusExt;
use world::http::{frame_of, grpc};
use world::process::Process;
use world::{Caller, SERVICES, World, message, scores};

/// Ends a test that would hang; nothing here comes near it.
const FOR_EVER: Duration = Duration::from_secs(300);

/// A message of 8 MB and as much work as one call may ask for, four times: no two of the 500,000 words on either side can
/// be dropped unseen.
fn long() -> EvaluateInstancesRequest {
    let instance =
        RougeInstance { prediction: Some("a b ".repeat(250_000)), reference: Some("b a ".repeat(250_000)) };
    let metric_spec = Some(RougeSpec { rouge_type: String::from("rougeL"), ..Default::default() });
    let input = RougeInput { metric_spec, instances: vec![instance; 4] };
    EvaluateInstancesRequest { metric_inputs: Some(MetricInputs::RougeInput(input)), ..Default::default() }
}

fn short() -> Value {
    json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}})
}

/// More than is answered on the spot, so it has to go through the workers.
fn middling() -> Value {
    json!({"exact_match_input": {"instances": vec![json!({"prediction": "a".repeat(200), "reference": "a"}); 500]}})
}

async fn call(caller: Caller, request: EvaluateInstancesRequest) -> Result<Vec<f64>, Status> {
    let answer = caller.evaluate_as(SERVICES[0], request).await;
    answer.map(Response::into_inner).map(|answer| scores(&answer))
}

/// The status of a call with this `grpc-timeout`. A client that knows of the deadline would not wait for it.
async fn call_within(deadline: &str, address: SocketAddr, request: EvaluateInstancesRequest) -> Status {
    let headers = [("grpc-timeout", deadline)];
    let answer = grpc(address, frame_of(&request), &headers);
    tokio::time::timeout(FOR_EVER, answer).await.unwrap().grpc_status()
}

/// Waits until so many workers are at work.
async fn workers_busy(process: &Process, expected: impl Fn(usize) -> bool) {
    let busy = async {
        // Several times in a row: a thread may be caught at a moment of no meaning.
        let mut seen = 0;
        while seen < 5 {
            seen = if expected(process.busy_workers()) { seen + 1 } else { 0 };
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, busy).await.unwrap();
}

#[tokio::test]
async fn long_texts_hold_up_neither_small_calls_nor_health() {
    let process = Process::start(&[("server.workers", "2")]);
    let long_ones: Vec<_> = (0..3).map(|_| tokio::spawn(call(process.caller(), long()))).collect();
    workers_busy(&process, |busy| busy > 0).await;

    for _ in 0..20 {
        let other = process.caller();
        assert_eq!(scores(&other.evaluate(short()).await.unwrap()), [1.0]);
        assert_eq!(scores(&other.evaluate(middling()).await.unwrap()), [0.0; 500]);
        assert_eq!(other.health("").await.unwrap(), ServingStatus::Serving);
    }
    assert_eq!(world::http::get(process.admin, "/readyz").await.status, 200);
    assert!(long_ones.iter().all(|long| !long.is_finished()), "not long enough to show anything");
    long_ones.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_and_so_does_its_work() {
    let process = Process::start(&[("server.workers", "2")]);
    // Long enough for the texts to arrive and for the work to begin.
    let late = tokio::spawn(call_within("5S", process.address, long()));
    workers_busy(&process, |busy| busy > 0).await;
    let refused = late.await.unwrap();
    assert_eq!(refused.code(), Code::DeadlineExceeded, "{refused}");
    workers_busy(&process, |busy| busy == 0).await;
}

#[tokio::test]
async fn a_call_whose_caller_hangs_up_is_worked_on_no_longer() {
    let process = Process::start(&[("server.workers", "2")]);
    let abandoned = tokio::spawn(call(process.caller(), long()));
    workers_busy(&process, |busy| busy > 0).await;
    abandoned.abort();
    workers_busy(&process, |busy| busy == 0).await;
}

#[tokio::test]
async fn a_deadline_of_milliseconds_is_kept_and_told_as_such() {
    let world = World::new().start().await;
    let refused = call_within("50m", world.address, long()).await;
    assert_eq!(refused.code(), Code::DeadlineExceeded, "{refused}");
}

#[tokio::test]
async fn without_a_deadline_the_service_has_one() {
    let world = World::new().set(|settings| settings.limits.request_seconds = 1).start().await;
    let none = call(world.new_caller(), long()).await.unwrap_err();
    let later = call_within("100S", world.address, long()).await;
    for refused in [none, later] {
        assert_eq!(refused.code(), Code::DeadlineExceeded, "{refused}");
        assert!(refused.message().contains("limits.request_seconds"), "{refused}");
    }
}

#[tokio::test]
async fn a_deadline_that_is_none_is_refused() {
    let world = World::new().start().await;
    let refused = call_within("soon", world.address, message(&short())).await;
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert_eq!(refused.get_details_bad_request().unwrap().field_violations[0].field, "grpc-timeout");
}

#[tokio::test]
async fn calls_over_the_limit_are_sent_away_at_once_and_told_when_to_come_back() {
    let world = World::new().set(|settings| settings.limits.concurrent_requests = 1).start().await;
    let long = tokio::spawn(call(world.new_caller(), long()));
    let turned_away = async {
        loop {
            // The long call may not have come in yet.
            if let Err(refused) = world.evaluate(short()).await {
                return refused;
            }
            tokio::task::yield_now().await;
        }
    };
    let refused = tokio::time::timeout(FOR_EVER, turned_away).await.unwrap();
    assert!(!long.is_finished());
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("limits.concurrent_requests = 1"), "{refused}");
    assert_eq!(refused.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_secs(1)));
    assert_eq!(world.caller().health("").await.unwrap(), ServingStatus::Serving);

    long.abort();
    let let_in = async {
        while let Err(refused) = world.evaluate(short()).await {
            assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(FOR_EVER, let_in).await.unwrap();
}

#[tokio::test]
async fn large_messages_together_have_a_limit_too() {
    let world = World::new()
        .set(|settings| {
            // One of them fits, two do not.
            settings.limits.request_bytes = 12 << 20;
            settings.limits.requests_in_flight_bytes = 12 << 20;
        })
        .start()
        .await;
    // Whichever comes second is sent away, long before the other one ends.
    let one = tokio::spawn(call(world.new_caller(), long()));
    let other = tokio::spawn(call(world.new_caller(), long()));
    let stop = [one.abort_handle(), other.abort_handle()];
    let sooner = async {
        tokio::select! { one = one => one, other = other => other }
    };
    let refused = tokio::time::timeout(FOR_EVER, sooner).await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("limits.requests_in_flight_bytes = 12582912"), "{refused}");
    assert!(refused.get_details_retry_info().is_some());
    // Small ones are let in meanwhile.
    assert_eq!(scores(&world.evaluate(short()).await.unwrap()), [1.0]);
    stop.iter().for_each(tokio::task::AbortHandle::abort);
}
