//! Summaries, section by section.

use serde_json::{Value, json};
use tonic::Code;

use crate::result;
use crate::world::judge::Conduct;
use crate::world::{World, as_json};

fn summary(metric: &str, sections: Value) -> Value {
    json!({
        "autorater_config": {"sampling_count": 1},
        (format!("{metric}_input")): {"instance": {
            "transcript": [{"role": "CUSTOMER", "text": "I want to cancel."}, {"role": "AGENT", "text": "You get $10."}],
            "sections": sections}},
    })
}

fn rubrics(texts: &[&str]) -> Value {
    let rubric = |text: &&str| json!({"text": text, "type": "CONTENT", "importance": "HIGH"});
    json!({"text": json!({"rubrics": texts.iter().map(rubric).collect::<Vec<_>>()}).to_string()})
}

fn verdicts(satisfied: &[bool]) -> Value {
    let verdict = |(index, satisfied): (usize, &bool)| json!({"id": index + 1, "explanation": format!("reason {}", index + 1), "satisfied": satisfied});
    json!({"text": json!({"verdicts": satisfied.iter().enumerate().map(verdict).collect::<Vec<_>>()}).to_string()})
}

async fn answered(replies: Vec<Value>, asked: Value) -> (Value, usize) {
    let (world, judge) = World::new().judge(Conduct::Replies(replies)).await;
    let answer = world.start().await.evaluate(asked).await;
    let answer = as_json(&answer.unwrap());
    (answer.as_object().unwrap().values().next().unwrap().clone(), judge.calls())
}

#[tokio::test]
async fn accuracy_is_the_share_of_points_that_the_conversation_bears_out() {
    let replies = vec![
        rubrics(&["The customer wants to cancel.", "The customer gets $30.", "The agent calls back."]),
        verdicts(&[true, false, false]),
    ];
    let section = json!([{"key": "s", "summary": "Wants to cancel, gets $30, will be called back."}]);
    let (value, calls) = answered(replies, summary("summarization_accuracy", section)).await;
    let third = 100.0 / 3.0;
    assert_eq!(
        value,
        json!({"score": third, "sections": [{"section": "s", "score": third, "decomposition": [
            {"point": "The customer wants to cancel.", "accuracyReasoning": "reason 1", "isAccurate": true},
            {"point": "The customer gets $30.", "accuracyReasoning": "reason 2", "isAccurate": false},
            {"point": "The agent calls back.", "accuracyReasoning": "reason 3", "isAccurate": false}]}]})
    );
    assert_eq!(calls, 2);
}

#[tokio::test]
async fn a_section_that_says_nothing_has_no_accuracy_and_counts_in_no_mean() {
    let (value, calls) =
        answered(vec![rubrics(&[])], summary("summarization_accuracy", json!([{"summary": "Summary:"}])))
            .await;
    assert_eq!(value.get("score"), None);
    assert_eq!(
        value["sections"][0],
        json!({"notApplicableReason": "the judge found nothing to ask of this section"})
    );
    assert_eq!(calls, 1);

    let sections = json!([{"key": "empty", "summary": " "}, {"key": "full", "summary": "Wants to cancel."}]);
    let replies = vec![rubrics(&["The customer wants to cancel."]), verdicts(&[true])];
    let (value, calls) = answered(replies, summary("summarization_accuracy", sections)).await;
    assert_eq!(value["score"], 100.0, "{value}");
    assert_eq!(value["sections"][0].get("score"), None);
    assert_eq!(calls, 2);
}

#[tokio::test]
async fn a_categorical_section_adheres_when_it_says_an_allowed_value_and_nothing_else() {
    for (said, score) in [(" Sunny\n", 100.0), ("Sunny, I think", 0.0), ("sunny", 0.0)] {
        let section = json!([{"key": "weather", "definition": "Say Sunny or Cloudy.",
                              "allowed_values": ["Sunny", "Cloudy"], "summary": said}]);
        let (value, calls) = answered(vec![], summary("summarization_adherence", section)).await;
        assert_eq!(value["score"], score, "{said}");
        let rubric = &value["sections"][0]["rubrics"][0];
        assert_eq!(rubric["isAddressed"], json!(score > 0.0));
        assert_eq!(
            rubric["question"],
            "Does the summary consist of one of the allowed values and nothing else?"
        );
        assert_eq!(calls, 0);
    }
}

#[tokio::test]
async fn adherence_is_about_sections_of_the_customers_only() {
    let sections = json!([
        {"key": "situation", "type": "SUMMARY_SECTION_TYPE_SITUATION", "summary": "Cancels."},
        {"key": "amount", "definition": "State the amount. Use one sentence.", "summary": "$10."}]);
    let replies = vec![
        rubrics(&["Does the summary state the amount?", "Does it use one sentence?"]),
        verdicts(&[true, false]),
    ];
    let (value, _) = answered(replies, summary("summarization_adherence", sections)).await;
    assert_eq!(value["score"], 50.0);
    assert_eq!(value["sections"][0].get("score"), None);
    assert!(value["sections"][0]["notApplicableReason"].as_str().unwrap().contains("built-in"));
    assert_eq!(value["sections"][1]["rubrics"][1]["reasoning"], "reason 2");
}

#[tokio::test]
async fn completeness_asks_for_what_the_definition_wants_and_spares_categorical_sections() {
    let sections = json!([
        {"key": "mood", "definition": "Good or Bad", "allowed_values": ["Good", "Bad"], "summary": "Bad"},
        {"key": "resolution", "type": "SUMMARY_SECTION_TYPE_RESOLUTION", "summary": "A credit."}]);
    let (world, judge) = World::new()
        .judge(Conduct::Replies(vec![rubrics(&["Does it mention $10?"]), verdicts(&[false])]))
        .await;
    let asked = summary("summarization_completeness", sections);
    let value = result(&as_json(&world.start().await.evaluate(asked).await.unwrap()));
    assert_eq!(value["score"], 0.0);
    assert_eq!(value["sections"][0].get("score"), None);
    let rubric = json!([{"question": "Does it mention $10?", "isAddressed": false}]);
    assert_eq!(value["sections"][1]["rubrics"], rubric);
    assert!(judge.prompts()[0].contains("What came out of the conversation"), "the definition of its type");
}

#[tokio::test]
async fn a_section_that_could_not_be_judged_is_named() {
    let (world, _) = World::new().judge_replies(["no idea"]).await;
    let world = world.start().await;
    let asked = summary("summarization_accuracy", json!([{"key": "action", "summary": "Credited."}]));
    let status = world.evaluate(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().starts_with("section \"action\": "), "{status}");
    for (sections, wrong) in [
        (json!([]), "instance.sections: has 0 sections"),
        (json!([{"summary": "x"}, {"key": "k"}]), "instance.sections[1].summary: "),
        (json!([{"summary": "x"}]), "instance.sections[0].definition: "),
    ] {
        let status = world.evaluate(summary("summarization_completeness", sections)).await.unwrap_err();
        let place = format!("summarization_completeness_input.{wrong}");
        assert!(status.message().starts_with(&place), "{status}");
    }
}
