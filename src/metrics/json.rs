//! JSON values that can be compared: equal values get the same [`ValueId`].
//!
//! A strict reader of RFC 8259 without recursion, so nesting may be as deep as the text is long, and time and
//! memory are linear in the text. What is equal:
//!
//! - Objects with the same members in any order; of a repeated name the last member counts. Arrays with the
//!   same items in the same order.
//! - Numbers of the same decimal value, exactly, at any size: `1`, `1.0`, `10e-1`; `0` and `-0`.
//!   `9007199254740993` is not `9007199254740992`.
//! - Strings of the same characters, escaped or not. An escaped surrogate without its other half is within
//!   the grammar: it equals itself and no character.
//! - Values of different kinds never: `true` is not `1`, `"2"` is not `2`, a missing member is not `null`.
//!
//! `NaN`, `Infinity`, comments, trailing commas, a byte order mark and a second value are not JSON.
//!
//! [`spans`] finds the texts of members and items, where not the value but its spelling counts.

mod number;
mod reader;
pub mod spans;

use std::fmt;

use super::hash::KeyedHash;
use super::{Stop, Unscored};

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte where it stops being JSON.
    pub at: usize,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not JSON at byte {}", self.at)
    }
}

impl std::error::Error for SyntaxError {}

/// The most bytes of text that one [`Values`] reads, all texts together: positions are 32 bits wide.
pub const MAX_BYTES: usize = 1 << 30;

/// A value in its [`Values`]. Two ids of the same `Values` are equal if and only if the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u32);

/// The six kinds of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number of any size.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One member of an object: its name (a string) and its value.
pub type Member = (ValueId, ValueId);

/// Values read from any number of texts, each distinct value once.
#[derive(Debug)]
pub struct Values {
    hash: KeyedHash,
    /// Bytes of all texts read.
    texts: usize,
    nodes: Vec<Node>,
    /// Strings in UTF-8 (a lone surrogate as three bytes like any other code point), canonical numbers,
    /// and `t` or `f`.
    bytes: Vec<u8>,
    items: Vec<ValueId>,
    /// Objects, sorted by the id of the name.
    members: Vec<Member>,
    /// Open addressing: a power of two of slots, at most three quarters of them taken.
    slots: Vec<Slot>,
}

/// A value's id with a part of its hash, so that most other values are passed over without a look at them.
#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    id: u32,
}

/// Where a value's content is: a range of `bytes`, `items` or `members`, by its kind.
#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    start: u32,
    end: u32,
}

const FREE: Slot = Slot { tag: 0, id: u32::MAX };
const FIRST_SLOTS: usize = 64;

/// The content of a value that may be new.
#[derive(Debug, Clone, Copy)]
enum Content<'a> {
    Bytes(&'a [u8]),
    Items(&'a [ValueId]),
    Members(&'a [Member]),
}

impl Default for Values {
    fn default() -> Self {
        Self {
            hash: KeyedHash::of_process(),
            texts: 0,
            nodes: Vec::new(),
            bytes: Vec::new(),
            items: Vec::new(),
            members: Vec::new(),
            slots: vec![FREE; FIRST_SLOTS],
        }
    }
}

impl Values {
    /// No values yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value that `text` is, with all values inside it. A text that is not JSON leaves some of its values
    /// behind, which does no harm. What is over [`MAX_BYTES`] counts as not JSON.
    pub fn read(&mut self, text: &str) -> Result<ValueId, SyntaxError> {
        self.read_until(text, Stop::NEVER).unwrap_or(Err(SyntaxError { at: text.len() }))
    }

    /// As [`Values::read`], and [`Unscored::Stopped`] soon after `stop` is raised. More than [`MAX_BYTES`]
    /// are [`Unscored::OverLimit`].
    pub fn read_until(
        &mut self,
        text: &str,
        stop: Stop<'_>,
    ) -> Result<Result<ValueId, SyntaxError>, Unscored> {
        self.texts += text.len();
        if self.texts > MAX_BYTES {
            let (found, limit) = (self.texts as u64, MAX_BYTES as u64);
            return Err(Unscored::OverLimit { what: "bytes of JSON", found, limit });
        }
        match reader::read(self, text, stop) {
            Ok(id) => Ok(Ok(id)),
            Err(reader::Failure::Syntax(error)) => Ok(Err(error)),
            Err(reader::Failure::Unscored(unscored)) => Err(unscored),
        }
    }

    /// The object without members.
    pub fn empty_object(&mut self) -> ValueId {
        self.intern(Kind::Object, Content::Members(&[]))
    }

    /// What kind of value it is.
    pub fn kind(&self, id: ValueId) -> Kind {
        self.node(id).kind
    }

    /// The string's characters in UTF-8; for a lone surrogate three bytes that no UTF-8 has.
    pub fn string(&self, id: ValueId) -> Option<&[u8]> {
        let node = self.node(id);
        (node.kind == Kind::String).then(|| range(&self.bytes, node))
    }

    /// The string's text. `None` also for a string with a lone surrogate.
    pub fn text(&self, id: ValueId) -> Option<&str> {
        self.string(id).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The array's items.
    pub fn items(&self, id: ValueId) -> Option<&[ValueId]> {
        let node = self.node(id);
        (node.kind == Kind::Array).then(|| range(&self.items, node))
    }

    /// The object's members, each name once, sorted by the name's id.
    pub fn members(&self, id: ValueId) -> Option<&[Member]> {
        let node = self.node(id);
        (node.kind == Kind::Object).then(|| range(&self.members, node))
    }

    /// The value of the object's member `name`.
    pub fn get(&self, id: ValueId, name: &str) -> Option<ValueId> {
        let members = self.members(id)?;
        let content = Content::Bytes(name.as_bytes());
        let slot = self.slot(self.tag(Kind::String, content), Kind::String, content);
        // The id of a free slot is no value's, and no member's name.
        let name = ValueId(self.slots.get(slot)?.id);
        let found = members.binary_search_by_key(&name, |member| member.0).ok()?;
        members.get(found).map(|member| member.1)
    }

    fn node(&self, id: ValueId) -> Node {
        self.nodes.get(id.0 as usize).copied().unwrap_or(Node { kind: Kind::Null, start: 0, end: 0 })
    }

    fn content(&self, node: Node) -> Content<'_> {
        match node.kind {
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => Content::Bytes(range(&self.bytes, node)),
            Kind::Array => Content::Items(range(&self.items, node)),
            Kind::Object => Content::Members(range(&self.members, node)),
        }
    }

    /// The id of the value, a new one if there is no equal value yet.
    fn intern(&mut self, kind: Kind, content: Content<'_>) -> ValueId {
        let tag = self.tag(kind, content);
        let slot = self.slot(tag, kind, content);
        if let Some(found) = self.slots.get(slot).filter(|slot| slot.id != FREE.id) {
            return ValueId(found.id);
        }
        let (start, end) = match content {
            Content::Bytes(bytes) => append(&mut self.bytes, bytes),
            Content::Items(items) => append(&mut self.items, items),
            Content::Members(members) => append(&mut self.members, members),
        };
        let id = self.nodes.len() as u32;
        self.nodes.push(Node { kind, start, end });
        if let Some(free) = self.slots.get_mut(slot) {
            *free = Slot { tag, id };
        }
        if self.nodes.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        ValueId(id)
    }

    /// Where the value is, or the free slot where it belongs.
    fn slot(&self, tag: u32, kind: Kind, content: Content<'_>) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        while let Some(slot) = self.slots.get(at).filter(|slot| slot.id != FREE.id) {
            if slot.tag == tag {
                let node = self.node(ValueId(slot.id));
                if node.kind == kind && same(self.content(node), content) {
                    break;
                }
            }
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let old = std::mem::replace(&mut self.slots, vec![FREE; mask + 1]);
        for moved in old.into_iter().filter(|slot| slot.id != FREE.id) {
            let mut at = moved.tag as usize & mask;
            while self.slots.get(at).is_some_and(|slot| slot.id != FREE.id) {
                at = (at + 1) & mask;
            }
            if let Some(free) = self.slots.get_mut(at) {
                *free = moved;
            }
        }
    }

    fn tag(&self, kind: Kind, content: Content<'_>) -> u32 {
        let chain = |hash, word| self.hash.chain(hash, word, 0);
        let (length, hash) = match content {
            Content::Bytes(bytes) => (bytes.len(), self.hash.bytes(bytes)),
            Content::Items(items) => {
                (items.len(), items.iter().fold(0, |hash, item| chain(hash, item.0.into())))
            }
            Content::Members(members) => {
                let word = |(name, value): &Member| u64::from(name.0) << 32 | u64::from(value.0);
                (members.len(), members.iter().fold(0, |hash, member| chain(hash, word(member))))
            }
        };
        self.hash.chain(hash, kind as u64, length as u64) as u32
    }
}

fn same(a: Content<'_>, b: Content<'_>) -> bool {
    match (a, b) {
        (Content::Bytes(a), Content::Bytes(b)) => a == b,
        (Content::Items(a), Content::Items(b)) => a == b,
        (Content::Members(a), Content::Members(b)) => a == b,
        (Content::Bytes(_) | Content::Items(_) | Content::Members(_), _) => false,
    }
}

fn range<T>(all: &[T], node: Node) -> &[T] {
    all.get(node.start as usize..node.end as usize).unwrap_or_default()
}

fn append<T: Copy>(all: &mut Vec<T>, new: &[T]) -> (u32, u32) {
    let start = all.len() as u32;
    all.extend_from_slice(new);
    (start, all.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_text_than_positions_is_refused() {
        let mut values = Values { texts: MAX_BYTES - 1, ..Values::new() };
        assert!(values.read("1").is_ok());
        let limit = MAX_BYTES as u64;
        let refused = Unscored::OverLimit { what: "bytes of JSON", found: limit + 1, limit };
        assert_eq!(values.read_until("1", Stop::NEVER), Err(refused));
        assert_eq!(values.read("1"), Err(SyntaxError { at: 1 }));
    }
}
