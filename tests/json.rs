//! The JSON reader against serde_json, and value equality against models whose equality is known.

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use rapid_eval::metrics::json::{Kind, Values, spans};
use rapid_eval::metrics::{Stop, Unscored};
use serde_json::{Value, json};

fn is_json(text: &str) -> bool {
    Values::new().read(text).is_ok()
}

fn equal(a: &str, b: &str) -> bool {
    let mut values = Values::new();
    values.read(a).unwrap() == values.read(b).unwrap()
}

#[track_caller]
fn all_equal(texts: &[&str]) {
    for text in texts {
        assert!(equal(texts[0], text), "{} {text}", texts[0]);
    }
}

#[track_caller]
fn all_different(texts: &[&str]) {
    for (at, a) in texts.iter().enumerate() {
        for b in &texts[..at] {
            assert!(!equal(a, b), "{a} {b}");
        }
    }
}

#[test]
fn numbers_are_equal_by_decimal_value() {
    all_equal(&["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "1.000", "0.001e3", "1e-0", "1e000"]);
    all_equal(&["0", "-0", "0.0", "-0.000", "0e999999999999999999999999", "-0e-5"]);
    all_equal(&["-120", "-1.2e2", "-12e1", "-1200e-1"]);
    all_equal(&["0.1", "1e-1", "0.10", "100e-3"]);
    all_different(&["1", "-1", "10", "0.1", "1e999999999", "1e999999998", "-1e999999999", "1e-999999999"]);
    all_different(&["9007199254740993", "9007199254740992", "9007199254740993.000000000000000000001"]);
    all_different(&["0.1", "0.1000000000000000055511151231257827", "0.10000000000000001"]);
}

#[test]
fn huge_exponents_are_exact() {
    // 10^18 has one digit more than what is added up in 64 bits: both sides of that border.
    all_equal(&["1e1000000000000000000", "10e999999999999999999", "0.1e1000000000000000001"]);
    all_equal(&["1e-1000000000000000000", "10e-1000000000000000001", "0.1e-999999999999999999"]);
    all_equal(&["1e99999999999999999999", "0.01e100000000000000000001", "100e99999999999999999997"]);
    all_equal(&["1e-100000000000000000000", "0.1e-99999999999999999999", "10e-100000000000000000001"]);
    all_equal(&["7e0000000000000000000000000000000001", "70"]);
    all_different(&[
        "1e99999999999999999999",
        "1e99999999999999999998",
        "1e-99999999999999999999",
        "1e100000000000000000000",
        "1e999999999999999999",
    ]);
    let nines = "9".repeat(1_000_000);
    all_equal(&[&format!("1e{nines}"), &format!("0.1e1{}", "0".repeat(1_000_000))]);
    all_equal(&[&format!("1{}", "0".repeat(1_000_000)), "1e1000000"]);
    all_equal(&[&format!("0.{}1", "0".repeat(999_999)), "1e-1000000"]);
}

#[test]
fn objects_are_equal_in_any_order() {
    all_equal(&[r#"{"a":1,"b":{"c":2,"d":3}}"#, r#" { "b" : {"d":3.0,"c":2} , "a":1 } "#]);
    all_different(&["{}", r#"{"a":1}"#, r#"{"a":2}"#, r#"{"b":1}"#, r#"{"a":null}"#, r#"{"a":1,"b":1}"#]);
}

#[test]
fn the_last_of_a_repeated_name_counts() {
    all_equal(&[r#"{"a":2}"#, r#"{"a":1,"a":2}"#, r#"{"a":3,"\u0061":1,"a":2}"#]);
    all_equal(&[r#"{"b":1,"a":2}"#, r#"{"a":1,"b":0,"a":2,"b":1}"#]);
}

#[test]
fn arrays_keep_their_order() {
    all_different(&["[]", "[1]", "[1,2]", "[2,1]", "[1,2,2]", "[[1],2]", "[[1,2]]"]);
}

#[test]
fn kinds_are_never_equal() {
    all_different(&[
        "null", "true", "false", "1", "0", "\"1\"", "\"\"", "\"true\"", "\"null\"", "[]", "{}", "[1]",
    ]);
}

#[test]
fn strings_are_equal_by_characters() {
    all_equal(&[r#""é/""#, r#""\u00e9\/""#, r#""\u00E9/""#]);
    all_equal(&[r#""😀""#, r#""\ud83d\ude00""#]);
    all_equal(&["\"\\u0008\\u000c\\u000a\\u000d\\u0009\\u0022\\u005c\"", r#""\b\f\n\r\t\"\\""#]);
    all_different(&[r#""é""#, "\"e\u{301}\"", r#""e""#]);
}

#[test]
fn lone_surrogates_are_within_the_grammar_and_equal_only_themselves() {
    all_equal(&[r#""\ud83d""#, r#""\uD83D""#]);
    all_different(&[
        r#""\ud83d""#,
        r#""\ude00""#,
        "\"\u{fffd}\"",
        r#""\ude00\ud83d""#,
        r#""\ud83d\ude00""#,
        r#""\ud83d\ud83d""#,
    ]);
    all_equal(&[r#""\ud83d\ud83d\ude00""#, r#""\ud83d😀""#]);
    let mut values = Values::new();
    let lone = values.read(r#""a\ud83d""#).unwrap();
    assert_eq!(values.text(lone), None);
    assert_eq!(values.string(lone), Some([b'a', 0xed, 0xa0, 0xbd].as_slice()));
}

#[test]
fn what_is_not_json_is_refused_where_it_goes_wrong() {
    let cases = [
        ("", 0),
        (" ", 1),
        ("nul", 0),
        ("NaN", 0),
        ("-Infinity", 1),
        ("+1", 0),
        ("01", 2),
        ("1.", 2),
        (".5", 0),
        ("1e", 2),
        ("-", 1),
        ("1 2", 2),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1", 2),
        ("[1}", 2),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("{\"a\" 1}", 5),
        ("{\"a\":}", 5),
        ("{\"a\":1]", 6),
        ("{", 1),
        ("]", 0),
        ("'a'", 0),
        ("\"a", 2),
        ("\"\n\"", 1),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 2),
        ("\"\\", 2),
        ("\u{feff}1", 0),
        ("\u{a0}1", 0),
        ("/* */ 1", 0),
    ];
    for (text, at) in cases {
        let error = Values::new().read(text).unwrap_err();
        assert_eq!(error.at, at, "{text:?}");
        assert_eq!(error.to_string(), format!("not JSON at byte {at}"));
    }
}

#[test]
fn values_can_be_looked_into() {
    let mut values = Values::new();
    let root = values.read(r#"{"name": "book", "tags": ["a", 1, null]}"#).unwrap();
    assert_eq!(values.kind(root), Kind::Object);
    assert_eq!(values.members(root).unwrap().len(), 2);
    let name = values.get(root, "name").unwrap();
    assert_eq!(values.text(name), Some("book"));
    let tags = values.get(root, "tags").unwrap();
    let kinds: Vec<Kind> = values.items(tags).unwrap().iter().map(|id| values.kind(*id)).collect();
    assert_eq!(kinds, [Kind::String, Kind::Number, Kind::Null]);
    for absent in ["tag", "book", "a", "", "null"] {
        assert_eq!(values.get(root, absent), None);
    }
    assert_eq!(values.get(tags, "a"), None);
    assert_eq!((values.items(root), values.members(tags), values.text(root)), (None, None, None));
    assert_eq!(values.empty_object(), values.read("{ }").unwrap());
}

#[test]
fn any_depth_is_read() {
    let depth = 4_000_000;
    let deep = "[".repeat(depth) + &"]".repeat(depth);
    assert!(is_json(&deep));
    assert_eq!(Values::new().read(&deep[..depth]).unwrap_err().at, depth);
    assert_eq!(spans::first_item(&deep).map(str::len), Some(2 * depth - 2));
}

#[test]
fn deep_values_compare() {
    let depth = 100_000;
    let arrays = "[".repeat(depth) + &"]".repeat(depth);
    let objects = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    let mut values = Values::new();
    for (deep, shallower) in
        [(&arrays, &arrays[1..2 * depth - 1]), (&objects, &objects[5..objects.len() - 1])]
    {
        let first = values.read(deep).unwrap();
        assert_eq!(values.read(deep), Ok(first));
        assert_ne!(values.read(shallower).unwrap(), first);
        assert_eq!(values.read(&deep[..deep.len() - 1]).unwrap_err().at, deep.len() - 1);
    }
}

#[test]
fn a_raised_stop_ends_the_reading() {
    let stop = AtomicBool::new(true);
    let long = format!("[{}0]", "0,".repeat(10_000));
    assert_eq!(Values::new().read_until(&long, Stop::when(&stop)), Err(Unscored::Stopped));
}

#[test]
fn members_are_found_as_they_were_sent() {
    let text = "\t{ \"a\" :[1, {\"b\":\"]\\\"}\"} ] , \"c\\n\":-1.50 ,\"\":{}}\n";
    let found: Vec<(&str, &str)> = spans::members(text).collect();
    let expected = [("\"a\"", "[1, {\"b\":\"]\\\"}\"} ]"), ("\"c\\n\"", "-1.50"), ("\"\"", "{}")];
    assert_eq!(found, expected);
    assert_eq!(spans::first_item("[ true ,1]"), Some("true"));
    assert_eq!(spans::first_item("[]"), None);
    assert_eq!(spans::members("[1]").next(), None);
    assert_eq!(spans::members("{}").next(), None);
}

/// Why serde_json may refuse what is within the grammar: it stops at 128 levels, at numbers beyond f64, and at
/// escaped surrogates without their other half.
fn is_known_difference(error: &serde_json::Error) -> bool {
    let error = error.to_string();
    ["recursion limit", "number out of range", "surrogate", "unexpected end of hex escape"]
        .iter()
        .any(|known| error.contains(known))
}

#[track_caller]
fn agrees_with_serde_json(text: &str) {
    match serde_json::from_str::<Value>(text) {
        Ok(_) => assert!(is_json(text), "valid: {text:?}"),
        Err(error) if is_known_difference(&error) => {}
        Err(error) => assert!(!is_json(text), "{error}: {text:?}"),
    }
}

/// A value and ways to write it. Strings and numbers are given with several spellings each.
fn model() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..=30_i64).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-400..400_i32).prop_map(|quarters| json!(f64::from(quarters) / 4.0 + 0.125)),
        "[a-c\"\\\\\n\u{e9}😀]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Writes the value, each choice of spelling by a digit of `choices`.
fn write(value: &Value, choices: &mut u64, out: &mut String) {
    let mut choose = |ways: u64| {
        let way = *choices % ways;
        *choices = choices.rotate_right(7).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        way
    };
    *out += ["", " ", "\n\t"][choose(3) as usize];
    match value {
        Value::Null | Value::Bool(_) => *out += &value.to_string(),
        Value::Number(number) => {
            let plain = number.to_string();
            *out += &match choose(4) {
                0 => plain,
                1 => plain + "e0",
                2 if plain.contains('.') => plain + "00",
                2 => plain + ".0",
                _ if plain.contains('.') => plain + "E+00",
                _ if plain == "0" => "-0".to_owned(),
                _ => plain + "0e-1",
            };
        }
        Value::String(string) => {
            let escape = choose(2) == 1;
            out.push('"');
            for c in string.chars() {
                if escape || c == '"' || c == '\\' || c < ' ' {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        *out += &format!("\\u{unit:04x}");
                    }
                } else {
                    out.push(c);
                }
            }
            out.push('"');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                *out += if at > 0 { "," } else { "" };
                write(item, choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let start = choose(members.len().max(1) as u64) as usize;
            members.rotate_left(start);
            out.push('{');
            for (at, (name, item)) in members.into_iter().enumerate() {
                *out += if at > 0 { "," } else { "" };
                write(&Value::from(name.as_str()), choices, out);
                *out += ":";
                write(item, choices, out);
            }
            out.push('}');
        }
    }
    *out += ["", " ", "\r\n"][(*choices % 3) as usize];
}

/// A decimal number in several spellings, and its value times 10^24.
fn decimal() -> impl Strategy<Value = (String, i128)> {
    (-9_999..10_000_i128, -6..=6_i32, 0..5_usize, any::<bool>()).prop_map(|(digits, power, zeros, dot)| {
        let value = digits * 10_i128.pow((power + 24) as u32);
        let (sign, size) = (if digits < 0 { "-" } else { "" }, digits.unsigned_abs().to_string());
        let text = if dot {
            format!("{sign}{size}.{}E{power}", "0".repeat(zeros + 1))
        } else {
            format!("{sign}0.{}{size}e{}", "0".repeat(zeros), power + (zeros + size.len()) as i32)
        };
        (text, value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_json_if_serde_json_says_so(text in any::<String>(), near in "[\\[\\]{}:,\"\\\\u0-2a-f.eE+ \n-]{0,12}") {
        agrees_with_serde_json(&text);
        agrees_with_serde_json(&near);
        agrees_with_serde_json(&format!("\"{near}\""));
        agrees_with_serde_json(&format!("[{near}]"));
    }

    #[test]
    fn a_changed_text_is_json_if_serde_json_says_so(
        value in model(), choices: u64, at: prop::sample::Index, byte in "[\\[\\]{}:,\"\\\\0-9a-z.+ \u{1}-]?", cut in 0..3_usize
    ) {
        let mut text = String::new();
        write(&value, &mut choices.clone(), &mut text);
        let chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        let end = (at + cut).min(chars.len());
        let changed: String = chars[..at].iter().copied().chain(byte.chars()).chain(chars[end..].iter().copied()).collect();
        agrees_with_serde_json(&text);
        agrees_with_serde_json(&changed);
    }

    #[test]
    fn a_value_is_equal_however_it_is_written(value in model(), first: u64, second: u64) {
        let mut texts = [String::new(), String::new()];
        write(&value, &mut first.clone(), &mut texts[0]);
        write(&value, &mut second.clone(), &mut texts[1]);
        prop_assert!(equal(&texts[0], &texts[1]), "{:?}", texts);
        let spanned: Vec<Value> = spans::members(&texts[0]).map(|(_, text)| serde_json::from_str(text).unwrap()).collect();
        prop_assert_eq!(spanned.len(), value.as_object().map_or(0, serde_json::Map::len));
    }

    #[test]
    fn values_are_equal_only_if_the_models_are(a in model(), b in model(), choices: u64) {
        let mut texts = [String::new(), String::new()];
        write(&a, &mut choices.clone(), &mut texts[0]);
        write(&b, &mut choices.clone(), &mut texts[1]);
        prop_assert_eq!(equal(&texts[0], &texts[1]), a == b, "{:?}", texts);
    }

    #[test]
    fn decimals_are_equal_if_their_values_are(a in decimal(), b in decimal(), offset in 0..20_usize) {
        prop_assert_eq!(equal(&a.0, &b.0), a.1 == b.1, "{} {}", a.0, b.0);
        let moved = format!("{}e{offset}", a.1);
        let same = format!("{}{}", a.1, if a.1 == 0 { String::new() } else { "0".repeat(offset) });
        prop_assert!(equal(&moved, &same), "{} {}", moved, same);
    }
}
