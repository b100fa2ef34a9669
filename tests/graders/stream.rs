//! `EvaluateInstancesStream`: answers by id, one failed request alone, flow control, limits.

use std::collections::BTreeSet;
use std::time::Duration;

use rapid_eval::wire::v1::evaluate_instances_stream_response::Outcome;
use rapid_eval::wire::v1::evaluation_service_client::EvaluationServiceClient;
use rapid_eval::wire::v1::{
    EvaluateInstancesRequest, EvaluateInstancesStreamRequest, EvaluateInstancesStreamResponse,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};

use crate::said;
use crate::world::judge::Conduct;
use crate::world::{Running, SERVICES, World, as_json, message};

/// Long enough on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Mixed requests that need no judge, with the score that each has.
pub(crate) fn mixed(number: usize) -> (EvaluateInstancesRequest, f64) {
    let good = number.is_multiple_of(2);
    let (prediction, score) = if good { ("the cat sat", 1.0) } else { ("dog", 0.0) };
    let pair = json!([{"prediction": prediction, "reference": "the cat sat"}]);
    let row = json!([{"item": {"truth": "the cat sat"}, "sample": {"output_text": prediction}}]);
    let spec = json!({"input": "{{sample.output_text}}", "reference": "{{item.truth}}", "operation": "eq",
                      "evaluation_metric": "rouge_l"});
    let only = |name: &str| {
        let mut spec = spec.clone();
        spec.as_object_mut().unwrap().remove(name);
        spec
    };
    let request = match number % 5 {
        0 => json!({"rouge_input": {"metric_spec": {"rouge_type": "rougeL"}, "instances": pair}}),
        1 => json!({"exact_match_input": {"instances": pair}}),
        2 => json!({"string_check_input": {"metric_spec": only("evaluation_metric"), "instances": row}}),
        3 => json!({"text_similarity_input": {"metric_spec": only("operation"), "instances": row}}),
        _ => json!({"keyword_match_input": {"instances": [{"prediction": prediction, "keywords": ["cat"]}]}}),
    };
    (message(&request), score)
}

fn numbered(id: impl ToString, request: Option<EvaluateInstancesRequest>) -> EvaluateInstancesStreamRequest {
    EvaluateInstancesStreamRequest { id: id.to_string(), request }
}

/// Sends what comes out of the channel.
async fn open(
    world: &Running,
    requests: mpsc::Receiver<EvaluateInstancesStreamRequest>,
) -> Result<Streaming<EvaluateInstancesStreamResponse>, Status> {
    let mut client = EvaluationServiceClient::new(world.new_caller().channel());
    Ok(client.evaluate_instances_stream(ReceiverStream::new(requests)).await?.into_inner())
}

async fn next(
    answers: &mut Streaming<EvaluateInstancesStreamResponse>,
) -> Result<Option<EvaluateInstancesStreamResponse>, Status> {
    tokio::time::timeout(PATIENCE, answers.message()).await.expect("the stream goes on")
}

fn score(response: &EvaluateInstancesStreamResponse) -> Value {
    match response.outcome.as_ref().unwrap() {
        Outcome::Response(response) => crate::result(&as_json(response))["score"].clone(),
        Outcome::Error(error) => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn every_request_is_answered_by_its_id() {
    let world = World::new().start().await;
    let (send, receive) = mpsc::channel(16);
    let mut answers = open(&world, receive).await.unwrap();
    const COUNT: usize = 1000;
    let sending = tokio::spawn(async move {
        for number in 0..COUNT {
            send.send(numbered(number, Some(mixed(number).0))).await.unwrap();
        }
    });
    let mut open: BTreeSet<usize> = (0..COUNT).collect();
    while let Some(answer) = next(&mut answers).await.unwrap() {
        let number: usize = answer.id.parse().unwrap();
        assert!(open.remove(&number), "{number} twice");
        assert_eq!(score(&answer), json!(mixed(number).1), "{number}");
    }
    assert!(open.is_empty(), "{open:?}");
    sending.await.unwrap();
}

#[tokio::test]
async fn a_request_that_fails_hurts_no_other() {
    let world = World::new().start().await;
    let (send, receive) = mpsc::channel(16);
    let wrong =
        message(&json!({"rouge_input": {"metric_spec": {"rouge_type": "rougeX"}, "instances": [{}]}}));
    for request in [numbered("wrong", Some(wrong)), numbered("unset", None), numbered("", Some(mixed(0).0))] {
        send.send(request).await.unwrap();
    }
    drop(send);
    let mut answers = open(&world, receive).await.unwrap();
    let mut seen = 0;
    while let Some(answer) = next(&mut answers).await.unwrap() {
        seen += 1;
        match answer.outcome.as_ref().unwrap() {
            Outcome::Error(error) => {
                assert_eq!(error.code, i32::from(Code::InvalidArgument));
                let field =
                    if answer.id == "wrong" { "rouge_input.metric_spec.rouge_type: " } else { "request: " };
                assert!(error.message.starts_with(field), "{error:?}");
                assert!(!error.details.is_empty(), "BadRequest names the field for programs");
            }
            Outcome::Response(_) => assert_eq!((answer.id.as_str(), score(&answer)), ("", json!(1.0))),
        }
    }
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn googles_services_have_no_stream() {
    let world = World::new().start().await;
    for service in &SERVICES[1..] {
        let asked = Request::new(numbered("1", Some(mixed(0).0)));
        let refused = world
            .caller()
            .call::<_, EvaluateInstancesStreamResponse>(service, "EvaluateInstancesStream", asked)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented, "{service}: {refused}");
    }
}

#[tokio::test]
async fn quick_answers_overtake_slow_ones() {
    let reply = json!({"text": said(1.0), "delay_ms": 2000});
    let (world, _) = World::new().judge(Conduct::Replies(vec![reply])).await;
    let world = world.start().await;
    let (send, receive) = mpsc::channel(16);
    let slow =
        json!({"score_model_input": {"metric_spec": {"input": [{"content": "Rate."}]}, "instance": {}}});
    send.send(numbered("slow", Some(message(&slow)))).await.unwrap();
    send.send(numbered("quick", Some(mixed(0).0))).await.unwrap();
    drop(send);
    let mut answers = open(&world, receive).await.unwrap();
    assert_eq!(next(&mut answers).await.unwrap().unwrap().id, "quick");
    assert_eq!(next(&mut answers).await.unwrap().unwrap().id, "slow");
    assert!(next(&mut answers).await.unwrap().is_none());
}

#[tokio::test]
async fn whoever_does_not_read_is_not_read_from() {
    let world = World::new().set(|settings| settings.limits.stream_requests = 2).start().await;
    let (send, receive) = mpsc::channel(1);
    let mut answers = open(&world, receive).await.unwrap();
    // Each answer repeats the keyword: enough of them fill every buffer on the way.
    let word = "x".repeat(256 * 1024);
    let large = json!({"keyword_match_input": {"instances": [{"prediction": word, "keywords": [word]}]}});
    let large = message(&large);
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_secs(3), send.send(numbered(sent, Some(large.clone()))))
        .await
        .is_ok_and(|sending| sending.is_ok())
    {
        sent += 1;
        assert!(sent < 1000, "a quarter of a gigabyte was taken in for a caller who reads nothing");
    }
    drop(send);
    // All that was taken in is answered once the caller reads.
    let mut answered = 0;
    while next(&mut answers).await.unwrap().is_some() {
        answered += 1;
    }
    assert!(answered >= sent, "{answered} of {sent}");
}

#[tokio::test]
async fn a_stream_has_one_place_and_takes_others_only_while_they_are_free() {
    let world = World::new().set(|settings| settings.limits.concurrent_requests = 1).start().await;
    let (send, receive) = mpsc::channel(16);
    let mut answers = open(&world, receive).await.unwrap();
    let refused = world.evaluate(json!({"exact_match_input": {"instances": [{}]}})).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "the stream holds the only place: {refused}");
    for number in 0..100 {
        send.send(numbered(number, Some(mixed(number).0))).await.unwrap();
    }
    drop(send);
    let mut answered = 0;
    while next(&mut answers).await.unwrap().is_some() {
        answered += 1;
    }
    assert_eq!(answered, 100);
    // The place is free again, soon after the last word.
    let free = async {
        while world
            .evaluate(json!({"exact_match_input": {"instances": [{"prediction": "", "reference": ""}]}}))
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, free).await.unwrap();
}

#[tokio::test]
async fn the_limit_of_time_is_each_requests_own_and_the_callers_deadline_is_the_whole_streams() {
    let reply = json!({"text": said(1.0), "delay_ms": 60_000});
    let (world, judge) = World::new().judge(Conduct::Replies(vec![reply])).await;
    let world = world.set(|settings| settings.limits.request_seconds = 1).start().await;
    let slow =
        json!({"score_model_input": {"metric_spec": {"input": [{"content": "Rate."}]}, "instance": {}}});
    let (send, receive) = mpsc::channel(16);
    let mut answers = open(&world, receive).await.unwrap();
    // Longer than the limit: the stream itself has none.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    send.send(numbered("slow", Some(message(&slow)))).await.unwrap();
    let answer = next(&mut answers).await.unwrap().unwrap();
    match answer.outcome.unwrap() {
        Outcome::Error(error) => assert_eq!(error.code, i32::from(Code::DeadlineExceeded), "{error:?}"),
        Outcome::Response(response) => panic!("{response:?}"),
    }
    send.send(numbered("quick", Some(mixed(0).0))).await.unwrap();
    assert_eq!(score(&next(&mut answers).await.unwrap().unwrap()), json!(1.0));

    let (_send, receive) = mpsc::channel(16);
    let mut request = Request::new(ReceiverStream::new(receive));
    request.set_timeout(Duration::from_millis(500));
    let mut client = EvaluationServiceClient::new(world.new_caller().channel());
    let ended = async {
        let mut answers = client.evaluate_instances_stream(request).await?.into_inner();
        answers.message().await
    };
    let status = tokio::time::timeout(PATIENCE, ended).await.unwrap().unwrap_err();
    assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status}");
    assert!(judge.given_up() > 0, "the judge's call ended with its request");
}

#[tokio::test]
async fn a_stream_that_its_caller_leaves_ends_its_work() {
    let reply = json!({"text": said(1.0), "delay_ms": 60_000});
    let (world, judge) = World::new().judge(Conduct::Replies(vec![reply])).await;
    let world = world.start().await;
    let (send, receive) = mpsc::channel(16);
    let answers = open(&world, receive).await.unwrap();
    let slow =
        json!({"score_model_input": {"metric_spec": {"input": [{"content": "Rate."}]}, "instance": {}}});
    send.send(numbered("slow", Some(message(&slow)))).await.unwrap();
    let wait = async |condition: &dyn Fn() -> bool| {
        let waiting = async {
            while !condition() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    };
    // Its samples share a call.
    wait(&|| judge.calls() == 1).await;
    drop((send, answers));
    wait(&|| judge.given_up() == 1).await;
}
