//! label_model and score_model, by a judge.

use std::borrow::Cow;

use crate::error::Error;
use crate::evaluate::computed::within_limit;
use crate::evaluate::graders::{Failure, FailureSort, Graded};
use crate::evaluate::judged::{Asking, prompt_error, ungraded_error};
use crate::evaluate::{Call, Evaluator};
use crate::grader::scope::Scope;
use crate::grader::template::{Part, Template};
use crate::grader::{Ask, LabelModel, ScoreModel};
use crate::judge::Sampling;
use crate::judge::autorater::{self, Grade};
use crate::judge::prompt::{Message, Piece, Prompt};
use crate::judge::template::Field;
use crate::judge::verdict;

impl Evaluator {
    /// The label that a judge picks.
    pub(super) async fn label(
        &self,
        grader: &LabelModel,
        scope: &Scope,
        call: &Call,
    ) -> Result<Graded, Failure> {
        let labels = verdict::Graded::Label(grader.labels.clone());
        let mut graded = self.asked(&grader.ask, &labels, scope, call).await?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is an index of the list"
        )]
        let label = grader.labels.get(graded.score as usize).cloned().unwrap_or_default();
        let passes = grader.passing.contains(&label);
        (graded.score, graded.passed, graded.label) = (f64::from(u8::from(passes)), Some(passes), label);
        Ok(graded)
    }

    /// The number that a judge gives.
    pub(super) async fn number(
        &self,
        grader: &ScoreModel,
        scope: &Scope,
        call: &Call,
    ) -> Result<Graded, Failure> {
        let (lo, hi) = grader.range;
        let number = verdict::Graded::Clamped { lo, hi };
        let mut graded = self.asked(&grader.ask, &number, scope, call).await?;
        graded.passed = grader.pass_threshold.map(|threshold| graded.score >= threshold);
        Ok(graded)
    }

    /// What a judge says; the score of a label is its index.
    async fn asked(
        &self,
        ask: &Ask,
        result: &verdict::Graded,
        scope: &Scope,
        call: &Call,
    ) -> Result<Graded, Failure> {
        let prompt = self.prompt(ask, scope)?;
        let asking = self.asking_for(ask, call)?;
        let grade = autorater::grade_steps(asking.judge, &prompt, result, &asking.samples)
            .await
            .map_err(|ungraded| Failure::of_judge(ungraded.cause, ungraded_error(ungraded, asking.judge)))?;
        Ok(graded(grade, &asking, result))
    }

    fn prompt(&self, ask: &Ask, scope: &Scope) -> Result<Prompt, Failure> {
        let mut messages = Vec::with_capacity(ask.messages.len());
        for (index, message) in ask.messages.iter().enumerate() {
            let field = format!("input[{index}].content");
            let parts = message
                .content
                .parts(&scope.item, &scope.sample)
                .map_err(|wrong| Failure::of_template(&field, &wrong))?;
            let mut pieces = Vec::with_capacity(parts.len());
            for part in parts {
                pieces.push(match part {
                    Part::Text(text) => Piece::Text(text),
                    Part::Value { path, text } => {
                        within_limit(&text, &field, self.limits.text_bytes).map_err(Failure::other)?;
                        Piece::Value(Field { marker: Cow::Owned(marker(path)), text })
                    }
                });
            }
            messages.push(Message { role: message.role, pieces });
        }
        Prompt::for_conversation(&messages).map_err(|error| {
            Failure::other(Error { field: String::from("metric_spec.input"), ..prompt_error(error) })
        })
    }

    fn asking_for(&self, ask: &Ask, call: &Call) -> Result<Asking<'_>, Failure> {
        let mut autorater = call.autorater.clone().unwrap_or_default();
        if !ask.model.is_empty() {
            autorater.autorater_model.clone_from(&ask.model);
        }
        let mut asking = self.asking(Some(&autorater), call.deadline, call.details).map_err(|error| {
            let error = match ask.model.as_str() {
                "" => error,
                _ => error.renamed("autorater_config.autorater_model", "metric_spec.model"),
            };
            Failure { sort: FailureSort::ModelServer, error }
        })?;
        let own = ask.sampling.clone();
        let sampling = &mut asking.samples.sampling;
        *sampling = Sampling {
            temperature: own.temperature.or(sampling.temperature),
            top_p: own.top_p.or(sampling.top_p),
            seed: own.seed.or(sampling.seed),
            max_tokens: own.max_tokens.or(sampling.max_tokens),
            reasoning_effort: own.reasoning_effort.or_else(|| sampling.reasoning_effort.take()),
        };
        Ok(asking)
    }
}

impl Ask {
    /// The templates of its messages.
    pub(super) fn templates(&self) -> Vec<&Template> {
        self.messages.iter().map(|message| &message.content).collect()
    }
}

/// A path as the name of a marker: `item.list[0].b` is `item.list.0.b`.
fn marker(path: &str) -> String {
    let mut name = String::new();
    for letter in path.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => name.push(letter),
            '.' | '[' => name.push('.'),
            ']' => {}
            _ => name.push('_'),
        }
    }
    name
}

fn graded(grade: Grade<f64>, asking: &Asking<'_>, result: &verdict::Graded) -> Graded {
    let details = match result {
        verdict::Graded::Label(labels) => asking.details_of_label(&grade, labels),
        verdict::Graded::Number(_) | verdict::Graded::Clamped { .. } => asking.details(&grade),
    };
    Graded {
        score: grade.value,
        details,
        confidence: Some(grade.confidence),
        usage: grade.usage,
        model: grade
            .samples
            .iter()
            .map(|sample| &sample.model)
            .find(|model| !model.is_empty())
            .cloned()
            .unwrap_or_default(),
        explanation: grade.explanation,
        ..Graded::default()
    }
}
