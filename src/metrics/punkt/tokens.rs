//! Punkt's own tokens, and the decision whether there is a sentence end among a few of them.

use std::borrow::Cow;

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::parameters::{ENGLISH, Parameters};

/// White space to Python's `str.strip`; its regular expressions leave out the four information separators.
pub(super) fn is_stripped(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// Characters that are in no word.
pub(super) fn is_non_word(character: char) -> bool {
    matches!(
        character,
        ')' | '"'
            | ';'
            | '}'
            | ']'
            | '*'
            | ':'
            | '@'
            | '\''
            | '('
            | '{'
            | '['
            | '?'
            | '!'
            | '‘'
            | '’'
            | '“'
            | '”'
            | '«'
            | '»'
    )
}

/// Whether a token of `text` other than the last ends a sentence.
pub(super) fn breaks_within(text: &str) -> bool {
    let parameters = &*ENGLISH;
    let lines = text.split('\n').filter(|line| !line.trim_start_matches(is_stripped).is_empty());
    let mut tokens = lines.flat_map(Tokens).map(|text| Token::new(text, parameters));
    let Some(mut token) = tokens.next() else { return false };
    for next in tokens {
        if token.ends_before(&next, parameters) {
            return true;
        }
        token = next;
    }
    false
}

/// The tokens of one line.
struct Tokens<'t>(&'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let line = self.0.trim_start();
        let first = line.chars().next()?;
        let length = match long_mark(line) {
            0 if matches!(
                first,
                '(' | '"' | '`' | '{' | '[' | ':' | ';' | '&' | '#' | '*' | '@' | ')' | '}' | ']' | '-' | ','
            ) =>
            {
                first.len_utf8()
            }
            0 => word_length(line),
            length => length,
        };
        let (token, rest) = line.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

/// How long the word is that `line` begins with: at least one character, then up to what ends it.
fn word_length(line: &str) -> usize {
    line.char_indices()
        .skip(1)
        .find(|&(at, character)| {
            let rest = &line[at..];
            ends_word(rest) || (character == ',' && ends_word(&rest[1..]))
        })
        .map_or(line.len(), |(at, _)| at)
}

/// Whether a word can't go on with `rest`.
fn ends_word(rest: &str) -> bool {
    rest.chars().next().is_none_or(|character| character.is_whitespace() || is_non_word(character))
        || long_mark(rest) > 0
}

/// The length of the mark of several characters that `text` begins with: `--`, `..` or `. . .`, or longer; else 0.
fn long_mark(text: &str) -> usize {
    let same = |mark: u8| text.bytes().take_while(|&byte| byte == mark).count();
    match text.as_bytes() {
        [b'-', b'-', ..] => same(b'-'),
        [b'.', b'.', ..] => same(b'.'),
        [b'.', ..] => {
            let (mut periods, mut length) = (1, 1);
            let mut rest = &text[1..];
            while let Some(space) = rest.chars().next().filter(|character| character.is_whitespace())
                && let Some(after) = rest[space.len_utf8()..].strip_prefix('.')
            {
                periods += 1;
                length = text.len() - after.len();
                rest = after;
            }
            if periods >= 3 { length } else { 0 }
        }
        _ => 0,
    }
}

struct Token<'t> {
    text: &'t str,
    /// Lower case, with any number as `##number##`.
    kind: Cow<'t, str>,
    ends_sentence: bool,
    abbreviation: bool,
    ellipsis: bool,
}

/// What the spelling of a token says about the place before it.
#[derive(PartialEq, Eq)]
enum Heuristic {
    Starter,
    NotAStarter,
    Unknown,
}

impl<'t> Token<'t> {
    /// Judges the token on its own.
    fn new(text: &'t str, parameters: &Parameters) -> Self {
        let lower = text.to_lowercase();
        let ellipsis = text.len() > 1 && text.bytes().all(|byte| byte == b'.');
        let mut token =
            Self { text, kind: Cow::Borrowed(""), ends_sentence: false, abbreviation: false, ellipsis };
        if matches!(text, "." | "?" | "!") {
            token.ends_sentence = true;
        } else if let Some(word) = lower.strip_suffix('.')
            && !word.ends_with('.')
        {
            let after_hyphen = word.rsplit('-').next().unwrap_or(word);
            token.abbreviation = parameters.is_abbreviation(word) || parameters.is_abbreviation(after_hyphen);
            token.ends_sentence = !token.abbreviation;
        }
        token.kind = if is_number(&lower) { Cow::Borrowed("##number##") } else { Cow::Owned(lower) };
        token
    }

    /// Judges the token again in front of `next`: whether a sentence ends between them.
    fn ends_before(&self, next: &Token<'_>, parameters: &Parameters) -> bool {
        if !self.text.ends_with('.') {
            return self.ends_sentence;
        }
        let kind = without_period(&self.kind);
        let next_kind = next.kind_in_sentence();
        if parameters.is_collocation(kind, next_kind) {
            return false;
        }
        let initial = self.is_initial();
        if (self.abbreviation || self.ellipsis) && !initial {
            let starts = next.heuristic(parameters) == Heuristic::Starter
                || (next.is_capitalized() && parameters.starts_sentences(next_kind));
            if starts {
                return true;
            }
        }
        if initial || kind == "##number##" {
            match next.heuristic(parameters) {
                Heuristic::NotAStarter => return false,
                Heuristic::Unknown
                    if initial && next.is_capitalized() && !parameters.seen(next_kind).lower() =>
                {
                    return false;
                }
                Heuristic::Unknown | Heuristic::Starter => (),
            }
        }
        self.ends_sentence
    }

    fn heuristic(&self, parameters: &Parameters) -> Heuristic {
        if matches!(self.text, ";" | ":" | "," | "." | "!" | "?") {
            return Heuristic::NotAStarter;
        }
        let seen = parameters.seen(self.kind_in_sentence());
        let lower = self.text.chars().next().is_some_and(char::is_lowercase);
        if self.is_capitalized() && seen.lower() && !seen.capitalized_inside() {
            Heuristic::Starter
        } else if lower && (seen.capitalized() || !seen.lower_at_start()) {
            Heuristic::NotAStarter
        } else {
            Heuristic::Unknown
        }
    }

    /// The kind without a period that belongs to the sentence rather than to the word.
    fn kind_in_sentence(&self) -> &str {
        if self.ends_sentence { without_period(&self.kind) } else { &self.kind }
    }

    fn is_capitalized(&self) -> bool {
        self.text.chars().next().is_some_and(char::is_uppercase)
    }

    /// A single letter and a period.
    fn is_initial(&self) -> bool {
        let mut characters = self.text.chars();
        matches!((characters.next(), characters.next(), characters.next()), (Some(letter), Some('.'), None) if is_letter(letter))
    }
}

/// A word character other than a digit, as in Unicode's recommendations for regular expressions (UTS 18).
fn is_letter(character: char) -> bool {
    character.is_alphabetic()
        || character == '_'
        || (!character.is_ascii()
            && (character.general_category_group() == GeneralCategoryGroup::Mark
                || character.general_category() == GeneralCategory::ConnectorPunctuation
                || matches!(character, '\u{200c}' | '\u{200d}')))
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
        || (!character.is_ascii() && character.general_category() == GeneralCategory::DecimalNumber)
}

/// `-`, then `.` or `,`, both optional; a digit; digits, `.`, `,` and `-`.
fn is_number(token: &str) -> bool {
    let unsigned = token.strip_prefix('-').unwrap_or(token);
    let digits = unsigned.strip_prefix(['.', ',']).unwrap_or(unsigned);
    digits.starts_with(is_digit)
        && digits.chars().all(|character| is_digit(character) || matches!(character, ',' | '.' | '-'))
}

fn without_period(kind: &str) -> &str {
    match kind.strip_suffix('.') {
        Some(word) if !word.is_empty() => word,
        _ => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_at_marks_and_at_commas_that_end_a_word() {
        let tokens: Vec<&str> = Tokens("(1,000, he said--\"U.S.\" . . . end...)").collect();
        assert_eq!(
            tokens,
            ["(", "1,000", ",", "he", "said", "--", "\"", "U.S.", "\"", ". . .", "end", "...", ")"]
        );
    }

    #[test]
    fn numbers_have_one_kind() {
        for number in ["5", "5.", "-.5", "1,000.25", "3-4"] {
            assert!(is_number(number), "{number}");
        }
        for other in ["", ".", "-", "..5", "5th", "x5"] {
            assert!(!is_number(other), "{other}");
        }
    }
}
