//! Published scores, cases from the field, and the examples of the vendors' pages.

use serde_json::{Value, json};
use tonic::Code;

use crate::vectors::{field, steps};
use crate::world::{Running, World, as_json};
use crate::{request, result, row};

const CLOSE: f64 = 1e-9;

fn golden() -> Value {
    serde_json::from_str(include_str!("../vectors/similarity/graders.json")).unwrap()
}

async fn grade(world: &Running, grader: &Value, rows: Vec<Value>) -> Value {
    as_json(&world.evaluate(request(grader, rows)).await.unwrap())
}

#[tokio::test]
async fn every_published_similarity_is_met() {
    let world = World::new().start().await;
    let golden = golden();
    let pairs = golden["text_similarity"].as_array().unwrap();
    let rows: Vec<Value> =
        pairs.iter().map(|pair| row(&json!({"ref": pair["reference"]}), &pair["input"])).collect();
    let mut compared = 0;
    for metric in "fuzzy_match bleu gleu meteor rouge_1 rouge_2 rouge_3 rouge_4 rouge_5 rouge_l"
        .split_ascii_whitespace()
    {
        let grader = json!({"type": "text_similarity", "name": metric, "evaluation_metric": metric,
                            "input": "{{sample.output_text}}", "reference": "{{item.ref}}"});
        let answer = grade(&world, &grader, rows.clone()).await;
        let values =
            answer["textSimilarityResults"]["textSimilarityMetricValues"].as_array().unwrap().clone();
        // This service has no WordNet; that of the next test has.
        let key = if metric == "meteor" { "meteor_without_wordnet" } else { metric };
        for (pair, value) in pairs.iter().zip(&values) {
            let (found, expected) = (value["score"].as_f64().unwrap(), pair[key].as_f64().unwrap());
            assert!((found - expected).abs() <= CLOSE, "{metric}: {found}, not {expected}: {pair}");
            assert_eq!(value.get("usedSynonyms"), (metric == "meteor").then_some(&json!(false)), "{value}");
            assert_eq!(value.get("passed"), None, "no threshold, no verdict: {value}");
            compared += 1;
        }
    }
    assert_eq!(compared, 24 * 10);
}

#[tokio::test]
async fn with_wordnet_synonyms_count_and_the_result_says_so() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/similarity/wordnet");
    let world = World::new().set(|settings| settings.metrics.wordnet_dir = folder.into()).start().await;
    let golden = golden();
    let grader = json!({"type": "text_similarity", "name": "m", "evaluation_metric": "meteor",
                        "input": "{{sample.output_text}}", "reference": "{{item.ref}}"});
    let mut differing = 0;
    for pair in golden["text_similarity"].as_array().unwrap() {
        let rows = vec![row(&json!({"ref": pair["reference"]}), &pair["input"])];
        let value = result(&grade(&world, &grader, rows).await);
        let (found, expected) = (value["score"].as_f64().unwrap(), pair["meteor"].as_f64().unwrap());
        assert!((found - expected).abs() <= CLOSE, "{found}, not {expected}: {pair}");
        assert_eq!(value["usedSynonyms"], true);
        differing += usize::from(pair["meteor"] != pair["meteor_without_wordnet"]);
    }
    assert!(differing > 0, "synonyms make a difference");
}

#[tokio::test]
async fn every_published_string_check_is_met_but_those_that_nothing_could_fail() {
    let world = World::new().start().await;
    let (mut compared, mut refused) = (0, 0);
    for check in golden()["string_check"].as_array().unwrap() {
        let grader = json!({"type": "string_check", "name": "c", "operation": check["operation"],
                            "input": "{{sample.output_text}}", "reference": "{{item.ref}}"});
        let rows = vec![row(&json!({"ref": check["reference"]}), &check["input"])];
        if field(check, "reference").is_empty() {
            let status = world.evaluate(request(&grader, rows)).await.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            assert!(status.message().starts_with("string_check_input.instances[0]: reference"), "{status}");
            refused += 1;
            continue;
        }
        let value = result(&grade(&world, &grader, rows).await);
        assert_eq!(value["score"], check["score"], "{check}");
        assert_eq!(value["passed"], json!(check["score"] == 1.0), "{check}");
        compared += 1;
    }
    assert_eq!((compared, refused), (13, 2));
}

#[tokio::test]
async fn every_published_template_gives_its_text() {
    let world = World::new().start().await;
    let golden = golden();
    let templates = &golden["templates"];
    let sample = templates["scope"]["sample"].clone();
    let check = |template: &Value, text: &Value| {
        let mut item = templates["scope"]["item"].clone();
        item["expected"] = text.clone();
        let grader = json!({"type": "string_check", "name": "c", "operation": "eq",
                            "input": template, "reference": "{{item.expected}}"});
        request(&grader, vec![json!({"item": item, "sample": sample})])
    };
    for row in templates["ok"].as_array().unwrap() {
        let answer = world.evaluate(check(&row["template"], &row["text"])).await.unwrap();
        assert_eq!(result(&as_json(&answer))["score"], 1.0, "{row}");
    }
    for template in templates["invalid_variable_error"].as_array().unwrap() {
        let status = world.evaluate(check(template, &json!("x"))).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let path = template.as_str().unwrap().trim_matches(['{', '}']);
        assert!(status.message().ends_with(&format!("there is no value at {path}")), "{status}");
    }
}

#[tokio::test]
async fn output_json_is_read_from_the_text_unless_it_is_sent() {
    let world = World::new().start().await;
    let grader = json!({"type": "string_check", "name": "c", "operation": "eq",
                        "input": "{{sample.output_json.n}}", "reference": "4"});
    for (sample, outcome) in [
        (json!({"output_text": "{\"n\": 4}"}), Some(1.0)),
        (json!({"output_text": "{\"n\": 4}", "output_json": {"n": 5}}), Some(0.0)),
        (json!({"output_text": "four"}), None),
    ] {
        let answer = world.evaluate(request(&grader, vec![json!({"sample": sample})])).await;
        assert_eq!(
            answer.ok().map(|answer| result(&as_json(&answer))["score"].clone()),
            outcome.map(Value::from)
        );
    }
}

#[tokio::test]
async fn cases_from_the_field_hold() {
    let world = World::new().start().await;
    let mut compared = 0;
    for step in steps("cases/graders.jsonl") {
        let sent = &step["request"];
        let grader = &sent["grader"];
        let answer = world.evaluate(request(grader, vec![row(&sent["item"], &sent["model_sample"])])).await;
        let expect = &step["expect"];
        if let Some(error) = expect.get("error") {
            let status = answer.expect_err(field(&step, "id"));
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            for piece in error["message_mentions"].as_array().into_iter().flatten() {
                assert!(status.message().contains(piece.as_str().unwrap()), "{status}");
            }
        } else {
            let value = result(&as_json(&answer.unwrap()));
            let (found, expected) =
                (value["score"].as_f64().unwrap(), expect["grader"]["score"].as_f64().unwrap());
            // METEOR of the case is NLTK's by white space, which for these texts is the same.
            let tolerance = expect["grader"]["tol"].as_f64().unwrap_or(0.0);
            assert!((found - expected).abs() <= tolerance, "{}: {found}", step["id"]);
            if let Some(passed) = expect["grader"].get("passed") {
                assert_eq!(&value["passed"], passed, "{}", step["id"]);
            }
        }
        compared += 1;
    }
    assert_eq!(compared, 10);
}

/// The two rows of Azure's page on graders.
fn azure_rows() -> Vec<Value> {
    [
        json!({"query": "What is the weather like today?", "response": "It's sunny and warm with clear skies.",
               "ground_truth": "Today is sunny with temperatures around 75°F."}),
        json!({"query": "Summarize the meeting notes.",
               "response": "The team discussed Q3 goals and assigned action items.",
               "ground_truth": "Meeting covered quarterly objectives and task assignments."}),
    ]
    .into_iter()
    .map(|item| json!({"item": item}))
    .collect()
}

#[tokio::test]
async fn the_computed_graders_of_azures_page_run_as_they_stand() {
    let world = World::new().start().await;
    let exact = json!({"type": "string_check", "name": "exact_match", "input": "{{item.response}}",
                       "reference": "{{item.ground_truth}}", "operation": "eq"});
    let answer = grade(&world, &exact, azure_rows()).await;
    let failed = json!({"score": 0.0, "passed": false});
    assert_eq!(answer, json!({"stringCheckResults": {"stringCheckMetricValues": [failed, failed]}}));

    let similar = json!({"type": "text_similarity", "name": "similarity_check", "input": "{{item.response}}",
                         "reference": "{{item.ground_truth}}", "evaluation_metric": "bleu", "pass_threshold": 0.8});
    let answer = grade(&world, &similar, azure_rows()).await;
    let values = &answer["textSimilarityResults"]["textSimilarityMetricValues"];
    // The first pair is one of the published vectors.
    assert!((values[0]["score"].as_f64().unwrap() - 0.030_304_928_518_981_95).abs() <= CLOSE, "{values}");
    assert_eq!((&values[0]["passed"], &values[1]["passed"]), (&json!(false), &json!(false)));
}

#[tokio::test]
async fn the_judged_graders_of_azures_page_run_as_they_stand() {
    let label = json!({"type": "label_model", "name": "sentiment_check", "model": "gpt-4o", "input": [
        {"role": "developer", "content": "Classify the sentiment as 'positive', 'neutral', or 'negative'"},
        {"role": "user", "content": "Statement: {{item.query}}"}],
        "labels": ["positive", "neutral", "negative"], "passing_labels": ["positive", "neutral"]});
    let (world, judge) = World::new().judge_replies([crate::said("neutral").as_str()]).await;
    let world = world.start().await;
    for row in azure_rows() {
        let value = result(&grade(&world, &label, vec![row.clone()]).await);
        assert_eq!(
            (&value["label"], &value["score"], &value["passed"]),
            (&json!("neutral"), &json!(1.0), &json!(true))
        );
        assert_eq!(value["explanation"], "Read it: It is so");
        let prompt = judge.prompts().pop().unwrap();
        assert!(prompt.contains("Classify the sentiment as 'positive'"), "{prompt}");
        let query = "Statement: <item.query-";
        assert!(prompt.contains(query) && prompt.contains(field(&row["item"], "query")), "{prompt}");
    }

    let score = json!({"type": "score_model", "name": "quality_score", "model": "gpt-4o", "input": [
        {"role": "system", "content": "Rate the response quality from 0 to 1. 1 = perfect, 0 = completely wrong."},
        {"role": "user", "content": "Response: {{item.response}}\nGround Truth: {{item.ground_truth}}"}],
        "pass_threshold": 0.7, "range": [0, 1]});
    let (world, _) = World::new().judge_replies([crate::said(0.85).as_str()]).await;
    let world = world.start().await;
    for row in azure_rows() {
        let value = result(&grade(&world, &score, vec![row]).await);
        assert_eq!((&value["score"], &value["passed"]), (&json!(0.85), &json!(true)));
    }
}
