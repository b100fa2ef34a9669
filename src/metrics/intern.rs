//! Small numbers in place of tokens and n-grams, so that metrics compare integers instead of texts.
//!
//! Hashes are keyed with random numbers drawn once per process: nobody can prepare a text whose tokens
//! all fall into one slot, so every operation here is linear in its input.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use super::{Stop, Unscored};

/// The id of a token that [`Tokens::find`] does not know. It equals no token's id.
pub const UNKNOWN: u32 = u32::MAX;

/// The most tokens, and bytes, that a text may have, so that ids and positions fit in 32 bits.
pub const MAX_TOKENS: usize = 1 << 30;

/// How many steps a loop takes between two looks at [`Stop`].
const STEPS_PER_CHECK: usize = 1 << 14;

/// A keyed hash of bytes and of 64-bit words: multiply to 128 bits and fold the halves together.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedHash {
    first: u64,
    second: u64,
}

impl KeyedHash {
    /// The keys of this process.
    pub(super) fn of_process() -> Self {
        static KEYS: LazyLock<KeyedHash> = LazyLock::new(|| {
            let random = RandomState::new();
            KeyedHash { first: random.hash_one(1_u8), second: random.hash_one(2_u8) }
        });
        *KEYS
    }

    pub(super) fn word(self, word: u64) -> u64 {
        fold(word ^ self.first, self.second | 1)
    }

    /// The hash of a sequence, from the hash of what came before and its next two words.
    pub(super) fn chain(self, before: u64, a: u64, b: u64) -> u64 {
        fold(a ^ before, b ^ self.second)
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> u64 {
        let mut hash = self.first ^ bytes.len() as u64;
        let mut rest = bytes;
        while rest.len() > 16
            && let Some((a, tail)) = rest.split_first_chunk::<8>()
            && let Some((b, tail)) = tail.split_first_chunk::<8>()
        {
            hash = self.chain(hash, u64::from_le_bytes(*a), u64::from_le_bytes(*b));
            rest = tail;
        }
        let (a, b) = ends(rest);
        self.chain(hash, a, b)
    }
}

/// The first and the last word of at most 16 bytes. They overlap where there are fewer; with the
/// length known, no two texts share both.
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
    } else {
        match *bytes {
            [a, b, c] => (u16::from_le_bytes([a, b]).into(), c.into()),
            [a, b] => (a.into(), b.into()),
            [a] => (a.into(), 0),
            _ => (0, 0),
        }
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Numbers distinct tokens 0, 1, 2… in the order of their first sight.
#[derive(Debug)]
pub struct Tokens {
    hash: KeyedHash,
    /// Open addressing, a power of two of slots, at most three quarters of them taken.
    slots: Vec<TokenSlot>,
    spans: Vec<(u32, u32)>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct TokenSlot {
    tag: u32,
    id: u32,
}

const FREE: TokenSlot = TokenSlot { tag: 0, id: UNKNOWN };
const FIRST_SLOTS: usize = 64;

impl Default for Tokens {
    fn default() -> Self {
        Self {
            hash: KeyedHash::of_process(),
            slots: vec![FREE; FIRST_SLOTS],
            spans: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

impl Tokens {
    /// Forgets all tokens; the memory stays for the next text.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.slots.resize(FIRST_SLOTS, FREE);
        self.spans.clear();
        self.bytes.clear();
    }

    /// How many distinct tokens there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// No token has been seen.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The token's id, a new one if it is seen for the first time.
    pub fn intern(&mut self, token: &[u8]) -> u32 {
        let tag = self.tag(token);
        let slot = self.slot(tag, token);
        match self.slots.get(slot) {
            Some(found) if found.id != UNKNOWN => found.id,
            _ => self.add(tag, slot, token),
        }
    }

    /// The token's id, or [`UNKNOWN`].
    pub fn find(&self, token: &[u8]) -> u32 {
        self.slots.get(self.slot(self.tag(token), token)).map_or(UNKNOWN, |slot| slot.id)
    }

    // Half of the hash is enough to tell tokens apart.
    fn tag(&self, token: &[u8]) -> u32 {
        self.hash.bytes(token) as u32
    }

    /// Where the token is, or the free slot where it belongs.
    fn slot(&self, tag: u32, token: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        while let Some(slot) = self.slots.get(at) {
            if slot.id == UNKNOWN || slot.tag == tag && self.token(slot.id) == token {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// The bytes of the token with this id; empty if there is none.
    pub fn token(&self, id: u32) -> &[u8] {
        let (start, end) = self.spans.get(id as usize).copied().unwrap_or_default();
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    // Callers refuse texts of more than MAX_TOKENS bytes, so 32 bits are enough.
    fn add(&mut self, tag: u32, slot: usize, token: &[u8]) -> u32 {
        let id = self.spans.len() as u32;
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(token);
        self.spans.push((start, self.bytes.len() as u32));
        if let Some(free) = self.slots.get_mut(slot) {
            *free = TokenSlot { tag, id };
        }
        if self.spans.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        id
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 4 - 1;
        let old = std::mem::replace(&mut self.slots, vec![FREE; mask + 1]);
        for moved in old.into_iter().filter(|slot| slot.id != UNKNOWN) {
            let mut at = moved.tag as usize & mask;
            while self.slots.get(at).is_some_and(|slot| slot.id != UNKNOWN) {
                at = (at + 1) & mask;
            }
            if let Some(free) = self.slots.get_mut(at) {
                *free = moved;
            }
        }
    }
}

/// Counts the n-grams two texts share.
///
/// An n-gram is the pair (id of its first n-1 tokens, id of its last token), so each order costs one look-up
/// per position, whatever n is. The id of an n-gram of the reference is its slot in the order's table.
#[derive(Debug)]
pub struct Overlap {
    hash: KeyedHash,
    reference: Vec<u32>,
    prediction: Vec<u32>,
    table: Vec<u64>,
    /// By id: how often the n-gram stands in the reference and is not matched yet.
    left: Vec<u32>,
}

/// Not the key of a pair: [`UNKNOWN`] never gets into the table.
const NO_PAIR: u64 = u64::MAX;

impl Default for Overlap {
    fn default() -> Self {
        Self {
            hash: KeyedHash::of_process(),
            reference: Vec::new(),
            prediction: Vec::new(),
            table: Vec::new(),
            left: Vec::new(),
        }
    }
}

impl Overlap {
    /// Writes to `matches[n-1]` how many n-grams of `prediction` also stand in `reference`, each counted at
    /// most as often as it stands there: the sum over n-grams of the smaller of the two counts.
    ///
    /// Tokens are ids of one [`Tokens`]. Those of the prediction may be [`UNKNOWN`], those of the
    /// reference may not. Takes `matches.len()` times the length of both texts in time.
    pub fn clipped_matches(
        &mut self,
        prediction: &[u32],
        reference: &[u32],
        matches: &mut [u64],
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        matches.fill(0);
        let Some((unigrams, longer)) = matches.split_first_mut() else { return Ok(()) };
        *unigrams = self.match_unigrams(prediction, reference);
        stop.check()?;
        if *unigrams == 0 || longer.is_empty() {
            return Ok(());
        }
        self.prediction.clear();
        self.prediction.extend_from_slice(prediction);
        self.reference.clear();
        self.reference.extend_from_slice(reference);
        for (order, matches) in (2..).zip(longer) {
            *matches = self.match_longer(prediction, reference, order, stop)?;
            if *matches == 0 {
                break;
            }
        }
        Ok(())
    }

    fn match_unigrams(&mut self, prediction: &[u32], reference: &[u32]) -> u64 {
        let ids = reference.iter().max().map_or(0, |id| *id as usize + 1);
        self.left.clear();
        self.left.resize(ids, 0);
        for token in reference {
            if let Some(left) = self.left.get_mut(*token as usize) {
                *left += 1;
            }
        }
        prediction.iter().map(|token| take(&mut self.left, *token)).sum()
    }

    /// One order up: the ids of (n-1)-grams in `self` become ids of n-grams.
    fn match_longer(
        &mut self,
        prediction: &[u32],
        reference: &[u32],
        order: usize,
        stop: Stop<'_>,
    ) -> Result<u64, Unscored> {
        let (Some(last_of_reference), Some(last_of_prediction)) =
            (reference.get(order - 1..), prediction.get(order - 1..))
        else {
            return Ok(0);
        };
        self.reference.truncate(last_of_reference.len());
        self.prediction.truncate(last_of_prediction.len());

        let slots = (last_of_reference.len() * 4 / 3 + 1).next_power_of_two().max(16);
        self.table.clear();
        self.table.resize(slots, NO_PAIR);
        self.left.clear();
        self.left.resize(slots, 0);

        let chunks = self.reference.chunks_mut(STEPS_PER_CHECK);
        for (ids, tokens) in chunks.zip(last_of_reference.chunks(STEPS_PER_CHECK)) {
            stop.check()?;
            for (id, token) in ids.iter_mut().zip(tokens) {
                let pair = pair(*id, *token);
                let slot = find(self.hash, &self.table, pair);
                if let (Some(entry), Some(left)) = (self.table.get_mut(slot), self.left.get_mut(slot)) {
                    *entry = pair;
                    *left += 1;
                }
                *id = slot_id(slot);
            }
        }

        let mut matches = 0;
        let chunks = self.prediction.chunks_mut(STEPS_PER_CHECK);
        for (ids, tokens) in chunks.zip(last_of_prediction.chunks(STEPS_PER_CHECK)) {
            stop.check()?;
            for (id, token) in ids.iter_mut().zip(tokens) {
                if *id == UNKNOWN || *token == UNKNOWN {
                    *id = UNKNOWN;
                    continue;
                }
                let slot = find(self.hash, &self.table, pair(*id, *token));
                if self.table.get(slot).is_none_or(|entry| *entry == NO_PAIR) {
                    *id = UNKNOWN;
                    continue;
                }
                *id = slot_id(slot);
                matches += take(&mut self.left, *id);
            }
        }
        Ok(matches)
    }
}

/// Uses up one occurrence of `id`, if one is left.
fn take(left: &mut [u32], id: u32) -> u64 {
    match left.get_mut(id as usize) {
        Some(left) if *left > 0 => {
            *left -= 1;
            1
        }
        _ => 0,
    }
}

fn pair(prefix: u32, last: u32) -> u64 {
    u64::from(prefix) << 32 | u64::from(last)
}

/// Where the pair is, or the free slot where it belongs. The table is never full.
fn find(hash: KeyedHash, table: &[u64], pair: u64) -> usize {
    let mask = table.len() - 1;
    let mut at = hash.word(pair) as usize & mask;
    while table.get(at).is_some_and(|entry| *entry != pair && *entry != NO_PAIR) {
        at = (at + 1) & mask;
    }
    at
}

// A table has at most twice MAX_TOKENS slots.
fn slot_id(slot: usize) -> u32 {
    slot as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_tokens_get_equal_ids_at_every_length() {
        let mut tokens = Tokens::default();
        let texts: Vec<Vec<u8>> =
            (0..40).flat_map(|length| [vec![b'a'; length], vec![b'b'; length]]).skip(1).collect();
        let first: Vec<u32> = texts.iter().map(|text| tokens.intern(text)).collect();
        assert_eq!(first, (0..79).collect::<Vec<u32>>());
        assert_eq!(texts.iter().map(|text| tokens.intern(text)).collect::<Vec<u32>>(), first);
        assert_eq!(texts.iter().map(|text| tokens.find(text)).collect::<Vec<u32>>(), first);
        assert_eq!(tokens.find(b"c"), UNKNOWN);
        tokens.clear();
        assert_eq!((tokens.len(), tokens.find(b"a")), (0, UNKNOWN));
    }

    #[test]
    fn matches_are_clipped_order_by_order() {
        // the the the the / the cat the the: three of the four unigrams, "the the" once, no trigram.
        let mut matches = [9; 4];
        let (prediction, reference) = ([0, 0, 0, 0], [0, 1, 0, 0]);
        let mut overlap = Overlap::default();
        overlap.clipped_matches(&prediction, &reference, &mut matches, Stop::NEVER).unwrap();
        assert_eq!(matches, [3, 1, 0, 0]);
        // Unknown tokens match nothing, not even each other.
        overlap.clipped_matches(&[UNKNOWN, 0, 1, UNKNOWN], &[0, 1], &mut matches, Stop::NEVER).unwrap();
        assert_eq!(matches, [2, 1, 0, 0]);
    }
}
