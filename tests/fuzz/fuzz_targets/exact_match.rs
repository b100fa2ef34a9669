//! Exact match under all options: an equivalence, and as loose as they say.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::exact_match::{Normalization, Options, score};
use rapid_eval_fuzz::texts::Texts;
use unicode_normalization::UnicodeNormalization;

fuzz_target!(|input: (u8, Texts)| {
    let (choices, Texts { prediction, reference }) = &input;
    let bit = |bit: u8| choices >> bit & 1 == 1;
    let options = Options {
        trim_whitespace: bit(0),
        ignore_punctuation: bit(1),
        ignore_case: bit(2),
        normalization: match choices >> 3 & 3 {
            0 => Normalization::None,
            1 => Normalization::Nfc,
            _ => Normalization::Nfkc,
        },
    };
    check(prediction, reference, options);
});

fn check(a: &str, b: &str, options: Options) {
    let equal = score(a, b, &options);
    assert!(equal == 0.0 || equal == 1.0);
    assert_eq!(equal, score(b, a, &options), "symmetric {options:?}");
    assert_eq!(score(a, a, &options), 1.0, "reflexive {options:?}");
    if a == b {
        assert_eq!(equal, 1.0);
    }
    if options == Options::default() {
        assert_eq!(equal == 1.0, a == b);
    }

    // What an option ignores can be added without a difference.
    let same = |other: &str| assert_eq!(score(a, other, &options), 1.0, "{other:?} {options:?}");
    if options.trim_whitespace {
        same(&format!("\u{3000} \t{a}\n\u{a0}"));
    }
    if options.ignore_punctuation {
        same(&format!("¿{a}!\u{2014}"));
    }
    match options.normalization {
        Normalization::None => {}
        Normalization::Nfc => {
            same(&a.nfc().collect::<String>());
            same(&a.nfd().collect::<String>());
        }
        Normalization::Nfkc => {
            same(&a.nfkc().collect::<String>());
            same(&a.nfkd().collect::<String>());
        }
    }
    if options.ignore_case {
        let lower = |c: char| {
            let mut lower = c.to_lowercase();
            if lower.len() == 1 { lower.next().unwrap_or(c) } else { c }
        };
        same(&a.chars().map(lower).collect::<String>());
    }

    // Ignoring more never tells apart what was the same.
    if equal == 1.0 {
        let looser =
            [Options { trim_whitespace: true, ..options }, Options { ignore_punctuation: true, ..options }];
        for looser in looser {
            assert_eq!(score(a, b, &looser), 1.0, "{options:?} {looser:?}");
        }
    }
}
