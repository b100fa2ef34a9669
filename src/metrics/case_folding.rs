//! Full case folding of the Unicode standard: what texts are compared by where case does not count.
//!
//! `STRASSE` and `straße` fold to `strasse`. Letters younger than the folding table, such as Georgian capitals,
//! fold to their lower case.

use unicode_casefold::UnicodeCaseFold;

/// The text folded.
pub(super) fn case_folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    folded.extend(fold_case(text.chars()));
    folded
}

/// The characters folded, one by one.
pub(super) fn fold_case(characters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    characters.flat_map(|c| in_table(c).case_fold())
}

/// The character itself, or the lower case of a letter that the folding table does not know. Cherokee letters,
/// known to fold to capitals, stay.
fn in_table(c: char) -> char {
    if !c.case_fold().eq([c]) {
        return c;
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) if lower.case_fold().eq([lower]) => lower,
        _ => c,
    }
}
