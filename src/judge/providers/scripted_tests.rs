//! Tests of `scripted.rs`.

use serde_json::json;

use super::*;
use crate::judge::{JudgeErrorKind, Turn};

fn question(text: &str, sample: u32) -> Question {
    let turns = vec![Turn { speaker: Speaker::User, text: text.to_owned() }];
    Question { turns, sample, ..Question::default() }
}

async fn text(judge: &Scripted, question: &Question) -> String {
    judge.ask(question).await.unwrap().text
}

#[tokio::test]
async fn each_sample_gets_its_reply_and_the_last_one_repeats() {
    let judge = Scripted::from_script("\"a\"\n\n// a comment\n\"b\"").unwrap();
    // Order of asking plays no part: sample 3 first, twice.
    for (sample, expected) in [(3, "b"), (0, "a"), (1, "b"), (0, "a"), (3, "b")] {
        assert_eq!(text(&judge, &question("x", sample)).await, expected);
    }
}

#[tokio::test]
async fn a_rule_answers_for_what_it_names_and_the_rest_falls_through() {
    let judge = Scripted::from_script(
        r#"["else", {"when": "Paris", "reply": {"score": 5}}, {"when": ["Rome", "Italy"], "replies": ["r0", "r1"]}]"#,
    )
    .unwrap();
    assert_eq!(text(&judge, &question("about Paris", 0)).await, r#"{"score":5}"#);
    assert_eq!(text(&judge, &question("Rome in Italy", 1)).await, "r1");
    assert_eq!(text(&judge, &question("Rome alone", 1)).await, "else");
}

#[tokio::test]
async fn a_failure_is_met_once_by_each_question_due_the_reply_behind_it() {
    let judge =
        Scripted::from_script("{\"status\": 429, \"retry_after\": 1.5}\n\"a\"\n{\"status\": 500}\n\"b\"")
            .unwrap();
    for (sample, kind, reply) in [(0, JudgeErrorKind::Throttled, "a"), (1, JudgeErrorKind::Unreachable, "b")]
    {
        let error = judge.ask(&question("x", sample)).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert_eq!(error.retry_after, (sample == 0).then_some(Duration::from_millis(1500)));
        assert_eq!(text(&judge, &question("x", sample)).await, reply);
        assert_eq!(text(&judge, &question("x", sample)).await, reply);
    }
}

#[tokio::test]
async fn failures_without_a_reply_are_met_always() {
    let judge = Scripted::from_script("{\"status\": 401}").unwrap();
    for _ in 0..3 {
        assert_eq!(judge.ask(&question("x", 0)).await.unwrap_err().kind, JudgeErrorKind::Credentials);
    }
    let judge = Scripted::from_script("\"a\"\n{\"status\": 500}").unwrap();
    assert_eq!(text(&judge, &question("x", 0)).await, "a");
    for _ in 0..3 {
        assert_eq!(judge.ask(&question("x", 1)).await.unwrap_err().kind, JudgeErrorKind::Unreachable);
    }
}

#[tokio::test]
async fn a_repair_gets_the_next_reply() {
    let judge = Scripted::from_script("\"garbage\"\n\"{}\"").unwrap();
    let mut asked = question("x", 0);
    assert_eq!(text(&judge, &asked).await, "garbage");
    asked.turns.push(Turn { speaker: Speaker::Judge, text: "garbage".to_owned() });
    asked.turns.push(Turn { speaker: Speaker::User, text: "again".to_owned() });
    assert_eq!(text(&judge, &asked).await, "{}");
}

#[tokio::test]
async fn nobody_named_is_an_error_not_a_reply() {
    let judge = Scripted::from_script(r#"{"when": "Paris", "reply": "x"}"#).unwrap();
    let error = judge.ask(&question("Rome", 0)).await.unwrap_err();
    assert_eq!(error.kind, JudgeErrorKind::Unreadable);
}

#[tokio::test(start_paused = true)]
async fn a_delay_passes_before_the_reply() {
    let judge = Scripted::from_script(r#"{"reply": "x", "delay_ms": 5000}"#).unwrap();
    let started = tokio::time::Instant::now();
    text(&judge, &question("x", 0)).await;
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[test]
fn a_wrong_script_names_its_entry() {
    for (script, expected) in [
        ("", "no entries"),
        ("\"a\"\n{\"reply\"", "line 2: "),
        ("[\"a\", {\"repli\": \"x\"}]", "entry 2: unknown field `repli`"),
        ("[{\"when\": \"x\"}]", "entry 1: has neither reply"),
        ("[{\"status\": 9}]", "entry 1: 9 is no HTTP status"),
    ] {
        let message = Scripted::from_script(script).unwrap_err();
        assert!(message.starts_with(expected), "{script}: {message}");
    }
    assert!(Scripted::open(Path::new("builtin:x")).unwrap_err().contains(PREFER_FIRST_SHOWN));
    assert!(Scripted::open(Path::new("/does/not/exist")).is_err());
}

#[tokio::test]
async fn the_biased_judge_takes_what_is_shown_first() {
    let judge = Scripted::open(Path::new(PREFER_FIRST_SHOWN)).unwrap();
    let schema = json!({"type": "object", "properties": {
        "explanation": {"type": "string"},
        "choice": {"type": "string", "enum": ["A", "B", "SAME"]},
    }});
    let mut asked = question("x", 0);
    asked.form = ReplyForm::Json { name: "verdict", schema };
    let reply: Value = serde_json::from_str(&text(&judge, &asked).await).unwrap();
    assert_eq!(reply["choice"], "A");
    asked.form = ReplyForm::Label { labels: vec!["A".to_owned(), "B".to_owned()] };
    let reply = judge.ask(&asked).await.unwrap();
    assert_eq!(reply.text, "A");
    assert_eq!(reply.alternatives[0][1], TokenChance { token: "B".to_owned(), logprob: 0.1_f64.ln() });
}
