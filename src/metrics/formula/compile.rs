//! From a formula's text to postfix steps: Dijkstra's shunting yard, with its stack on the heap.

use std::iter::Peekable;
use std::str::CharIndices;

use super::{Action, Formula, Function, Operator, Problem, Step, SyntaxError};

pub(super) struct Compiler<'t> {
    text: &'t str,
    chars: Peekable<CharIndices<'t>>,
    /// Which character comes next, from 1.
    position: usize,
    steps: Vec<Step>,
    /// What waits for its operands to be complete.
    waiting: Vec<Waiting>,
    names: Vec<Box<str>>,
}

#[derive(Clone, Copy)]
struct Waiting {
    what: Pending,
    position: usize,
}

#[derive(Clone, Copy)]
enum Pending {
    Negate,
    Operator(Operator),
    Parenthesis,
    /// A function with the number of arguments begun.
    Call(Function, &'static str, usize),
}

impl Pending {
    /// How close it binds its operands. A minus sign binds less than `^`, so `-2^2` is -4.
    fn binding(self) -> u8 {
        match self {
            Self::Parenthesis | Self::Call(..) => 0,
            Self::Operator(Operator::Add | Operator::Subtract) => 1,
            Self::Operator(Operator::Multiply | Operator::Divide) => 2,
            Self::Negate => 3,
            Self::Operator(Operator::Power) => 4,
        }
    }
}

impl<'t> Compiler<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            chars: text.char_indices().peekable(),
            position: 1,
            steps: Vec::new(),
            waiting: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Operands and operators take turns until the text ends.
    pub(super) fn compile(mut self, is_score: impl Fn(&str) -> bool) -> Result<Formula, SyntaxError> {
        loop {
            self.operand(&is_score)?;
            if !self.operator()? {
                break;
            }
        }
        while let Some(waiting) = self.waiting.pop() {
            self.emit(waiting)?;
        }
        Ok(Formula { steps: self.steps, names: self.names })
    }

    /// Reads a number or a name, and the signs, parentheses and function names before it.
    fn operand(&mut self, is_score: impl Fn(&str) -> bool) -> Result<(), SyntaxError> {
        loop {
            self.skip_space();
            let position = self.position;
            let Some((start, c)) = self.peek() else { return fail(position, Problem::NoOperand) };
            match c {
                '-' => self.wait_for(Pending::Negate),
                '+' => self.next(),
                '(' => self.wait_for(Pending::Parenthesis),
                '.' | '0'..='9' => return self.number(start),
                c if c == '_' || c.is_alphabetic() => {
                    let name = self.word(start);
                    self.skip_space();
                    if self.peek().is_none_or(|(_, c)| c != '(') {
                        return self.score(name, position, is_score);
                    }
                    let known = Function::ALL.iter().find(|(known, _)| *known == name);
                    let Some(&(known, function)) = known else {
                        return fail(position, Problem::UnknownFunction(shortened(name)));
                    };
                    self.next();
                    self.waiting.push(Waiting { what: Pending::Call(function, known, 1), position });
                }
                '*' | '/' | '^' | ')' | ',' => return fail(position, Problem::NoOperand),
                other => return fail(position, Problem::UnknownCharacter(other)),
            }
        }
    }

    /// Reads closing parentheses and then an operator or a comma; false at the end of the text.
    fn operator(&mut self) -> Result<bool, SyntaxError> {
        loop {
            self.skip_space();
            let position = self.position;
            let Some((_, c)) = self.peek() else { return Ok(false) };
            let operator = match c {
                '+' => Operator::Add,
                '-' => Operator::Subtract,
                '*' => Operator::Multiply,
                '/' => Operator::Divide,
                '^' => Operator::Power,
                ')' => {
                    self.next();
                    self.close(position)?;
                    continue;
                }
                ',' => {
                    self.next();
                    self.next_argument(position)?;
                    return Ok(true);
                }
                '(' | '.' | '_' => return fail(position, Problem::NoOperator),
                c if c.is_alphanumeric() => return fail(position, Problem::NoOperator),
                other => return fail(position, Problem::UnknownCharacter(other)),
            };
            let pending = Pending::Operator(operator);
            // `^` goes from right to left: an equal one before it waits.
            let least = pending.binding() + u8::from(operator == Operator::Power);
            self.emit_down_to(least)?;
            self.wait_for(pending);
            return Ok(true);
        }
    }

    /// Emits what waits and binds at least this close.
    fn emit_down_to(&mut self, least: u8) -> Result<(), SyntaxError> {
        while let Some(waiting) = self.waiting.pop_if(|waiting| waiting.what.binding() >= least) {
            self.emit(waiting)?;
        }
        Ok(())
    }

    fn emit(&mut self, Waiting { what, position }: Waiting) -> Result<(), SyntaxError> {
        let action = match what {
            Pending::Negate => Action::Negate,
            Pending::Operator(operator) => Action::Operate(operator),
            Pending::Parenthesis | Pending::Call(..) => return fail(position, Problem::UnmatchedParenthesis),
        };
        self.steps.push(Step { action, position });
        Ok(())
    }

    fn close(&mut self, position: usize) -> Result<(), SyntaxError> {
        self.emit_down_to(1)?;
        match self.waiting.pop() {
            Some(Waiting { what: Pending::Call(function, name, arguments), position }) => {
                if !function.takes(arguments) {
                    return fail(position, Problem::TooManyArguments(name));
                }
                self.steps.push(Step { action: Action::Call(function, arguments), position });
                Ok(())
            }
            Some(_) => Ok(()),
            None => fail(position, Problem::UnmatchedParenthesis),
        }
    }

    fn next_argument(&mut self, position: usize) -> Result<(), SyntaxError> {
        self.emit_down_to(1)?;
        match self.waiting.last_mut() {
            Some(Waiting { what: Pending::Call(_, _, arguments), .. }) => {
                *arguments += 1;
                Ok(())
            }
            _ => fail(position, Problem::StrayComma),
        }
    }

    fn wait_for(&mut self, what: Pending) {
        self.waiting.push(Waiting { what, position: self.position });
        self.next();
    }

    fn number(&mut self, start: usize) -> Result<(), SyntaxError> {
        let position = self.position;
        let mut last = ' ';
        let end = self.skip_while(|c| {
            let belongs = c == '.' || c.is_alphanumeric() || matches!((last, c), ('e' | 'E', '+' | '-'));
            last = c;
            belongs
        });
        let digits = self.text.get(start..end).unwrap_or_default();
        // Words that Rust would read as numbers ("inf") begin with a letter and never come here.
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => {
                self.steps.push(Step { action: Action::Number(number), position });
                Ok(())
            }
            _ => fail(position, Problem::BadNumber),
        }
    }

    fn score(
        &mut self,
        name: &str,
        position: usize,
        is_score: impl Fn(&str) -> bool,
    ) -> Result<(), SyntaxError> {
        let index = match self.names.iter().position(|known| **known == *name) {
            Some(index) => index,
            None if is_score(name) => {
                self.names.push(name.into());
                self.names.len() - 1
            }
            None => return fail(position, Problem::UnknownName(shortened(name))),
        };
        self.steps.push(Step { action: Action::Score(index), position });
        Ok(())
    }

    fn word(&mut self, start: usize) -> &'t str {
        let end = self.skip_while(|c| c == '_' || c.is_alphanumeric());
        self.text.get(start..end).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<(usize, char)> {
        self.chars.peek().copied()
    }

    fn next(&mut self) {
        self.chars.next();
        self.position += 1;
    }

    fn skip_space(&mut self) {
        self.skip_while(char::is_whitespace);
    }

    /// Goes on to the first character that is not like this, and gives its place in the text.
    fn skip_while(&mut self, mut is: impl FnMut(char) -> bool) -> usize {
        while let Some((at, c)) = self.peek() {
            if !is(c) {
                return at;
            }
            self.next();
        }
        self.text.len()
    }
}

fn fail<T>(position: usize, problem: Problem) -> Result<T, SyntaxError> {
    Err(SyntaxError { position, problem })
}

/// The start of a name, short enough for an error message.
fn shortened(name: &str) -> String {
    name.chars().take(40).collect()
}
