//! JSON objects in a text that was not written by a machine.
//!
//! [`last_objects`] finds the outermost objects of a text, and reads past what judges get wrong most often:
//! raw line breaks in strings, trailing commas, comments, single or typographic quotes, bare words. It says
//! when it had to.
//!
//! An object that the text ends in the middle of hides whatever its author was about to say, so nothing
//! before or inside of it is trusted: see [`Objects::unfinished`].
//!
//! Time is linear: an attempt that fails costs what it has read, and when all attempts together have read
//! the text [`MAX_PASSES`] times over, the search ends.

use std::collections::VecDeque;
use std::ops::Range;

use serde_json::{Map, Number, Value};

/// No verdict is nested deeper.
const MAX_DEPTH: usize = 16;
/// How often a text may be read over.
const MAX_PASSES: usize = 4;

/// An object in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Its members.
    pub(super) object: Map<String, Value>,
    /// Where it stands, braces included.
    pub(super) place: Range<usize>,
    /// True when it is not strict JSON.
    pub(super) repaired: bool,
}

/// What [`last_objects`] found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Objects {
    /// The last few wanted objects, in the order of the text.
    pub(super) found: VecDeque<Found>,
    /// The text ends inside of an object.
    pub(super) unfinished: bool,
    /// The search was given up.
    pub(super) tangled: bool,
}

/// The last `keep` of those outermost objects in `text` that `wanted` accepts.
pub(super) fn last_objects(text: &str, keep: usize, wanted: impl Fn(&Map<String, Value>) -> bool) -> Objects {
    let mut objects = Objects::default();
    let mut allowed = text.len().saturating_mul(MAX_PASSES);
    let mut from = 0;
    while let Some(start) = text[from..].find('{').map(|at| from + at) {
        let mut reader = Reader { text, at: start, repaired: false };
        let outcome = reader.object(0);
        match outcome {
            Ok(object) => {
                if wanted(&object) {
                    if objects.found.len() == keep {
                        objects.found.pop_front();
                    }
                    objects.found.push_back(Found {
                        object,
                        place: start..reader.at,
                        repaired: reader.repaired,
                    });
                }
                from = reader.at;
            }
            Err(Broken::AtEnd) => {
                objects.unfinished = true;
                return objects;
            }
            Err(Broken::Here) => from = start + 1,
        }
        let spent = reader.at.saturating_sub(start) + 1;
        let Some(left) = allowed.checked_sub(spent) else {
            objects.tangled = true;
            return objects;
        };
        allowed = left;
    }
    objects
}

/// Why something is no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// It is something else.
    Here,
    /// The text ended before it did.
    AtEnd,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    repaired: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Result<char, Broken> {
        let next = self.peek().ok_or(Broken::AtEnd)?;
        self.at += next.len_utf8();
        Ok(next)
    }

    /// The next character that is neither white space nor comment, not yet taken.
    fn next_token(&mut self) -> Result<char, Broken> {
        loop {
            let next = self.peek().ok_or(Broken::AtEnd)?;
            let rest = &self.text[self.at..];
            if next.is_whitespace() {
                self.repaired |= !next.is_ascii();
                self.at += next.len_utf8();
            } else if rest.starts_with("//") || next == '#' {
                self.repaired = true;
                self.at += rest.find('\n').ok_or(Broken::AtEnd)?;
            } else if rest.starts_with("/*") {
                self.repaired = true;
                self.at += rest.find("*/").ok_or(Broken::AtEnd)? + 2;
            } else {
                return Ok(next);
            }
        }
    }

    fn take(&mut self, wanted: char) -> Result<(), Broken> {
        if self.next_token()? != wanted {
            return Err(Broken::Here);
        }
        self.next().map(|_| ())
    }

    fn value(&mut self, depth: usize) -> Result<Value, Broken> {
        if depth > MAX_DEPTH {
            return Err(Broken::Here);
        }
        match self.next_token()? {
            '{' => self.object(depth).map(Value::Object),
            '[' => self.array(depth),
            other => match closing_quote(other) {
                Some(closing) => self.string(closing).map(Value::String),
                None => self.word(),
            },
        }
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, Broken> {
        let mut object = Map::new();
        self.take('{')?;
        loop {
            if self.next_token()? == '}' {
                self.repaired |= !object.is_empty();
                break;
            }
            let key = match closing_quote(self.next_token()?) {
                Some(closing) => self.string(closing)?,
                None => self.bare_key()?,
            };
            self.take(':')?;
            let value = self.value(depth + 1)?;
            object.insert(key, value);
            match self.next_token()? {
                ',' => self.at += 1,
                '}' => break,
                _ => return Err(Broken::Here),
            }
        }
        self.take('}')?;
        Ok(object)
    }

    fn array(&mut self, depth: usize) -> Result<Value, Broken> {
        let mut items = Vec::new();
        self.take('[')?;
        loop {
            if self.next_token()? == ']' {
                self.repaired |= !items.is_empty();
                break;
            }
            items.push(self.value(depth + 1)?);
            match self.next_token()? {
                ',' => self.at += 1,
                ']' => break,
                _ => return Err(Broken::Here),
            }
        }
        self.take(']')?;
        Ok(Value::Array(items))
    }

    fn bare_key(&mut self) -> Result<String, Broken> {
        let rest = &self.text[self.at..];
        let length =
            rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).ok_or(Broken::AtEnd)?;
        if length == 0 {
            return Err(Broken::Here);
        }
        self.repaired = true;
        self.at += length;
        Ok(rest[..length].to_owned())
    }

    /// A number, a constant, or words without quotes up to the next comma, bracket or line break.
    fn word(&mut self) -> Result<Value, Broken> {
        let rest = &self.text[self.at..];
        let length = rest.find([',', '}', ']', '{', '[', ':', '"', '\n']).ok_or(Broken::AtEnd)?;
        let word = rest.get(..length).unwrap_or_default();
        let comment = [" //", " /*", " #"].into_iter().filter_map(|mark| word.find(mark)).min();
        let word = word.get(..comment.unwrap_or(length)).unwrap_or_default().trim_end();
        if word.is_empty() {
            return Err(Broken::Here);
        }
        self.at += word.len();
        if let Ok(number) = serde_json::from_str::<Number>(word) {
            return Ok(Value::Number(number));
        }
        let constant = match word {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "null" => return Ok(Value::Null),
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::Null,
            other => Value::String(other.to_owned()),
        };
        self.repaired = true;
        Ok(constant)
    }

    fn string(&mut self, closing: char) -> Result<String, Broken> {
        self.next()?;
        self.repaired |= closing != '"';
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| c == closing || c == '\\' || c.is_ascii_control());
            let plain = &rest[..plain.ok_or(Broken::AtEnd)?];
            string.push_str(plain);
            self.at += plain.len();
            match self.next()? {
                '\\' => self.escape(&mut string)?,
                // an apostrophe ends a string only where a string can end
                '\'' if closing == '\'' => {
                    let after = self.text[self.at..].trim_start().chars().next();
                    match after {
                        None => return Err(Broken::AtEnd),
                        Some(',' | ':' | '}' | ']') => return Ok(string),
                        Some(_) => string.push('\''),
                    }
                }
                next if next == closing => return Ok(string),
                next => {
                    self.repaired |= next.is_ascii_control() && next != '\u{7f}';
                    string.push(next);
                }
            }
        }
    }

    fn escape(&mut self, string: &mut String) -> Result<(), Broken> {
        match self.next()? {
            'n' => string.push('\n'),
            't' => string.push('\t'),
            'r' => string.push('\r'),
            'b' => string.push('\u{8}'),
            'f' => string.push('\u{c}'),
            'u' => {
                let first = self.code_unit()?;
                let second = match first {
                    0xD800..0xDC00 if self.text[self.at..].starts_with("\\u") => {
                        self.at += 2;
                        Some(self.code_unit()?)
                    }
                    _ => None,
                };
                for decoded in char::decode_utf16([Some(first), second].into_iter().flatten()) {
                    self.repaired |= decoded.is_err();
                    string.push(decoded.unwrap_or(char::REPLACEMENT_CHARACTER));
                }
            }
            same @ ('"' | '\\' | '/') => string.push(same),
            other => {
                // "\_" of Markdown and "\alpha" of LaTeX mean the characters themselves
                self.repaired = true;
                if !matches!(other, '\'' | '\n') {
                    string.push('\\');
                }
                string.push(other);
            }
        }
        Ok(())
    }

    fn code_unit(&mut self) -> Result<u16, Broken> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.next()?.to_digit(16).ok_or(Broken::Here)?;
            unit = unit * 16 + digit;
        }
        u16::try_from(unit).map_err(|_| Broken::Here)
    }
}

/// The quote that ends a string which `opening` begins; `None` when it begins none.
fn closing_quote(opening: char) -> Option<char> {
    match opening {
        '"' | '\'' => Some(opening),
        '\u{201c}' | '\u{201d}' => Some('\u{201d}'),
        '\u{201e}' => Some('\u{201c}'),
        '\u{2018}' | '\u{2019}' => Some('\u{2019}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(text: &str) -> Objects {
        last_objects(text, 16, |_| true)
    }

    fn only(text: &str) -> Found {
        let mut found = objects(text).found;
        assert_eq!(found.len(), 1, "{text}");
        found.pop_front().unwrap()
    }

    #[test]
    fn strict_json_is_not_flagged_and_agrees_with_serde() {
        for text in [
            r#"{}"#,
            r#"{"a": [1, -2.5e3, true, false, null, "x\n\"\\\/\b\f\r\t\u00e9\ud83d\ude00"], "b": {"c": []}}"#,
            "{\n  \"a\" :\t1 ,\r\n \"b\": \"it's {fine}\" }",
        ] {
            let found = only(text);
            assert!(!found.repaired, "{text}");
            assert_eq!(Value::Object(found.object), serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn the_usual_slips_are_read_and_flagged() {
        let expected = serde_json::json!({"explanation": "it's a\nb", "score": 3});
        for text in [
            "{\"explanation\": \"it's a\nb\", \"score\": 3}",
            "{\"explanation\": \"it's a\\nb\", \"score\": 3,}",
            "{\"explanation\": \"it's a\\nb\", // why\n \"score\": 3 /* of 5 */}",
            "{'explanation': 'it's a\\nb', 'score': 3}",
            "{“explanation”: “it's a\\nb”, “score”: 3}",
            "{explanation: \"it's a\\nb\", score: 3}",
        ] {
            let found = only(text);
            assert!(found.repaired, "{text}");
            assert_eq!(Value::Object(found.object), expected, "{text}");
        }
    }

    #[test]
    fn braces_of_prose_are_no_objects() {
        assert!(
            objects("the set {1, 2} and {name} and {} {").found.iter().all(|found| found.object.is_empty())
        );
        assert_eq!(only("the set {1, 2. Verdict: {\"score\": 1}").place, 24..36);
    }

    #[test]
    fn an_object_without_end_is_noticed() {
        assert!(objects(r#"{"score": 5} {"explanation": "cut"#).unfinished);
        assert!(objects(r#"{"explanation": "cut", "parts": {"score": 5}"#).unfinished);
        assert!(!objects(r#"{"score": 5} and so on"#).unfinished);
    }

    #[test]
    fn hostile_texts_take_linear_work() {
        let size = 1 << 20;
        for text in [
            "{",
            "{\"a\":",
            "{\"a\":[",
            "{\"a\":{}",
            "{a:'",
            "{\"a\":“",
            "{/*",
            "{#",
            "{}",
            "[{",
            "}",
            "{\"a\":\\",
        ] {
            let hostile = text.repeat(size / text.len());
            let read = last_objects(&hostile, 16, |_| true);
            assert!(read.found.len() <= 16);
            // a closing quote at the far end makes every attempt run to it, until the passes are used up
            let hostile = format!("{hostile}”!");
            let read = last_objects(&hostile, 16, |_| true);
            assert!(read.found.len() <= 16);
        }
        let quotes = format!("{}”!", "{\"a\":“".repeat(1 << 16));
        assert!(last_objects(&quotes, 16, |_| true).tangled);
    }
}
