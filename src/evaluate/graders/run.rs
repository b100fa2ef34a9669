//! One grader, or several under a formula, over one row: what the REST door of OpenAI's API asks for.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::error::{Error, Kind};
use crate::evaluate::graders::{Failure, FailureSort, Graded};
use crate::evaluate::judged::narrow;
use crate::evaluate::{Call, Evaluator};
use crate::grader::openai::{Named, Single};
use crate::grader::scope::Scope;
use crate::grader::template::Template;
use crate::grader::{Grader, Multi};
use crate::telemetry;
use crate::telemetry::evaluation::Told;

/// Graders whose texts are longer than this, all in all, are run a few at a time: each prompt is held several times.
const SHORT_BYTES: usize = 1 << 20;

/// So many of those at one time.
const LONG_AT_ONCE: usize = 4;

/// What became of a grader.
#[derive(Debug)]
pub struct Run {
    /// The score of the whole; `None` = there is none.
    pub reward: Option<f64>,
    /// What went wrong with the whole, the formula for one.
    pub failure: Option<Failure>,
    /// What each grader said, by name; a grader that is not one of several has the name of the whole.
    pub parts: Vec<(String, Result<Graded, Failure>)>,
}

fn tell<'r>(run: &'r Run, each: &mut dyn FnMut(Told<'r>)) {
    each(Told { score: run.reward.map(narrow), ..Told::default() });
}

impl Evaluator {
    /// Grades one row. A grader of several that has no score counts as 0 in the formula, as in OpenAI's API.
    pub async fn run_grader(
        &self,
        named: &Named,
        scope: Scope,
        deadline: Option<Instant>,
    ) -> Result<Run, Error> {
        let run = Box::pin(async { Ok(self.run(named, scope, deadline).await) });
        telemetry::evaluation::watch(named.kind, run, tell).await
    }

    async fn run(&self, named: &Named, scope: Scope, deadline: Option<Instant>) -> Run {
        let call = Call { deadline, ..Call::default() };
        match &named.grader {
            Single::One(grader) => {
                let scope = Arc::new(scope.with_output_json(grader.templates()));
                let outcome = self.one(grader, &scope, &call).await;
                let reward = outcome.as_ref().ok().map(|graded| graded.score);
                Run { reward, failure: None, parts: vec![(named.name.clone(), outcome)] }
            }
            Single::Multi(multi) => {
                let templates: Vec<&Template> =
                    multi.graders.iter().flat_map(|(_, grader)| grader.templates()).collect();
                let scope = Arc::new(scope.with_output_json(templates));
                let parts = self.parts(multi, &scope, &call).await;
                let score_of = |name: &str| {
                    let (_, outcome) = parts.iter().find(|(part, _)| part == name)?;
                    Some(outcome.as_ref().map_or(0.0, |graded| graded.score))
                };
                match multi.formula.evaluate(score_of) {
                    Ok(reward) => Run { reward: Some(reward), failure: None, parts },
                    Err(no) => {
                        let error = Error::new(Kind::InvalidArgument, format!("calculate_output: {no}"));
                        let failure = Failure { sort: FailureSort::Other, error };
                        Run { reward: None, failure: Some(failure), parts }
                    }
                }
            }
        }
    }

    /// What each grader of several says, by name. They work at the same time, as far as memory goes.
    pub(super) async fn parts(
        &self,
        multi: &Multi,
        scope: &Arc<Scope>,
        call: &Call,
    ) -> Vec<(String, Result<Graded, Failure>)> {
        let templates = multi.graders.iter().flat_map(|(_, grader)| grader.templates());
        let bytes = templates
            .fold(0, |bytes: usize, template| bytes.saturating_add(template.most_bytes(scope.bytes)));
        let at_once = if bytes <= SHORT_BYTES { multi.graders.len() } else { LONG_AT_ONCE };
        let mut graded = Vec::with_capacity(multi.graders.len());
        for some in multi.graders.chunks(at_once) {
            let some = some
                .iter()
                .map(async |(name, grader)| (name.clone(), Box::pin(self.one(grader, scope, call)).await));
            graded.extend(join_all(some).await);
        }
        graded
    }

    async fn one(&self, grader: &Grader, scope: &Arc<Scope>, call: &Call) -> Result<Graded, Failure> {
        let rows = vec![Arc::clone(scope)];
        let computed = match grader {
            Grader::LabelModel(grader) => return self.label(grader, scope, call).await,
            Grader::ScoreModel(grader) => return self.number(grader, scope, call).await,
            Grader::StringCheck(grader) => self.compute(grader.clone(), rows).await,
            Grader::TextSimilarity(grader) => self.similarity(grader.clone(), rows, call.deadline).await,
        };
        let graded = computed.map_err(Failure::other)?.pop();
        graded.unwrap_or_else(|| Err(Failure::other(Error::internal("a row was left ungraded"))))
    }
}
