//! Reads the vectors and counts how close found values are to them.

use std::path::Path;

use serde_json::Value;

/// The content of a file of vectors.
pub(crate) fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines of a JSONL file. Texts hold other line ends on purpose.
pub(crate) fn rows(file: &str) -> Vec<Value> {
    let content = read(file);
    let lines = content.split('\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The list at `key` of the graders' vectors.
pub(crate) fn graders(key: &str) -> Value {
    serde_json::from_str::<Value>(&read("similarity/graders.json")).unwrap()[key].take()
}

/// The string at `key`.
pub(crate) fn field<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_else(|| panic!("no string {key} in {row}"))
}

/// A text of a vector: a string, or a unit repeated with a separator.
pub(crate) fn text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let times = usize::try_from(value["times"].as_u64().unwrap()).unwrap();
    vec![field(value, "unit"); times].join(field(value, "sep"))
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
