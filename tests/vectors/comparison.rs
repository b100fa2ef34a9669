//! Counts how close found values are to expected ones.

use serde_json::Value;

/// A text of a vector: a string, or a unit repeated with a separator.
pub(crate) fn text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let times = usize::try_from(value["times"].as_u64().unwrap()).unwrap();
    vec![value["unit"].as_str().unwrap(); times].join(value["sep"].as_str().unwrap())
}

/// Compares within 1e-12 and counts the values that differ in a bit.
#[derive(Default)]
pub(crate) struct Comparison {
    pub(crate) values: usize,
    pub(crate) differing_bits: usize,
}

impl Comparison {
    pub(crate) fn add(&mut self, found: f64, expected: &Value, context: &str) {
        let expected = expected.as_f64().unwrap_or_else(|| panic!("{context}: no number"));
        assert!((found - expected).abs() <= 1e-12, "{context}: {found} is not {expected}");
        self.values += 1;
        self.differing_bits += usize::from(found.to_bits() != expected.to_bits());
    }

    pub(crate) fn print(&self, name: &str) {
        println!("{name}: {} values, {} differ in a bit", self.values, self.differing_bits);
    }
}
