//! Which tokens a text has.

use super::{nist, word_tokenize};
use crate::metrics::{Stop, Unscored, bleu};

/// How a text is cut into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tokenizer {
    /// As the hosted graders do: [`Self::Word`] for text of printable ASCII (20 to 7E) only,
    /// [`Self::NistInternational`] for any other; a line feed is enough. Chosen for each text apart.
    #[default]
    Grader,
    /// As the evaluators of Azure's client library do: [`Self::Word`] for ASCII text,
    /// [`Self::NistInternational`] for any other.
    AsciiWord,
    /// NLTK's `word_tokenize`: English sentences, then Treebank words.
    Word,
    /// NLTK's `NISTTokenizer.international_tokenize`.
    NistInternational,
    /// What stands between white space, as Python's `str.split` sees it.
    WhiteSpace,
    /// sacrebleu's `13a`, which Hugging Face's `bleu` and `google_bleu` use.
    Mteval13a,
}

impl Tokenizer {
    /// The tokens of `text`, for seeing why a score is what it is.
    pub fn tokens(self, text: &str) -> Vec<String> {
        let mut tokens = Vec::new();
        let read = self.each_token(text, Stop::NEVER, |token| {
            tokens.push(token.to_owned());
            Ok(())
        });
        debug_assert!(read.is_ok(), "nobody asks for a stop");
        tokens
    }

    /// Calls `take` with each token of `text` in order, until it fails or `stop` is raised.
    pub(in crate::metrics) fn each_token(
        self,
        text: &str,
        stop: Stop<'_>,
        mut take: impl FnMut(&str) -> Result<(), Unscored>,
    ) -> Result<(), Unscored> {
        const PATIENCE: usize = 1 << 12;
        let mut taken = 0_usize;
        let mut take = |token: &str| {
            if taken.is_multiple_of(PATIENCE) {
                stop.check()?;
            }
            taken += 1;
            take(token)
        };
        let is_printable = |byte: u8| matches!(byte, 0x20..=0x7e);
        match self {
            Self::Grader if text.bytes().all(is_printable) => word_tokenize::each_token(text, stop, take),
            Self::AsciiWord if text.is_ascii() => word_tokenize::each_token(text, stop, take),
            Self::Word => word_tokenize::each_token(text, stop, take),
            Self::Grader | Self::AsciiWord | Self::NistInternational => nist::each_token(text, stop, take),
            Self::WhiteSpace => white_space_tokens(text).try_for_each(take),
            Self::Mteval13a => {
                let tokens = bleu::Tokenizer::Mteval13a.tokens(without_final_hyphenation(text));
                tokens.iter().try_for_each(|token| take(token))
            }
        }
    }
}

/// BLEU's tokenizer takes white space off the end before it deletes a hyphen at a line's end; the callers
/// meant here do not.
fn without_final_hyphenation(text: &str) -> &str {
    let content = text.trim_end_matches(is_white);
    match (content.strip_suffix('-'), text.get(content.len()..)) {
        (Some(before), Some(space)) if space.starts_with('\n') => before,
        _ => text,
    }
}

/// The pieces between white space, as Python's `str.split` sees it: what Unicode calls so, and 1C to 1F.
pub(crate) fn white_space_tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_white).filter(|token| !token.is_empty())
}

fn is_white(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
