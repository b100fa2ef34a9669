//! What the splitter has learnt about English; data and licence in `english/`.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

pub(super) struct Parameters {
    abbreviations: FxHashSet<&'static str>,
    collocations: FxHashSet<(&'static str, &'static str)>,
    sentence_starters: FxHashSet<&'static str>,
    orthography: FxHashMap<&'static str, u8>,
}

/// Read on first use, in about a millisecond.
pub(super) static ENGLISH: LazyLock<Parameters> = LazyLock::new(|| Parameters {
    abbreviations: include_str!("english/abbreviations.txt")
        .lines()
        .filter_map(|line| line.strip_suffix('.'))
        .collect(),
    collocations: include_str!("english/collocations.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect(),
    sentence_starters: include_str!("english/sentence_starters.txt").lines().collect(),
    orthography: orthography(include_str!("english/orthography.txt")),
});

fn orthography(lines: &'static str) -> FxHashMap<&'static str, u8> {
    let mut orthography = FxHashMap::default();
    for line in lines.lines() {
        let mut words = line.split(' ');
        if let Some(flags) = words.next().and_then(|flags| flags.parse().ok()) {
            orthography.extend(words.map(|word| (word, flags)));
        }
    }
    orthography
}

/// How a word was seen written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen(u8);

impl Seen {
    /// With a capital, anywhere.
    pub(super) fn capitalized(self) -> bool {
        self.0 & 0b000_1110 != 0
    }

    /// With a capital inside a sentence.
    pub(super) fn capitalized_inside(self) -> bool {
        self.0 & 0b000_0100 != 0
    }

    /// In lower case, anywhere.
    pub(super) fn lower(self) -> bool {
        self.0 & 0b111_0000 != 0
    }

    /// In lower case at the beginning of a sentence.
    pub(super) fn lower_at_start(self) -> bool {
        self.0 & 0b001_0000 != 0
    }
}

impl Parameters {
    pub(super) fn is_abbreviation(&self, word: &str) -> bool {
        self.abbreviations.contains(word)
    }

    /// Whether the two words often stand together, the first with a period.
    pub(super) fn is_collocation(&self, first: &str, second: &str) -> bool {
        self.collocations.contains(&(first, second))
    }

    pub(super) fn starts_sentences(&self, word: &str) -> bool {
        self.sentence_starters.contains(word)
    }

    pub(super) fn seen(&self, word: &str) -> Seen {
        Seen(self.orthography.get(word).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parameters_are_read() {
        // Counts of NLTK's punkt_tab files.
        assert_eq!(ENGLISH.abbreviations.len(), 156);
        assert_eq!(ENGLISH.collocations.len(), 37);
        assert_eq!(ENGLISH.sentence_starters.len(), 39);
        assert_eq!(ENGLISH.orthography.len(), 20_366);
    }
}
