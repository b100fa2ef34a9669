//! English words as NLTK's `word_tokenize` finds them: Punkt sentences, then Penn Treebank conventions.
//!
//! Quotes become `` and '', clitics stand alone (`did n't`), and the final period of a sentence is a token.
//! The rules are passes over the sentence because later ones see the spaces that earlier ones put in.
//! Case-insensitive rules know ASCII case only.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::rewrite::{Place, Rewrite};
use super::tokenizer::white_space_tokens;
use crate::metrics::{Stop, Unscored, punkt};

/// Calls `take` with each token of `text` in order.
pub(super) fn each_token(
    text: &str,
    stop: Stop<'_>,
    mut take: impl FnMut(&str) -> Result<(), Unscored>,
) -> Result<(), Unscored> {
    let mut sentence = Sentence::default();
    punkt::each_sentence(text, stop, |text| {
        sentence.0.start(text);
        sentence.open_quotes();
        stop.check()?;
        sentence.separate_marks();
        stop.check()?;
        sentence.close_quotes();
        stop.check()?;
        sentence.split_contractions();
        white_space_tokens(sentence.0.text()).try_for_each(&mut take)
    })
}

#[derive(Default)]
struct Sentence(Rewrite);

impl Sentence {
    fn open_quotes(&mut self) {
        let text = &mut self.0;
        text.pad(|c| matches!(c, '«' | '“' | '‘' | '„'));
        text.pad_runs(|c| c == '`');
        if text.text().starts_with('"') {
            let unquoted = text.text().replacen('"', "``", 1);
            text.start(&unquoted);
        }
        text.replace("``", " `` ");
        text.apply(
            |c| c == '"' || c == '\'',
            |place, out| {
                let quote = ["\"", "''"].into_iter().find(|quote| place.rest.starts_with(quote))?;
                matches!(place.free_before()?, ' ' | '(' | '[' | '{' | '<').then(|| {
                    out.push_str(" `` ");
                    quote.len()
                })
            },
        );
        text.apply(
            |c| c == '\'',
            |place, out| {
                let rest = place.rest.get(1..)?;
                let opens = !place.before.is_some_and(is_word) && rest.starts_with(is_word);
                (opens && !is_clitic(rest)).then(|| {
                    out.push_str("' ");
                    1
                })
            },
        );
    }

    fn separate_marks(&mut self) {
        let text = &mut self.0;
        if let Some(period) =
            final_period(text.text(), |c| is_closing(c) || matches!(c, '»' | '”' | '’' | ' '))
        {
            let behind = text.text().get(period + 1..).unwrap_or_default();
            let closing = behind.trim_end_matches(|c: char| c.is_whitespace() && c != ' ');
            let end = format!(" . {closing} ");
            text.replace_end(period, &end);
        }
        text.apply(|c| c == ':' || c == ',', separate_before_non_digit);
        text.apply(
            |c| c == ':' || c == ',',
            |place, out| match place.rest {
                ":" | ":\n" => replace_first(" : ", out),
                "," | ",\n" => replace_first(" , ", out),
                _ => None,
            },
        );
        text.apply(
            |c| c == '.',
            |place, out| {
                let end = place.rest.find(|c| c != '.').unwrap_or(place.rest.len());
                (end > 1).then(|| {
                    out.push(' ');
                    out.extend(std::iter::repeat_n('.', end));
                    out.push(' ');
                    end
                })
            },
        );
        text.pad(|c| matches!(c, ';' | '@' | '#' | '$' | '%' | '&'));
        text.pad(|c| matches!(c, '\u{2012}'..='\u{2015}'));
        if let Some(period) = final_period(text.text(), is_closing) {
            let behind = text.text().get(period + 1..).unwrap_or_default();
            let end = format!(" .{} ", behind.trim_end());
            text.replace_end(period, &end);
        }
        text.pad(|c| c == '?' || c == '!');
        text.apply(
            |c| c == '\'',
            |place, out| {
                let closes = place.rest.starts_with("' ") && place.free_before()? != '\'';
                closes.then(|| {
                    out.push_str(" ' ");
                    2
                })
            },
        );
        text.pad(|c| c == '*');
        text.pad(|c| matches!(c, ']' | '[' | '(' | ')' | '{' | '}' | '<' | '>'));
        text.replace("--", " -- ");
    }

    fn close_quotes(&mut self) {
        let text = &mut self.0;
        text.pad_ends();
        text.pad(|c| matches!(c, '»' | '”' | '’'));
        text.replace("''", " '' ");
        text.replace("\"", " '' ");
        text.apply(char::is_whitespace, |place, out| {
            out.push(' ');
            Some(place.rest.find(|c: char| !c.is_whitespace()).unwrap_or(place.rest.len()))
        });
        text.apply(
            |c| c == '\'',
            |place, out| {
                const SHORT: [&str; 7] = ["'s ", "'S ", "'m ", "'M ", "'d ", "'D ", "' "];
                separate_clitic(place, out, &SHORT)
            },
        );
        text.apply(
            |c| matches!(c, '\'' | 'n' | 'N'),
            |place, out| {
                const LONG: [&str; 8] = ["'ll ", "'LL ", "'re ", "'RE ", "'ve ", "'VE ", "n't ", "N'T "];
                separate_clitic(place, out, &LONG)
            },
        );
    }

    fn split_contractions(&mut self) {
        for (first, second) in CONTRACTIONS {
            self.split_words(first, second, |before| !before.is_some_and(is_python_word));
        }
        for second in ["is", "was"] {
            self.split_words("'t", second, |before| before == Some(' '));
        }
    }

    /// Splits each word that is `first` and `second` after a place that `may_follow`.
    fn split_words(&mut self, first: &str, second: &str, may_follow: impl Fn(Option<char>) -> bool) {
        let Some(initial) = first.chars().next() else { return };
        self.0.apply(
            |c| c.eq_ignore_ascii_case(&initial),
            |place, out| {
                let length = first.len() + second.len();
                let (word, behind) = place.rest.split_at_checked(length)?;
                let (head, tail) = word.split_at_checked(first.len())?;
                let ends = match second {
                    // The one contraction that has to be followed by white space.
                    "na" if first == "wan" => behind.starts_with(' '),
                    _ => !behind.starts_with(is_python_word),
                };
                let found = head.eq_ignore_ascii_case(first) && tail.eq_ignore_ascii_case(second);
                (found && ends && may_follow(place.before)).then(|| {
                    out.extend([" ", head, " ", tail, " "]);
                    length
                })
            },
        );
    }
}

const CONTRACTIONS: [(&str, &str); 8] = [
    ("can", "not"),
    ("d", "'ye"),
    ("gim", "me"),
    ("gon", "na"),
    ("got", "ta"),
    ("lem", "me"),
    ("more", "'n"),
    ("wan", "na"),
];

fn is_closing(c: char) -> bool {
    matches!(c, ']' | ')' | '}' | '>' | '"' | '\'')
}

/// Where the period is that has only `closing` characters and white space behind it, and no period
/// before it.
fn final_period(text: &str, closing: impl Fn(char) -> bool) -> Option<usize> {
    let head = text.trim_end().trim_end_matches(closing).strip_suffix('.')?;
    (!head.is_empty() && !head.ends_with('.')).then_some(head.len())
}

fn separate_before_non_digit(place: Place<'_>, out: &mut String) -> Option<usize> {
    let mut chars = place.rest.chars();
    let (mark, next) = (chars.next()?, chars.next()?);
    (!is_digit(next)).then(|| {
        out.extend([' ', mark, ' ', next]);
        mark.len_utf8() + next.len_utf8()
    })
}

fn replace_first(by: &str, out: &mut String) -> Option<usize> {
    out.push_str(by);
    Some(1)
}

/// A clitic that a space follows gets one before, unless there is one or an apostrophe.
fn separate_clitic(place: Place<'_>, out: &mut String, clitics: &[&str]) -> Option<usize> {
    if matches!(place.free_before()?, '\'' | ' ') {
        return None;
    }
    let clitic = clitics.iter().find(|clitic| place.rest.starts_with(**clitic))?;
    out.push(' ');
    out.push_str(clitic);
    Some(clitic.len())
}

/// Whether what is behind an apostrophe is one of the endings that belong to the word before it.
fn is_clitic(rest: &str) -> bool {
    ["re", "ve", "ll", "m", "t", "s", "d", "n"].into_iter().any(|clitic| {
        rest.split_at_checked(clitic.len())
            .is_some_and(|(head, tail)| head.eq_ignore_ascii_case(clitic) && !tail.starts_with(is_word))
    })
}

fn is_digit(c: char) -> bool {
    use unicode_properties::GeneralCategory::DecimalNumber;
    if c.is_ascii() { c.is_ascii_digit() } else { c.general_category() == DecimalNumber }
}

/// What `\w` is to the package `regex`, which NLTK uses for most rules: letters, marks, digits, connectors.
fn is_word(c: char) -> bool {
    use unicode_properties::GeneralCategory::{ConnectorPunctuation, DecimalNumber, LetterNumber};
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    c.is_alphabetic()
        || c.general_category_group() == GeneralCategoryGroup::Mark
        || matches!(c.general_category(), DecimalNumber | LetterNumber | ConnectorPunctuation)
}

/// What `\w` is to Python's own `re`: letters, numbers and the underscore.
pub(crate) fn is_python_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(c.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}
