//! What is wrong with a JSON text, and where: the path grows from the inside out.

use std::fmt;

use crate::error::{Error, Kind, quoted};

/// Messages inside one another, as deep as prost goes.
pub(super) const NESTED: &str =
    "more than 100 messages are nested; a level of an object that is free in form counts as three";

/// Why a text is not the wanted message.
#[derive(Debug)]
pub(super) struct Fault {
    problem: Problem,
    /// From the inside out.
    path: Vec<Step>,
}

#[derive(Debug)]
enum Problem {
    /// Not JSON.
    Text { line: usize, column: usize, what: String },
    /// A key that the message does not have.
    Unknown(String),
    /// JSON, and not what this field takes.
    Value(String),
    /// More than is read.
    Limit(String),
}

/// One step of a path.
#[derive(Debug)]
pub(super) enum Step {
    /// Into a field or an entry of a map.
    Key(String),
    /// Into a list.
    Index(usize),
}

impl Fault {
    pub(super) fn text((line, column): (usize, usize), what: impl Into<String>) -> Self {
        Self::new(Problem::Text { line, column, what: what.into() })
    }

    pub(super) fn unknown(name: &str) -> Self {
        Self::new(Problem::Unknown(quoted(name).into_owned()))
    }

    pub(super) fn value(what: impl Into<String>) -> Self {
        Self::new(Problem::Value(what.into()))
    }

    pub(super) fn limit(what: impl Into<String>) -> Self {
        Self::new(Problem::Limit(what.into()))
    }

    fn new(problem: Problem) -> Self {
        Self { problem, path: Vec::new() }
    }

    /// Puts a step in front of the path.
    #[must_use]
    pub(super) fn within(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Key(key) if path.is_empty() => path += key,
                Step::Key(key) => path += &format!(".{key}"),
                Step::Index(index) => path += &format!("[{index}]"),
            }
        }
        path
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        let path = fault.path();
        match fault.problem {
            Problem::Text { line, column, what } => Self::new(
                Kind::InvalidArgument,
                format!("Invalid JSON payload received. Line {line}, column {column}: {what}."),
            ),
            Problem::Unknown(name) => {
                let place = if path.is_empty() { String::new() } else { format!(" at '{path}'") };
                Self {
                    says_where: true,
                    ..Self::bad_request(
                        path,
                        // Google's words: tools look for them.
                        format!(
                            "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
                        ),
                    )
                }
            }
            Problem::Value(what) => Self::bad_request(path, quoted(&what)),
            Problem::Limit(what) => Self { field: path, ..Self::new(Kind::TooLarge, what) },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.problem, self.path())
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(what: T) -> Self {
        let what = what.to_string();
        // What more prost says is the names of the hundred.
        if what.contains("recursion limit reached") { Self::value(NESTED) } else { Self::value(what) }
    }
}
