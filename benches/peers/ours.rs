//! Our side of the comparison that `run` makes: reads pairs of texts, prints microseconds per pair.
//!
//! Standard input: one JSON object a line, `{"metric": "rouge2", "stem": true, "prediction": …, "reference": …}`.
//! Standard output: the best of several averages, one number a line, in the same order.

use std::hint::black_box;
use std::io::BufRead;
use std::time::{Duration, Instant};

use rapid_eval::metrics::{bleu, rouge};

/// One average is taken over at least this long.
const WINDOW: Duration = Duration::from_millis(100);
const WINDOWS: usize = 7;

fn main() {
    // `cargo bench` passes this to every bench; it is not for this one.
    if !std::env::args().any(|argument| argument == "--pairs-on-stdin") {
        println!("run by benches/peers/run");
        return;
    }
    for line in std::io::stdin().lock().lines() {
        let pair: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |name: &str| pair[name].as_str().unwrap();
        let (prediction, reference) = (text("prediction"), text("reference"));
        let micros = match text("metric") {
            "bleu" => {
                let options = bleu::Options::default();
                time(|| bleu::score(black_box(prediction), black_box(reference), &options).unwrap().value)
            }
            kind => {
                let stemmer =
                    if pair["stem"] == true { rouge::Stemmer::Porter } else { rouge::Stemmer::None };
                let options = rouge::Options { kind: kind.parse().unwrap(), stemmer, ..Default::default() };
                time(|| {
                    rouge::score(black_box(prediction), black_box(reference), &options).unwrap().f_measure
                })
            }
        };
        println!("{micros}");
    }
}

/// Microseconds per call.
fn time(call: impl Fn() -> f64) -> f64 {
    let window = || {
        let (began, mut calls) = (Instant::now(), 0_u32);
        while began.elapsed() < WINDOW {
            black_box(call());
            calls += 1;
        }
        began.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    };
    (0..WINDOWS).map(|_| window()).fold(f64::INFINITY, f64::min)
}
