//! The methods of the evaluation service: every door of the server calls these and nothing else.

use std::sync::Arc;

use tokio::time::Instant;

use crate::error::{Error, Kind};
use crate::evaluate::Evaluator;
use crate::evaluate::graders::Run;
use crate::grader::openai::Named;
use crate::grader::scope::Scope;
use crate::wire::v1::{
    EvaluateDatasetRequest, EvaluateInstancesRequest, EvaluateInstancesResponse,
    GenerateInstanceRubricsRequest, GenerateInstanceRubricsResponse, Operation,
};

/// Answers calls, and logs what is the service's own fault. `deadline` is when the caller stops waiting.
#[derive(Debug, Clone)]
pub struct Service {
    evaluator: Arc<Evaluator>,
}

impl Service {
    /// A service that has its values from this evaluator.
    pub fn new(evaluator: Arc<Evaluator>) -> Self {
        Self { evaluator }
    }

    /// One value per instance, or one result per metric.
    pub async fn evaluate_instances(
        &self,
        request: EvaluateInstancesRequest,
        deadline: Option<Instant>,
    ) -> Result<EvaluateInstancesResponse, Error> {
        logged(self.evaluator.evaluate(request, deadline).await)
    }

    /// One row graded, for the graders of OpenAI's API.
    pub async fn run_grader(
        &self,
        grader: &Named,
        scope: Scope,
        deadline: Option<Instant>,
    ) -> Result<Run, Error> {
        let run = logged(self.evaluator.run_grader(grader, scope, deadline).await)?;
        for (_, outcome) in &run.parts {
            if let Err(failure) = outcome {
                log(&failure.error);
            }
        }
        Ok(run)
    }

    /// Rubrics for a prompt.
    pub async fn generate_instance_rubrics(
        &self,
        request: GenerateInstanceRubricsRequest,
        deadline: Option<Instant>,
    ) -> Result<GenerateInstanceRubricsResponse, Error> {
        logged(self.evaluator.generate_rubrics(request, deadline).await)
    }

    /// Refused: this service stores nothing.
    pub async fn evaluate_dataset(&self, _: EvaluateDatasetRequest) -> Result<Operation, Error> {
        logged(Err(Error::new(
            Kind::Unimplemented,
            "data sets live with the caller: send their rows to EvaluateInstances, many instances in one request",
        )))
    }
}

fn logged<T>(answer: Result<T, Error>) -> Result<T, Error> {
    if let Err(error) = &answer {
        log(error);
    }
    answer
}

fn log(error: &Error) {
    if error.kind == Kind::Internal {
        tracing::error!(source = error.source.as_deref(), "{error}");
    }
}
