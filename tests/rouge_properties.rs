//! ROUGE against a slow implementation straight from its definition, and what must hold for any texts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use rapid_eval::metrics::rouge::{Kind, Options, Score, Stemmer, Tokenizer, score, score_until};
use rapid_eval::metrics::{Stop, Unscored, porter, text};

/// The definition, with tables and maps.
mod textbook {
    use super::*;

    pub(super) fn tokens(text: &str, stem: bool) -> Vec<String> {
        let lower = text.to_ascii_lowercase();
        lower
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(
                |word| if stem && word.len() > 3 { porter::stem(word).into_owned() } else { word.to_owned() },
            )
            .collect()
    }

    fn counts<'t>(units: impl Iterator<Item = &'t [String]>) -> HashMap<&'t [String], u64> {
        let mut counts = HashMap::new();
        for unit in units {
            *counts.entry(unit).or_default() += 1;
        }
        counts
    }

    pub(super) fn ngram_matches(prediction: &[String], reference: &[String], n: usize) -> u64 {
        let prediction = counts(prediction.windows(n));
        let reference = counts(reference.windows(n));
        reference.iter().map(|(gram, count)| *count.min(prediction.get(gram).unwrap_or(&0))).sum()
    }

    fn table<T: PartialEq>(a: &[T], b: &[T]) -> Vec<Vec<u32>> {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 1..=a.len() {
            for j in 1..=b.len() {
                table[i][j] = if a[i - 1] == b[j - 1] {
                    table[i - 1][j - 1] + 1
                } else {
                    table[i - 1][j].max(table[i][j - 1])
                };
            }
        }
        table
    }

    pub(super) fn lcs(a: &[String], b: &[String]) -> u64 {
        u64::from(table(a, b)[a.len()][b.len()])
    }

    fn taken(reference: &[String], candidate: &[String]) -> Vec<usize> {
        let table = table(reference, candidate);
        let (mut i, mut j) = (reference.len(), candidate.len());
        let mut taken = Vec::new();
        while i > 0 && j > 0 {
            if reference[i - 1] == candidate[j - 1] {
                taken.push(i - 1);
                i -= 1;
                j -= 1;
            } else if table[i][j - 1] > table[i - 1][j] {
                j -= 1;
            } else {
                i -= 1;
            }
        }
        taken
    }

    pub(super) fn summary_matches(prediction: &[Vec<String>], reference: &[Vec<String>]) -> u64 {
        let mut left = [prediction, reference].map(|text| {
            let mut counts: HashMap<&str, u64> = HashMap::new();
            for token in text.iter().flatten() {
                *counts.entry(token).or_default() += 1;
            }
            counts
        });
        let mut matches = 0;
        for sentence in reference {
            let mut union: Vec<usize> = prediction.iter().flat_map(|other| taken(sentence, other)).collect();
            union.sort_unstable();
            union.dedup();
            for position in union {
                let token = sentence[position].as_str();
                if left.iter().all(|counts| counts.get(token).is_some_and(|&count| count > 0)) {
                    for counts in &mut left {
                        *counts.get_mut(token).unwrap() -= 1;
                    }
                    matches += 1;
                }
            }
        }
        matches
    }

    pub(super) fn matches(prediction: &str, reference: &str, options: &Options) -> u64 {
        let stem = options.stemmer == Stemmer::Porter;
        let (p, r) = (tokens(prediction, stem), tokens(reference, stem));
        match options.kind {
            Kind::N(n) => ngram_matches(&p, &r, n.into()),
            Kind::L => lcs(&p, &r),
            Kind::LSum => {
                let lines = |text: &str| text.split('\n').map(|line| tokens(line, stem)).collect::<Vec<_>>();
                summary_matches(&lines(prediction), &lines(reference))
            }
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![(1_u8..=9).prop_map(Kind::N), Just(Kind::L), Just(Kind::LSum)]
}

fn options() -> impl Strategy<Value = Options> {
    (kinds(), any::<bool>()).prop_map(|(kind, stem)| {
        let stemmer = if stem { Stemmer::Porter } else { Stemmer::None };
        Options { kind, stemmer, ..Options::default() }
    })
}

/// Texts of few different words, so that there is something to match, in lines of any length.
fn ascii_texts(words: usize) -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => "[a-d]",
        2 => "[a-z]{1,8}(s|ed|ing|ies|ation|)",
        1 => "[A-Z]{1,2}[0-9]?",
        1 => "[ -/:-@\\[-`{-~]{1,3}",
    ];
    let space = prop_oneof![12 => Just(" "), 1 => Just("\n"), 1 => Just("-"), 1 => Just("_")];
    proptest::collection::vec((word, space), 0..words)
        .prop_map(|words| words.into_iter().flat_map(|(word, space)| [word, space.to_owned()]).collect())
}

fn any_texts() -> impl Strategy<Value = String> {
    prop_oneof![ascii_texts(30), "\\PC{0,30}", "[aбשक你한カé\u{301}\u{200d} .\n]{0,40}"]
}

proptest! {
    #[test]
    fn matches_are_the_textbooks(p in ascii_texts(150), r in ascii_texts(150), options in options()) {
        let score = score(&p, &r, &options).unwrap();
        prop_assert_eq!(score.matches, textbook::matches(&p, &r, &options));
    }

    #[test]
    fn scores_are_between_zero_and_one(p in any_texts(), r in any_texts(), mut options in options(), split in any::<bool>()) {
        options.split_summaries = split;
        let Score { precision, recall, f_measure, matches, prediction_units, reference_units } =
            score(&p, &r, &options).unwrap();
        for value in [precision, recall, f_measure] {
            prop_assert!((0.0..=1.0).contains(&value));
        }
        prop_assert!(matches <= prediction_units.min(reference_units));
    }

    #[test]
    fn a_text_with_enough_tokens_scores_one_against_itself(text in any_texts(), options in options()) {
        let score = score(&text, &text, &options).unwrap();
        let expected = if score.reference_units > 0 { 1.0 } else { 0.0 };
        prop_assert_eq!([score.precision, score.recall, score.f_measure], [expected; 3]);
    }

    #[test]
    fn n_grams_and_subsequences_do_not_care_which_text_is_which(p in any_texts(), r in any_texts(), mut options in options()) {
        if options.kind == Kind::LSum {
            options.kind = Kind::L;
        }
        let (one, other) = (score(&p, &r, &options).unwrap(), score(&r, &p, &options).unwrap());
        prop_assert_eq!(one.f_measure, other.f_measure);
        prop_assert_eq!((one.precision, one.recall), (other.recall, other.precision));
    }

    #[test]
    fn one_line_on_each_side_makes_lsum_equal_to_l(p in ascii_texts(60), r in ascii_texts(60)) {
        let (p, r) = (p.replace('\n', " "), r.replace('\n', " "));
        let [l, sum] = [Kind::L, Kind::LSum].map(|kind| score(&p, &r, &Options { kind, ..Options::default() }));
        prop_assert_eq!(l, sum);
    }

    /// The foreign word makes the text take the way of Unicode words.
    #[test]
    fn ascii_text_has_the_same_words_by_both_rules(ascii in "[ -~\t\r\n\0]{0,60}") {
        let mut words = text::words(&format!("{ascii} é"), Tokenizer::Unicode);
        prop_assert_eq!(words.pop(), Some("é".to_owned()));
        prop_assert_eq!(&words, &text::words(&ascii, Tokenizer::Reference));
        prop_assert_eq!(&words, &textbook::tokens(&ascii, false));
    }

    #[test]
    fn what_was_scored_before_does_not_matter(
        calls in proptest::collection::vec((any_texts(), any_texts(), options()), 1..8)
    ) {
        let together: Vec<_> = calls.iter().map(|(p, r, options)| score(p, r, options)).collect();
        let apart: Vec<_> = calls
            .into_iter()
            .map(|(p, r, options)| thread::spawn(move || score(&p, &r, &options)).join().unwrap())
            .collect();
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn no_text_makes_a_stemmer_fail(p in any_texts(), language in 0_usize..18) {
        const CODES: [&str; 18] = [
            "ar", "da", "nl", "en", "fi", "fr", "de", "el", "hu", "it", "no", "pt", "ro", "ru", "es", "sv", "ta", "tr",
        ];
        let options = Options { stemmer: Stemmer::for_language(CODES[language]).unwrap(), ..Options::default() };
        prop_assert!(score(&p, &p, &options).is_ok());
    }
}

/// Numbers that are the same in every run (an LCG by Knuth).
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    }
}

#[test]
fn sentences_taller_than_a_strip_and_wider_than_a_tile_are_walked_as_in_the_textbook() {
    let mut number = numbers(7);
    // Sides around the borders: strips have 256 rows, tiles 4,096 columns. One word in each text is in no other.
    for (rows, columns, words) in [
        (64, 65, 3),
        (129, 200, 4),
        (256, 300, 2),
        (257, 64, 5),
        (300, 4097, 2),
        (520, 4200, 40),
        (700, 700, 300),
        (40, 9000, 7),
        (513, 8300, 3),
    ] {
        let mut text = |length: u64, odd: &str| {
            let words: Vec<String> = (0..length)
                .map(|_| number(words + 1))
                .map(|n| if n == 0 { odd.to_owned() } else { n.to_string() })
                .collect();
            words.join(" ")
        };
        // A second sentence makes unions of two walks.
        let reference = text(rows, "odd");
        let prediction = format!("{}\n{}", text(columns, "strange"), text(rows, "strange"));
        for kind in [Kind::L, Kind::LSum] {
            let options = Options { kind, ..Options::default() };
            assert_eq!(
                score(&prediction, &reference, &options).unwrap().matches,
                textbook::matches(&prediction, &reference, &options),
                "{rows} rows, {columns} columns, {words} words, {kind}"
            );
        }
    }
}

/// The first call leaves marks of two columns behind, the second, whose only common word ends both
/// sentences, takes half of them away, and the third used what was no longer there.
#[test]
fn a_short_text_is_scored_after_a_tall_one_without_a_common_column() {
    let f_measure = |prediction: &str, reference: &str| {
        score(prediction, reference, &Options::default()).unwrap().f_measure
    };
    let tall: String = (0..299).map(|n| format!("{n} ")).collect();
    // One of two words in order; then one of 2 and of 300: 2 * (1/2 * 1/300) / (1/2 + 1/300) = 1/151.
    assert_eq!(f_measure("a b", "b a"), 0.5);
    assert!((f_measure("other end", &format!("{tall}end")) - 1.0 / 151.0).abs() < 1e-15);
    assert_eq!(f_measure("a b", "b a"), 0.5);
}

#[test]
fn repeated_sentences_are_scored_as_if_compared_each_time() {
    let mut number = numbers(11);
    let mut text = || {
        let lines: Vec<String> =
            (0..90).map(|_| format!("{} {} {}", number(3), number(3), number(4))).collect();
        lines.join("\n")
    };
    let (prediction, reference) = (text(), text());
    let options = Options::default();
    let matches = score(&prediction, &reference, &options).unwrap().matches;
    assert_eq!(matches, textbook::matches(&prediction, &reference, &options));
}

#[test]
fn millions_of_tiny_sentences_are_no_trouble() {
    // 600,000 of the reference's 800,000 tokens have a partner.
    let score = score(&"a\n".repeat(600_000), &"a\n".repeat(800_000), &Options::default()).unwrap();
    assert_eq!((score.precision, score.recall), (1.0, 0.75));
}

#[test]
fn too_much_work_is_refused_by_name() {
    let over = |prediction: &str, reference: &str, kind: Kind| match score(
        prediction,
        reference,
        &Options { kind, ..Options::default() },
    ) {
        Err(Unscored::OverLimit { what, found, limit }) => {
            assert!(found > limit && what.contains("64"), "{what}")
        }
        other => panic!("{other:?}"),
    };
    // 700,000² / 64 is about 7.7e9, the limit 4.3e9.
    over(&"a b ".repeat(350_000), &"b a ".repeat(350_000), Kind::L);
    over(&"a b ".repeat(350_000), &"b a ".repeat(350_000), Kind::LSum);
    let lines = |word: &str| (0..40_000).map(|n| format!("{n} {word}\n")).collect::<String>();
    over(&lines("x"), &lines("y"), Kind::LSum);
}

#[test]
fn a_raised_stop_ends_the_work() {
    let (p, r) = ("a b ".repeat(200_000), "b a c ".repeat(140_000));
    for kind in [Kind::N(1), Kind::N(9), Kind::L, Kind::LSum] {
        let raised = AtomicBool::new(true);
        let options = Options { kind, ..Options::default() };
        assert_eq!(score_until(&p, &r, &options, Stop::when(&raised)), Err(Unscored::Stopped));
    }
    // Raised under way, long before 2.6e9 steps are done.
    for kind in [Kind::L, Kind::LSum] {
        let raised = AtomicBool::new(false);
        let options = Options { kind, ..Options::default() };
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                raised.store(true, Ordering::Relaxed);
            });
            score_until(&p, &r, &options, Stop::when(&raised))
        });
        assert_eq!(result, Err(Unscored::Stopped));
    }
}
