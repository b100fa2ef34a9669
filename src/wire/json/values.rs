//! `google.protobuf.Struct` as plain JSON.

use prost_types::Struct;
use prost_types::value::Kind;
use serde_json::{Map, Number, Value};

/// Whole numbers from here up are not exact in a `double`.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// The members of a struct. Whole numbers are written without a fraction: a `double` is all that a struct has,
/// and `4` is what its author wrote. The depth of a struct is bounded by whoever read it off the wire.
pub fn object(of: &Struct) -> Map<String, Value> {
    // A `BTreeMap`: members come in the order of their names.
    of.fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
}

fn plain(value: &prost_types::Value) -> Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(truth)) => Value::Bool(*truth),
        Some(Kind::StringValue(text)) => Value::String(text.clone()),
        Some(Kind::NumberValue(number)) => number_of(*number),
        Some(Kind::ListValue(list)) => Value::Array(list.values.iter().map(plain).collect()),
        Some(Kind::StructValue(inside)) => Value::Object(object(inside)),
    }
}

fn number_of(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < EXACT_BELOW {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Value::from(number as i64);
    }
    // Not a number and infinite ones are no JSON; the reader of JSON lets none in.
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (number, text) in [
            (4.0, "4"),
            (-0.5, "-0.5"),
            (0.1, "0.1"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (1e300, "1e300"),
        ] {
            assert_eq!(number_of(number).to_string().replace('+', ""), text);
        }
    }
}
