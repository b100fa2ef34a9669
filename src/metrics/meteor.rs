//! METEOR: words that match, also by stem or as synonyms, less a penalty for each break in their order.
//!
//! From 0 to 1. Banerjee and Lavie 2005, "METEOR: An Automatic Metric for MT Evaluation". Follows
//! `nltk.translate.meteor_score.single_meteor_score` of NLTK 3.10.4 to the last bit where `pow` is that of
//! its C library; tokens as the hosted graders cut them by default.
//!
//! Words are lower-cased and matched in three stages, each on what the one before left over: equal words, equal
//! Porter stems, and synonyms if [`Options::synonyms`] has WordNet, which is data of its own
//! ([`WordNet`]); without it the third stage is left out and [`Score::used_synonyms`] is false.
//!
//! Rules that surprise, all the reference's:
//! - Equal texts do not score 1: one word alone is 0.5, seven words are 0.9985.
//! - Of several places a word could match, the last one is taken, which can break an order that the first would
//!   have kept.
//! - Synonyms are looked up by stem: `auto` and `car` match, `buy` and `purchase` (stem `purchas`) do not.
//!
//! ```
//! use rapid_eval::metrics::meteor::{Options, score};
//!
//! // Two matches in one chunk: 1 - 0.5 * (1/2)^3.
//! let meteor = score("Good Morning", "good morning", &Options::default())?;
//! assert_eq!((meteor.value, meteor.chunks), (0.9375, 1));
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

mod wordnet;

pub use wordnet::{WordNet, WordNetError};

use super::nltk::{Tokenizer, within_limits};
use super::porter;
use super::vocabulary::{UNKNOWN, Vocabulary};
use super::{Stop, Unscored};

/// How METEOR is computed. The defaults are those of NLTK and the hosted graders.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How texts are cut into tokens.
    pub tokenizer: Tokenizer,
    /// How much precision weighs against recall, 0 to 1.
    pub alpha: f64,
    /// How steeply the penalty grows with the share of chunks.
    pub beta: f64,
    /// The largest penalty, 0 to 1.
    pub gamma: f64,
    /// Where synonyms come from; without it only equal words and stems match.
    pub synonyms: Option<&'a WordNet>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { tokenizer: Tokenizer::default(), alpha: 0.9, beta: 3.0, gamma: 0.5, synonyms: None }
    }
}

/// A METEOR score and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// METEOR, 0 to 1.
    pub value: f64,
    /// Words that are equal.
    pub exact_matches: u64,
    /// Other words with equal stems.
    pub stem_matches: u64,
    /// Other words whose stems are synonyms, or equal to the stem left over.
    pub synonym_matches: u64,
    /// Runs of matches that stand side by side in both texts.
    pub chunks: u64,
    /// The prediction's tokens.
    pub prediction_length: u64,
    /// The reference's tokens.
    pub reference_length: u64,
    /// Whether synonyms were looked up.
    pub used_synonyms: bool,
}

/// The METEOR score of `prediction` against one `reference`.
///
/// # Errors
/// [`Unscored::OverLimit`] for texts of more than 256 MiB.
pub fn score(prediction: &str, reference: &str, options: &Options<'_>) -> Result<Score, Unscored> {
    score_until(prediction, reference, options, Stop::NEVER)
}

/// As [`score`], for a caller who may lose interest. Time is linear in the texts.
///
/// # Errors
/// As [`score`]; [`Unscored::Stopped`] soon after `stop` was raised.
pub fn score_until(
    prediction: &str,
    reference: &str,
    options: &Options<'_>,
    stop: Stop<'_>,
) -> Result<Score, Unscored> {
    within_limits(prediction, reference, "bytes of text for METEOR")?;
    stop.check()?;
    let mut words = Vocabulary::default();
    let mut predicted = read(prediction, options.tokenizer, &mut words, stop)?;
    let mut wanted = read(reference, options.tokenizer, &mut words, stop)?;
    let mut alignment = Alignment::new(predicted.len());
    let mut score = Score {
        value: 0.0,
        exact_matches: 0,
        stem_matches: 0,
        synonym_matches: 0,
        chunks: 0,
        prediction_length: predicted.len() as u64,
        reference_length: wanted.len() as u64,
        used_synonyms: options.synonyms.is_some(),
    };

    score.exact_matches = alignment.match_words(&mut predicted, &mut wanted, words.len() + 1, &[], stop)?;
    let mut stems = Stems::default();
    stems.replace(&mut predicted, &mut words, stop)?;
    stems.replace(&mut wanted, &mut words, stop)?;
    score.stem_matches = alignment.match_words(&mut predicted, &mut wanted, words.len() + 1, &[], stop)?;
    if let Some(wordnet) = options.synonyms {
        let synonyms = synonyms_of(&predicted, &words, wordnet, stop)?;
        score.synonym_matches =
            alignment.match_words(&mut predicted, &mut wanted, words.len() + 1, &synonyms, stop)?;
    }

    let matches = score.exact_matches + score.stem_matches + score.synonym_matches;
    if matches > 0 {
        score.chunks = alignment.chunks();
        let matches = matches as f64;
        let precision = matches / score.prediction_length as f64;
        let recall = matches / score.reference_length as f64;
        let mean = precision * recall / (options.alpha * precision + (1.0 - options.alpha) * recall);
        let penalty = options.gamma * (score.chunks as f64 / matches).powf(options.beta);
        score.value = (1.0 - penalty) * mean;
    }
    Ok(score)
}

/// A word of a text that has no match yet: where it stands, and its number.
#[derive(Debug, Clone, Copy)]
struct Word {
    at: u32,
    id: u32,
}

/// Steps between two looks at [`Stop`].
const PATIENCE: usize = 1 << 12;

fn read(
    text: &str,
    tokenizer: Tokenizer,
    words: &mut Vocabulary,
    stop: Stop<'_>,
) -> Result<Vec<Word>, Unscored> {
    let mut read = Vec::new();
    tokenizer.each_token(text, stop, |token| {
        let id = words.insert(token.to_lowercase().as_bytes());
        read.push(Word { at: read.len() as u32, id });
        Ok(())
    })?;
    Ok(read)
}

/// The stem of each word whose stem was asked for.
#[derive(Debug, Default)]
struct Stems(Vec<u32>);

impl Stems {
    fn replace(&mut self, list: &mut [Word], words: &mut Vocabulary, stop: Stop<'_>) -> Result<(), Unscored> {
        for (number, word) in list.iter_mut().enumerate() {
            if number.is_multiple_of(PATIENCE) {
                stop.check()?;
            }
            word.id = self.stem(word.id, words);
        }
        Ok(())
    }

    fn stem(&mut self, id: u32, words: &mut Vocabulary) -> u32 {
        let index = id as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, UNKNOWN);
        }
        match self.0.get_mut(index) {
            Some(known) if *known == UNKNOWN => {
                let stem = porter::stem(text_of(words, id)).into_owned();
                *known = words.insert(stem.as_bytes());
                *known
            }
            Some(known) => *known,
            None => id,
        }
    }
}

fn text_of(words: &Vocabulary, id: u32) -> &str {
    str::from_utf8(words.word(id)).unwrap_or_default()
}

/// For each word of `list`, by its number: its synonyms that any text has.
fn synonyms_of(
    list: &[Word],
    words: &Vocabulary,
    wordnet: &WordNet,
    stop: Stop<'_>,
) -> Result<Vec<Option<Box<[u32]>>>, Unscored> {
    let mut synonyms: Vec<Option<Box<[u32]>>> = vec![None; words.len() + 1];
    for (number, word) in list.iter().enumerate() {
        if number.is_multiple_of(PATIENCE) {
            stop.check()?;
        }
        if let Some(unknown @ None) = synonyms.get_mut(word.id as usize) {
            let mut found = Vec::new();
            wordnet.each_synonym(text_of(words, word.id), |synonym| {
                let id = words.find(synonym.as_bytes());
                if id != UNKNOWN && !found.contains(&id) {
                    found.push(id);
                }
            });
            *unknown = Some(found.into());
        }
    }
    Ok(synonyms)
}

/// Not a place in the reference.
const UNMATCHED: u32 = u32::MAX;

/// For each word of the prediction the place of its match in the reference.
struct Alignment(Vec<u32>);

impl Alignment {
    fn new(prediction_length: usize) -> Self {
        Self(vec![UNMATCHED; prediction_length])
    }

    /// One stage: from last to first, each predicted word takes the last free wanted word that is the
    /// same or among its synonyms. Both lists keep what is left over. `ids` is more than any word's number.
    fn match_words(
        &mut self,
        predicted: &mut Vec<Word>,
        wanted: &mut Vec<Word>,
        ids: usize,
        synonyms: &[Option<Box<[u32]>>],
        stop: Stop<'_>,
    ) -> Result<u64, Unscored> {
        let mut free = FreePlaces::new(wanted, ids);
        let mut matches = 0;
        for (number, word) in predicted.iter().rev().enumerate() {
            if number.is_multiple_of(PATIENCE) {
                stop.check()?;
            }
            let mut best = (free.last(word.id), word.id);
            if let Some(Some(synonyms)) = synonyms.get(word.id as usize) {
                best = synonyms.iter().map(|&id| (free.last(id), id)).fold(best, std::cmp::max);
            }
            if let (Some(index), id) = best {
                free.take(index, id);
                if let (Some(place), Some(taken)) = (self.0.get_mut(word.at as usize), wanted.get(index)) {
                    *place = taken.at;
                    matches += 1;
                }
            }
        }
        predicted.retain(|word| self.0.get(word.at as usize) == Some(&UNMATCHED));
        let mut index = 0;
        wanted.retain(|_| {
            index += 1;
            !free.is_taken(index - 1)
        });
        Ok(matches)
    }

    /// Runs of matches that are neighbours in both texts.
    fn chunks(&self) -> u64 {
        let mut chunks = 0;
        let mut before = UNMATCHED;
        for &place in &self.0 {
            if place != UNMATCHED && (before == UNMATCHED || place != before + 1) {
                chunks += 1;
            }
            before = place;
        }
        chunks
    }
}

/// The wanted words by number, last ones first.
struct FreePlaces {
    /// By number of a word: one more than the index of its last free place in the list; 0 if there is none.
    last: Vec<u32>,
    /// By index: one more than the index of the same word's place before.
    before: Vec<u32>,
    taken: Vec<bool>,
}

impl FreePlaces {
    fn new(wanted: &[Word], ids: usize) -> Self {
        let mut last = vec![0; ids];
        let mut before = vec![0; wanted.len()];
        for ((index, word), before) in (1..).zip(wanted).zip(&mut before) {
            if let Some(last) = last.get_mut(word.id as usize) {
                *before = std::mem::replace(last, index);
            }
        }
        Self { last, before, taken: vec![false; wanted.len()] }
    }

    /// The index of the word's last free place.
    fn last(&self, id: u32) -> Option<usize> {
        (*self.last.get(id as usize)? as usize).checked_sub(1)
    }

    fn take(&mut self, index: usize, id: u32) {
        if let (Some(last), Some(before), Some(taken)) =
            (self.last.get_mut(id as usize), self.before.get(index), self.taken.get_mut(index))
        {
            *last = *before;
            *taken = true;
        }
    }

    fn is_taken(&self, index: usize) -> bool {
        self.taken.get(index).copied().unwrap_or_default()
    }
}
