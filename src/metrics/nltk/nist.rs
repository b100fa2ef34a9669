//! Tokens of text in any script, as NLTK's `NISTTokenizer.international_tokenize` finds them.
//!
//! Entities are decoded, then spaces go around each run of ASCII, between punctuation and what is no number,
//! and around symbols. So `café` is `caf`, `é`, a period stays with the digit before it, and Chinese
//! text is cut at ASCII and punctuation only.
//!
//! The three classes of characters are those of Unicode 7, up to FFFF, as NLTK ships them: see
//! `nist_classes.md`.

use std::sync::LazyLock;

use super::rewrite::Rewrite;
use super::tokenizer::white_space_tokens;
use crate::metrics::{Stop, Unscored};

/// Calls `take` with each token of `text` in order.
pub(super) fn each_token(
    text: &str,
    stop: Stop<'_>,
    take: impl FnMut(&str) -> Result<(), Unscored>,
) -> Result<(), Unscored> {
    let mut rewrite = Rewrite::default();
    rewrite.start(text);
    for (from, to) in DECODED {
        rewrite.replace(from, to);
    }
    stop.check()?;
    rewrite.pad_runs(|c| c.is_ascii());
    stop.check()?;
    rewrite.apply(is_punctuation, |place, out| {
        let mark = place.rest.chars().next()?;
        is_non_number(place.free_before()?).then(|| {
            out.extend([' ', mark, ' ']);
            mark.len_utf8()
        })
    });
    stop.check()?;
    rewrite.apply(is_punctuation, |place, out| {
        let mut chars = place.rest.chars();
        let (mark, next) = (chars.next()?, chars.next()?);
        is_non_number(next).then(|| {
            out.extend([' ', mark, ' ', next]);
            mark.len_utf8() + next.len_utf8()
        })
    });
    stop.check()?;
    rewrite.pad(is_symbol);
    stop.check()?;
    white_space_tokens(rewrite.text()).try_for_each(take)
}

/// One replacement after the other: `&amp;lt;` is decoded to `&lt;`.
const DECODED: [(&str, &str); 10] = [
    ("<skipped>", ""),
    ("\u{2028}", " "),
    ("&gt;", ">"),
    ("&lt;", "<"),
    ("&#124;", "|"),
    ("&apos;", "'"),
    ("&quot;", "\""),
    ("&#93;", "]"),
    ("&#91;", "["),
    ("&amp;", "&"),
];

const NON_NUMBER: u8 = 1;
const PUNCTUATION: u8 = 2;
const SYMBOL: u8 = 4;

/// The classes of each character up to FFFF, as bits.
static CLASSES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut classes = vec![0; 0x1_0000];
    for line in include_str!("nist_classes.tsv").lines() {
        let mut fields = line.split('\t');
        let bit = match fields.next() {
            // NLTK's list of "numbers" is the list of characters that are none.
            Some("Number") => NON_NUMBER,
            Some("Punctuation") => PUNCTUATION,
            Some("Symbol") => SYMBOL,
            _ => continue,
        };
        let mut code = || fields.next().and_then(|code| usize::from_str_radix(code, 16).ok());
        if let (Some(first), Some(last)) = (code(), code())
            && let Some(range) = classes.get_mut(first..=last)
        {
            range.iter_mut().for_each(|classes| *classes |= bit);
        }
    }
    classes
});

fn has_class(c: char, bit: u8) -> bool {
    CLASSES.get(c as usize).is_some_and(|classes| classes & bit != 0)
}

fn is_non_number(c: char) -> bool {
    has_class(c, NON_NUMBER)
}

fn is_punctuation(c: char) -> bool {
    has_class(c, PUNCTUATION)
}

fn is_symbol(c: char) -> bool {
    has_class(c, SYMBOL)
}
