//! All trajectory metrics against pairing calls one by one.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use rapid_eval::metrics::Stop;
use rapid_eval::metrics::trajectory::{
    Call, any_order_match, exact_match, in_order_match, precision, recall, single_tool_use,
};
use rapid_eval_fuzz::json::{model, object, oracle, value};

const NEVER: Stop<'static> = Stop::NEVER;

#[derive(Debug, Clone)]
struct Made {
    name: String,
    input: Option<String>,
}

#[derive(Debug)]
struct Input {
    predicted: Vec<Made>,
    reference: Vec<Made>,
}

impl<'a> Arbitrary<'a> for Made {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let name = (*u.choose(&["search", "book", "", "Search"])?).to_owned();
        let input = match u.int_in_range(0..=7_u8)? {
            0 | 1 => None,
            2 | 3 => Some((*u.choose(&["{}", "{ }", "", "not JSON", "null"])?).to_owned()),
            4 => Some(value(u, 3)?),
            5..=7 => Some(object(u, 2)?),
            _ => None,
        };
        Ok(Self { name, input })
    }
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let count = u.int_in_range(0..=6)?;
        let predicted = (0..count).map(|_| Made::arbitrary(u)).collect::<arbitrary::Result<Vec<_>>>()?;
        // The reference takes calls from the prediction and makes some of its own.
        let count = u.int_in_range(0..=6)?;
        let wanted = |_| match u.int_in_range(0..=2)? {
            0 => Made::arbitrary(u),
            _ if predicted.is_empty() => Made::arbitrary(u),
            _ => u.choose(&predicted).cloned(),
        };
        let reference = (0..count).map(wanted).collect::<arbitrary::Result<Vec<_>>>()?;
        Ok(Self { predicted, reference })
    }
}

fn calls(made: &[Made]) -> Vec<Call<'_>> {
    made.iter().map(|call| Call { name: &call.name, input: call.input.as_deref() }).collect()
}

/// Whether two calls are equal, if the oracle can tell.
fn equal(a: &Call<'_>, b: &Call<'_>) -> Option<bool> {
    let (x, y) = (a.input.unwrap_or("{}"), b.input.unwrap_or("{}"));
    let inputs = match (oracle(x)?, oracle(y)?) {
        (Ok(x), Ok(y)) => model(&x)? == model(&y)?,
        (Err(_), Err(_)) => x == y,
        _ => false,
    };
    Some(a.name == b.name && inputs)
}

fuzz_target!(|input: Input| {
    let (made, wanted) = (calls(&input.predicted), calls(&input.reference));
    let exact = exact_match(&made, &wanted, NEVER).expect("they are short");
    let in_order = in_order_match(&made, &wanted, NEVER).expect("they are short");
    let any_order = any_order_match(&made, &wanted, NEVER).expect("they are short");
    let precise = precision(&made, &wanted, NEVER).expect("they are short");
    let recalled = recall(&made, &wanted, NEVER).expect("they are short");

    for score in [exact, in_order, any_order] {
        assert!(score == 0.0 || score == 1.0);
    }
    for ratio in [precise, recalled] {
        assert!(ratio.matches <= ratio.total && (0.0..=1.0).contains(&ratio.value()), "{ratio:?}");
    }
    assert!(exact <= in_order && in_order <= any_order);
    assert_eq!(precise.matches, recalled.matches);
    assert_eq!(recall(&wanted, &made, NEVER), Ok(precise));
    assert_eq!(precision(&wanted, &made, NEVER), Ok(recalled));
    assert_eq!(exact_match(&wanted, &made, NEVER), Ok(exact));
    if made.is_empty() == wanted.is_empty() {
        assert_eq!(any_order == 1.0, recalled.value() == 1.0);
    }
    for same in [&made, &wanted] {
        for metric in [exact_match, in_order_match, any_order_match] {
            assert_eq!(metric(same, same, NEVER), Ok(1.0));
        }
        assert_eq!(precision(same, same, NEVER).map(|ratio| ratio.value()), Ok(1.0));
    }
    for name in made.iter().chain(&wanted).map(|call| call.name) {
        let used = made.iter().any(|call| call.name == name);
        assert_eq!(single_tool_use(&made, name), f64::from(u8::from(used)));
    }
    if let Some((matches, exactly, ordered)) = by_definition(&made, &wanted) {
        assert_eq!(precise.matches, matches);
        assert_eq!((exact == 1.0, in_order == 1.0), (exactly, ordered));
    }
});

/// The number of pairs, whether the calls are the same, whether the wanted ones were made in order.
fn by_definition(made: &[Call<'_>], wanted: &[Call<'_>]) -> Option<(u64, bool, bool)> {
    let mut free = vec![true; made.len()];
    let mut matches = 0;
    for wanted in wanted {
        for (made, free) in made.iter().zip(&mut free) {
            if *free && equal(made, wanted)? {
                *free = false;
                matches += 1;
                break;
            }
        }
    }
    let mut exactly = made.len() == wanted.len();
    for (made, wanted) in made.iter().zip(wanted) {
        exactly &= equal(made, wanted)?;
    }
    let mut rest = made.iter();
    for wanted in wanted {
        loop {
            match rest.next() {
                None => return Some((matches, exactly, false)),
                Some(made) if equal(made, wanted)? => break,
                Some(_) => {}
            }
        }
    }
    Some((matches, exactly, true))
}
