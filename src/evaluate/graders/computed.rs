//! string_check and text_similarity, on the workers.

use crate::error::{Error, Kind};
use crate::evaluate::Evaluator;
use crate::evaluate::computed::within_limit;
use crate::evaluate::graders::{Failure, Graded, Row};
use crate::grader::template::Template;
use crate::grader::{Similarity, StringCheck, TextSimilarity};
use crate::metrics::meteor::WordNet;
use crate::metrics::{Stop, Unscored, cosine, fuzzy, gleu, meteor, nltk_bleu, rouge, string_check};
use crate::wire::v1::TextVectors;

/// A grader of two texts.
pub(super) trait TextGrader: Send + Sync + 'static {
    /// The templates of `input` and `reference`.
    fn texts(&self) -> [&Template; 2];

    /// What it says of these two.
    fn grade(
        &self,
        input: &str,
        reference: &str,
        synonyms: Option<&WordNet>,
        stop: Stop<'_>,
    ) -> Result<Graded, Failure>;
}

impl Evaluator {
    /// What the grader says of each row, in order.
    pub(super) async fn compute(
        &self,
        grader: impl TextGrader,
        rows: Vec<impl Row>,
    ) -> Result<Vec<Result<Graded, Failure>>, Error> {
        let texts = Texts::of(&grader);
        let synonyms = self.synonyms.clone();
        let grade = move |[input, reference]: [String; 2], stop: Stop<'_>| {
            grader.grade(&input, &reference, synonyms.as_deref(), stop)
        };
        self.each_row(texts, rows, grade).await
    }

    /// What `grade` makes of the two texts of each row, in order.
    pub(super) async fn each_row<G: Send + 'static>(
        &self,
        texts: Texts,
        rows: Vec<impl Row>,
        grade: impl Fn([String; 2], Stop<'_>) -> Result<G, Failure> + Send + Sync + 'static,
    ) -> Result<Vec<Result<G, Failure>>, Error> {
        let bytes = {
            let texts = texts.clone();
            move |row: &_| texts.most_bytes(row)
        };
        let text_bytes = self.limits.text_bytes;
        self.workers
            .score_each(rows, bytes, move |_, row, stop| {
                Ok(texts.read(row, text_bytes).and_then(|read| grade(read, stop)))
            })
            .await
    }
}

/// The templates of a grader's `input` and `reference`.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    input: Template,
    reference: Template,
}

impl Texts {
    pub(super) fn of(grader: &impl TextGrader) -> Self {
        let [input, reference] = grader.texts();
        Self { input: input.clone(), reference: reference.clone() }
    }

    /// About how long a row and its texts are at most: a template can make much of a little data.
    pub(super) fn most_bytes(&self, row: &impl Row) -> usize {
        let data = row.bytes();
        data.saturating_add(self.input.most_bytes(data)).saturating_add(self.reference.most_bytes(data))
    }

    fn read(&self, row: &impl Row, text_bytes: usize) -> Result<[String; 2], Failure> {
        let scope = row.scope(&[&self.input, &self.reference]);
        let text = |template: &Template, field| {
            let text = template
                .render(&scope.item, &scope.sample)
                .map_err(|wrong| Failure::of_template(field, &wrong))?;
            within_limit(&text, field, text_bytes).map_err(Failure::other)?;
            Ok(text)
        };
        Ok([text(&self.input, "input")?, text(&self.reference, "reference")?])
    }
}

impl TextGrader for StringCheck {
    fn texts(&self) -> [&Template; 2] {
        [&self.input, &self.reference]
    }

    fn grade(
        &self,
        input: &str,
        reference: &str,
        _: Option<&WordNet>,
        _: Stop<'_>,
    ) -> Result<Graded, Failure> {
        if string_check::always_passes(reference, self.operation) {
            return Err(Failure::other(Error::new(
                Kind::InvalidArgument,
                format!("reference: is empty, and every text passes {} with that", self.operation),
            )));
        }
        let score = string_check::score(input, reference, self.operation);
        Ok(Graded { score, passed: Some(score > 0.0), ..Graded::default() })
    }
}

impl TextGrader for TextSimilarity {
    fn texts(&self) -> [&Template; 2] {
        [&self.input, &self.reference]
    }

    fn grade(
        &self,
        input: &str,
        reference: &str,
        synonyms: Option<&WordNet>,
        stop: Stop<'_>,
    ) -> Result<Graded, Failure> {
        let mut graded =
            self.similarity(input, reference, synonyms, stop).map_err(|no| Failure::other(no.into()))?;
        graded.passed = self.pass_threshold.map(|threshold| graded.score >= threshold);
        Ok(graded)
    }
}

impl TextSimilarity {
    fn similarity(
        &self,
        input: &str,
        reference: &str,
        synonyms: Option<&WordNet>,
        stop: Stop<'_>,
    ) -> Result<Graded, Unscored> {
        let mut graded = Graded::default();
        graded.score = match self.metric {
            Similarity::FuzzyMatch => fuzzy::score_until(input, reference, stop)?,
            Similarity::Bleu => {
                nltk_bleu::score_until(input, reference, &nltk_bleu::Options::default(), stop)?.value
            }
            Similarity::Gleu => gleu::score_until(input, reference, &gleu::Options::default(), stop)?.value,
            Similarity::Meteor => {
                let options = meteor::Options { synonyms, ..Default::default() };
                let score = meteor::score_until(input, reference, &options, stop)?;
                graded.used_synonyms = Some(score.used_synonyms);
                score.value
            }
            Similarity::Cosine => {
                graded.vectors = TextVectors::WordCounts;
                cosine::of_words_until(input, reference, stop)?
            }
            Similarity::Rouge(kind) => {
                let options =
                    rouge::Options { kind, tokenizer: rouge::Tokenizer::Reference, ..Default::default() };
                rouge::score_until(input, reference, &options, stop)?.f_measure
            }
        };
        Ok(graded)
    }
}
