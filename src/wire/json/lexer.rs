//! The words of JSON, read as leniently as Google's REST doors read them.
//!
//! Beyond RFC 8259: strings in single quotes (with `\'` inside), keys without quotes when they look like names,
//! and control characters standing in a string as they are. Everything else is as the RFC has it: an escape
//! that it does not know or half a surrogate pair is an error, never a guess.

use std::borrow::Cow;

/// Reads words from the start of a text to its end.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// A value's first word.
#[derive(Debug, PartialEq)]
pub(super) enum Word<'a> {
    /// `{`
    Object,
    /// `[`
    List,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// As written.
    Number(&'a str),
    /// Unescaped.
    Text(Cow<'a, str>),
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Line and column of the next byte, counted from 1; the column counts characters.
    pub(super) fn place(&self) -> (usize, usize) {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        (line, column)
    }

    /// The next byte that is not white space; `None` at the end. It stays the next.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.byte()
    }

    /// Whether the next byte after white space is this one, which is then read.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Reads the first word of a value.
    pub(super) fn word(&mut self) -> Result<Word<'a>, String> {
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                Ok(Word::Object)
            }
            Some(b'[') => {
                self.at += 1;
                Ok(Word::List)
            }
            Some(quote @ (b'"' | b'\'')) => self.string(quote).map(Word::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(Word::Number),
            Some(_) => match self.name() {
                Some("null") => Ok(Word::Null),
                Some("true") => Ok(Word::Bool(true)),
                Some("false") => Ok(Word::Bool(false)),
                _ => Err(String::from("expected a value")),
            },
            None => Err(String::from("the text ends where a value is expected")),
        }
    }

    /// Reads the key of a member.
    pub(super) fn key(&mut self) -> Result<Cow<'a, str>, String> {
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.string(quote),
            Some(_) => {
                self.name().map(Cow::Borrowed).ok_or_else(|| String::from("expected a key or the closing }"))
            }
            None => Err(String::from("the text ends inside an object")),
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.byte().is_some_and(&wanted) {
            self.at += 1;
        }
        self.at - start
    }

    fn name(&mut self) -> Option<&'a str> {
        let start = self.at;
        if self.byte()?.is_ascii_digit() {
            return None;
        }
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
        self.text.get(start..self.at).filter(|name| !name.is_empty())
    }

    fn number(&mut self) -> Result<&'a str, String> {
        let wrong = || String::from("is not a number as JSON writes it");
        let start = self.at;
        let digit = |byte: u8| byte.is_ascii_digit();
        self.at += usize::from(self.byte() == Some(b'-'));
        let leading_zero = self.byte() == Some(b'0');
        let digits = self.skip_while(digit);
        if digits == 0 || (leading_zero && digits > 1) {
            return Err(wrong());
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            if self.skip_while(digit) == 0 {
                return Err(wrong());
            }
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            if self.skip_while(digit) == 0 {
                return Err(wrong());
            }
        }
        self.text.get(start..self.at).ok_or_else(wrong)
    }

    fn string(&mut self, quote: u8) -> Result<Cow<'a, str>, String> {
        let unclosed = || String::from("the text ends inside a string");
        self.at += 1;
        let mut whole = String::new();
        loop {
            let start = self.at;
            // All three are ASCII, so the pieces between them are whole characters.
            self.skip_while(|byte| byte != quote && byte != b'\\');
            let piece = self.text.get(start..self.at).ok_or_else(unclosed)?;
            match self.byte() {
                Some(b'\\') => {
                    whole.push_str(piece);
                    self.at += 1;
                    whole.push(self.escaped()?);
                }
                Some(_) => {
                    self.at += 1;
                    if whole.is_empty() {
                        return Ok(Cow::Borrowed(piece));
                    }
                    whole.push_str(piece);
                    return Ok(Cow::Owned(whole));
                }
                None => return Err(unclosed()),
            }
        }
    }

    /// What stands behind a backslash.
    fn escaped(&mut self) -> Result<char, String> {
        let escape = self.byte().ok_or_else(|| String::from("the text ends inside a string"))?;
        let character = match escape {
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => {
                return Err(String::from(
                    "this escape is none of JSON's; a backslash itself is written \\\\",
                ));
            }
        };
        self.at += 1;
        Ok(character)
    }

    /// The four digits behind `\u`, and the second half of a surrogate pair behind them.
    fn unicode(&mut self) -> Result<char, String> {
        let half_a_pair = || String::from("half a surrogate pair is no character");
        let first = self.four_digits()?;
        if !(0xD800..0xE000).contains(&first) {
            return char::from_u32(first).ok_or_else(half_a_pair);
        }
        if first >= 0xDC00 || !self.text.as_bytes().get(self.at..).unwrap_or_default().starts_with(b"\\u") {
            return Err(half_a_pair());
        }
        self.at += 2;
        let second = self.four_digits()?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(half_a_pair());
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).ok_or_else(half_a_pair)
    }

    fn four_digits(&mut self) -> Result<u32, String> {
        let wrong = || String::from("\\u needs four hexadecimal digits");
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or_else(wrong)?;
        let mut number = 0;
        for digit in digits {
            number = number * 16 + char::from(*digit).to_digit(16).ok_or_else(wrong)?;
        }
        self.at += 4;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Option<String> {
        match Lexer::new(json).word() {
            Ok(Word::Text(text)) => Some(text.into_owned()),
            _ => None,
        }
    }

    #[test]
    fn strings_are_unescaped() {
        assert_eq!(text(r#""a\"\\\/\b\f\n\r\tz""#).as_deref(), Some("a\"\\/\u{8}\u{c}\n\r\tz"));
        assert_eq!(text(r#""\u00e9\uD83D\uDE00é""#).as_deref(), Some("é😀é"));
        assert_eq!(text(r#"'it\'s "so"'"#).as_deref(), Some("it's \"so\""));
        assert_eq!(text("\"a\nb\"").as_deref(), Some("a\nb"));
        assert_eq!(text(r#""""#).as_deref(), Some(""));
        assert_eq!(text(r#""\u0000""#).as_deref(), Some("\0"));
    }

    #[test]
    fn what_is_no_string_is_refused() {
        for json in [
            r#"""#,
            r#"'a""#,
            r#""\"#,
            r#""\x41""#,
            r#""\u12""#,
            r#""\u12G4""#,
            r#""\uD83D""#,
            r#""\uDE00""#,
            r#""\uD83D\n""#,
            r#""\uD83D\u0041""#,
            r#""\uD83D\uD83D""#,
            "\"\\u00é\"",
        ] {
            assert_eq!(text(json), None, "{json}");
        }
    }

    #[test]
    fn numbers_are_as_in_rfc_8259() {
        for number in ["0", "-0", "12", "-1.5", "1e5", "1.25E-7", "0.0", "123456789012345678901234567890"] {
            assert_eq!(Lexer::new(number).word(), Ok(Word::Number(number)));
        }
        for no_number in ["-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "--1", "0x10"] {
            let mut lexer = Lexer::new(no_number);
            let whole = lexer.word().is_ok() && lexer.peek().is_none();
            assert!(!whole, "{no_number}");
        }
    }

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let mut lexer = Lexer::new("\"é\n\"\n\"é\" ?");
        assert_eq!(lexer.place(), (1, 1));
        lexer.word().unwrap();
        lexer.word().unwrap();
        lexer.peek();
        assert_eq!(lexer.place(), (3, 5));
    }
}
