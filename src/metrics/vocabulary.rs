//! Numbers for words and for n-grams, so that the kernels compare integers.
//!
//! Two open-addressing tables made to be used again and again: resetting one costs as much as the
//! next text needs, not as much as the largest text so far. Hashes are seeded per process, so nobody
//! can prepare a text whose words all collide.

use super::hash::{KeyedHash, equal};

/// The most bytes a text may have, so that numbers and positions fit in 32 bits.
pub(crate) const MAX_BYTES: usize = 1 << 30;

/// The number of every word and n-gram that was not given one. It equals nothing.
pub(crate) const UNKNOWN: u32 = 0;

/// A guess at the distinct words of a text: their number grows slower than texts. Tables grow if there are more.
pub(crate) fn expected_words(text_bytes: usize) -> usize {
    (text_bytes / 12).min(8192)
}

/// Slots for about `entries` entries at a load of at most one half.
fn slots_for(entries: usize) -> usize {
    (entries.max(8) * 2).next_power_of_two()
}

#[derive(Debug, Clone, Copy)]
struct WordSlot {
    /// The upper half of the hash; the lower half chooses the slot.
    tag: u32,
    id: u32,
}

const FREE_WORD: WordSlot = WordSlot { tag: 0, id: UNKNOWN };

/// Words (any bytes) numbered from 1 in the order of their first appearance.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    hash: KeyedHash,
    slots: Vec<WordSlot>,
    /// Hash and end of each word in `bytes`; a word starts where the one before ends.
    words: Vec<(u64, u32)>,
    bytes: Vec<u8>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        let slots = vec![FREE_WORD; slots_for(0)];
        Self { hash: KeyedHash::of_process(), slots, words: Vec::new(), bytes: Vec::new() }
    }
}

impl Vocabulary {
    /// Forgets all words and makes room for about `expected` of them.
    pub(crate) fn reset(&mut self, expected: usize) {
        self.slots.clear();
        self.slots.resize(slots_for(expected), FREE_WORD);
        self.words.clear();
        self.bytes.clear();
    }

    /// How many words there are; the largest number given.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// The number of `word`, a new one if need be. Words of one vocabulary may have 4 GiB together.
    pub(crate) fn insert(&mut self, word: &[u8]) -> u32 {
        let hash = self.hash.bytes(word);
        match self.search(word, hash) {
            Ok(id) => id,
            Err(slot) => {
                self.bytes.extend_from_slice(word);
                self.words.push((hash, self.bytes.len() as u32));
                let id = self.words.len() as u32;
                self.slots[slot] = WordSlot { tag: (hash >> 32) as u32, id };
                if self.words.len() * 2 > self.slots.len() {
                    self.grow();
                }
                id
            }
        }
    }

    /// The number of `word`, or [`UNKNOWN`].
    pub(crate) fn find(&self, word: &[u8]) -> u32 {
        self.search(word, self.hash.bytes(word)).unwrap_or(UNKNOWN)
    }

    /// The word's number, or the slot where it belongs.
    fn search(&self, word: &[u8], hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == UNKNOWN {
                return Err(at);
            }
            if slot.tag == tag && equal(self.word(slot.id), word) {
                return Ok(slot.id);
            }
            at = (at + 1) & mask;
        }
    }

    /// The word with this number, which must have been given.
    pub(crate) fn word(&self, id: u32) -> &[u8] {
        let index = id as usize - 1;
        let start = if index == 0 { 0 } else { self.words[index - 1].1 };
        &self.bytes[start as usize..self.words[index].1 as usize]
    }

    fn grow(&mut self) {
        let slots = slots_for(self.words.len() * 2);
        self.slots.clear();
        self.slots.resize(slots, FREE_WORD);
        for (index, &(hash, _)) in self.words.iter().enumerate() {
            let mut at = hash as usize & (slots - 1);
            while self.slots[at].id != UNKNOWN {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = WordSlot { tag: (hash >> 32) as u32, id: index as u32 + 1 };
        }
    }

    /// Bytes held, used or not.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity() * size_of::<WordSlot>()
            + self.words.capacity() * size_of::<(u64, u32)>()
            + self.bytes.capacity()
    }
}

/// Pairs of numbers, themselves numbered from 1: an n-gram is the pair of the (n-1)-gram before and a word.
#[derive(Debug)]
pub(crate) struct Pairs {
    hash: KeyedHash,
    slots: Vec<PairSlot>,
    count: u32,
}

#[derive(Debug, Clone, Copy)]
struct PairSlot {
    first: u32,
    second: u32,
    id: u32,
}

const FREE_PAIR: PairSlot = PairSlot { first: 0, second: 0, id: UNKNOWN };

impl Default for Pairs {
    fn default() -> Self {
        Self { hash: KeyedHash::of_process(), slots: vec![FREE_PAIR; slots_for(0)], count: 0 }
    }
}

impl Pairs {
    /// Forgets all pairs and makes room for `most` of them, the most there may be until the next reset.
    pub(crate) fn reset(&mut self, most: usize) {
        self.slots.clear();
        self.slots.resize(slots_for(most), FREE_PAIR);
        self.count = 0;
    }

    /// How many pairs there are; the largest number given.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// The number of a pair, a new one if need be.
    pub(crate) fn insert(&mut self, first: u32, second: u32) -> u32 {
        let at = self.slot(first, second);
        let slot = &mut self.slots[at];
        let is_new = slot.id == UNKNOWN;
        self.count += u32::from(is_new);
        *slot = PairSlot { first, second, id: if is_new { self.count } else { slot.id } };
        slot.id
    }

    /// The number of a pair, or [`UNKNOWN`].
    pub(crate) fn find(&self, first: u32, second: u32) -> u32 {
        self.slots[self.slot(first, second)].id
    }

    /// Where the pair is, or the free slot where it belongs.
    fn slot(&self, first: u32, second: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.hash.word((u64::from(first) << 32) | u64::from(second)) as usize & mask;
        loop {
            let slot = self.slots[at];
            // One branch that is nearly always taken, in place of two that can't be foreseen.
            if (slot.first == first && slot.second == second) | (slot.id == UNKNOWN) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Bytes held, used or not.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity() * size_of::<PairSlot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbered_in_order_and_found_again_after_growing() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.reset(1);
        let words: Vec<String> = (0..1000).map(|n| format!("{n}{}", "x".repeat(n % 20))).collect();
        for (index, word) in words.iter().enumerate() {
            assert_eq!(vocabulary.insert(word.as_bytes()), index as u32 + 1);
        }
        for (index, word) in words.iter().enumerate() {
            assert_eq!(vocabulary.find(word.as_bytes()), index as u32 + 1);
        }
        assert_eq!(vocabulary.find(b"other"), UNKNOWN);
        assert_eq!(vocabulary.len(), 1000);
        vocabulary.reset(1);
        assert_eq!(vocabulary.find(b"0"), UNKNOWN);
    }

    #[test]
    fn words_that_differ_only_in_trailing_zero_bytes_are_different() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.reset(4);
        assert_eq!(vocabulary.insert(b"a"), 1);
        assert_eq!(vocabulary.insert(b"\0a"), 2);
        assert_eq!(vocabulary.insert(b"a\0"), 3);
    }

    #[test]
    fn the_order_of_a_pair_matters() {
        let mut pairs = Pairs::default();
        pairs.reset(4);
        assert_eq!(pairs.insert(1, 2), 1);
        assert_eq!(pairs.insert(2, 1), 2);
        assert_eq!(pairs.insert(1, 2), 1);
        assert_eq!(pairs.find(2, 2), UNKNOWN);
    }
}
