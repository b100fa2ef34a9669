//! How long a metric takes on texts of 100, 1,000 and 10,000 words: `cargo bench --no-default-features`.
//!
//! Texts are made up: word frequencies after Zipf, lines of about twenty words, and predictions that keep
//! two thirds of their reference's words in place.

use divan::Bencher;
use rapid_eval::metrics::rouge::{Kind, Options, Stemmer, score};

fn main() {
    divan::main();
}

const WORDS: [usize; 3] = [100, 1_000, 10_000];

/// The same numbers in every run (xorshift64*).
struct Numbers(u64);

impl Numbers {
    /// In 0..1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() * limit as f64) as usize
    }
}

/// The word of a rank: the rarer the longer, with an English-looking ending.
fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ta", "re", "con", "ver", "si", "mo", "pla", "ter", "an", "du", "gri", "le", "for", "bi", "nu", "cha",
    ];
    const ENDINGS: [&str; 12] = ["", "s", "", "ed", "ing", "", "ation", "er", "ly", "", "ness", "al"];
    let mut word = String::new();
    let mut rest = rank;
    loop {
        word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
        if rest == 0 {
            break;
        }
    }
    if rank > 40 {
        word.push_str(ENDINGS[rank % ENDINGS.len()]);
    }
    word
}

/// A reference and a prediction of about this many words.
fn texts(words: usize) -> (String, String) {
    const VOCABULARY: f64 = 20_000.0;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let zipf = |numbers: &mut Numbers| word((VOCABULARY.powf(numbers.next())) as usize - 1);
    let (mut reference, mut prediction) = (String::new(), String::new());
    for number in 0..words {
        let end = if numbers.below(20) == 0 { ".\n" } else { " " };
        let mut next = zipf(&mut numbers);
        if number == 0 || reference.ends_with('\n') {
            next[..1].make_ascii_uppercase();
        }
        reference.push_str(&next);
        reference.push_str(end);
        if numbers.below(3) == 0 {
            next = zipf(&mut numbers);
        }
        prediction.push_str(&next);
        prediction.push_str(end);
    }
    (prediction, reference)
}

fn bench(bencher: Bencher<'_, '_>, words: usize, options: &Options) {
    let (prediction, reference) = texts(words);
    bencher.bench_local(|| score(&prediction, &reference, options));
}

#[divan::bench(args = WORDS)]
fn rouge1(bencher: Bencher<'_, '_>, words: usize) {
    bench(bencher, words, &Options { kind: Kind::N(1), ..Options::default() });
}

#[divan::bench(args = WORDS)]
fn rouge2(bencher: Bencher<'_, '_>, words: usize) {
    bench(bencher, words, &Options { kind: Kind::N(2), ..Options::default() });
}

#[divan::bench(args = WORDS)]
fn rouge2_stemmed(bencher: Bencher<'_, '_>, words: usize) {
    bench(bencher, words, &Options { kind: Kind::N(2), stemmer: Stemmer::Porter, ..Options::default() });
}

#[divan::bench(args = WORDS)]
fn rouge_l(bencher: Bencher<'_, '_>, words: usize) {
    bench(bencher, words, &Options { kind: Kind::L, ..Options::default() });
}

#[divan::bench(args = WORDS)]
fn rouge_lsum(bencher: Bencher<'_, '_>, words: usize) {
    bench(bencher, words, &Options::default());
}

#[divan::bench(args = WORDS)]
fn rouge_lsum_stemmed_and_split(bencher: Bencher<'_, '_>, words: usize) {
    bench(bencher, words, &Options { stemmer: Stemmer::Porter, split_summaries: true, ..Options::default() });
}
