//! Formulas that make one score of several: the `calculate_output` of a multi grader.
//!
//! Numbers, names of scores, `+ - * / ^`, parentheses and the functions `min max abs floor ceil exp sqrt log`.
//! `^` goes from right to left and binds closer than a minus sign before it: `-2^2` is -4, `2^-1` is 0.5, `2^3^2`
//! is 512. `log` is the natural logarithm; `min` and `max` take one or more arguments, the other functions
//! one. Names are letters, digits and underscores, not a digit first. Arithmetic is in 64-bit floats.
//!
//! A formula is compiled once, against the names it may use, and evaluated as often as there are scores.
//! Every step has to give a finite number: `min(1, a / 0)` is an error, not 1. Nesting is as deep as the text is
//! long, which may have [`MOST_BYTES`]; nothing recurses.
//!
//! ```
//! use rapid_eval::metrics::formula::Formula;
//!
//! let formula = Formula::compile("0.25 * tone + 0.75 * facts", &["tone", "facts"])?;
//! let score = formula.evaluate(|name| Some(if name == "tone" { 1.0 } else { 0.5 }));
//! assert_eq!(score, Ok(0.625));
//! # Ok::<(), rapid_eval::metrics::formula::SyntaxError>(())
//! ```

mod compile;

use std::fmt;

use compile::Compiler;

/// The longest formula, in bytes.
pub const MOST_BYTES: usize = 64 << 10;

/// A compiled formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    /// In postfix order: operands before what is done with them.
    steps: Vec<Step>,
    names: Vec<Box<str>>,
}

/// A step of the evaluation, and where in the formula it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    action: Action,
    position: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Action {
    Number(f64),
    /// The score with the name of this index.
    Score(usize),
    Negate,
    Operate(Operator),
    /// A function of so many operands.
    Call(Function, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Abs,
    Floor,
    Ceil,
    Exp,
    Sqrt,
    Log,
}

impl Function {
    const ALL: [(&'static str, Self); 8] = [
        ("min", Self::Min),
        ("max", Self::Max),
        ("abs", Self::Abs),
        ("floor", Self::Floor),
        ("ceil", Self::Ceil),
        ("exp", Self::Exp),
        ("sqrt", Self::Sqrt),
        ("log", Self::Log),
    ];

    fn takes(self, arguments: usize) -> bool {
        arguments == 1 || matches!(self, Self::Min | Self::Max)
    }

    fn call(self, first: f64, more: &[f64]) -> f64 {
        match self {
            Self::Min => more.iter().fold(first, |least, value| least.min(*value)),
            Self::Max => more.iter().fold(first, |most, value| most.max(*value)),
            Self::Abs => first.abs(),
            Self::Floor => first.floor(),
            Self::Ceil => first.ceil(),
            Self::Exp => first.exp(),
            Self::Sqrt => first.sqrt(),
            Self::Log => first.ln(),
        }
    }
}

impl Operator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Power => left.powf(right),
        }
    }
}

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Which character it is about, from 1; one past the last if the end is.
    pub position: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A number, name or parenthesis has to come here, and something else does.
    NoOperand,
    /// An operator or the end has to come here, and something else does.
    NoOperator,
    /// A character that no formula has.
    UnknownCharacter(char),
    /// A name that no score has.
    UnknownName(String),
    /// Something called that is no function.
    UnknownFunction(String),
    /// A function with more arguments than the one it takes.
    TooManyArguments(&'static str),
    /// A parenthesis without its partner.
    UnmatchedParenthesis,
    /// A comma outside a function's arguments.
    StrayComma,
    /// Digits that make no number, or one too large.
    BadNumber,
    /// More than [`MOST_BYTES`].
    TooLong,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "formula, character {}: ", self.position)?;
        match &self.problem {
            Problem::NoOperand => f.write_str("a number, a name or a parenthesis is missing"),
            Problem::NoOperator => f.write_str("an operator is missing"),
            Problem::UnknownCharacter(c) => write!(f, "unknown character {c:?}"),
            Problem::UnknownName(name) => write!(f, "no grader has the name {name:?}"),
            Problem::UnknownFunction(name) => {
                let known = Function::ALL.map(|(name, _)| name).join(", ");
                write!(f, "no function has the name {name:?}; there are {known}")
            }
            Problem::TooManyArguments(function) => write!(f, "{function} takes one argument"),
            Problem::UnmatchedParenthesis => f.write_str("the other parenthesis is missing"),
            Problem::StrayComma => f.write_str("a comma outside min(…) and max(…)"),
            Problem::BadNumber => f.write_str("not a number"),
            Problem::TooLong => write!(f, "longer than {MOST_BYTES} bytes"),
        }
    }
}

impl std::error::Error for SyntaxError {}

/// Why a formula has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoValue {
    /// A score is not given.
    MissingScore(String),
    /// A step gives no finite number, such as a division by 0.
    NotFinite {
        /// Which character stands for the step, from 1.
        position: usize,
    },
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingScore(name) => write!(f, "the grader {name:?} has no score"),
            Self::NotFinite { position } => {
                write!(f, "formula, character {position}: the result is not a finite number")
            }
        }
    }
}

impl std::error::Error for NoValue {}

impl Formula {
    /// Reads a formula over the scores called `names`. A function's name can be a score's, too.
    ///
    /// # Errors
    /// [`SyntaxError`].
    pub fn compile(text: &str, names: &[impl AsRef<str>]) -> Result<Self, SyntaxError> {
        if text.len() > MOST_BYTES {
            return Err(SyntaxError { position: 1, problem: Problem::TooLong });
        }
        Compiler::new(text).compile(|name| names.iter().any(|known| known.as_ref() == name))
    }

    /// The names of the scores that the formula uses, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// The value for these scores, finite.
    ///
    /// # Errors
    /// [`NoValue`].
    pub fn evaluate(&self, score_of: impl Fn(&str) -> Option<f64>) -> Result<f64, NoValue> {
        let mut scores = Vec::with_capacity(self.names.len());
        for name in self.names() {
            scores.push(score_of(name).ok_or_else(|| NoValue::MissingScore(name.to_owned()))?);
        }
        let mut values: Vec<f64> = Vec::new();
        for step in &self.steps {
            let value = match step.action {
                Action::Number(number) => number,
                Action::Score(index) => scores.get(index).copied().unwrap_or(f64::NAN),
                Action::Negate => -pop(&mut values),
                Action::Operate(operator) => {
                    let right = pop(&mut values);
                    operator.apply(pop(&mut values), right)
                }
                Action::Call(function, arguments) => {
                    let given = values.split_off(values.len().saturating_sub(arguments));
                    given.split_first().map_or(f64::NAN, |(first, more)| function.call(*first, more))
                }
            };
            if !value.is_finite() {
                return Err(NoValue::NotFinite { position: step.position });
            }
            values.push(value);
        }
        Ok(pop(&mut values))
    }
}

/// The operand on top; the compiler sees to it that there is one.
fn pop(values: &mut Vec<f64>) -> f64 {
    values.pop().unwrap_or(f64::NAN)
}
