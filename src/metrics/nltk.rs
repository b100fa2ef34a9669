//! What the metrics that follow NLTK share: its tokenizers, and the n-grams two token lists have in common.
//!
//! Used by [`nltk_bleu`](super::nltk_bleu), [`gleu`](super::gleu) and [`meteor`](super::meteor). The
//! reference is NLTK 3.10.4; the releases since 3.9.1 give the same tokens but for sentence ends at curly
//! quotes.

mod ngrams;
mod nist;
mod rewrite;
mod tokenizer;
mod word_tokenize;

pub(super) use ngrams::{shared_ngrams, within_limits};
pub use tokenizer::Tokenizer;
pub(super) use tokenizer::white_space_tokens;
pub(super) use word_tokenize::is_python_word;
