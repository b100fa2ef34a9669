//! The JSON reader and the tool-call metrics, with serde_json as the oracle of both.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::Stop;
use rapid_eval::metrics::json::{Values, spans};
use rapid_eval::metrics::tool_call::{name_match, parameter_key_match, parameter_kv_match, valid};
use rapid_eval_fuzz::json::{Model, model, nested, object, oracle, quoted, value};
use rapid_eval_fuzz::texts::Texts;
use serde_json::Value;
use serde_json::value::RawValue;

const NEVER: Stop<'static> = Stop::NEVER;

#[derive(Debug)]
struct Input(Texts);

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self(match u.int_in_range(0..=7_u8)? {
            0..=3 => Texts::arbitrary(u)?,
            4 => Texts { prediction: value(u, 4)?, reference: value(u, 4)? },
            5 => {
                // Deep is slow, so it is rare.
                let depth = 1 << u.int_in_range(0..=16)?.min(u.int_in_range(0..=16)?);
                let objects = u.ratio(1, 2)?;
                let text = nested(&value(u, 1)?, depth, objects);
                Texts { prediction: call(u, &text)?, reference: text }
            }
            _ => {
                let (prediction, reference) = (object(u, 2)?, object(u, 2)?);
                Texts { prediction: call(u, &prediction)?, reference: call(u, &reference)? }
            }
        }))
    }
}

/// A text with one call, in one of the forms there are.
fn call(u: &mut Unstructured<'_>, arguments: &str) -> arbitrary::Result<String> {
    let name = *u.choose(&[r#""book""#, r#""b\u006fok""#, r#""search""#, "1"])?;
    let arguments = if u.ratio(1, 3)? { quoted(arguments) } else { arguments.to_owned() };
    let calls = format!(r#"[ {{"name":{name}, "arguments" : {arguments} }},1]"#);
    let calls = if u.ratio(1, 3)? { quoted(&calls) } else { calls };
    Ok(format!(r#"{{"content":"","tool_calls":{calls}}}"#))
}

fuzz_target!(|input: Input| {
    let Texts { prediction, reference } = &input.0;
    reader(prediction, reference);
    metrics(prediction, reference);
    for text in [prediction, reference] {
        // Whatever it is, there is an end to it.
        assert!(spans::members(text).count() <= text.len());
        let _ = spans::first_item(text);
    }
});

fn reader(a: &str, b: &str) {
    let mut values = Values::new();
    let (x, y) = (values.read(a), values.read(b));
    for (text, read) in [(a, x), (b, y)] {
        if let Err(error) = read {
            assert!(error.at <= text.len());
        }
        if let Some(expected) = oracle(text) {
            assert_eq!(read.is_ok(), expected.is_ok(), "{text:?} {expected:?}");
        }
    }
    if let (Ok(x), Ok(y)) = (x, y)
        && let (Some(Ok(a)), Some(Ok(b))) = (oracle(a), oracle(b))
        && let (Some(a), Some(b)) = (model(&a), model(&b))
    {
        assert_eq!(x == y, a == b, "{a:?} {b:?}");
    }
}

fn metrics(a: &str, b: &str) {
    let is_valid = valid(a, NEVER).expect("they are short");
    let name = name_match(a, b, NEVER).expect("they are short");
    let keys = parameter_key_match(a, b, NEVER).expect("they are short");
    let loose = parameter_kv_match(a, b, false, NEVER).expect("they are short");
    let strict = parameter_kv_match(a, b, true, NEVER).expect("they are short");

    for score in [is_valid, name] {
        assert!(score == 0.0 || score == 1.0);
    }
    assert!(strict.matches <= loose.matches && loose.matches <= keys.matches && keys.matches <= keys.total);
    assert_eq!((strict.total, loose.total), (keys.total, keys.total));
    assert_eq!(name_match(b, a, NEVER), Ok(name));
    assert_eq!(parameter_key_match(b, a, NEVER), Ok(keys));
    assert_eq!(parameter_kv_match(b, a, false, NEVER), Ok(loose));
    assert_eq!(parameter_kv_match(b, a, true, NEVER), Ok(strict));
    if is_valid == 1.0 {
        assert_eq!(name_match(a, a, NEVER), Ok(1.0));
        for strict in [true, false] {
            assert_eq!(parameter_kv_match(a, a, strict, NEVER).map(|ratio| ratio.value()), Ok(1.0));
        }
    }

    let (Some(a), Some(b)) = (Call::of(a), Call::of(b)) else { return };
    assert_eq!(is_valid == 1.0, a.name.is_some() && a.arguments.is_some());
    assert_eq!(name == 1.0, a.name.is_some() && a.name == b.name);
    if let (Some(a), Some(b)) = (&a.arguments, &b.arguments) {
        let both = || a.iter().filter_map(|(name, value)| Some((value, b.get(name)?)));
        assert_eq!(keys.matches, both().count() as u64);
        assert_eq!(keys.total as usize, a.len() + b.len() - both().count());
        assert_eq!(loose.matches, both().filter(|(x, y)| x.value == y.value).count() as u64);
        assert_eq!(strict.matches, both().filter(|(x, y)| x.text == y.text).count() as u64);
    }
}

struct Parameter {
    value: Model,
    text: String,
}

/// The first call as serde_json reads it.
struct Call {
    name: Option<String>,
    arguments: Option<BTreeMap<String, Parameter>>,
}

impl Call {
    /// Nothing if the oracle can't tell.
    fn of(text: &str) -> Option<Self> {
        let none = Self { name: None, arguments: None };
        if oracle(text)?.is_err() {
            return Some(none);
        }
        let calls = members(text).and_then(|mut members| members.remove("tool_calls"));
        let Some(calls) = held(calls)? else { return Some(none) };
        let Ok(calls) = serde_json::from_str::<Vec<Box<RawValue>>>(&calls) else { return Some(none) };
        let Some(mut call) = calls.first().and_then(|call| members(call.get())) else { return Some(none) };
        let name = call.get("name").and_then(|name| serde_json::from_str(name).ok());
        let Some(arguments) = held(call.remove("arguments"))?.and_then(|text| members(&text)) else {
            return Some(Self { name, arguments: None });
        };
        let parameter = |(name, text): (String, String)| {
            let value = model(&serde_json::from_str::<Value>(&text).ok()?)?;
            Some((name, Parameter { value, text }))
        };
        let arguments = arguments.into_iter().map(parameter).collect::<Option<_>>()?;
        Some(Self { name, arguments: Some(arguments) })
    }
}

/// The texts of an object's members by name, the last of each.
fn members(text: &str) -> Option<BTreeMap<String, String>> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    Some(members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect())
}

/// The JSON that a text is, or that the string it is holds. Nothing at all if the oracle can't tell.
#[expect(clippy::option_option, reason = "the oracle may not know, or know that there is none")]
fn held(text: Option<String>) -> Option<Option<String>> {
    let Some(text) = text else { return Some(None) };
    let text = serde_json::from_str::<String>(&text).unwrap_or(text);
    Some(oracle(&text)?.is_ok().then_some(text))
}
