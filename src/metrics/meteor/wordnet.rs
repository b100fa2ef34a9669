//! Synonyms of English words from WordNet 3.0.
//!
//! The data is not part of this software. Debian's package `wordnet-base` installs it into
//! `/usr/share/wordnet`; of its files the ones named in [`WordNet::FILES`] are read. WordNet 3.1 has other
//! synonyms and would give other scores.
//!
//! A word's synonyms are the names of all synsets, of any part of speech, that it or a base form of it is in
//! (`cars` is in those of `car`), by the rules of WordNet's own morphology with one ending replaced once. Names
//! of several words and names with capitals are left out: no token can equal them.

use std::fmt;
use std::io;

use rustc_hash::FxHashMap;

use crate::metrics::vocabulary::Vocabulary;

/// Which words mean the same, held in about 15 MiB of memory.
#[derive(Debug)]
pub struct WordNet {
    parts: [PartOfSpeech; 4],
    names: Vocabulary,
}

/// Why WordNet's files can't be used.
#[derive(Debug)]
pub enum WordNetError {
    /// A file could not be read.
    Unreadable {
        /// The file's name, such as `index.noun`.
        file: &'static str,
        /// What went wrong.
        source: io::Error,
    },
    /// A line is not as WordNet 3.0 has it.
    Malformed {
        /// The file's name.
        file: &'static str,
        /// The number of the line, from 1.
        line: usize,
    },
}

impl fmt::Display for WordNetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, source } => write!(f, "WordNet file {file}: {source}"),
            Self::Malformed { file, line } => write!(f, "WordNet file {file}: line {line} is malformed"),
        }
    }
}

impl std::error::Error for WordNetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Malformed { .. } => None,
        }
    }
}

#[derive(Debug)]
struct PartOfSpeech {
    endings: &'static [(&'static str, &'static str)],
    /// By word: the numbers of its synonyms.
    synonyms: FxHashMap<Box<str>, Box<[u32]>>,
    /// By irregular form: its base forms.
    exceptions: FxHashMap<Box<str>, Box<[Box<str>]>>,
}

/// A part of speech's files and the endings that its base forms have instead of others.
struct Source {
    index: &'static str,
    data: &'static str,
    exceptions: &'static str,
    endings: &'static [(&'static str, &'static str)],
}

const SOURCES: [Source; 4] = [
    Source {
        index: "index.noun",
        data: "data.noun",
        exceptions: "noun.exc",
        endings: &[
            ("s", ""),
            ("ses", "s"),
            ("ves", "f"),
            ("xes", "x"),
            ("zes", "z"),
            ("ches", "ch"),
            ("shes", "sh"),
            ("men", "man"),
            ("ies", "y"),
        ],
    },
    Source {
        index: "index.verb",
        data: "data.verb",
        exceptions: "verb.exc",
        endings: &[
            ("s", ""),
            ("ies", "y"),
            ("es", "e"),
            ("es", ""),
            ("ed", "e"),
            ("ed", ""),
            ("ing", "e"),
            ("ing", ""),
        ],
    },
    Source {
        index: "index.adj",
        data: "data.adj",
        exceptions: "adj.exc",
        endings: &[("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    },
    Source { index: "index.adv", data: "data.adv", exceptions: "adv.exc", endings: &[] },
];

/// Longer words are not looked up; WordNet's longest has 71 bytes.
const LONGEST_WORD: usize = 128;

impl WordNet {
    /// The names of the files that are read.
    pub const FILES: [&'static str; 12] = [
        "index.noun",
        "data.noun",
        "noun.exc",
        "index.verb",
        "data.verb",
        "verb.exc",
        "index.adj",
        "data.adj",
        "adj.exc",
        "index.adv",
        "data.adv",
        "adv.exc",
    ];

    /// Reads WordNet; `open` gives the content of each of [`Self::FILES`]:
    ///
    /// ```no_run
    /// use rapid_eval::metrics::meteor::WordNet;
    ///
    /// let wordnet = WordNet::read(|file| {
    ///     std::fs::read_to_string(std::path::Path::new("/usr/share/wordnet").join(file))
    /// })?;
    /// # Ok::<(), rapid_eval::metrics::meteor::WordNetError>(())
    /// ```
    ///
    /// # Errors
    /// [`WordNetError`], naming the file.
    pub fn read(mut open: impl FnMut(&'static str) -> io::Result<String>) -> Result<Self, WordNetError> {
        let mut names = Vocabulary::default();
        let mut content = |file| open(file).map_err(|source| WordNetError::Unreadable { file, source });
        let mut parts = Vec::with_capacity(SOURCES.len());
        for source in &SOURCES {
            let data = content(source.data)?;
            let synsets = read_synsets(source.data, &data, &mut names)?;
            parts.push(PartOfSpeech {
                endings: source.endings,
                synonyms: read_index(source.index, &content(source.index)?, &synsets)?,
                exceptions: read_exceptions(&content(source.exceptions)?),
            });
        }
        let parts = parts.try_into().expect("there is one part of speech for each of the four sources");
        Ok(Self { parts, names })
    }

    /// Calls `take` with each synonym of a lower-case word, some more than once. The word itself is among them
    /// if WordNet has it.
    pub(super) fn each_synonym(&self, word: &str, mut take: impl FnMut(&str)) {
        if word.len() > LONGEST_WORD {
            return;
        }
        for part in &self.parts {
            let mut take_of = |form: &str| {
                for &name in part.synonyms.get(form).into_iter().flatten() {
                    take(str::from_utf8(self.names.word(name)).unwrap_or_default());
                }
            };
            take_of(word);
            if let Some(bases) = part.exceptions.get(word) {
                bases.iter().for_each(|base| take_of(base));
                continue;
            }
            for (ending, base_ending) in part.endings {
                if let Some(stem) = word.strip_suffix(ending) {
                    take_of(&format!("{stem}{base_ending}"));
                }
            }
        }
    }
}

/// The lines of a file with their numbers, without the licence at its start, whose lines are indented.
fn lines(content: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(content.lines()).filter(|(_, line)| !line.starts_with(' ') && !line.is_empty())
}

/// Names by the synset's place in the file: `place file-number kind count {name number}… …`.
fn read_synsets<'a>(
    file: &'static str,
    content: &'a str,
    names: &mut Vocabulary,
) -> Result<FxHashMap<&'a str, Vec<u32>>, WordNetError> {
    let mut synsets = FxHashMap::default();
    for (line, text) in lines(content) {
        let malformed = || WordNetError::Malformed { file, line };
        let mut fields = text.split(' ');
        let place = fields.next().ok_or_else(malformed)?;
        let count =
            fields.nth(2).and_then(|count| usize::from_str_radix(count, 16).ok()).ok_or_else(malformed)?;
        let mut ids = Vec::new();
        for _ in 0..count {
            let name = fields.next().ok_or_else(malformed)?;
            fields.next().ok_or_else(malformed)?;
            // An adjective may carry the place it takes in a phrase: "afloat(p)".
            let name = name.split('(').next().unwrap_or(name);
            if !name.contains('_') && !name.contains(|c: char| c.is_ascii_uppercase()) {
                ids.push(names.insert(name.as_bytes()));
            }
        }
        synsets.insert(place, ids);
    }
    Ok(synsets)
}

/// Synonyms by word: `word part count … place…`, with as many places as `count` says at the end.
fn read_index(
    file: &'static str,
    content: &str,
    synsets: &FxHashMap<&str, Vec<u32>>,
) -> Result<FxHashMap<Box<str>, Box<[u32]>>, WordNetError> {
    let mut words = FxHashMap::default();
    for (line, text) in lines(content) {
        let malformed = || WordNetError::Malformed { file, line };
        let mut fields = text.split_ascii_whitespace();
        let word = fields.next().ok_or_else(malformed)?;
        let count: usize = fields.nth(1).and_then(|count| count.parse().ok()).ok_or_else(malformed)?;
        let mut synonyms = Vec::new();
        let mut places = fields.rev();
        for _ in 0..count {
            let place = places.next().ok_or_else(malformed)?;
            synonyms.extend(synsets.get(place).ok_or_else(malformed)?);
        }
        synonyms.sort_unstable();
        synonyms.dedup();
        if !synonyms.is_empty() {
            words.insert(word.into(), synonyms.into());
        }
    }
    Ok(words)
}

/// Base forms by irregular form: `form base…`.
fn read_exceptions(content: &str) -> FxHashMap<Box<str>, Box<[Box<str>]>> {
    let mut exceptions = FxHashMap::default();
    for (_, text) in lines(content) {
        let mut forms = text.split_ascii_whitespace().map(Box::from);
        if let Some(form) = forms.next() {
            exceptions.insert(form, forms.collect());
        }
    }
    exceptions
}
