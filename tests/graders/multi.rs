//! The multi grader: its formula, its parts, and a part that fails.

use serde_json::{Value, json};
use tonic::Code;

use crate::world::{World, as_json};
use crate::{request, result, row, said};

fn check(reference: &str) -> Value {
    json!({"type": "string_check", "name": "any", "operation": "like",
           "input": "{{sample.output_text}}", "reference": reference})
}

fn multi(formula: &str, graders: Value) -> Value {
    json!({"type": "multi", "name": "all", "graders": graders, "calculate_output": formula})
}

#[tokio::test]
async fn the_formula_is_over_the_scores_by_the_names_of_the_map() {
    let world = World::new().start().await;
    let graders = json!({"b": check("Oslo"), "a": check("Rome")});
    // a = 0 and b = 1 for "Oslo".
    for (formula, value) in [("0.25 * a + 0.75 * b", 0.75), ("max(a, b) - 2 * a", 1.0), ("2 ^ b - a", 2.0)] {
        let answer =
            world.evaluate(request(&multi(formula, graders.clone()), vec![row(&json!({}), &json!("Oslo"))]));
        assert_eq!(
            as_json(&answer.await.unwrap()),
            json!({"multiGraderResult": {"score": value, "parts": [
                {"name": "a", "score": 0.0, "passed": false}, {"name": "b", "score": 1.0, "passed": true}]}}),
            "{formula}"
        );
    }
}

#[tokio::test]
async fn many_graders_of_a_long_text_keep_their_names_and_order() {
    let world = World::new().start().await;
    let long = "Oslo ".repeat(1 << 18);
    let graders: serde_json::Map<String, Value> = (0..9)
        .map(|number| (format!("g{number}"), check(if number % 2 == 0 { "Oslo" } else { "Rome" })))
        .collect();
    let answer =
        world.evaluate(request(&multi("g0 + g8", json!(graders)), vec![row(&json!({}), &json!(long))]));
    let value = result(&as_json(&answer.await.unwrap()));
    assert_eq!(value["score"], 2.0);
    for (number, part) in value["parts"].as_array().unwrap().iter().enumerate() {
        let expected = if number % 2 == 0 { 1.0 } else { 0.0 };
        assert_eq!((&part["name"], &part["score"]), (&json!(format!("g{number}")), &json!(expected)));
    }
}

#[tokio::test]
async fn published_formulas_that_are_wrong_are_refused_and_no_value_is_no_score() {
    let golden: Value = serde_json::from_str(include_str!("../vectors/similarity/graders.json")).unwrap();
    let world = World::new().start().await;
    for case in golden["formulas"]["bad"].as_array().unwrap() {
        // A score of 0 or 1, as the case has it; a score of -1 cannot be had from a check.
        let (formula, reference) = match case["scores"]["a"].as_i64().unwrap() {
            0 => (case["formula"].as_str().unwrap().to_owned(), "Rome"),
            1 => (case["formula"].as_str().unwrap().to_owned(), "Oslo"),
            _ => (case["formula"].as_str().unwrap().replace('a', "0 - a"), "Oslo"),
        };
        let grader = multi(&formula, json!({"a": check(reference)}));
        let status =
            world.evaluate(request(&grader, vec![row(&json!({}), &json!("Oslo"))])).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{case}: {status}");
        let place = "multi_grader_input.metric_spec.calculate_output: formula, character ";
        assert!(status.message().starts_with(place), "{case}: {status}");
    }
}

#[tokio::test]
async fn a_part_without_a_score_makes_an_error_that_names_it() {
    let model =
        json!({"type": "score_model", "name": "m", "input": [{"content": "Rate {{sample.output_text}}"}]});
    let graders = json!({"exact": check("Oslo"), "taste": model});
    let asked = request(&multi("exact + taste", graders.clone()), vec![row(&json!({}), &json!("Oslo"))]);
    let (world, _) = World::new().judge_replies([said(0.5).as_str()]).await;
    let answer = as_json(&world.start().await.evaluate(asked.clone()).await.unwrap());
    assert_eq!(result(&answer)["score"], 1.5);
    let (world, _) = World::new().judge_replies(["no idea"]).await;
    let status = world.start().await.evaluate(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().starts_with("grader \"taste\": "), "{status}");

    let mut graders = graders;
    graders["exact"]["reference"] = json!("{{item.gone}}");
    let world = World::new().start().await;
    let grader = multi("exact", json!({"exact": graders["exact"]}));
    let status = world.evaluate(request(&grader, vec![row(&json!({}), &json!("Oslo"))])).await.unwrap_err();
    assert!(
        status.message().starts_with("multi_grader_input.metric_spec.graders.exact: reference: "),
        "{status}"
    );
}

#[tokio::test]
async fn no_graders_and_too_many_are_refused() {
    let world = World::new().start().await;
    for count in [0, 101] {
        let graders: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("g{number}"), check("Oslo"))).collect();
        let status = world
            .evaluate(request(&multi("1", json!(graders)), vec![row(&json!({}), &json!("Oslo"))]))
            .await
            .unwrap_err();
        assert!(status.message().contains(&format!("has {count} graders, not 1 to 100")), "{status}");
    }
}
