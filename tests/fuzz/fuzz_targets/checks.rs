//! Keyword match and string check against a plain search, formulas against a recursive reader.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::formula::Formula;
use rapid_eval::metrics::keyword_match::{self, Mode, NoKeywordScore};
use rapid_eval::metrics::string_check::{self, Operation};
use rapid_eval_fuzz::texts;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

#[derive(Debug)]
struct Input {
    options: keyword_match::Options,
    /// A text, and what is looked for in it.
    texts: Vec<String>,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let mode = *u.choose(&[Mode::Any, Mode::All])?;
        let (substring, case_sensitive) = (u.ratio(1, 2)?, u.ratio(1, 2)?);
        let options = keyword_match::Options { mode, substring, case_sensitive };
        Ok(Self { options, texts: texts::all(u)? })
    }
}

fuzz_target!(|input: Input| {
    let Some((text, keywords)) = input.texts.split_first() else { return };
    keyword(text, keywords, &input.options);
    for keyword in keywords {
        string(text, keyword);
    }
    formula(text);
});

fn keyword(text: &str, keywords: &[String], options: &keyword_match::Options) {
    let blank = keywords.iter().position(|keyword| keyword.trim().is_empty());
    let found = match (keyword_match::score(text, keywords, options), blank) {
        (Ok(found), None) => found,
        (Err(NoKeywordScore::NoKeywords), None) => return assert!(keywords.is_empty()),
        (Err(NoKeywordScore::Blank { index }), Some(blank)) => return assert_eq!(index, blank),
        (other, _) => panic!("{other:?}"),
    };
    let hits = found.found.iter().filter(|found| **found).count();
    assert_eq!(found.found.len(), keywords.len());
    assert_eq!(found.value, hits as f64 / keywords.len() as f64);
    assert_eq!(found.passed, if options.mode == Mode::All { hits == keywords.len() } else { hits > 0 });
    if options.case_sensitive {
        for (keyword, found) in keywords.iter().zip(&found.found) {
            assert_eq!(*found, holds(text, keyword, options.substring), "{keyword:?}");
        }
    }
}

fn holds(text: &str, keyword: &str, substring: bool) -> bool {
    let (text, keyword): (String, String) = (text.nfc().collect(), keyword.nfc().collect());
    if substring {
        return text.contains(&keyword);
    }
    let (text, keyword) = (one_space(&text), one_space(&keyword));
    let keyword = keyword.trim();
    let mut bounds: Vec<usize> = text.split_word_bound_indices().map(|(at, _)| at).collect();
    bounds.push(text.len());
    bounds.iter().any(|at| text[*at..].starts_with(keyword) && bounds.contains(&(at + keyword.len())))
}

/// Each run of white space as one space.
fn one_space(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c.is_whitespace() {
            true if out.ends_with(' ') => {}
            true => out.push(' '),
            false => out.push(c),
        }
    }
    out
}

fn string(input: &str, reference: &str) {
    let passes = |operation| string_check::score(input, reference, operation) == 1.0;
    assert_eq!(passes(Operation::Eq), input == reference);
    assert_eq!(passes(Operation::Ne), input != reference);
    assert_eq!(passes(Operation::Like), input.contains(reference));
    assert!(!passes(Operation::Like) || passes(Operation::Ilike));
    for operation in [Operation::Like, Operation::Ilike] {
        assert_eq!(string_check::always_passes(reference, operation), reference.is_empty());
    }
}

/// The scores that formulas use here.
const SCORES: [(&str, f64); 4] = [("a", 0.5), ("b", -2.0), ("min", 3.0), ("é_1", 0.0)];

fn formula(text: &str) {
    let Ok(formula) = Formula::compile(text, &SCORES.map(|(name, _)| name)) else { return };
    let found = formula.evaluate(score);
    if let Ok(value) = found {
        assert!(value.is_finite());
    }
    // The recursive reader is kept from deep texts.
    if text.len() <= 256 {
        let mut reader = Reader { text };
        let expected = reader.sum();
        assert_eq!(reader.next(), None, "what compiles is read to its end");
        match (found, expected) {
            (Ok(found), Some(expected)) => assert_eq!(found.to_bits(), expected.to_bits()),
            (Err(_), None) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn score(name: &str) -> Option<f64> {
    SCORES.iter().find(|(known, _)| *known == name).map(|(_, score)| *score)
}

/// Evaluates while it reads; `None` if a step is not finite. Only for formulas that compile.
struct Reader<'t> {
    text: &'t str,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<char> {
        self.text = self.text.trim_start();
        self.text.chars().next()
    }

    fn skip_if(&mut self, wanted: char) -> bool {
        let found = self.next() == Some(wanted);
        if found {
            self.text = &self.text[wanted.len_utf8()..];
        }
        found
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.text.split_at(length);
        self.text = rest;
        taken
    }

    fn sum(&mut self) -> Option<f64> {
        let mut value = self.product();
        loop {
            value = if self.skip_if('+') {
                both(value, self.product(), |a, b| a + b)
            } else if self.skip_if('-') {
                both(value, self.product(), |a, b| a - b)
            } else {
                return value;
            };
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut value = self.signed();
        loop {
            value = if self.skip_if('*') {
                both(value, self.signed(), |a, b| a * b)
            } else if self.skip_if('/') {
                both(value, self.signed(), |a, b| a / b)
            } else {
                return value;
            };
        }
    }

    fn signed(&mut self) -> Option<f64> {
        if self.skip_if('-') {
            return self.signed().map(|value| -value);
        }
        if self.skip_if('+') {
            return self.signed();
        }
        let base = self.operand();
        if self.skip_if('^') { both(base, self.signed(), f64::powf) } else { base }
    }

    fn operand(&mut self) -> Option<f64> {
        if self.skip_if('(') {
            let value = self.sum();
            assert!(self.skip_if(')'));
            return value;
        }
        let text = self.text;
        if self.next().is_some_and(|c| c == '.' || c.is_ascii_digit()) {
            let mut last = ' ';
            let ends = |c: char| {
                let goes_on = c == '.' || c.is_alphanumeric() || ("eE".contains(last) && "+-".contains(c));
                last = c;
                !goes_on
            };
            let end = self.text.find(ends).unwrap_or(self.text.len());
            return self.take(end).parse().ok();
        }
        let end = self.text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(self.text.len());
        assert!(end > 0, "{text:?}");
        let name = self.take(end);
        if !self.skip_if('(') {
            return score(name);
        }
        let mut values = vec![self.sum()];
        while self.skip_if(',') {
            values.push(self.sum());
        }
        assert!(self.skip_if(')'));
        let values = values.into_iter().collect::<Option<Vec<f64>>>()?;
        let (first, more) = values.split_first()?;
        let value = match name {
            "min" => more.iter().fold(*first, |a, b| a.min(*b)),
            "max" => more.iter().fold(*first, |a, b| a.max(*b)),
            "abs" => first.abs(),
            "floor" => first.floor(),
            "ceil" => first.ceil(),
            "exp" => first.exp(),
            "sqrt" => first.sqrt(),
            "log" => first.ln(),
            other => panic!("{other} compiles"),
        };
        value.is_finite().then_some(value)
    }
}

fn both(a: Option<f64>, b: Option<f64>, operate: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let value = operate(a?, b?);
    value.is_finite().then_some(value)
}
