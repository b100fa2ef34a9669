//! The reader: a stack of open arrays and objects in place of recursion.

use super::number::{Parts, canonical};
use super::{Content, Kind, Member, SyntaxError, ValueId, Values};
use crate::metrics::{Stop, Unscored};

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Failure {
    Syntax(SyntaxError),
    Unscored(Unscored),
}

impl From<Unscored> for Failure {
    fn from(unscored: Unscored) -> Self {
        Self::Unscored(unscored)
    }
}

/// Values between two looks at [`Stop`].
const VALUES_PER_CHECK: usize = 1 << 12;

/// Reads one value and nothing after it.
pub(super) fn read(values: &mut Values, text: &str, stop: Stop<'_>) -> Result<ValueId, Failure> {
    let mut reader = Reader {
        values,
        bytes: text.as_bytes(),
        at: 0,
        open: Vec::new(),
        items: Vec::new(),
        members: Vec::new(),
        scratch: Vec::new(),
    };
    reader.document(stop)
}

struct Reader<'v, 't> {
    values: &'v mut Values,
    bytes: &'t [u8],
    at: usize,
    /// Open arrays and objects, outermost first: where their content starts in `items` or `members`.
    open: Vec<Open>,
    /// Items of the open arrays.
    items: Vec<ValueId>,
    /// Members of the open objects. The last one's value is not known while it is being read.
    members: Vec<Member>,
    scratch: Vec<u8>,
}

/// The start, doubled, and 1 more for an object: half the memory in deep texts.
#[derive(Clone, Copy)]
struct Open(u32);

impl Open {
    fn array(start: usize) -> Self {
        Self((start as u32) << 1)
    }

    fn object(start: usize) -> Self {
        Self((start as u32) << 1 | 1)
    }

    fn is_object(self) -> bool {
        self.0 & 1 == 1
    }

    fn start(self) -> usize {
        (self.0 >> 1) as usize
    }
}

impl Reader<'_, '_> {
    fn document(&mut self, stop: Stop<'_>) -> Result<ValueId, Failure> {
        for count in 1_usize.. {
            if count.is_multiple_of(VALUES_PER_CHECK) {
                stop.check()?;
            }
            // Here a value begins.
            let mut value = match self.next_token() {
                Some(b'[') => {
                    self.at += 1;
                    self.open.push(Open::array(self.items.len()));
                    if self.next_token() != Some(b']') {
                        continue;
                    }
                    self.close()
                }
                Some(b'{') => {
                    self.at += 1;
                    self.open.push(Open::object(self.members.len()));
                    if self.next_token() != Some(b'}') {
                        self.name()?;
                        continue;
                    }
                    self.close()
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'n') => self.word("null", Kind::Null)?,
                Some(b't') => self.word("true", Kind::Bool)?,
                Some(b'f') => self.word("false", Kind::Bool)?,
                _ => return self.fail(),
            };
            // Here a value has ended, and with it perhaps those around it.
            loop {
                let Some(open) = self.open.last().copied() else {
                    return if self.next_token().is_none() { Ok(value) } else { self.fail() };
                };
                if open.is_object() {
                    if let Some(member) = self.members.last_mut() {
                        member.1 = value;
                    }
                } else {
                    self.items.push(value);
                }
                match (self.next_token(), open.is_object()) {
                    (Some(b','), object) => {
                        self.at += 1;
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    (Some(b']'), false) | (Some(b'}'), true) => value = self.close(),
                    _ => return self.fail(),
                }
            }
        }
        self.fail()
    }

    fn fail<T>(&self) -> Result<T, Failure> {
        Err(Failure::Syntax(SyntaxError { at: self.at }))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_if(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// The first byte behind white space.
    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    /// A member's name and the colon behind it.
    fn name(&mut self) -> Result<(), Failure> {
        if self.next_token() != Some(b'"') {
            return self.fail();
        }
        let name = self.string()?;
        self.members.push((name, name));
        self.next_token();
        if self.skip_if(b':') { Ok(()) } else { self.fail() }
    }

    /// The innermost open array or object ends with the byte here.
    fn close(&mut self) -> ValueId {
        self.at += 1;
        let Some(open) = self.open.pop() else { return self.values.empty_object() };
        let start = open.start();
        if open.is_object() {
            let members = self.members.get_mut(start..).unwrap_or_default();
            let kept = start + last_of_each_name(members);
            let members = self.members.get(start..kept).unwrap_or_default();
            let id = self.values.intern(Kind::Object, Content::Members(members));
            self.members.truncate(start);
            id
        } else {
            let items = self.items.get(start..).unwrap_or_default();
            let id = self.values.intern(Kind::Array, Content::Items(items));
            self.items.truncate(start);
            id
        }
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<ValueId, Failure> {
        if !self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return self.fail();
        }
        self.at += word.len();
        Ok(self.values.intern(kind, Content::Bytes(word.as_bytes())))
    }

    fn number(&mut self) -> Result<ValueId, Failure> {
        let negative = self.skip_if(b'-');
        let integer = self.digits();
        if integer.is_empty() || integer.len() > 1 && integer.starts_with(b"0") {
            return self.fail();
        }
        let mut fraction: &[u8] = &[];
        if self.skip_if(b'.') {
            fraction = self.digits();
            if fraction.is_empty() {
                return self.fail();
            }
        }
        let mut exponent: &[u8] = &[];
        let mut exponent_negative = false;
        if self.skip_if(b'e') || self.skip_if(b'E') {
            exponent_negative = self.skip_if(b'-');
            if !exponent_negative {
                self.skip_if(b'+');
            }
            exponent = self.digits();
            if exponent.is_empty() {
                return self.fail();
            }
        }
        let parts = Parts { negative, integer, fraction, exponent_negative, exponent };
        canonical(parts, &mut self.scratch);
        Ok(self.values.intern(Kind::Number, Content::Bytes(&self.scratch)))
    }
}

impl<'t> Reader<'_, 't> {
    fn digits(&mut self) -> &'t [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        rest.get(..count).unwrap_or_default()
    }

    /// Up to the next quote, backslash or control character.
    fn plain(&mut self) -> &'t [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..=0x1f);
        let count = rest.iter().take_while(plain).count();
        self.at += count;
        rest.get(..count).unwrap_or_default()
    }

    /// The string whose opening quote is here.
    fn string(&mut self) -> Result<ValueId, Failure> {
        self.at += 1;
        let plain = self.plain();
        if self.skip_if(b'"') {
            return Ok(self.values.intern(Kind::String, Content::Bytes(plain)));
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(plain);
        while !self.skip_if(b'"') {
            if !self.skip_if(b'\\') {
                return self.fail();
            }
            self.escape()?;
            let plain = self.plain();
            self.scratch.extend_from_slice(plain);
        }
        Ok(self.values.intern(Kind::String, Content::Bytes(&self.scratch)))
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<(), Failure> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.code_unit(),
            _ => return self.fail(),
        };
        self.at += 1;
        self.scratch.push(byte);
        Ok(())
    }

    /// `u` and four hexadecimal digits, with the second half of a surrogate pair if it follows.
    fn code_unit(&mut self) -> Result<(), Failure> {
        let Some(unit) = self.hex(self.at) else { return self.fail() };
        self.at += 5;
        if (0xd800..0xdc00).contains(&unit)
            && self.peek() == Some(b'\\')
            && let Some(second) = self.hex(self.at + 1).filter(|second| (0xdc00..0xe000).contains(second))
        {
            self.at += 6;
            push_code_point(&mut self.scratch, 0x1_0000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
        } else {
            push_code_point(&mut self.scratch, unit);
        }
        Ok(())
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let (first, digits) = self.bytes.get(at..at + 5)?.split_first()?;
        let value = |sum: u32, digit: &u8| Some(sum * 16 + char::from(*digit).to_digit(16)?);
        (*first == b'u').then(|| digits.iter().try_fold(0, value))?
    }
}

/// UTF-8, also for the code points of surrogates, which `char` can't hold.
fn push_code_point(out: &mut Vec<u8>, code: u32) {
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend([0xc0 | (code >> 6) as u8, tail(0)]),
        0x800..0x1_0000 => out.extend([0xe0 | (code >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend([0xf0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// Sorts the members by name and moves the last member of each name to the front; how many there are.
fn last_of_each_name(members: &mut [Member]) -> usize {
    if members.is_sorted_by(|a, b| a.0 < b.0) {
        return members.len();
    }
    members.sort_by_key(|member| member.0);
    let mut kept = 0;
    for index in 0..members.len() {
        let Some(member) = members.get(index).copied() else { break };
        if members.get(index + 1).is_none_or(|next| next.0 != member.0) {
            if let Some(place) = members.get_mut(kept) {
                *place = member;
            }
            kept += 1;
        }
    }
    kept
}
