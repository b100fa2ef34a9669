//! Sentences of English text, as NLTK's pre-trained Punkt splitter finds them.
//!
//! T. Kiss and J. Strunk, "Unsupervised Multilingual Sentence Boundary Detection" (2006). Follows
//! `nltk.sent_tokenize` of NLTK 3.10.4 with its English parameters (`punkt_tab`), which know curly quotes
//! and guillemets as marks that may close a sentence. Line breaks do not end sentences.
//!
//! Each `.`, `?` or `!` that stands before white space or a mark is a candidate. Whether it ends a
//! sentence is decided on the word around it and the next token only. Time is linear in the text.

use super::{Stop, Unscored};

mod parameters;
mod tokens;

use tokens::{breaks_within, is_stripped};

/// The sentences of `text`, in order.
///
/// ```
/// use rapid_eval::metrics::punkt::sentences;
/// let text = "Dr. Bell called at 3 p.m. on Monday. \"Who?\" she asked.";
/// assert_eq!(sentences(text), ["Dr. Bell called at 3 p.m. on Monday.", "\"Who?\"", "she asked."]);
/// ```
pub fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let split = each_sentence(text, Stop::NEVER, |sentence| {
        sentences.push(sentence);
        Ok(())
    });
    debug_assert!(split.is_ok(), "nobody asks for a stop");
    sentences
}

/// Calls `take` with each sentence of `text` in order, until it fails.
pub(crate) fn each_sentence<'t>(
    text: &'t str,
    stop: Stop<'_>,
    take: impl FnMut(&'t str) -> Result<(), Unscored>,
) -> Result<(), Unscored> {
    let mut pieces = Pieces { text, take, pending: None, moved: 0 };
    // Where the sentence being read starts.
    let mut start = 0;
    let mut before: Option<Candidate> = None;
    each_candidate(text, stop, |candidate| {
        // A candidate inside the next one's word is no candidate: "acting!!!" has one, not three.
        if let Some(before) = before.replace(candidate)
            && before.mark <= candidate.word
        {
            start = pieces.cut_at(start, before)?;
        }
        Ok(())
    })?;
    if let Some(last) = before {
        start = pieces.cut_at(start, last)?;
    }
    pieces.piece(start, text.trim_end_matches(is_stripped).len())?;
    pieces.finish()
}

/// A mark that may end a sentence.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Where its word begins.
    word: usize,
    /// Where it stands; it is one byte long.
    mark: usize,
    /// Where the sentence after it would begin.
    next: usize,
    /// Where the context behind it ends.
    end: usize,
}

/// Calls `take` with each candidate in order.
fn each_candidate(
    text: &str,
    stop: Stop<'_>,
    mut take: impl FnMut(Candidate) -> Result<(), Unscored>,
) -> Result<(), Unscored> {
    const PATIENCE: usize = 1 << 16;
    let (mut word, mut mark_before) = (0, 0);
    let mut last_space = None;
    for (at, byte) in text.bytes().enumerate() {
        if at % PATIENCE == 0 {
            stop.check()?;
        }
        match byte {
            // The word begins after the last ASCII space since the mark before; a space at the very
            // start of the text does not count.
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => last_space = Some(at),
            b'.' | b'?' | b'!' => {
                let Some((next, end)) = context(text, at + 1) else { continue };
                if let Some(space) = last_space
                    && space > mark_before
                {
                    word = space + 1;
                }
                mark_before = at;
                take(Candidate { word, mark: at, next, end })?;
            }
            _ => (),
        }
    }
    Ok(())
}

/// What is behind a mark: a character that is in no word, or white space and a run without any.
/// Gives where the next sentence would begin and where the context ends.
fn context(text: &str, behind: usize) -> Option<(usize, usize)> {
    let rest = &text[behind..];
    let first = rest.chars().next()?;
    if tokens::is_non_word(first) {
        return Some((behind, behind + first.len_utf8()));
    }
    if !first.is_whitespace() {
        return None;
    }
    let run = rest.trim_start();
    let next = text.len() - run.len();
    let length = run.find(char::is_whitespace).unwrap_or(run.len());
    (length > 0).then_some((next, next + length))
}

/// Pieces of text on their way to becoming sentences: closing marks that a piece begins with belong to
/// the sentence before.
struct Pieces<'t, T> {
    text: &'t str,
    take: T,
    pending: Option<(usize, usize)>,
    /// How many bytes at the start of the pending piece were moved to the one before.
    moved: usize,
}

impl<'t, T: FnMut(&'t str) -> Result<(), Unscored>> Pieces<'t, T> {
    /// Ends the piece that began at `start` if there is a break, and tells where the next one begins.
    fn cut_at(&mut self, start: usize, candidate: Candidate) -> Result<usize, Unscored> {
        if !breaks_within(&self.text[candidate.word..candidate.end]) {
            return Ok(start);
        }
        self.piece(start, candidate.mark + 1)?;
        Ok(candidate.next)
    }

    fn piece(&mut self, start: usize, end: usize) -> Result<(), Unscored> {
        if let Some((pending, pending_end)) = self.pending.replace((start, end)) {
            let pending = pending + self.moved;
            let (closing, moved) = closing_marks(self.text.get(start..end).unwrap_or_default());
            self.moved = moved;
            let end = if moved > 0 { start + closing } else { pending_end };
            self.sentence(pending, end)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Unscored> {
        match self.pending.take() {
            Some((start, end)) => self.sentence(start + self.moved, end),
            None => Ok(()),
        }
    }

    fn sentence(&mut self, start: usize, end: usize) -> Result<(), Unscored> {
        match self.text.get(start..end) {
            Some(sentence) if !sentence.is_empty() => (self.take)(sentence),
            _ => Ok(()),
        }
    }
}

/// The lengths of the closing marks that `piece` begins with, if white space, `--` or the end of the
/// line comes after them: without and with that white space.
fn closing_marks(piece: &str) -> (usize, usize) {
    let rest = piece.trim_start_matches(['"', '\'', ')', ']', '}', '‘', '’', '“', '”', '«', '»']);
    let marks = piece.len() - rest.len();
    if marks == 0 || !(rest.is_empty() || rest.starts_with("--") || rest.starts_with(char::is_whitespace)) {
        return (0, 0);
    }
    (marks, piece.len() - rest.trim_start().len())
}
