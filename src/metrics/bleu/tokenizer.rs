//! The tokenizers that BLEU scores are made with, as sacrebleu 2.6.0 defines them.
//!
//! The reference rewrites the text several times with regular expressions, putting spaces around what is a
//! token of its own, and splits at white space in the end. Its rules look at two neighbouring
//! characters at most, so one pass over the text with the class of the character before and after finds
//! the same tokens. No text is copied.
//!
//! | name | what is a token of its own, besides what stands between white space |
//! |---|---|
//! | `13a` | ASCII punctuation; period and comma unless between digits; a hyphen after a digit; four entities and line ends are decoded first |
//! | `intl` | symbols (category S) and punctuation (P) of every script, punctuation unless between numbers (N) |
//! | `zh` | each Chinese character, and the rest as `13a` |
//! | `char` | each character |
//! | `none` | nothing |

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// How a text is cut into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tokenizer {
    /// `13a`: like NIST's mteval-v13a, sacrebleu's default.
    Mteval13a,
    /// `intl`: like mteval-v14's international tokenization. The one that Vertex AI's recorded scores fit.
    #[default]
    Intl,
    /// `zh`: Chinese characters one by one, the rest like `13a`.
    Zh,
    /// `char`: every character that is not white space.
    Char,
    /// `none`: split at white space only.
    None,
}

impl Tokenizer {
    /// All of them, in the order of this page.
    pub const ALL: [Self; 5] = [Self::Mteval13a, Self::Intl, Self::Zh, Self::Char, Self::None];

    /// sacrebleu's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mteval13a => "13a",
            Self::Intl => "intl",
            Self::Zh => "zh",
            Self::Char => "char",
            Self::None => "none",
        }
    }

    /// The tokens of `text`, for seeing why a score is what it is.
    pub fn tokens(self, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        let read: Result<(), Infallible> = self.split(text, |token| {
            tokens.push(String::from_utf8_lossy(token).into_owned());
            Ok(())
        });
        match read {
            Ok(()) => tokens,
        }
    }

    /// Gives the tokens of `text` to `each`, in order, until it fails.
    pub(super) fn split<E>(self, text: &str, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let text = text.trim_end_matches(is_white);
        match self {
            Self::Mteval13a => MTEVAL_13A.split(&decode_13a(text), Edges::Spaces, &mut each),
            Self::Intl => INTL.split(text, Edges::Bare, &mut each),
            Self::Zh => ZH.split(text.trim_start_matches(is_white), Edges::Bare, &mut each),
            Self::Char => CHAR.split(text, Edges::Bare, &mut each),
            Self::None => NONE.split(text, Edges::Bare, &mut each),
        }
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no [`Tokenizer`] has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTokenizer(String);

impl fmt::Display for UnknownTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Tokenizer::ALL.map(Tokenizer::name).join(", ");
        write!(f, "unknown BLEU tokenizer {:?}: choose one of {names}", self.0)
    }
}

impl std::error::Error for UnknownTokenizer {}

impl FromStr for Tokenizer {
    type Err = UnknownTokenizer;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| UnknownTokenizer(name.chars().take(40).collect()))
    }
}

/// White space as Python's `str.split` and `str.rstrip` see it: what Unicode calls so, and the
/// four separators 1C to 1F.
fn is_white(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// What `13a` undoes before it looks for tokens. One replacement after the other, each once: `&amp;lt;`
/// becomes `<`, `&amp;quot;` stays `&quot;`. The reference also turns line ends into spaces, which makes
/// no difference to its tokens.
fn decode_13a(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if !text.bytes().any(|byte| matches!(byte, b'<' | b'&' | b'\n')) {
        return text;
    }
    let steps =
        [("<skipped>", ""), ("-\n", ""), ("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")];
    for (from, to) in steps {
        if text.contains(from) {
            text = Cow::Owned(text.replace(from, to));
        }
    }
    text
}

/// What a character is to a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Between tokens.
    Space,
    /// Part of a word.
    Word,
    /// Part of a word that keeps the marks inside it together, as in `1,000.5`.
    Number,
    /// A token of its own directly after a number, part of a word elsewhere.
    Hyphen,
    /// A token of its own unless numbers are around it.
    Mark,
    /// Always a token of its own.
    Alone,
    /// Not ASCII: [`Classes::beyond_ascii`] knows.
    NotAscii,
}

/// What stands before the first and after the last character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edges {
    Bare,
    Spaces,
}

struct Classes {
    by_byte: [Class; 256],
    beyond_ascii: fn(char) -> Class,
}

static MTEVAL_13A: Classes = Classes { by_byte: bytes_13a(), beyond_ascii: word };
static INTL: Classes = Classes { by_byte: bytes_intl(), beyond_ascii: intl };
static ZH: Classes = Classes { by_byte: bytes_13a(), beyond_ascii: zh };
static CHAR: Classes = Classes { by_byte: bytes_with(Class::Alone), beyond_ascii: alone };
static NONE: Classes = Classes { by_byte: bytes_with(Class::Word), beyond_ascii: word };

/// White space, and everything else in ASCII the same.
const fn bytes_with(class: Class) -> [Class; 256] {
    let mut table = [Class::NotAscii; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            0x09..=0x0d | 0x1c..=0x20 => Class::Space,
            _ => class,
        };
        byte += 1;
    }
    table
}

/// `13a`: hyphen, apostrophe, period and comma are the punctuation that does not always stand alone.
const fn bytes_13a() -> [Class; 256] {
    let mut table = bytes_with(Class::Word);
    let mut byte = 0;
    while byte < 128 {
        match byte as u8 {
            b'0'..=b'9' => table[byte] = Class::Number,
            b'-' => table[byte] = Class::Hyphen,
            b'.' | b',' => table[byte] = Class::Mark,
            b'\'' => {}
            other if other.is_ascii_punctuation() => table[byte] = Class::Alone,
            _ => {}
        }
        byte += 1;
    }
    table
}

/// `intl`: the ASCII symbols (general categories Sc, Sk, Sm) are `$ + < = > ^ ` | ~`, the rest of the ASCII
/// punctuation is category P.
const fn bytes_intl() -> [Class; 256] {
    let mut table = bytes_with(Class::Word);
    let mut byte = 0;
    while byte < 128 {
        match byte as u8 {
            b'0'..=b'9' => table[byte] = Class::Number,
            b'$' | b'+' | b'<' | b'=' | b'>' | b'^' | b'`' | b'|' | b'~' => table[byte] = Class::Alone,
            other if other.is_ascii_punctuation() => table[byte] = Class::Mark,
            _ => {}
        }
        byte += 1;
    }
    table
}

fn word(c: char) -> Class {
    if c.is_whitespace() { Class::Space } else { Class::Word }
}

fn alone(c: char) -> Class {
    if c.is_whitespace() { Class::Space } else { Class::Alone }
}

fn intl(c: char) -> Class {
    /// The classes up to FFFF: a look-up in the category tables takes some twenty times longer.
    static FIRST_PLANE: LazyLock<Vec<Class>> = LazyLock::new(|| {
        let class = |code| char::from_u32(code).map_or(Class::Word, intl_by_category);
        (0..0x1_0000).map(class).collect()
    });
    FIRST_PLANE.get(c as usize).copied().unwrap_or_else(|| intl_by_category(c))
}

fn intl_by_category(c: char) -> Class {
    match c.general_category_group() {
        GeneralCategoryGroup::Number => Class::Number,
        GeneralCategoryGroup::Punctuation => Class::Mark,
        GeneralCategoryGroup::Symbol => Class::Alone,
        GeneralCategoryGroup::Letter
        | GeneralCategoryGroup::Mark
        | GeneralCategoryGroup::Separator
        | GeneralCategoryGroup::Other => word(c),
    }
}

/// Chinese characters and the punctuation and symbols of Chinese text. The last range is a slip of the
/// reference that became part of its scores: five-digit code points read as four digits and a letter. (So
/// is 2F81 to 2FA1, which lies inside another range.)
fn zh(c: char) -> Class {
    match c {
        _ if c.is_whitespace() => Class::Space,
        '\u{3400}'..='\u{4db5}'
        | '\u{4e00}'..='\u{9fbb}'
        | '\u{f900}'..='\u{fa2d}'
        | '\u{fa30}'..='\u{fa6a}'
        | '\u{fa70}'..='\u{fad9}'
        | '\u{ff00}'..='\u{ffef}'
        | '\u{2e80}'..='\u{2eff}'
        | '\u{3000}'..='\u{303f}'
        | '\u{31c0}'..='\u{31ef}'
        | '\u{2f00}'..='\u{2fdf}'
        | '\u{2ff0}'..='\u{2fff}'
        | '\u{3100}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{2600}'..='\u{26ff}'
        | '\u{2700}'..='\u{27bf}'
        | '\u{3200}'..='\u{33ff}'
        | '\u{2001}'..='\u{2a6d}' => Class::Alone,
        _ => Class::Word,
    }
}

impl Classes {
    /// The class and the length of the character at `at`.
    fn at(&self, text: &str, at: usize) -> Option<(Class, usize)> {
        let byte = *text.as_bytes().get(at)?;
        if byte.is_ascii() {
            return Some((self.by_byte[usize::from(byte)], 1));
        }
        let c = text.get(at..)?.chars().next()?;
        Some(((self.beyond_ascii)(c), c.len_utf8()))
    }

    /// The end of the run of ASCII word characters and digits that goes on at `at`.
    fn end_of_word(&self, text: &str, at: usize) -> usize {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let goes_on = |byte: &&u8| matches!(self.by_byte[usize::from(**byte)], Class::Word | Class::Number);
        at + rest.iter().take_while(goes_on).count()
    }

    fn split<E>(
        &self,
        text: &str,
        edges: Edges,
        each: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let edge = (edges == Edges::Spaces).then_some(Class::Space);
        let mut token = |start: usize, end: usize| match text.as_bytes().get(start..end) {
            Some(token) if !token.is_empty() => each(token),
            _ => Ok(()),
        };

        let mut start = 0;
        let mut at = 0;
        let mut before = edge;
        // The mark before was found as the second of two characters. The reference's rule has then used
        // it up: it is not the first of the next two.
        let mut used_up = false;
        let mut current = self.at(text, 0);
        while let Some((mut class, length)) = current {
            let mut end = at + length;
            if matches!(class, Class::Word | Class::Number) {
                end = self.end_of_word(text, end);
                if end > at + length
                    && let Some((last, 1)) = self.at(text, end - 1)
                {
                    class = last;
                }
            }
            let next = self.at(text, end);

            let second = class == Class::Mark && !used_up && before.is_some_and(|it| it != Class::Number);
            let alone = match class {
                Class::Space | Class::Alone => true,
                Class::Hyphen => before == Some(Class::Number),
                Class::Mark => {
                    second || next.map(|(it, _)| it).or(edge).is_some_and(|it| it != Class::Number)
                }
                Class::Word | Class::Number | Class::NotAscii => false,
            };
            if alone {
                token(start, at)?;
                if class != Class::Space {
                    token(at, end)?;
                }
                start = end;
            }

            before = Some(class);
            used_up = second;
            at = end;
            current = next;
        }
        token(start, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ascii_table_of_intl_is_the_general_category() {
        for byte in 0..128_u8 {
            let c = char::from(byte);
            let expected = if is_white(c) { Class::Space } else { intl_by_category(c) };
            assert_eq!(INTL.by_byte[usize::from(byte)], expected, "{c:?}");
        }
    }
}
