//! Words of a text, for ROUGE and whoever else counts words.
//!
//! Two rules, equal on pure ASCII: maximal runs of letters and digits, lower-cased, everything else
//! separates (`don't_stop` is `don`, `t`, `stop`).
//!
//! - [`Tokenizer::Reference`] is the tokenizer of the Python package rouge-score 0.1.2: only `a`–`z` and
//!   `0`–`9` survive lower-casing, so `café` is `caf` and a Hebrew text has no words.
//! - [`Tokenizer::Unicode`] takes letters, their marks and digits of every script. Words are compared
//!   under compatibility equivalence and full case folding (`STRASSE` = `Straße`, `ｆｕｌｌ` = `full`,
//!   composed = decomposed). In scripts written without spaces (Han, Hiragana, Katakana, Thai, Lao,
//!   Khmer, Myanmar) each letter with its marks, a grapheme cluster, is a word. Invisible characters
//!   (joiners, soft hyphens, direction marks, variation selectors) neither split a word nor count in
//!   it. Emoji and other symbols are not words.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};
use unicode_segmentation::UnicodeSegmentation;

use super::case_folding::fold_case;
use super::{Stop, Unscored};

/// Which characters make a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tokenizer {
    /// Letters, marks and digits of every script.
    #[default]
    Unicode,
    /// Exactly the ASCII letters and digits, as in rouge-score 0.1.2.
    Reference,
}

/// The words of `text`, lower-cased or case-folded, in order.
///
/// ```
/// use rapid_eval::metrics::text::{Tokenizer, words};
/// assert_eq!(words("Don't panic!", Tokenizer::Unicode), ["don", "t", "panic"]);
/// assert_eq!(words("Straße 東京", Tokenizer::Unicode), ["strasse", "東", "京"]);
/// assert_eq!(words("Straße 東京", Tokenizer::Reference), ["stra", "e"]);
/// ```
pub fn words(text: &str, tokenizer: Tokenizer) -> Vec<String> {
    let mut words = Vec::new();
    let mut folded = String::new();
    let read = each_word(text, tokenizer, &mut Vec::new(), Stop::NEVER, |word| match word {
        Word::Lowered(ascii) => words.push(ascii.iter().map(|&byte| char::from(byte)).collect()),
        Word::Raw(raw) => {
            fold(raw, &mut folded);
            words.push(folded.clone());
        }
    });
    debug_assert!(read.is_ok(), "nobody asks for a stop");
    words
}

/// A word as it comes out of [`each_word`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Word<'a> {
    /// ASCII letters and digits, lower-cased.
    Lowered(&'a [u8]),
    /// A piece of the text, to be compared after [`fold`].
    Raw(&'a str),
}

/// Calls `take` with each word of `text` in order; `buffer` is scratch memory.
pub(crate) fn each_word(
    text: &str,
    tokenizer: Tokenizer,
    buffer: &mut Vec<u8>,
    stop: Stop<'_>,
    take: impl FnMut(Word<'_>),
) -> Result<(), Unscored> {
    if text.is_ascii() {
        return each_ascii_word(text.as_bytes(), buffer, stop, take);
    }
    match tokenizer {
        Tokenizer::Unicode => each_unicode_word(text, stop, take),
        Tokenizer::Reference if text.contains(['\u{130}', '\u{212a}']) => {
            // The only two characters beyond ASCII that lower-case into it: İ to an i and a
            // combining dot, which separates, and the Kelvin sign to k.
            let text = text.replace('\u{130}', "i ").replace('\u{212a}', "k");
            each_ascii_word(text.as_bytes(), buffer, stop, take)
        }
        Tokenizer::Reference => each_ascii_word(text.as_bytes(), buffer, stop, take),
    }
}

/// How many words, separators or characters pass between two looks at [`Stop`].
const PATIENCE: usize = 4096;

fn each_ascii_word(
    text: &[u8],
    buffer: &mut Vec<u8>,
    stop: Stop<'_>,
    mut take: impl FnMut(Word<'_>),
) -> Result<(), Unscored> {
    buffer.clear();
    buffer.extend(text.iter().map(|&byte| {
        let lower = byte | 0x20;
        if lower.wrapping_sub(b'a') < 26 {
            lower
        } else if byte.wrapping_sub(b'0') < 10 {
            byte
        } else {
            b' '
        }
    }));
    for (number, word) in buffer.split(|&byte| byte == b' ').enumerate() {
        if number % PATIENCE == 0 {
            stop.check()?;
        }
        if !word.is_empty() {
            take(Word::Lowered(word));
        }
    }
    Ok(())
}

/// What a character does in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Separator,
    /// A letter or digit of a script that puts spaces between words.
    Letter,
    /// A letter of a script that does not.
    Unspaced,
    /// Goes on with whatever it follows.
    Mark,
    /// Not seen: neither splits a word nor counts in it.
    Invisible,
}

fn each_unicode_word(text: &str, stop: Stop<'_>, mut take: impl FnMut(Word<'_>)) -> Result<(), Unscored> {
    // The kind of run we are in and where it began; a run starts with a letter.
    let mut run: Option<(Role, usize)> = None;
    let mut end_run = |run: Option<(Role, usize)>, end: usize| match run {
        Some((Role::Unspaced, start)) => {
            for grapheme in text[start..end].graphemes(true) {
                if grapheme.chars().any(|character| role(character) != Role::Invisible) {
                    take(Word::Raw(grapheme));
                }
            }
        }
        Some((_, start)) => take(Word::Raw(&text[start..end])),
        None => (),
    };
    for (number, (at, character)) in text.char_indices().enumerate() {
        if number % PATIENCE == 0 {
            stop.check()?;
        }
        let role = role(character);
        match (role, run) {
            (Role::Mark | Role::Invisible, _) => (),
            (Role::Letter, Some((Role::Letter, _))) | (Role::Unspaced, Some((Role::Unspaced, _))) => (),
            (Role::Letter | Role::Unspaced, _) => {
                end_run(run, at);
                run = Some((role, at));
            }
            (Role::Separator, _) => {
                end_run(run, at);
                run = None;
            }
        }
    }
    end_run(run, text.len());
    Ok(())
}

fn role(character: char) -> Role {
    /// Roles of the Basic Multilingual Plane; looking up a category takes a search each time.
    static ROLES: LazyLock<Vec<Role>> = LazyLock::new(|| {
        (0..=0xffff).map(|code| char::from_u32(code).map_or(Role::Separator, role_by_category)).collect()
    });
    match ROLES.get(character as usize) {
        Some(role) => *role,
        None => role_by_category(character),
    }
}

fn role_by_category(character: char) -> Role {
    use GeneralCategory as Category;
    match character.general_category() {
        Category::UppercaseLetter
        | Category::LowercaseLetter
        | Category::TitlecaseLetter
        | Category::ModifierLetter
        | Category::OtherLetter
        | Category::LetterNumber => {
            if is_unspaced(character) {
                Role::Unspaced
            } else {
                Role::Letter
            }
        }
        Category::DecimalNumber => Role::Letter,
        Category::NonspacingMark | Category::SpacingMark | Category::EnclosingMark => {
            if matches!(character, '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
            {
                Role::Invisible
            } else {
                Role::Mark
            }
        }
        // The zero-width space does mark the end of a word.
        Category::Format if character != '\u{200b}' => Role::Invisible,
        Category::Format
        | Category::OtherNumber
        | Category::ConnectorPunctuation
        | Category::DashPunctuation
        | Category::OpenPunctuation
        | Category::ClosePunctuation
        | Category::InitialPunctuation
        | Category::FinalPunctuation
        | Category::OtherPunctuation
        | Category::MathSymbol
        | Category::CurrencySymbol
        | Category::ModifierSymbol
        | Category::OtherSymbol
        | Category::SpaceSeparator
        | Category::LineSeparator
        | Category::ParagraphSeparator
        | Category::Control
        | Category::Surrogate
        | Category::PrivateUse
        | Category::Unassigned => Role::Separator,
    }
}

/// Whether a letter is of Han, Hiragana, Katakana, Thai, Lao, Khmer or Myanmar, by Unicode block.
fn is_unspaced(letter: char) -> bool {
    matches!(letter as u32,
        0x0e00..=0x0eff                         // Thai, Lao
        | 0x1000..=0x109f | 0xa9e0..=0xa9ff | 0xaa60..=0xaa7f | 0x116d0..=0x116ff // Myanmar
        | 0x1780..=0x17ff                       // Khmer
        | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x303c // Han iteration marks and numerals
        | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f | 0x1aff0..=0x1b16f // Kana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff) // Han
}

/// Writes to `folded` the form in which a raw word is compared: invisible characters dropped, NFKC,
/// full case folding, NFC.
pub(crate) fn fold(raw: &str, folded: &mut String) {
    folded.clear();
    if raw.is_ascii() {
        folded.push_str(raw);
        folded.make_ascii_lowercase();
        return;
    }
    let visible = raw.chars().filter(|&character| role(character) != Role::Invisible);
    folded.extend(fold_case(visible.nfkc()).nfc());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn unicode(text: &str, expected: &[&str]) {
        assert_eq!(words(text, Tokenizer::Unicode), expected);
    }

    #[test]
    fn punctuation_apostrophes_and_underscores_separate_whatever_the_script() {
        unicode("l’été_d'hier—non", &["l", "été", "d", "hier", "non"]);
        unicode("שלום, עולם!", &["שלום", "עולם"]);
        unicode("यह ठीक है।", &["यह", "ठीक", "है"]);
    }

    #[test]
    fn case_and_composition_do_not_matter() {
        unicode("Straße STRASSE straẞe", &["strasse", "strasse", "strasse"]);
        unicode("café CAFE\u{301}", &["café", "café"]);
        unicode("Ｆｕｌｌ ﬁn ΣΊΣΥΦΟΣ", &["full", "fin", "σίσυφοσ"]);
        // ΐ as one character folds into three and its capital form is written with two.
        unicode("\u{390} \u{3aa}\u{301}", &["\u{390}", "\u{390}"]);
        unicode("İ", &["i\u{307}"]);
        // Capitals of Unicode 11, younger than the folding table.
        unicode("ᲙᲐᲠᲒᲘ კარგი", &["კარგი", "კარგი"]);
    }

    #[test]
    fn scripts_without_spaces_give_a_word_a_grapheme() {
        unicode("我爱Rust语言", &["我", "爱", "rust", "语", "言"]);
        unicode("カﾞは12月", &["ガ", "は", "12", "月"]);
        // Thai: a vowel sign above belongs to its consonant.
        unicode("กินข้าว", &["กิ", "น", "ข้", "า", "ว"]);
        unicode("한국어 문장", &["한국어", "문장"]);
    }

    #[test]
    fn invisible_characters_neither_split_nor_count() {
        unicode("می\u{200c}خواهم میخواهم", &["میخواهم", "میخواهم"]);
        unicode("co\u{ad}operate é\u{200f}", &["cooperate", "é"]);
        unicode("ไทย\u{200b}ไทย", &["ไ", "ท", "ย", "ไ", "ท", "ย"]);
        unicode("a\u{200b}é", &["a", "é"]);
    }

    #[test]
    fn emoji_and_lone_marks_are_no_words() {
        unicode("❤️ 👍🏽 👨‍👩‍👧 🇩🇪 \u{301} ok é", &["ok", "é"]);
    }

    #[test]
    fn the_reference_rule_keeps_what_lower_cases_into_ascii() {
        let words = words("aİb 3\u{212a}x café", Tokenizer::Reference);
        assert_eq!(words, ["ai", "b", "3kx", "caf"]);
    }
}
