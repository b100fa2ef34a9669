//! BLEU with every option against its definition, and its tokenizers against rewriting the text step by step.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::bleu::{DEFAULT_ORDER, HIGHEST_ORDER, Options, Smoothing, Tokenizer, score};
use rapid_eval_fuzz::texts::Texts;
use rapid_eval_fuzz::words::ngram_matches;
use unicode_properties::{GeneralCategoryGroup as Group, UnicodeGeneralCategory};

#[derive(Debug)]
struct Input {
    options: Options,
    texts: Texts,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let options = Options {
            tokenizer: *u.choose(&Tokenizer::ALL)?,
            use_effective_order: u.ratio(1, 2)?,
            lowercase: u.ratio(1, 2)?,
            max_order: u.int_in_range(0..=HIGHEST_ORDER + 1)?,
            smoothing: *u.choose(&[Smoothing::Exp, Smoothing::Floor, Smoothing::AddK, Smoothing::None])?,
        };
        Ok(Self { options, texts: Texts::arbitrary(u)? })
    }
}

fuzz_target!(|input: Input| {
    let Input { options, texts: Texts { prediction, reference } } = &input;
    let found = match score(prediction, reference, options) {
        Ok(found) => found,
        Err(_) => return assert!(options.max_order > HIGHEST_ORDER),
    };
    assert!((0.0..=1.0 + 1e-9).contains(&found.value), "{found:?}");
    assert!((0.0..=1.0).contains(&found.brevity_penalty), "{found:?}");
    assert!(found.precisions.iter().all(|precision| (0.0..=1.0).contains(precision)), "{found:?}");

    let order = if options.max_order == 0 { DEFAULT_ORDER } else { options.max_order };
    let (p, r) = (tokens(prediction, options), tokens(reference, options));
    let matches: Vec<u64> = (1..=order).map(|n| ngram_matches(&p, &r, n.into())).collect();
    assert_eq!(found.matches, matches);
    assert_eq!((found.prediction_length, found.reference_length), (p.len() as u64, r.len() as u64));
    let expected = by_definition(&matches, p.len(), r.len(), options);
    assert!((found.value - expected).abs() < 1e-9, "{found:?} {expected}");

    let same = score(reference, reference, options).expect("the order is allowed");
    let long_enough =
        options.use_effective_order || options.smoothing == Smoothing::AddK || r.len() >= usize::from(order);
    let expected = if long_enough && !r.is_empty() { 1.0 } else { 0.0 };
    assert!((same.value - expected).abs() < 1e-9, "{same:?}");
});

fn by_definition(matches: &[u64], prediction: usize, reference: usize, options: &Options) -> f64 {
    if matches.iter().all(|matches| *matches == 0) {
        return 0.0;
    }
    let (mut product, mut orders, mut halves) = (1.0_f64, 0, 1.0);
    for (index, matches) in matches.iter().enumerate() {
        let added = if options.smoothing == Smoothing::AddK && index > 0 { 1.0 } else { 0.0 };
        let total = prediction.saturating_sub(index) as f64 + added;
        if total == 0.0 {
            if options.use_effective_order {
                break;
            }
            return 0.0;
        }
        orders += 1;
        let matches = match (*matches as f64 + added, options.smoothing) {
            (0.0, Smoothing::Exp) => {
                halves /= 2.0;
                halves
            }
            (0.0, Smoothing::Floor) => 0.1,
            (matches, _) => matches,
        };
        product *= matches / total;
    }
    let short = (1.0 - reference as f64 / prediction as f64).min(0.0);
    short.exp() * product.powf(1.0 / f64::from(orders))
}

fn tokens(text: &str, options: &Options) -> Vec<String> {
    let text = if options.lowercase { text.to_lowercase() } else { text.to_owned() };
    let tokens = options.tokenizer.tokens(&text);
    if let Some(rewritten) = rewritten(&text, options.tokenizer) {
        let expected: Vec<&str> = rewritten.split(is_white).filter(|token| !token.is_empty()).collect();
        assert_eq!(tokens, expected, "{}", options.tokenizer);
    }
    tokens
}

fn is_white(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The text with spaces around its tokens, made as the reference makes it: one pass over the text for a rule.
fn rewritten(text: &str, tokenizer: Tokenizer) -> Option<String> {
    let group = |wanted: Group| move |c: char| c.general_category_group() == wanted;
    let digit = |c: char| c.is_ascii_digit();
    match tokenizer {
        Tokenizer::None => Some(text.to_owned()),
        Tokenizer::Char => Some(singles(text, |_| true)),
        Tokenizer::Intl => {
            let number = group(Group::Number);
            let mark = group(Group::Punctuation);
            let text =
                pairs(text.trim_end_matches(is_white), |c| !number(c), mark, |a, b| format!("{a} {b} "));
            let text = pairs(&text, mark, |c| !number(c), |a, b| format!(" {a} {b}"));
            Some(singles(&text, group(Group::Symbol)))
        }
        Tokenizer::Mteval13a => {
            let mut text = text.trim_end_matches(is_white).to_owned();
            let steps = [
                ("<skipped>", ""),
                ("-\n", ""),
                ("\n", " "),
                ("&quot;", "\""),
                ("&amp;", "&"),
                ("&lt;", "<"),
                ("&gt;", ">"),
            ];
            for (from, to) in steps {
                text = text.replace(from, to);
            }
            let always = |c: char| c.is_ascii_punctuation() && !"-.,'".contains(c);
            let point = |c: char| matches!(c, '.' | ',');
            let text = singles(&format!(" {text} "), always);
            let text = pairs(&text, |c| !digit(c), point, |a, b| format!("{a} {b} "));
            let text = pairs(&text, point, |c| !digit(c), |a, b| format!(" {a} {b}"));
            Some(pairs(&text, digit, |c| c == '-', |a, b| format!("{a} {b} ")))
        }
        Tokenizer::Zh => None,
    }
}

fn singles(text: &str, alone: impl Fn(char) -> bool) -> String {
    text.chars().map(|c| if alone(c) { format!(" {c} ") } else { c.to_string() }).collect()
}

/// Every two neighbours of these kinds written anew, from left to right; none is used twice.
fn pairs(
    text: &str,
    first: impl Fn(char) -> bool,
    second: impl Fn(char) -> bool,
    write: impl Fn(char, char) -> String,
) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(a) = rest.next() {
        match rest.clone().next() {
            Some(b) if first(a) && second(b) => {
                out += &write(a, b);
                rest.next();
            }
            _ => out.push(a),
        }
    }
    out
}
