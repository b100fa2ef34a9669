//! Texts into token numbers.
//!
//! Only words of the reference get numbers; every other word of the prediction is [`UNKNOWN`], since it
//! can match nothing. Folding and stemming are done once for each distinct word.

use std::fmt;

use super::{Kind, Options, Stemmer, Tokens};
use crate::metrics::text::{Tokenizer, Word, each_word, fold};
use crate::metrics::vocabulary::{UNKNOWN, Vocabulary, expected_words};
use crate::metrics::{Stop, Unscored, porter, punkt};

/// How many lines pass between two looks at [`Stop`].
const PATIENCE: usize = 1024;

/// Words longer than this are left alone by the Snowball stemmers, whose running time on long words
/// is not known to be linear. No word of a language is as long.
const LONGEST_SNOWBALL_WORD: usize = 1024;

/// Reads a reference, then a prediction.
#[derive(Debug, Default)]
pub(super) struct Reader {
    rules: Rules,
    /// Words in the form in which they are compared.
    vocabulary: Vocabulary,
    /// Words as they come, if they are to be folded or stemmed, and the numbers they end up with.
    raw: Vocabulary,
    numbers: Vec<u32>,
    lowered: Vec<u8>,
    folded: String,
    stem: Vec<u8>,
}

#[derive(Debug, Default)]
struct Rules {
    tokenizer: Tokenizer,
    stemmer: WordStemmer,
    sentences: Sentences,
}

/// What separates sentences.
#[derive(Debug, Default, Clone, Copy)]
enum Sentences {
    /// The whole text is one: for everything but rougeLsum.
    #[default]
    None,
    Lines,
    Punkt,
}

#[derive(Default)]
enum WordStemmer {
    #[default]
    None,
    Porter,
    Snowball(rust_stemmers::Stemmer),
}

impl fmt::Debug for WordStemmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Porter => "Porter",
            Self::Snowball(_) => "Snowball",
        })
    }
}

impl WordStemmer {
    fn of(stemmer: Stemmer) -> Self {
        match stemmer {
            Stemmer::None => Self::None,
            Stemmer::Porter => Self::Porter,
            Stemmer::Snowball(algorithm) => Self::Snowball(rust_stemmers::Stemmer::create(algorithm)),
        }
    }
}

impl Reader {
    /// Forgets the last texts and takes new rules.
    pub(super) fn reset(&mut self, reference: &str, prediction: &str, options: &Options) {
        self.rules = Rules {
            tokenizer: options.tokenizer,
            stemmer: WordStemmer::of(options.stemmer),
            sentences: match options.kind {
                Kind::LSum if options.split_summaries => Sentences::Punkt,
                Kind::LSum => Sentences::Lines,
                Kind::L | Kind::N(_) => Sentences::None,
            },
        };
        self.vocabulary.reset(expected_words(reference.len()));
        self.raw.reset(expected_words(reference.len() + prediction.len()));
        self.numbers.clear();
        self.numbers.push(UNKNOWN);
    }

    /// The largest token number given.
    pub(super) fn largest(&self) -> usize {
        self.vocabulary.len()
    }

    /// Reads the text whose words get numbers.
    pub(super) fn read_reference(
        &mut self,
        text: &str,
        tokens: &mut Tokens,
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        self.read(text, tokens, stop, Vocabulary::insert)
    }

    /// Reads the text whose words are looked up.
    pub(super) fn read_prediction(
        &mut self,
        text: &str,
        tokens: &mut Tokens,
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        self.read(text, tokens, stop, |vocabulary, word| vocabulary.find(word))
    }

    fn read(
        &mut self,
        text: &str,
        tokens: &mut Tokens,
        stop: Stop<'_>,
        number: impl Fn(&mut Vocabulary, &[u8]) -> u32 + Copy,
    ) -> Result<(), Unscored> {
        tokens.ids.clear();
        tokens.ends.clear();
        match self.rules.sentences {
            Sentences::None => self.read_words(text, tokens, stop, number),
            Sentences::Lines => {
                for (count, line) in text.split('\n').enumerate() {
                    if count % PATIENCE == 0 {
                        stop.check()?;
                    }
                    self.read_sentence(line, tokens, stop, number)?;
                }
                Ok(())
            }
            Sentences::Punkt => punkt::each_sentence(text, stop, |sentence| {
                self.read_sentence(sentence, tokens, stop, number)
            }),
        }
    }

    fn read_sentence(
        &mut self,
        text: &str,
        tokens: &mut Tokens,
        stop: Stop<'_>,
        number: impl Fn(&mut Vocabulary, &[u8]) -> u32 + Copy,
    ) -> Result<(), Unscored> {
        let start = tokens.ids.len();
        self.read_words(text, tokens, stop, number)?;
        if tokens.ids.len() > start {
            tokens.ends.push(tokens.ids.len() as u32);
        }
        Ok(())
    }

    fn read_words(
        &mut self,
        text: &str,
        tokens: &mut Tokens,
        stop: Stop<'_>,
        number: impl Fn(&mut Vocabulary, &[u8]) -> u32 + Copy,
    ) -> Result<(), Unscored> {
        let Self { rules, vocabulary, raw, numbers, lowered, folded, stem } = self;
        let ids = &mut tokens.ids;
        let plain = matches!(rules.stemmer, WordStemmer::None);
        let mut stems = WordNumbers { stemmer: &rules.stemmer, vocabulary, raw, numbers, folded, stem };
        if plain {
            each_word(text, rules.tokenizer, lowered, stop, |word| {
                ids.push(match word {
                    Word::Lowered(word) => number(stems.vocabulary, word),
                    Word::Raw(_) => stems.number(word, number),
                });
            })
        } else {
            each_word(text, rules.tokenizer, lowered, stop, |word| ids.push(stems.number(word, number)))
        }
    }

    /// Bytes held, used or not.
    pub(super) fn capacity(&self) -> usize {
        self.vocabulary.capacity()
            + self.raw.capacity()
            + self.numbers.capacity() * 4
            + self.lowered.capacity()
            + self.folded.capacity()
            + self.stem.capacity()
    }
}

/// Numbers for words that have to be folded or stemmed first.
struct WordNumbers<'a> {
    stemmer: &'a WordStemmer,
    vocabulary: &'a mut Vocabulary,
    raw: &'a mut Vocabulary,
    numbers: &'a mut Vec<u32>,
    folded: &'a mut String,
    stem: &'a mut Vec<u8>,
}

impl WordNumbers<'_> {
    fn number(&mut self, word: Word<'_>, number: impl Fn(&mut Vocabulary, &[u8]) -> u32) -> u32 {
        let bytes = match word {
            Word::Lowered(word) => word,
            Word::Raw(word) => word.as_bytes(),
        };
        let raw = self.raw.insert(bytes) as usize;
        if let Some(&known) = self.numbers.get(raw) {
            return known;
        }
        let folded = match word {
            Word::Lowered(word) => word,
            Word::Raw(word) => {
                fold(word, self.folded);
                self.folded.as_bytes()
            }
        };
        let id = match self.stemmer {
            WordStemmer::Porter if folded.len() > 3 && folded.is_ascii() => {
                self.stem.clear();
                self.stem.extend_from_slice(folded);
                porter::stem_letters(self.stem);
                number(self.vocabulary, self.stem)
            }
            WordStemmer::Snowball(stemmer) => match std::str::from_utf8(folded) {
                Ok(word) if word.len() <= LONGEST_SNOWBALL_WORD && word.chars().nth(3).is_some() => {
                    number(self.vocabulary, stemmer.stem(word).as_bytes())
                }
                _ => number(self.vocabulary, folded),
            },
            WordStemmer::None | WordStemmer::Porter => number(self.vocabulary, folded),
        };
        self.numbers.push(id);
        id
    }
}
