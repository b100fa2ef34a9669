//! A JSON text as a tree that fits a message: fields found by name, repeats gathered, leniency undone, so
//! that what is left is what the strict mapping reads.

use std::borrow::Cow;

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::wire::MAX_PARTS;
use crate::wire::json::fault::{Fault, Step};
use crate::wire::json::lexer::{Lexer, Word};

/// Objects and lists inside one another.
const MAX_DEPTH: usize = 128;

/// Values of any sort in one text.
const MAX_VALUES: usize = 4 * MAX_PARTS;

/// What a message takes in memory while it is read, about.
const PART_BYTES: usize = 1024;

/// Keys that a client sends although the public schema has no such field: read and left out.
const LEFT_OUT: [(&str, &str); 4] = [
    ("EvaluateInstancesRequest", "rubricBasedMetricInput"),
    ("EvaluateInstancesRequest", "rubric_based_metric_input"),
    ("LLMBasedMetricSpec", "customOutputFormatConfig"),
    ("LLMBasedMetricSpec", "custom_output_format_config"),
];

/// A value.
#[derive(Debug)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    /// As written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// An object whose keys are data: of a map, of a `Struct`, of whatever else is free in form.
    Free(Vec<(Cow<'a, str>, Node<'a>)>),
    /// An object whose keys are fields, each there once.
    Message(Vec<(FieldDescriptor, Node<'a>)>),
}

/// A whole text.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) root: Node<'a>,
    /// Messages and items of lists that it holds.
    parts: usize,
}

impl Tree<'_> {
    /// What it takes in memory to make a message of it, about, without its texts.
    pub(super) fn memory_bytes(&self) -> usize {
        self.parts.saturating_mul(PART_BYTES)
    }
}

/// Reads a text that holds one message and nothing else.
pub(super) fn read<'a>(text: &'a str, message: &MessageDescriptor) -> Result<Tree<'a>, Fault> {
    let mut reader = Reader { lexer: Lexer::new(text), depth: 0, values: 0, parts: 0 };
    let root = reader.value(&Shape::Message(message.clone()))?;
    if reader.lexer.peek().is_some() {
        return Err(reader.wrong("expected nothing after the message"));
    }
    if !matches!(root, Node::Message(_)) {
        return Err(reader.wrong("expected an object"));
    }
    Ok(Tree { root, parts: reader.parts })
}

/// What an object at this place is.
#[derive(Debug)]
enum Shape {
    /// A message with fields.
    Message(MessageDescriptor),
    /// Free in form, each value a message of its own.
    Free,
    /// Wrong here, or one of the well-known types that are scalars in JSON.
    Scalar,
}

impl Shape {
    fn of(kind: &Kind) -> Self {
        let Some(message) = kind.as_message() else { return Self::Scalar };
        match message.full_name() {
            "google.protobuf.Struct"
            | "google.protobuf.Value"
            | "google.protobuf.ListValue"
            | "google.protobuf.Any" => Self::Free,
            name if name.starts_with("google.protobuf.") => Self::Scalar,
            _ => Self::Message(message.clone()),
        }
    }
}

struct Reader<'a> {
    lexer: Lexer<'a>,
    depth: usize,
    values: usize,
    parts: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self, what: impl Into<String>) -> Fault {
        Fault::text(self.lexer.place(), what)
    }

    fn value(&mut self, shape: &Shape) -> Result<Node<'a>, Fault> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Fault::limit(format!("the request has more than {MAX_VALUES} values; split it")));
        }
        let word = self.lexer.word().map_err(|what| self.wrong(what))?;
        self.parts += match (shape, &word) {
            (Shape::Message(_), Word::Object) => 1,
            // The value, and the entry of the object that holds it.
            (Shape::Free, _) => 2,
            _ => 0,
        };
        if self.parts > MAX_PARTS {
            return Err(Fault::limit(format!(
                "the request has more than {MAX_PARTS} messages and list items inside; split it"
            )));
        }
        Ok(match word {
            Word::Null => Node::Null,
            Word::Bool(bool) => Node::Bool(bool),
            Word::Number(number) => Node::Number(number),
            Word::Text(text) => Node::Text(text),
            Word::List => self.nested(|reader| reader.list(shape))?,
            Word::Object => self.nested(|reader| match shape {
                Shape::Message(message) => reader.message(message),
                Shape::Free | Shape::Scalar => reader.entries(shape),
            })?,
        })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Node<'a>, Fault>) -> Result<Node<'a>, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(self.wrong(format!("objects and lists are nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    /// What follows `[`. A comma may stand before the `]`.
    fn list(&mut self, shape: &Shape) -> Result<Node<'a>, Fault> {
        let mut items = Vec::new();
        while !self.lexer.take(b']') {
            self.parts += usize::from(matches!(shape, Shape::Scalar));
            let item = self.value(shape).map_err(|fault| fault.within(Step::Index(items.len())))?;
            items.push(item);
            self.comma_or(b']', "expected , or ] after an item")?;
        }
        Ok(Node::List(items))
    }

    /// What follows the `{` of an object whose keys are data.
    fn entries(&mut self, shape: &Shape) -> Result<Node<'a>, Fault> {
        let mut entries = Vec::new();
        while let Some(key) = self.key()? {
            match self.value(shape) {
                Ok(value) => entries.push((key, value)),
                Err(fault) => return Err(fault.within(Step::Key(key.into_owned()))),
            }
            self.comma_or(b'}', "expected , or } after a value")?;
        }
        Ok(Node::Free(entries))
    }

    /// What follows the `{` of a message.
    fn message(&mut self, message: &MessageDescriptor) -> Result<Node<'a>, Fault> {
        let mut fields: Vec<(FieldDescriptor, Node<'a>)> = Vec::new();
        while let Some(key) = self.key()? {
            let found = message.get_field_by_json_name(&key).or_else(|| message.get_field_by_name(&key));
            if let Some(field) = found {
                let name = field.name().to_owned();
                self.field(&mut fields, field).map_err(|fault| fault.within(Step::Key(name)))?;
            } else if LEFT_OUT.contains(&(message.name(), &key)) {
                self.value(&Shape::Scalar)?;
            } else {
                return Err(Fault::unknown(&key));
            }
            self.comma_or(b'}', "expected , or } after a value")?;
        }
        Ok(Node::Message(fields))
    }

    /// A field's value, put beside those already there.
    fn field(
        &mut self,
        fields: &mut Vec<(FieldDescriptor, Node<'a>)>,
        field: FieldDescriptor,
    ) -> Result<(), Fault> {
        let place = fields.iter().position(|(earlier, _)| *earlier == field);
        let (already, earlier) = match place.and_then(|place| fields.get_mut(place)) {
            Some((_, Node::List(items))) => (items.len(), true),
            Some(_) => (0, true),
            None => (0, false),
        };
        let Some(value) = self.field_value(&field, already)? else { return Ok(()) };
        if !earlier {
            if let Some(oneof) = field.containing_oneof()
                && let Some((other, _)) =
                    fields.iter().find(|(other, _)| other.containing_oneof().as_ref() == Some(&oneof))
            {
                return Err(Fault::value(format!(
                    "is set beside {}, and only one of {} can be",
                    other.name(),
                    oneof.name()
                )));
            }
            fields.push((field, value));
            return Ok(());
        }
        match (place.and_then(|place| fields.get_mut(place)), value) {
            (Some((_, Node::List(items))), Node::List(more)) => items.extend(more),
            (Some((_, Node::Free(entries))), Node::Free(more)) if field.is_map() => entries.extend(more),
            _ => return Err(Fault::value("is set twice")),
        }
        Ok(())
    }

    /// A field's value; `None` for a null that says "not set".
    fn field_value(&mut self, field: &FieldDescriptor, already: usize) -> Result<Option<Node<'a>>, Fault> {
        let kind = field.kind();
        if field.is_map() {
            let value = kind.as_message().map(|entry| entry.map_entry_value_field().kind());
            let shape = value.map_or(Shape::Scalar, |value| Shape::of(&value));
            if self.lexer.peek() == Some(b'{') {
                self.lexer.take(b'{');
                return self.nested(|reader| reader.entries(&shape)).map(Some);
            }
            let wrong = self.value(&Shape::Scalar)?;
            return Ok((!matches!(wrong, Node::Null)).then_some(wrong));
        }
        let shape = Shape::of(&kind);
        if field.is_list() {
            if self.lexer.peek() == Some(b'[') {
                let list = self.value(&shape)?;
                if let Node::List(items) = &list
                    && let Some(null) = items.iter().position(|item| matches!(item, Node::Null))
                    && !null_is_a_value(&kind)
                {
                    return Err(Fault::value("is null").within(Step::Index(already + null)));
                }
                return Ok(Some(list));
            }
            // One value stands for a list of one.
            let value = self.value(&shape).map_err(|fault| fault.within(Step::Index(already)))?;
            return Ok((!matches!(value, Node::Null)).then(|| Node::List(vec![value])));
        }
        let value = self.value(&shape)?;
        Ok((!matches!(value, Node::Null) || null_is_a_value(&kind)).then_some(value))
    }

    /// The key of the next member and its colon; `None` when the object ends.
    fn key(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        if self.lexer.take(b'}') {
            return Ok(None);
        }
        let key = self.lexer.key().map_err(|what| self.wrong(what))?;
        if !self.lexer.take(b':') {
            return Err(self.wrong("expected : after a key"));
        }
        Ok(Some(key))
    }

    fn comma_or(&mut self, end: u8, expected: &str) -> Result<(), Fault> {
        if self.lexer.take(b',') || self.lexer.peek() == Some(end) {
            Ok(())
        } else {
            Err(self.wrong(expected))
        }
    }
}

fn null_is_a_value(kind: &Kind) -> bool {
    kind.as_message().is_some_and(|message| message.full_name() == "google.protobuf.Value")
        || kind.as_enum().is_some_and(|named| named.full_name() == "google.protobuf.NullValue")
}
