//! Templates that put values of an item and a model's sample into a grader's texts.
//!
//! `{{ item.question }}` and `{{ sample.output_tools[0].function.arguments.city }}` are replaced by what is at
//! that path; the rest of the template stays as it is. The root is `item` or `sample`, steps are `.name` and
//! `[number]`. A name is anything without dots, brackets and braces. A path may go on into a string that holds JSON.
//!
//! A string is put in as it is, every other value as JSON text: `null`, `0.5`, `{"a":1}`. A path without a value
//! is an error that names it. Replaced once: braces in a value are text. `{{{item.x}}}` is a
//! placeholder between two braces.
//!
//! One rendering writes at most [`MOST_BYTES`] and reads at most as much JSON out of strings.
//!
//! ```
//! use rapid_eval::grader::template::Template;
//! use serde_json::json;
//!
//! let template: Template = "{{ item.a }} = {{item.list[1]}}".parse()?;
//! let text = template.render(&json!({ "a": "x", "list": [1, 2.5] }), &json!({}))?;
//! assert_eq!(text, "x = 2.5");
//! # Ok::<(), rapid_eval::grader::template::TemplateError>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// The most bytes that one rendering may write, and the most JSON it may read out of strings.
pub const MOST_BYTES: usize = 64 << 20;

/// The most steps that a path may have.
pub const MOST_STEPS: usize = 128;

/// A part of a rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'t> {
    /// Of the template.
    Text(&'t str),
    /// Of the item or the sample.
    Value {
        /// Where it was, as written in the template.
        path: &'t str,
        /// The value as text.
        text: Cow<'t, str>,
    },
}

/// A text with places for values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Path),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    /// As written, for errors.
    text: String,
    root: Root,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Item,
    Sample,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
}

/// Why a text is no template, or gives no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateError {
    /// `{{` without `}}`.
    Unclosed {
        /// Which byte of the template the braces begin at.
        at: usize,
    },
    /// What is between the braces is no path from `item` or `sample`.
    NotAPath(String),
    /// There is no value at this path.
    NoValue(String),
    /// More than [`MOST_BYTES`].
    TooLong,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed { at } => write!(f, "template: the {{{{ at byte {at} has no }}}}"),
            Self::NotAPath(text) => {
                write!(f, "template: {text:?} is not a path such as item.name or sample.output_text")
            }
            Self::NoValue(path) => write!(f, "template: there is no value at {path}"),
            Self::TooLong => write!(f, "template: the result is longer than {MOST_BYTES} bytes"),
        }
    }
}

impl std::error::Error for TemplateError {}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, opened)) = rest.split_once("{{") {
            // The two braces next to the path are the placeholder's.
            let path = opened.trim_start_matches('{');
            let extra = opened.len() - path.len();
            let at = text.len() - opened.len() - 2;
            let (path, after) = path.split_once("}}").ok_or(TemplateError::Unclosed { at })?;
            pieces.push(Piece::Text(format!("{before}{}", "{".repeat(extra))));
            pieces.push(Piece::Placeholder(path.parse()?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces })
    }
}

impl FromStr for Path {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let text = text.trim();
        let not_a_path = || TemplateError::NotAPath(shortened(text));
        let end = text.find(['.', '[']).unwrap_or(text.len());
        let (root, mut rest) = text.split_at_checked(end).ok_or_else(not_a_path)?;
        let root = match root {
            "item" => Root::Item,
            "sample" => Root::Sample,
            _ => return Err(not_a_path()),
        };
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(name) = rest.strip_prefix('.') {
                let end = name.find(['.', '[', ']', '{', '}']).unwrap_or(name.len());
                let (name, after) = name.split_at_checked(end).ok_or_else(not_a_path)?;
                if name.is_empty() {
                    return Err(not_a_path());
                }
                steps.push(Step::Name(name.to_owned()));
                rest = after;
            } else {
                let (index, after) =
                    rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(not_a_path)?;
                if !index.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(not_a_path());
                }
                steps.push(Step::Index(index.parse().map_err(|_| not_a_path())?));
                rest = after;
            }
            if steps.len() > MOST_STEPS {
                return Err(not_a_path());
            }
        }
        Ok(Self { text: text.to_owned(), root, steps })
    }
}

impl Template {
    /// The text for one item and one sample.
    ///
    /// # Errors
    /// [`TemplateError::NoValue`] and [`TemplateError::TooLong`].
    pub fn render(&self, item: &Value, sample: &Value) -> Result<String, TemplateError> {
        let mut text = String::new();
        for part in self.parts(item, sample)? {
            text.push_str(match &part {
                Part::Text(text) => text,
                Part::Value { text, .. } => text,
            });
        }
        Ok(text)
    }

    /// The same text in parts, for whoever has to tell values from the template.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub fn parts<'t>(&'t self, item: &'t Value, sample: &'t Value) -> Result<Vec<Part<'t>>, TemplateError> {
        let mut parts = Vec::with_capacity(self.pieces.len());
        let (mut unread, mut unwritten) = (MOST_BYTES, MOST_BYTES);
        for piece in &self.pieces {
            let (part, bytes) = match piece {
                Piece::Text(text) => (Part::Text(text), text.len()),
                Piece::Placeholder(path) => {
                    let root = match path.root {
                        Root::Item => item,
                        Root::Sample => sample,
                    };
                    let text = path.text_at(root, &mut unread)?;
                    let bytes = text.len();
                    (Part::Value { path: &path.text, text }, bytes)
                }
            };
            unwritten = unwritten.checked_sub(bytes).ok_or(TemplateError::TooLong)?;
            parts.push(part);
        }
        Ok(parts)
    }

    /// How many bytes a rendering has at most, when item and sample have `data_bytes` together.
    pub fn most_bytes(&self, data_bytes: usize) -> usize {
        self.pieces.iter().fold(0, |bytes: usize, piece| {
            bytes.saturating_add(match piece {
                Piece::Text(text) => text.len(),
                Piece::Placeholder(_) => data_bytes,
            })
        })
    }

    /// Whether a placeholder begins with `sample.` and this name.
    pub fn reads_of_sample(&self, name: &str) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Text(_) => false,
            Piece::Placeholder(path) => {
                path.root == Root::Sample
                    && matches!(path.steps.first(), Some(Step::Name(first)) if first == name)
            }
        })
    }
}

impl Path {
    /// What stands at the path. `unread` is how much JSON may still be read out of strings.
    fn text_at<'v>(&self, root: &'v Value, unread: &mut usize) -> Result<Cow<'v, str>, TemplateError> {
        let no_value = || TemplateError::NoValue(shortened(&self.text));
        let mut value = Cow::Borrowed(root);
        for step in &self.steps {
            if let Value::String(json) = &*value {
                *unread = unread.checked_sub(json.len()).ok_or(TemplateError::TooLong)?;
                value = Cow::Owned(serde_json::from_str(json).map_err(|_| no_value())?);
            }
            value = match value {
                Cow::Borrowed(value) => Cow::Borrowed(step.of(value).ok_or_else(no_value)?),
                Cow::Owned(value) => Cow::Owned(step.taken_from(value).ok_or_else(no_value)?),
            };
        }
        Ok(match value {
            Cow::Borrowed(Value::String(text)) => Cow::Borrowed(text),
            Cow::Owned(Value::String(text)) => Cow::Owned(text),
            Cow::Borrowed(other) => Cow::Owned(other.to_string()),
            Cow::Owned(other) => Cow::Owned(other.to_string()),
        })
    }
}

impl Step {
    fn of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Name(name) => value.as_object()?.get(name),
            Self::Index(index) => value.as_array()?.get(*index),
        }
    }

    fn taken_from(&self, mut value: Value) -> Option<Value> {
        match self {
            Self::Name(name) => value.as_object_mut()?.remove(name),
            Self::Index(index) => Some(value.as_array_mut()?.get_mut(*index)?.take()),
        }
    }
}

/// The start of a path, short enough for an error message.
fn shortened(path: &str) -> String {
    path.chars().take(120).collect()
}
