//! The judges that are configured, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cache::Store;
use super::rubric::{RubricFileError, Rubrics};
use super::settings::{JudgeSettings, SettingsError};
use super::stack::{ConfiguredJudge, connect};

/// Everybody who can be asked, and the rubrics to ask with.
#[derive(Debug)]
pub struct Roster {
    judges: Vec<ConfiguredJudge>,
    by_name: BTreeMap<String, usize>,
    rubrics: Rubrics,
    strict: bool,
}

/// A roster that cannot be used: a sentence that names the key or the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongRoster {
    /// A judge's settings.
    #[error("{0}")]
    Judge(#[from] SettingsError),
    /// A rubric file.
    #[error("judge.rubric_files: {0}")]
    Rubric(#[from] RubricFileError),
    /// Two judges answer to one name.
    #[error("judges: two of them answer to the name {0:?}")]
    SameName(String),
}

/// Why a request gets no judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoJudge {
    /// There is none at all.
    Unconfigured,
    /// None has the name that the request asks for.
    Unknown,
}

impl Roster {
    /// Prepares the judges; opens no connection. The first one is the default. `rubric_files` are pairs of
    /// file name and text. With `strict`, a request for a judge that is not here is refused, without it the
    /// default judge answers. Answers are kept in `store`.
    pub fn connect(
        settings: &[JudgeSettings],
        rubric_files: &[(String, String)],
        strict: bool,
        store: &Arc<Store>,
    ) -> Result<Self, WrongRoster> {
        let files = rubric_files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let rubrics = Rubrics::with_files(files)?;
        let mut judges = Vec::with_capacity(settings.len());
        let mut by_name = BTreeMap::new();
        for judge in settings {
            for name in judge.aliases.iter().chain([&judge.name]) {
                if by_name.insert(name.clone(), judges.len()).is_some() {
                    return Err(WrongRoster::SameName(name.clone()));
                }
            }
            judges.push(connect(judge, Arc::clone(store))?);
        }
        Ok(Self { judges, by_name, rubrics, strict })
    }

    /// The judge that a request asks for by name or alias; empty = the default.
    pub fn pick(&self, name: &str) -> Result<&ConfiguredJudge, NoJudge> {
        let default = self.judges.first().ok_or(NoJudge::Unconfigured)?;
        match self.by_name.get(name).and_then(|index| self.judges.get(*index)) {
            Some(judge) => Ok(judge),
            None if name.is_empty() || !self.strict => Ok(default),
            None => Err(NoJudge::Unknown),
        }
    }

    /// The rubrics, built in and configured.
    pub fn rubrics(&self) -> &Rubrics {
        &self.rubrics
    }

    /// All names and aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// All judges, the default first.
    pub fn judges(&self) -> impl Iterator<Item = &ConfiguredJudge> {
        self.judges.iter()
    }
}
