//! The Porter stemmer as NLTK has it, for ROUGE with `use_stemmer` and for METEOR.
//!
//! Follows M. F. Porter, "An algorithm for suffix stripping" (1980), with the changes NLTK 3.10.4
//! makes by default: a short list of irregular words, four-letter words in `-ies` and `-ied`, a
//! looser rule for `y`, `-alli`, `-fulli`, `-logi` and two-letter stems. It is neither the original
//! Porter nor Snowball's "English" (Porter 2): each differs on about 2 % of common words.
//!
//! Words are taken as they come: lower-case them first. Time is linear in the length of the word.

use std::borrow::Cow;

/// The stem of one lower-cased word.
///
/// Words of one or two characters are their own stem. Characters outside `a`–`z` are allowed and
/// count as consonants.
///
/// ```
/// use rapid_eval::metrics::porter::stem;
/// assert_eq!(stem("running"), "run");
/// assert_eq!(stem("skies"), "sky");
/// ```
pub fn stem(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        let mut letters = word.as_bytes().to_vec();
        stem_letters(&mut letters);
        if letters == word.as_bytes() {
            return Cow::Borrowed(word);
        }
        return Cow::Owned(letters.iter().map(|&letter| char::from(letter)).collect());
    }
    // One byte a character lets the rules count characters. Only equality of neighbours matters for
    // characters beyond ASCII (in "double consonant"), so two codes taking turns are enough.
    let characters: Vec<char> = word.chars().collect();
    let mut letters = Vec::with_capacity(characters.len());
    let (mut code, mut previous) = (0x80, None);
    for &character in &characters {
        if character.is_ascii() {
            letters.push(character as u8);
        } else {
            if previous != Some(character) {
                code ^= 1;
            }
            letters.push(code);
        }
        previous = Some(character);
    }
    stem_letters(&mut letters);
    let stemmed = letters.iter().zip(&characters);
    Cow::Owned(
        stemmed
            .map(|(&letter, &character)| if letter.is_ascii() { char::from(letter) } else { character })
            .collect(),
    )
}

/// Stems a word in place; bytes outside `a`–`z` are consonants.
pub(crate) fn stem_letters(word: &mut Vec<u8>) {
    if let Some(stem) = irregular(word) {
        word.clear();
        word.extend_from_slice(stem);
        return;
    }
    if word.len() <= 2 {
        return;
    }
    plural(word);
    past_and_gerund(word);
    final_y(word);
    double_suffix(word);
    apply(word, &STEP_3, |stem| measure(stem) > 0);
    remove_suffix(word);
    final_e(word);
    final_double_l(word);
}

fn irregular(word: &[u8]) -> Option<&'static [u8]> {
    Some(match word {
        b"sky" | b"skies" => b"sky",
        b"dying" => b"die",
        b"lying" => b"lie",
        b"tying" => b"tie",
        b"news" => b"news",
        b"inning" | b"innings" => b"inning",
        b"outing" | b"outings" => b"outing",
        b"canning" | b"cannings" => b"canning",
        b"howe" => b"howe",
        b"proceed" => b"proceed",
        b"exceed" => b"exceed",
        b"succeed" => b"succeed",
        _ => return None,
    })
}

/// Goes through `letters`, telling of each whether it is a vowel; `y` is one after a consonant.
fn vowels(letters: &[u8]) -> impl Iterator<Item = bool> + '_ {
    letters.iter().scan(false, |after_consonant, &letter| {
        let vowel = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => *after_consonant,
            _ => false,
        };
        *after_consonant = !vowel;
        Some(vowel)
    })
}

/// Porter's m, how often a vowel is directly followed by a consonant, counted no further than 2:
/// no rule asks for more, and most words have it after a few letters.
fn measure(stem: &[u8]) -> u8 {
    let mut count = 0;
    let mut after_vowel = false;
    for vowel in vowels(stem) {
        if after_vowel && !vowel {
            count += 1;
            if count == 2 {
                break;
            }
        }
        after_vowel = vowel;
    }
    count
}

fn has_vowel(stem: &[u8]) -> bool {
    vowels(stem).any(|vowel| vowel)
}

/// Whether the last letter is a vowel. Looks back over a run of `y` only, which alternate.
fn ends_in_vowel(letters: &[u8]) -> bool {
    let run = letters.iter().rev().take_while(|&&letter| letter == b'y').count();
    let before = &letters[..letters.len() - run];
    let vowel_before = matches!(before.last(), Some(b'a' | b'e' | b'i' | b'o' | b'u'));
    // At the start of a word y is a consonant, as it is after a vowel.
    let first_is_vowel = !before.is_empty() && !vowel_before;
    match run {
        0 => vowel_before,
        run if run % 2 == 1 => first_is_vowel,
        _ => !first_is_vowel,
    }
}

/// Consonant, vowel, consonant at the end and the last not w, x or y; or just vowel, consonant.
fn ends_in_short_syllable(stem: &[u8]) -> bool {
    let [.., last] = stem else { return false };
    let up_to_vowel = &stem[..stem.len() - 1];
    if up_to_vowel.is_empty() || ends_in_vowel(stem) || !ends_in_vowel(up_to_vowel) {
        return false;
    }
    let before_vowel = &up_to_vowel[..up_to_vowel.len() - 1];
    before_vowel.is_empty() || (!ends_in_vowel(before_vowel) && !matches!(last, b'w' | b'x' | b'y'))
}

fn ends_in_double_consonant(word: &[u8]) -> bool {
    matches!(word, [.., a, b] if a == b) && !ends_in_vowel(word)
}

/// Replaces the first suffix of `rules` that `word` has, if what is before it satisfies `condition`.
fn apply(word: &mut Vec<u8>, rules: &[(&[u8], &[u8])], condition: impl Fn(&[u8]) -> bool) {
    for &(suffix, replacement) in rules {
        if let Some(stem) = word.strip_suffix(suffix) {
            if condition(stem) {
                let length = stem.len();
                word.truncate(length);
                word.extend_from_slice(replacement);
            }
            return;
        }
    }
}

/// Step 1a.
fn plural(word: &mut Vec<u8>) {
    if word.last() != Some(&b's') {
        return;
    }
    if word.len() == 4 && word.ends_with(b"ies") {
        word.pop();
        return;
    }
    apply(word, &[(b"sses", b"ss"), (b"ies", b"i"), (b"ss", b"ss"), (b"s", b"")], |_| true);
}

/// Step 1b.
fn past_and_gerund(word: &mut Vec<u8>) {
    if word.ends_with(b"ied") {
        let kept = if word.len() == 4 { word.len() - 1 } else { word.len() - 2 };
        word.truncate(kept);
        return;
    }
    if let Some(stem) = word.strip_suffix(b"eed") {
        if measure(stem) > 0 {
            word.pop();
        }
        return;
    }
    let Some(stem) = word.strip_suffix(b"ed").or_else(|| word.strip_suffix(b"ing")) else { return };
    if !has_vowel(stem) {
        return;
    }
    let length = stem.len();
    word.truncate(length);
    if word.ends_with(b"at") || word.ends_with(b"bl") || word.ends_with(b"iz") {
        word.push(b'e');
    } else if ends_in_double_consonant(word) {
        if !matches!(word.last(), Some(b'l' | b's' | b'z')) {
            word.pop();
        }
    } else if measure(word) == 1 && ends_in_short_syllable(word) {
        word.push(b'e');
    }
}

/// Step 1c.
fn final_y(word: &mut [u8]) {
    if let [stem @ .., last @ b'y'] = word
        && stem.len() > 1
        && !ends_in_vowel(stem)
    {
        *last = b'i';
    }
}

/// Step 2.
fn double_suffix(word: &mut Vec<u8>) {
    // "-alli" becomes "-al", which the rules below may take further; they can't make a new "-alli".
    if let Some(stem) = word.strip_suffix(b"alli")
        && measure(stem) > 0
    {
        word.truncate(word.len() - 2);
    }
    if let Some(stem) = word.strip_suffix(b"logi") {
        // The l belongs to the stem here.
        if measure(&word[..stem.len() + 1]) > 0 {
            word.pop();
        }
        return;
    }
    apply(word, &STEP_2, |stem| measure(stem) > 0);
}

const STEP_2: [(&[u8], &[u8]); 21] = [
    (b"ational", b"ate"),
    (b"tional", b"tion"),
    (b"enci", b"ence"),
    (b"anci", b"ance"),
    (b"izer", b"ize"),
    (b"bli", b"ble"),
    (b"alli", b"al"),
    (b"entli", b"ent"),
    (b"eli", b"e"),
    (b"ousli", b"ous"),
    (b"ization", b"ize"),
    (b"ation", b"ate"),
    (b"ator", b"ate"),
    (b"alism", b"al"),
    (b"iveness", b"ive"),
    (b"fulness", b"ful"),
    (b"ousness", b"ous"),
    (b"aliti", b"al"),
    (b"iviti", b"ive"),
    (b"biliti", b"ble"),
    (b"fulli", b"ful"),
];

const STEP_3: [(&[u8], &[u8]); 7] = [
    (b"icate", b"ic"),
    (b"ative", b""),
    (b"alize", b"al"),
    (b"iciti", b"ic"),
    (b"ical", b"ic"),
    (b"ful", b""),
    (b"ness", b""),
];

const STEP_4: [&[u8]; 19] = [
    b"al", b"ance", b"ence", b"er", b"ic", b"able", b"ible", b"ant", b"ement", b"ment", b"ent", b"ion",
    b"ou", b"ism", b"ate", b"iti", b"ous", b"ive", b"ize",
];

/// Step 4.
fn remove_suffix(word: &mut Vec<u8>) {
    for suffix in STEP_4 {
        if let Some(stem) = word.strip_suffix(suffix) {
            let allowed = suffix != b"ion" || matches!(stem.last(), Some(b's' | b't'));
            if allowed && measure(stem) > 1 {
                let length = stem.len();
                word.truncate(length);
            }
            return;
        }
    }
}

/// Step 5a.
fn final_e(word: &mut Vec<u8>) {
    if let [stem @ .., b'e'] = word.as_slice() {
        let measure = measure(stem);
        if measure > 1 || (measure == 1 && !ends_in_short_syllable(stem)) {
            word.pop();
        }
    }
}

/// Step 5b.
fn final_double_l(word: &mut Vec<u8>) {
    if word.ends_with(b"ll") && measure(&word[..word.len() - 1]) > 1 {
        word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn y_is_a_vowel_after_a_consonant_only() {
        let cases = [("y", false), ("sy", true), ("ay", false), ("yy", true), ("yyy", false), ("syy", false)];
        for (letters, vowel) in cases {
            assert_eq!(ends_in_vowel(letters.as_bytes()), vowel, "{letters}");
            assert_eq!(vowels(letters.as_bytes()).last(), Some(vowel), "{letters}");
        }
    }

    #[test]
    fn porters_own_examples_of_the_measure() {
        for (word, m) in
            [("tree", 0), ("by", 0), ("trouble", 1), ("oats", 1), ("ivy", 1), ("troubles", 2), ("private", 2)]
        {
            assert_eq!(measure(word.as_bytes()), m, "{word}");
        }
    }

    #[test]
    fn characters_beyond_ascii_are_counted_as_characters_and_kept() {
        // "щщed": the vowel test fails (no a, e, i, o, u before -ed), so nothing is removed.
        assert_eq!(stem("щщed"), "щщed");
        // "eщщed" loses -ed, then one of the doubled consonants; "eщжed" has no double.
        assert_eq!(stem("eщщed"), "eщ");
        assert_eq!(stem("eщжed"), "eщж");
        // Four characters in -ies, though five bytes.
        assert_eq!(stem("щies"), "щie");
    }

    #[test]
    fn a_very_long_run_of_y_takes_linear_time_and_no_stack() {
        let word = "y".repeat(1 << 20);
        assert_eq!(stem(&word).len(), word.len());
    }
}
