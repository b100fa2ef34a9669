//! Specs of the wire read as graders.

use crate::grader::{
    Ask, Grader, LabelModel, Message, Multi, ScoreModel, StringCheck, TextSimilarity, WrongGrader,
};
use crate::judge::Sampling;
use crate::wire::v1::*;

pub(super) fn string_check(spec: &StringCheckSpec) -> Result<StringCheck, WrongGrader> {
    StringCheck::new(&spec.input, &spec.reference, &spec.operation)
}

pub(super) fn text_similarity(spec: &TextSimilaritySpec) -> Result<TextSimilarity, WrongGrader> {
    TextSimilarity::new(&spec.input, &spec.reference, &spec.evaluation_metric, spec.pass_threshold)
}

pub(super) fn label_model(spec: LabelModelSpec) -> Result<LabelModel, WrongGrader> {
    let ask = ask(&spec.model, &spec.input, spec.sampling_params)?;
    LabelModel::new(ask, spec.labels, spec.passing_labels)
}

pub(super) fn score_model(spec: ScoreModelSpec) -> Result<ScoreModel, WrongGrader> {
    let ask = ask(&spec.model, &spec.input, spec.sampling_params)?;
    ScoreModel::new(ask, &spec.range, spec.pass_threshold)
}

pub(super) fn multi(spec: MultiGraderSpec) -> Result<Multi, WrongGrader> {
    use grader::Grader as Kind;
    let graders = spec.graders.into_iter().map(|(name, grader)| {
        let read = || {
            Ok(match grader.grader {
                Some(Kind::StringCheck(spec)) => Grader::StringCheck(string_check(&spec)?),
                Some(Kind::TextSimilarity(spec)) => Grader::TextSimilarity(text_similarity(&spec)?),
                Some(Kind::LabelModel(spec)) => Grader::LabelModel(label_model(spec)?),
                Some(Kind::ScoreModel(spec)) => Grader::ScoreModel(score_model(spec)?),
                None => return Err(WrongGrader::new("", "has no grader")),
            })
        };
        let place = format!("graders.{}", crate::error::quoted(&name));
        let grader = read().map_err(|wrong: WrongGrader| wrong.within(place))?;
        Ok((name, grader))
    });
    Multi::new(graders.collect::<Result<_, WrongGrader>>()?, &spec.calculate_output)
}

fn ask(
    model: &str,
    input: &[GraderMessage],
    params: Option<GraderSamplingParams>,
) -> Result<Ask, WrongGrader> {
    let messages = input.iter().enumerate().map(|(index, message)| {
        Message::new(&message.role, &message.content)
            .map_err(|wrong| wrong.within(format_args!("input[{index}]")))
    });
    let params = params.unwrap_or_default();
    let max_tokens = params.max_completions_tokens.map(|tokens| {
        u32::try_from(tokens).map_err(|_| {
            let field = "sampling_params.max_completions_tokens";
            WrongGrader::new(field, format!("{tokens} is no number of tokens"))
        })
    });
    let sampling = Sampling {
        temperature: params.temperature,
        top_p: params.top_p,
        seed: params.seed,
        max_tokens: max_tokens.transpose()?,
        reasoning_effort: (!params.reasoning_effort.is_empty()).then_some(params.reasoning_effort),
    };
    Ask::new(model, messages.collect::<Result<_, _>>()?, sampling)
}
