//! Rewriting a text by rules, one after the other, as tokenizers made of regular expressions do.
//!
//! A rule is tried at each character that may start its match and replaces its matches from left to
//! right. What one match has taken, the next one of the same rule can't take again.

/// A text under rewriting, and the memory for its next state.
#[derive(Debug, Default)]
pub(super) struct Rewrite {
    text: String,
    next: String,
}

/// Where a rule is tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'t> {
    /// The character before, if there is one.
    pub(super) before: Option<char>,
    /// The character before belongs to the match before.
    pub(super) taken: bool,
    /// The text from here on.
    pub(super) rest: &'t str,
}

impl Place<'_> {
    /// The character before if this match may take it, too.
    pub(super) fn free_before(&self) -> Option<char> {
        if self.taken { None } else { self.before }
    }
}

impl Rewrite {
    pub(super) fn start(&mut self, text: &str) {
        self.text.clear();
        self.text.push_str(text);
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Tries `rule` at each character that `may_start` a match. It writes the replacement and gives the
    /// bytes it replaces, or leaves the text as it is.
    pub(super) fn apply(
        &mut self,
        may_start: impl Fn(char) -> bool,
        mut rule: impl FnMut(Place<'_>, &mut String) -> Option<usize>,
    ) {
        let Some(first) = self.text.find(&may_start) else { return };
        self.next.clear();
        // Up to where the text is copied, and where the last match ended.
        let (mut copied, mut matched) = (0, None);
        let mut at = first;
        loop {
            let (head, rest) = self.text.split_at_checked(at).unwrap_or_default();
            let place = Place { before: head.chars().next_back(), taken: matched == Some(at), rest };
            self.next.push_str(head.get(copied..).unwrap_or_default());
            copied = at;
            let after = match rule(place, &mut self.next) {
                Some(bytes) => {
                    copied = at + bytes;
                    matched = Some(copied);
                    copied
                }
                None => at + rest.chars().next().map_or(1, char::len_utf8),
            };
            match self.text.get(after..).and_then(|rest| rest.find(&may_start)) {
                Some(further) => at = after + further,
                None => break,
            }
        }
        self.next.push_str(self.text.get(copied..).unwrap_or_default());
        std::mem::swap(&mut self.text, &mut self.next);
    }

    /// Puts a space on both sides of each of these characters.
    pub(super) fn pad(&mut self, is: impl Fn(char) -> bool) {
        self.apply(is, |place, out| {
            let c = place.rest.chars().next()?;
            out.extend([' ', c, ' ']);
            Some(c.len_utf8())
        });
    }

    /// Puts a space on both sides of each maximal run of these characters.
    pub(super) fn pad_runs(&mut self, is: impl Fn(char) -> bool + Copy) {
        self.apply(is, |place, out| {
            let end = place.rest.find(|c| !is(c)).unwrap_or(place.rest.len());
            pad_into(out, place.rest.get(..end)?);
            Some(end)
        });
    }

    /// Replaces each occurrence of `from`.
    pub(super) fn replace(&mut self, from: &str, to: &str) {
        if self.text.contains(from) {
            self.text = self.text.replace(from, to);
        }
    }

    /// Replaces everything from byte `start` on.
    pub(super) fn replace_end(&mut self, start: usize, to: &str) {
        self.text.truncate(start);
        self.text.push_str(to);
    }

    /// Adds a space at both ends.
    pub(super) fn pad_ends(&mut self) {
        self.text.insert(0, ' ');
        self.text.push(' ');
    }
}

fn pad_into(out: &mut String, piece: &str) {
    out.push(' ');
    out.push_str(piece);
    out.push(' ');
}
