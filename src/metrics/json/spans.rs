//! The texts of an object's members and of an array's items, as they were sent.
//!
//! For texts that [`Values::read`](super::Values::read) took: of other texts, some
//! pieces and an end.

/// The members of the object that `text` is, in order, each as the texts of its name (with the quotes) and of its
/// value. Nothing if it is no object.
pub fn members(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = inside(text, '{');
    std::iter::from_fn(move || {
        let (name, behind) = value(rest)?;
        let (value, behind) = value(behind.strip_prefix(':')?)?;
        rest = behind.strip_prefix(',').unwrap_or_default();
        Some((name, value))
    })
}

/// The text of the first item of the array that `text` is.
pub fn first_item(text: &str) -> Option<&str> {
    value(inside(text, '[')).map(|(item, _)| item)
}

fn inside(text: &str, bracket: char) -> &str {
    trim(text).strip_prefix(bracket).unwrap_or_default()
}

/// The value that `text` begins with, and what follows it, without the white space around either.
fn value(text: &str) -> Option<(&str, &str)> {
    let text = trim(text);
    let end = match text.bytes().next()? {
        b'"' => string_end(text, 0)?,
        b'[' | b'{' => bracket_end(text)?,
        b']' | b'}' | b',' | b':' => return None,
        _ => text.find([',', ':', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(text.len()),
    };
    Some((text.get(..end)?, trim(text.get(end..)?)))
}

fn trim(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// Behind the string that starts at `start`.
fn string_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Behind the bracket that closes the one `text` begins with.
fn bracket_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(text, at)?;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}
