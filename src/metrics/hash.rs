//! A hash keyed with random numbers drawn once per process: nobody can prepare a text whose parts all fall into
//! one slot of a table, so work on texts stays linear.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

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

/// Whether the bytes are the same; faster than `==` for the few bytes that words have.
pub(super) fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() > 16 { a == b } else { a.len() == b.len() && ends(a) == ends(b) }
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
