//! Traces, events and metrics of the built binary, as a collector and a scraper see them.
#![cfg(feature = "server")]

mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use ::http::Request as HttpRequest;
use bytes::Bytes;
use http_body_util::Full;
use rapid_eval::telemetry::names::{self, metric};
use rapid_eval::wire::v1::evaluation_service_client::EvaluationServiceClient;
use rapid_eval::wire::v1::{EvaluateInstancesResponse, EvaluateInstancesStreamRequest};
use serde_json::{Value, json};
use tonic::Request;
use world::collector::{Collector, attribute, tree};
use world::http::{Answer, http1};
use world::judge::{Conduct, StubJudge};
use world::process::{Process, run};
use world::{SERVICES, message};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn start(settings: &[(&str, &str)], environment: &[(&str, String)], judge: Option<&StubJudge>) -> Process {
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let judge = judge.map(|judge| format!("openai:http://{}/v1#stub", judge.address));
    let arguments: Vec<&str> = judge.iter().flat_map(|judge| ["--judge", judge.as_str()]).collect();
    Process::start_with(settings, &environment, &arguments)
}

fn traceparent() -> String {
    format!("00-{TRACE}-{CALLER}-01")
}

async fn evaluate_in_trace(process: &Process, request: &Value) -> EvaluateInstancesResponse {
    evaluate_under(process, request, &traceparent()).await
}

async fn evaluate_under(process: &Process, request: &Value, traceparent: &str) -> EvaluateInstancesResponse {
    let mut request = Request::new(message(request));
    request.metadata_mut().insert("traceparent", traceparent.parse().unwrap());
    process.caller().call(SERVICES[0], "EvaluateInstances", request).await.unwrap().into_inner()
}

async fn get(address: std::net::SocketAddr, path: &str) -> Answer {
    let request = HttpRequest::get(path).header("host", "admin").body(Full::new(Bytes::new())).unwrap();
    http1(address, request).await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn comparison() -> Value {
    json!({"pairwise_question_answering_quality_input": {"instance": {
        "prediction": "Paris, as ever", "baseline_prediction": "Lyon, perhaps",
        "context": "Facts about France", "instruction": "What is the capital?",
    }}})
}

const FIRST_IS_BETTER: &str = r#"{"explanation": "It says so itself.", "choice": "A"}"#;

/// The call of this number, from 0, is turned away; all others prefer what is shown first.
fn busy_at(call: usize) -> Conduct {
    let mut replies = vec![json!({"text": FIRST_IS_BETTER}); call + 2];
    replies[call] = json!({"status": 429, "headers": {"retry-after-ms": "10"}});
    Conduct::Replies(replies)
}

#[tokio::test]
async fn samples_that_share_a_call_have_one_span_with_all_that_they_cost() {
    let said = [4, 4, 4].map(|score| json!({"explanation": "fine", "score": score}).to_string());
    let (collector, judge) =
        (Collector::start().await, StubJudge::start(Conduct::Chooses(said.to_vec())).await);
    let process = start(&[], &collector.environment("grpc"), Some(&judge));
    let fluency = json!({"fluency_input": {"instance": {"prediction": "Hello."}},
                         "autorater_config": {"sampling_count": 3}});
    evaluate_in_trace(&process, &fluency).await;
    let shown = [
        "eval.samples",
        "eval.votes",
        "gen_ai.request.choice.count",
        "gen_ai.response.finish_reasons",
        "gen_ai.usage.output_tokens",
    ];
    let spans = collector.spans(3).await;
    assert_eq!(
        tree(&spans, &unhex(CALLER), &shown),
        "rapideval.v1.EvaluationService/EvaluateInstances\n  evaluate fluency eval.samples=3 eval.votes=3\n    \
         chat stub gen_ai.request.choice.count=3 gen_ai.response.finish_reasons=stop,stop,stop \
         gen_ai.usage.output_tokens=60\n"
    );
}

#[tokio::test]
async fn a_caller_s_trace_reaches_the_judge_though_nothing_is_exported() {
    let judge = StubJudge::start(Conduct::Replies(vec![json!({"text": FIRST_IS_BETTER})])).await;
    let process = start(&[], &[], Some(&judge));
    evaluate_in_trace(&process, &comparison()).await;
    assert_eq!(judge.traced(), vec![traceparent(); 4]);
    // Who names no trace gets none.
    let mut other = comparison();
    other["pairwise_question_answering_quality_input"]["instance"]["prediction"] = json!("Another.");
    evaluate_under(&process, &other, "no trace").await;
    assert_eq!((judge.calls(), judge.traced().len()), (8, 4));
}

#[tokio::test]
async fn calls_for_embeddings_have_spans_and_their_tokens_are_counted() {
    let first = vec![json!({"status": 503})];
    let (collector, stub) =
        (Collector::start().await, StubJudge::start(Conduct::Embeds { first, delay_ms: 0 }).await);
    let base = format!("http://{}", stub.address);
    let settings = [("embeddings.base_url", base.as_str()), ("embeddings.model", "e-1")];
    let process = start(&settings, &collector.environment("grpc"), None);
    let pair = json!({"prediction": "[1, 0]", "reference": "[1, 1]"});
    evaluate_in_trace(&process, &json!({"semantic_similarity_input": {"instances": [pair]}})).await;
    let shown =
        ["gen_ai.operation.name", "http.request.resend_count", "error.type", "gen_ai.usage.input_tokens"];
    let spans = collector.spans(4).await;
    assert_eq!(
        tree(&spans, &unhex(CALLER), &shown),
        "rapideval.v1.EvaluationService/EvaluateInstances\n  evaluate semantic_similarity\n    \
         embeddings e-1 gen_ai.operation.name=embeddings error.type=unreachable\n    \
         embeddings e-1 gen_ai.operation.name=embeddings http.request.resend_count=1 gen_ai.usage.input_tokens=1\n"
    );
    let answer = get(process.admin, "/metrics").await;
    let page = answer.text();
    let labels = "eval_judge=\"embeddings\",gen_ai_provider_name=\"openai\",gen_ai_request_model=\"e-1\"";
    assert!(
        page.contains(&format!("gen_ai_client_inference_usage_input_tokens_total{{{labels}}} 1\n")),
        "{page}"
    );
}

#[tokio::test]
async fn a_comparison_with_a_retry_and_a_cache_hit_leaves_the_spans_that_a_reader_expects() {
    let (collector, judge) = (Collector::start().await, StubJudge::start(busy_at(1)).await);
    let process = start(&[], &collector.environment("grpc"), Some(&judge));
    // Somebody else, in a trace of their own, asks for the first sample alone.
    let mut alone = comparison();
    alone["autorater_config"] = json!({"sampling_count": 1});
    let earlier = "0af7651916cd43dd8448eb211c80319c";
    evaluate_under(&process, &alone, &format!("00-{earlier}-b7ad6b7169203331-01")).await;
    evaluate_in_trace(&process, &comparison()).await;

    // Theirs: call, evaluation, one sample. Ours: call, evaluation, three samples and one retry.
    let spans = collector.spans(9).await;
    assert_eq!(spans.len(), 9, "{spans:?}");
    let (ours, theirs): (Vec<_>, Vec<_>) = spans.into_iter().partition(|span| hex(&span.trace_id) == TRACE);
    let shown = [
        "rpc.response.status_code",
        "eval.outcome",
        "eval.samples",
        "eval.votes",
        "eval.confidence",
        "eval.score.mean",
        "eval.judge.reused",
        "eval.sample",
        "http.request.resend_count",
        "error.type",
        "gen_ai.response.finish_reasons",
        "gen_ai.usage.input_tokens",
    ];
    let answered = "gen_ai.response.finish_reasons=stop gen_ai.usage.input_tokens=100";
    let tree = tree(&ours, &unhex(CALLER), &shown);
    // Which of the samples is turned away is a matter of who is first.
    let turned_away =
        (1..4).find(|sample| tree.contains(&format!("eval.sample={sample} error.type=throttled")));
    let mut expected = String::from(
        // Two votes for each answer: a tie, for which nobody voted, and which is 0.5.
        "rapideval.v1.EvaluationService/EvaluateInstances rpc.response.status_code=OK\n  \
           evaluate pairwise_question_answering_quality eval.outcome=OK eval.samples=4 eval.votes=0 \
           eval.confidence=0 eval.score.mean=0.5 eval.judge.reused=1\n",
    );
    for sample in 1..4 {
        if Some(sample) == turned_away {
            expected += &format!("    chat stub eval.sample={sample} error.type=throttled\n");
            expected +=
                &format!("    chat stub eval.sample={sample} http.request.resend_count=1 {answered}\n");
        } else {
            expected += &format!("    chat stub eval.sample={sample} {answered}\n");
        }
    }
    assert_eq!(tree, expected);

    // The sample that was not asked for again leads to the call that was.
    let evaluate = ours.iter().find(|span| span.name.starts_with("evaluate")).unwrap();
    let [link] = &evaluate.links[..] else { panic!("one answer was reused: {evaluate:?}") };
    let call = theirs.iter().find(|span| span.name == "chat stub").unwrap();
    assert_eq!((hex(&link.trace_id), &link.span_id), (earlier.to_owned(), &call.span_id));
    assert_eq!(attribute(&link.attributes, "eval.judge.source"), "memory");
    assert_eq!(attribute(&link.attributes, "eval.sample"), "0");
    assert_eq!(evaluate.events[0].name, names::ANSWER_REUSED);

    // The judge is told of the very spans that asked it.
    let mut told: Vec<String> = judge.traced();
    let mut calls: Vec<String> = ours
        .iter()
        .chain(&theirs)
        .filter(|span| span.name == "chat stub")
        .map(|span| format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)))
        .collect();
    told.sort();
    calls.sort();
    assert_eq!(told, calls);

    let records = collector.log_records(2).await;
    let ours: Vec<_> = records.iter().filter(|record| hex(&record.trace_id) == TRACE).collect();
    let [record] = ours[..] else { panic!("one result, so one event: {records:?}") };
    assert_eq!(record.event_name, "gen_ai.evaluation.result");
    let fact = |key| attribute(&record.attributes, key);
    assert_eq!(fact("gen_ai.evaluation.name"), "pairwise_question_answering_quality");
    assert_eq!(fact("gen_ai.evaluation.score.label"), "TIE");
    collector.metric("rpc.server.call.duration").await;
}

#[tokio::test]
async fn rest_is_traced_too_and_exported_by_http() {
    let collector = Collector::start().await;
    let process = start(&[("telemetry.span_events", "true")], &collector.environment("http/protobuf"), None);
    let body = json!({"instance": {"response": {"text": "a"}, "reference": {"text": "a"}},
        "metrics": [{"exact_match_spec": {}}, {"rouge_spec": {"rouge_type": "rougeX"}}]});
    let request = HttpRequest::post("/v1beta1/projects/p/locations/l:evaluateInstances")
        .header("host", "here")
        .header("traceparent", traceparent())
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap();
    assert_eq!(http1(process.address, request).await.status, 200);

    let spans = collector.spans(3).await;
    let tree =
        tree(&spans, &unhex(CALLER), &["http.response.status_code", "eval.outcome", "eval.score.mean"]);
    assert_eq!(
        tree,
        "POST /{version}/{location}:evaluateInstances http.response.status_code=200\n  \
           evaluate exact_match eval.outcome=OK eval.score.mean=1\n  \
           evaluate rouge eval.outcome=INVALID_ARGUMENT\n"
    );
    let matched = spans.iter().find(|span| span.name == "evaluate exact_match").unwrap();
    let [event] = &matched.events[..] else { panic!("one result, so one event: {matched:?}") };
    assert_eq!(attribute(&event.attributes, "gen_ai.evaluation.score.value"), "1");
    let errors: Vec<String> = collector
        .log_records(2)
        .await
        .iter()
        .map(|record| attribute(&record.attributes, "error.type"))
        .collect();
    assert!(errors.contains(&String::from("INVALID_ARGUMENT")), "{errors:?}");
    assert!(collector.by_http() >= 2);
}

#[tokio::test]
async fn each_request_of_a_stream_has_a_span_of_its_own() {
    let collector = Collector::start().await;
    let process = start(&[], &collector.environment("grpc"), None);
    let matching = json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}});
    let items = [("1", Some(message(&matching))), ("2", Some(message(&matching))), ("3", None)]
        .map(|(id, request)| EvaluateInstancesStreamRequest { id: String::from(id), request });
    let mut call = Request::new(tokio_stream::iter(items));
    call.metadata_mut().insert("traceparent", traceparent().parse().unwrap());
    let mut client = EvaluationServiceClient::connect(format!("http://{}", process.address)).await.unwrap();
    let mut answers = client.evaluate_instances_stream(call).await.unwrap().into_inner();
    let mut answered = 0;
    while answers.message().await.unwrap().is_some() {
        answered += 1;
    }
    assert_eq!(answered, 3);
    let spans = collector.spans(5).await;
    assert_eq!(
        tree(&spans, &unhex(CALLER), &["eval.outcome"]),
        "rapideval.v1.EvaluationService/EvaluateInstancesStream\n  \
           EvaluateInstancesStream item\n    \
             evaluate exact_match eval.outcome=OK\n  \
           EvaluateInstancesStream item\n    \
             evaluate exact_match eval.outcome=OK\n"
    );
}

#[tokio::test]
async fn texts_leave_the_service_only_by_consent_and_cut_and_keys_never() {
    let key = ("OPENAI_API_KEY", String::from("sk-0123456789-not-for-collectors"));
    let verdict = json!({"text": r#"{"explanation": "Because of its rhythm.", "score": 4}"#});
    for consent in ["false", "true"] {
        let collector = Collector::start().await;
        let judge = StubJudge::start(Conduct::Replies(vec![verdict.clone()])).await;
        let environment: Vec<_> = collector.environment("grpc").into_iter().chain([key.clone()]).collect();
        let settings = [("telemetry.texts", consent), ("telemetry.text_bytes", "3000")];
        let process = start(&settings, &environment, Some(&judge));
        let text = format!("A verse of note.{}The end of the verse.", " And more.".repeat(1000));
        evaluate_in_trace(&process, &json!({"fluency_input": {"instance": {"prediction": text}}})).await;
        let spans = collector.spans(6).await;
        collector.log_records(1).await;
        let (is_told, seen) = (consent == "true", |text| collector.has_seen(text));
        assert_eq!(seen("A verse of note."), is_told);
        assert_eq!(seen("Because of its rhythm."), is_told);
        assert!(!seen("The end of the verse."), "longer than telemetry.text_bytes");
        assert!(!seen("sk-0123456789"));
        let chat = spans.iter().find(|span| span.name == "chat stub").unwrap();
        assert_eq!(attribute(&chat.attributes, "gen_ai.input.messages").is_empty(), !is_told);
    }
}

#[tokio::test]
async fn whoever_is_not_sampled_leaves_no_span() {
    let collector = Collector::start().await;
    let mut environment = collector.environment("grpc");
    environment.push(("OTEL_TRACES_SAMPLER", String::from("always_off")));
    let process = start(&[], &environment, None);
    let request = json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}});
    evaluate_in_trace(&process, &request).await;
    // Events and metrics are no matter of sampling.
    collector.log_records(1).await;
    process.terminate();
    let (status, _) = process.ended().await;
    assert!(status.success());
    assert!(collector.spans(0).await.is_empty());
}

#[tokio::test]
async fn a_dead_collector_changes_no_answer_and_costs_at_most_one_line_a_minute() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for protocol in ["grpc", "http/protobuf"] {
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{nobody}")),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", String::from(protocol)),
            ("OTEL_BSP_SCHEDULE_DELAY", String::from("20")),
            ("OTEL_METRIC_EXPORT_INTERVAL", String::from("50")),
        ];
        let process = start(&[("telemetry.flush_seconds", "2")], &environment, None);
        let began = std::time::Instant::now();
        let request = json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}});
        for _ in 0..40 {
            evaluate_in_trace(&process, &request).await;
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        process.terminate();
        let (status, log) = process.ended().await;
        assert!(status.success());
        let lines = log.lines().filter(|line| line.to_lowercase().contains("opentelemetry")).count() as u64;
        assert!((1..=1 + began.elapsed().as_secs() / 60).contains(&lines), "{protocol}: {log}");
    }
}

#[tokio::test]
async fn a_collector_that_never_answers_holds_up_the_end_no_longer_than_set() {
    // Connections are taken by the kernel; nobody reads what comes in.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", deaf.local_addr().unwrap())),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", String::from("grpc")),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", String::from("600000")),
    ];
    let process = start(&[("telemetry.flush_seconds", "1")], &environment, None);
    let request = json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}});
    evaluate_in_trace(&process, &request).await;
    process.terminate();
    let ended = tokio::time::timeout(Duration::from_secs(300), process.ended()).await;
    let (status, log) = ended.expect("far less than the exporter's own ten minutes");
    assert!(status.success());
    assert!(log.contains("the last telemetry was"), "{log}");
}

#[tokio::test]
async fn every_metric_is_on_the_admin_port_with_labels_that_callers_cannot_make_up() {
    let judge = StubJudge::start(busy_at(0)).await;
    let process = start(&[], &[], Some(&judge));
    let caller = process.caller();
    caller.evaluate(comparison()).await.unwrap();
    // The same again costs nothing.
    caller.evaluate(comparison()).await.unwrap();
    let long = "word ".repeat(10_000);
    let pair = json!({"prediction": long, "reference": long});
    caller
        .evaluate(
            json!({"rouge_input": {"metric_spec": {"rouge_type": "rouge1"}, "instances": [pair, pair]}}),
        )
        .await
        .unwrap();
    caller
        .evaluate(json!({"rouge_input": {"metric_spec": {"rouge_type": "rougeX"}, "instances": [pair]}}))
        .await
        .unwrap_err();
    let made_up = json!({"instance": {"response": {"text": "a"}},
        "metrics": [{"predefined_metric_spec": {"metric_spec_name": "mine_alone"}}]});
    caller.evaluate(made_up.clone()).await.unwrap();
    let unknown =
        caller.call::<_, EvaluateInstancesResponse>(SERVICES[0], "MadeUp", Request::new(message(&made_up)));
    unknown.await.unwrap_err();
    let elsewhere =
        HttpRequest::post("/made/up/path").header("host", "h").body(Full::new(Bytes::new())).unwrap();
    http1(process.address, elsewhere).await;

    let answer = get(process.admin, "/metrics").await;
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4");
    let page = answer.text();
    let families: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for metric in metric::ALL {
        let name = names::in_prometheus(*metric);
        assert!(families.contains(&name.as_str()), "{name} is not on the page:\n{page}");
    }
    assert_eq!(families.len(), metric::ALL.len() + 1, "and target_info: {families:?}");
    let value = |series: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series}:\n{page}")).parse().unwrap()
    };
    let ours = "rpc_method=\"rapideval.v1.EvaluationService/EvaluateInstances\"";
    let rpc = |labels: &str| value(&format!("rpc_server_call_duration_seconds_count{{{labels}}}"));
    assert_eq!(rpc(&format!("{ours},rpc_response_status_code=\"OK\",rpc_system_name=\"grpc\"")), 4.0);
    let wrong = format!(
        "error_type=\"INVALID_ARGUMENT\",{ours},rpc_response_status_code=\"INVALID_ARGUMENT\",rpc_system_name=\"grpc\""
    );
    assert_eq!(rpc(&wrong), 1.0);
    assert_eq!(
        rpc(
            "error_type=\"UNIMPLEMENTED\",rpc_method=\"_OTHER\",rpc_response_status_code=\"UNIMPLEMENTED\",rpc_system_name=\"grpc\""
        ),
        1.0
    );
    let evaluated = |metric: &str, outcome: &str| {
        value(&format!(
            "rapid_eval_evaluation_duration_seconds_count{{eval_metric=\"{metric}\",eval_outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!(evaluated("rouge", "OK"), 1.0);
    assert_eq!(evaluated("rouge", "INVALID_ARGUMENT"), 1.0);
    assert_eq!(evaluated("_OTHER", "INVALID_ARGUMENT"), 1.0);
    assert!(!page.contains("mine_alone") && !page.contains("MadeUp") && !page.contains("/made/up"), "{page}");
    assert_eq!(value("rapid_eval_instances_total{eval_metric=\"rouge\"}"), 2.0);
    assert_eq!(value("rapid_eval_score_count{eval_metric=\"rouge\"}"), 2.0);
    assert_eq!(value("rapid_eval_score_sum{eval_metric=\"rouge\"}"), 2.0);
    let judged = "eval_judge=\"default\",gen_ai_provider_name=\"openai\",gen_ai_request_model=\"stub\"";
    // Four answers of 100 and 20 tokens; one call was turned away and asked again.
    assert_eq!(value(&format!("gen_ai_client_inference_usage_input_tokens_total{{{judged}}}")), 400.0);
    assert_eq!(value(&format!("gen_ai_client_inference_usage_output_tokens_total{{{judged}}}")), 80.0);
    assert_eq!(value(&format!("rapid_eval_judge_retries_total{{{judged}}}")), 1.0);
    assert_eq!(value(&format!("gen_ai_client_inference_duration_seconds_count{{{judged}}}")), 4.0);
    let questions = |source: &str| {
        value(&format!(
            "rapid_eval_judge_questions_total{{eval_judge=\"default\",eval_judge_source=\"{source}\"}}"
        ))
    };
    assert_eq!((questions("endpoint"), questions("memory")), (4.0, 4.0));
    let throttled = format!("{{error_type=\"throttled\",{judged}}}");
    assert_eq!(value(&format!("gen_ai_client_inference_duration_seconds_count{throttled}")), 1.0);
    let events = |event: &str| {
        value(&format!(
            "rapid_eval_judge_events_total{{eval_judge=\"default\",eval_judge_event=\"{event}\"}}"
        ))
    };
    assert_eq!((events("hedge"), events("abandoned")), (0.0, 0.0));
    assert_eq!(value("rapid_eval_workers_threads"), 2.0);
    assert_eq!(value("rapid_eval_calls_open"), 0.0);
    assert!(value("rapid_eval_workers_busy_seconds_total") > 0.0);
}

#[tokio::test]
async fn health_is_an_exit_code() {
    let process = start(&[], &[], None);
    let health = |settings: Vec<(String, String)>| async move {
        tokio::task::spawn_blocking(move || {
            let settings: Vec<(&str, &str)> =
                settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let output = run(&["health"], &settings, "");
            (
                output.status.code(),
                String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap(),
            )
        })
        .await
        .unwrap()
    };
    let setting = |key: &str, value: String| (key.to_owned(), value);
    let anywhere = format!("0.0.0.0:{}", process.admin.port());
    let by_admin = vec![
        setting("server.admin_listen", anywhere),
        // As in a container; asking needs no consent to be reached.
        setting("server.listen", String::from("0.0.0.0:8080")),
    ];
    let by_grpc = vec![
        setting("server.admin_listen", String::from("off")),
        setting("server.listen", process.address.to_string()),
    ];
    for settings in [&by_admin, &by_grpc] {
        assert_eq!(health(settings.clone()).await, (Some(0), String::from("ready\n")));
    }
    // The other port answers, but not as the admin port does.
    let (code, said) = health(vec![setting("server.admin_listen", process.address.to_string())]).await;
    assert_eq!(code, Some(1), "{said}");
    process.terminate();
    process.ended().await;
    for settings in [by_admin, by_grpc] {
        let (code, said) = health(settings).await;
        assert_eq!(code, Some(1), "{said}");
    }
}

#[test]
fn a_variable_that_cannot_be_used_ends_the_start() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rapid-eval"));
    command.env_clear().env("OTEL_TRACES_EXPORTER", "zipkin").arg("check-config");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8(output.stderr).unwrap().contains("OTEL_TRACES_EXPORTER: \"zipkin\""));
}

#[test]
fn dashboards_and_alerts_name_metrics_that_exist() {
    let mut known = BTreeSet::new();
    for metric in metric::ALL {
        let name = names::in_prometheus(*metric);
        if metric.kind == names::Kind::Histogram {
            known.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        } else {
            known.insert(name);
        }
    }
    let ours = ["rapid_eval_", "rpc_server_", "http_server_", "gen_ai_client_"];
    for (file, least) in [("deploy/grafana/rapid-eval.json", 15), ("deploy/prometheus/alerts.yaml", 6)] {
        let text = std::fs::read_to_string(file).unwrap();
        let words =
            text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'));
        let series: Vec<&str> =
            words.filter(|word| ours.iter().any(|start| word.starts_with(start))).collect();
        assert!(series.len() >= least, "{file} names {} series", series.len());
        for name in series {
            assert!(known.contains(name), "{file} names {name}, which no metric is");
        }
    }
}
