//! keyword_match, semantic_similarity, compare_meaning, general_quality.

use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::result;
use crate::vectors::steps;
use crate::world::{World, as_json};

fn keywords(prediction: &str, keywords: &[&str], spec: Value) -> Value {
    json!({"keyword_match_input": {"metric_spec": spec,
        "instances": [{"prediction": prediction, "keywords": keywords}]}})
}

#[tokio::test]
async fn keyword_cases_from_the_field_hold() {
    let world = World::new().start().await;
    let mut compared = 0;
    for step in steps("cases/keyword_match.jsonl") {
        let asked = &step["request"]["keyword_match"];
        let mode = asked["mode"].as_str().unwrap().to_uppercase();
        let words: Vec<&str> =
            asked["keywords"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let spec = json!({"mode": format!("KEYWORD_MATCH_MODE_{mode}")});
        let answer = world.evaluate(keywords(asked["response"].as_str().unwrap(), &words, spec)).await;
        match step["expect"].get("error") {
            Some(_) => {
                let status = answer.unwrap_err();
                assert_eq!(status.code(), Code::InvalidArgument);
                let found = &status.get_details_bad_request().unwrap().field_violations[0].field;
                assert_eq!(found, "keyword_match_input.instances[0].keywords[1]");
            }
            None => {
                assert_eq!(result(&as_json(&answer.unwrap()))["passed"], step["expect"]["pass"], "{step}");
            }
        }
        compared += 1;
    }
    assert_eq!(compared, 3);
}

#[tokio::test]
async fn keywords_found_and_missing_are_told_apart() {
    let world = World::new().start().await;
    for (spec, matched, missing) in [
        (json!({}), json!(["REFUND"]), json!(["vouch", "sent"])),
        (json!({"substring": true}), json!(["REFUND", "vouch"]), json!(["sent"])),
        (json!({"substring": true, "case_sensitive": true}), json!(["vouch"]), json!(["REFUND", "sent"])),
    ] {
        let asked = keywords("Your refund, no voucher.", &["REFUND", "vouch", "sent"], spec.clone());
        let value = result(&as_json(&world.evaluate(asked).await.unwrap()));
        let share = matched.as_array().unwrap().len() as f64 / 3.0;
        assert_eq!(value["score"], json!(share), "{spec}");
        assert_eq!((&value["matchedKeywords"], &value["missingKeywords"]), (&matched, &missing), "{spec}");
    }
    let none = world.evaluate(keywords("x", &[], json!({}))).await.unwrap_err();
    assert!(none.message().starts_with("keyword_match_input.instances[0].keywords: "), "{none}");
}

#[tokio::test]
async fn similarity_passes_from_its_score_on() {
    let world = World::new().start().await;
    // One word of one in common with one of two: 1 / √2 = 0.7071.
    for (spec, passed) in
        [(json!({}), true), (json!({"pass_score": 0.71}), false), (json!({"pass_score": 0.0}), true)]
    {
        let answer = world.evaluate(json!({"semantic_similarity_input": {"metric_spec": spec,
            "instances": [{"prediction": "cat", "reference": "the cat"}]}}));
        let value = result(&as_json(&answer.await.unwrap()));
        assert!((value["score"].as_f64().unwrap() - 0.5_f64.sqrt()).abs() < 1e-9, "{value}");
        assert_eq!(
            (&value["passed"], &value["vectors"]),
            (&json!(passed), &json!("TEXT_VECTORS_WORD_COUNTS"))
        );
    }
    let status = world
        .evaluate(json!({"semantic_similarity_input": {"metric_spec": {"pass_score": 70},
            "instances": [{"prediction": "cat", "reference": "the cat"}]}}))
        .await
        .unwrap_err();
    assert_eq!(status.message(), "semantic_similarity_input.metric_spec.pass_score: 70 is not from 0 to 1");
}

fn meaning(spec: Value) -> Value {
    json!({"compare_meaning_input": {"metric_spec": spec,
        "instance": {"prediction": "At nine.", "reference": "It opens at nine.", "instruction": "When?"}}})
}

#[tokio::test]
async fn meaning_passes_at_fifty_unless_told_otherwise() {
    for (score, spec, passed) in [
        (50.0, json!({}), true),
        (49.5, json!({}), false),
        (62.5, json!({"pass_score": 80}), false),
        (0.0, json!({"pass_score": 0}), true),
    ] {
        let reply = json!({"explanation": "Because.", "score": score}).to_string();
        let (world, judge) = World::new().judge_replies([reply.as_str()]).await;
        let value = result(&as_json(&world.start().await.evaluate(meaning(spec)).await.unwrap()));
        let expected =
            json!({"score": score, "passed": passed, "explanation": "Because.", "confidence": 1.0});
        assert_eq!(value, expected);
        let prompt = judge.prompts().pop().unwrap();
        for text in ["At nine.", "It opens at nine.", "When?"] {
            assert!(prompt.contains(text), "{prompt}");
        }
    }
    let (world, _) = World::new().judge_replies([r#"{"explanation": "e", "score": 101}"#]).await;
    let status = world.start().await.evaluate(meaning(json!({}))).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "off the scale is no score: {status}");
}

fn quality(prediction: &str) -> Value {
    json!({"general_quality_input": {"instance": {"instruction": "When does it open?", "prediction": prediction,
        "context": "The museum opens at nine."}}})
}

#[tokio::test]
async fn an_answer_of_general_quality_meets_all_four_criteria() {
    let verdicts = |met: [bool; 4]| {
        let verdict = |(index, met): (usize, &bool)| json!({"id": index + 1, "explanation": format!("reason {}", index + 1), "satisfied": met});
        json!({"verdicts": met.iter().enumerate().map(verdict).collect::<Vec<_>>()}).to_string()
    };
    for (met, score, passed) in
        [([true; 4], 100.0, true), ([true, true, false, true], 75.0, false), ([false; 4], 0.0, false)]
    {
        let (world, judge) = World::new().judge_replies([verdicts(met).as_str()]).await;
        let value = result(&as_json(&world.start().await.evaluate(quality("At nine.")).await.unwrap()));
        assert_eq!((&value["score"], &value["passed"]), (&json!(score), &json!(passed)), "{value}");
        let names = ["relevance", "groundedness", "completeness", "abstention"];
        for (index, (criterion, name)) in value["criteria"].as_array().unwrap().iter().zip(names).enumerate()
        {
            let reason = format!("reason {}", index + 1);
            assert_eq!(criterion, &json!({"name": name, "met": met[index], "reason": reason}));
        }
        assert_eq!(value["criteria"].as_array().unwrap().len(), 4);
        assert_eq!(judge.calls(), 4);
    }
}

#[tokio::test]
async fn no_answer_fails_without_asking_the_judge() {
    let (world, judge) = World::new().judge_replies(["never read"]).await;
    let value = result(&as_json(&world.start().await.evaluate(quality(" \n")).await.unwrap()));
    assert_eq!((&value["score"], &value["passed"]), (&json!(0.0), &json!(false)));
    assert_eq!(value["criteria"][3], json!({"name": "abstention", "met": false, "reason": "not answered"}));
    assert_eq!(value["criteria"][0], json!({"name": "relevance", "reason": "not answered"}));
    assert_eq!(judge.calls(), 0);
}
