"""A judge that hardly knows what is asked of it: 135 million parameters, temperature 1, replies cut off early.

Nothing is expected of its taste. Of every answer it is checked that it is either made of what the judge said, as
counted again here from the samples, or an error that says what the judge said instead. A number out of nothing
(a 0, a NaN, a TIE that nobody voted for) fails.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc

from service import Client, evaluator, evaluator_by_flag

MODEL = "smollm2-135m"
SAMPLES = 3
TOKENS = 100
FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION.value[0]

QUESTION = {"instruction": "What is the capital of France?", "context": "Paris is the capital of France."}
ANSWER = {**QUESTION, "prediction": "It is Paris."}
PAIR = {**ANSWER, "baseline_prediction": "Bananas are yellow."}
SUMMARY = {"instruction": "Summarize.", "context": "It rained all day in Rome.", "prediction": "Rain in Rome."}

# the arm, its instance, and its scale
SCORES = [
    ("fluency", {"prediction": "It rained all day."}, (1, 5)),
    ("question_answering_correctness", ANSWER, (0, 1)),
    ("groundedness", {"context": QUESTION["context"], "prediction": ANSWER["prediction"]}, (0, 1)),
    ("summarization_verbosity", SUMMARY, (-2, 2)),
]
RATE = "Rate the answer to the question from 1 (bad) to 10 (good).\nQuestion: {prompt}\nAnswer: {response}"
COMPARE = "Question: {prompt}\nA: {baseline_model_response}\nB: {response}\nWhich one is better?"
VALUES = {"prompt": QUESTION["instruction"], "response": "Paris", "baseline_model_response": "Rome"}


def checks(binary: Path, judge: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """The name of each check, and what is wrong; empty = nothing."""
    with evaluator_by_flag(binary, judge, scratch) as client:
        fluency = {"instance": {"prediction": "It rained all day."}}
        yield "by the flag alone, cut after 8 tokens", either(
            lambda: score_fault(client.ask(samples=1, temperature=0.0, tokens=8, fluency_input=fluency), (1, 5))
        )
    with evaluator(binary, judge, scratch) as client:
        for name, outcome in every_arm(Asking(client)):
            yield f"schema-bound, {name}", outcome
    with evaluator(binary, judge, scratch, readout="logprobs", structured="none") as client:
        for name, outcome in built_in(Asking(client)):
            yield f"free text, logprobs, {name}", outcome


@dataclass(frozen=True)
class Asking:
    """How the weak judge is asked."""

    client: Client

    def __call__(self, **request):
        return self.client.ask(samples=SAMPLES, temperature=1.0, tokens=TOKENS, **request)


def every_arm(ask: Asking) -> Iterator[tuple[str, str]]:
    yield from built_in(ask)
    yield from templates(ask)
    yield from rubrics(ask)
    yield from unified(ask)


def built_in(ask: Asking) -> Iterator[tuple[str, str]]:
    for arm, instance, scale in SCORES:
        yield arm, either(lambda: score_fault(ask(**{f"{arm}_input": {"instance": instance}}), scale))
    yield "pairwise_question_answering_quality", either(
        lambda: choice_fault(ask(pairwise_question_answering_quality_input={"instance": PAIR}))
    )


def templates(ask: Asking) -> Iterator[tuple[str, str]]:
    values = {"json_instance": json.dumps(VALUES)}
    template = {"metric_spec": {"metric_prompt_template": RATE}, "instance": values}
    yield "pointwise_metric", either(lambda: score_fault(ask(pointwise_metric_input=template), None))
    template = {"metric_spec": {"metric_prompt_template": COMPARE}, "instance": values}
    yield "pairwise_metric", either(lambda: choice_fault(ask(pairwise_metric_input=template)))
    raw = {"metric_prompt_template": RATE, "custom_output_format_config": {"return_raw_output": True}}
    yield "raw output", either(
        lambda: raw_fault(ask(pointwise_metric_input={"metric_spec": raw, "instance": values}))
    )


def rubrics(ask: Asking) -> Iterator[tuple[str, str]]:
    prompt = "Name the capital of France in one word."
    followed = {"json_instance": json.dumps({"prompt": prompt, "response": "Paris"})}
    yield "rubric_based_instruction_following", either(
        lambda: verdicts_fault(ask(rubric_based_instruction_following_input={"instance": followed}))
    )
    yield "GenerateInstanceRubrics", either(lambda: rubrics_fault(ask.client.rubrics_for(prompt, TOKENS)))
    yield from unified(ask)


def unified(ask: Asking) -> Iterator[tuple[str, str]]:
    metrics = [
        {"exact_match_spec": {}},
        {
            "llm_based_metric_spec": {"metric_prompt_template": RATE},
            "metadata": {"score_range": {"min": 1, "max": 10}},
        },
        {"predefined_metric_spec": {"metric_spec_name": "safety_v1"}},
        {"predefined_metric_spec": {"metric_spec_name": "general_quality_v1"}},
    ]
    instance = {name: {"text": text} for name, text in (("prompt", "Say Paris."), ("response", "Paris"))}
    exact, template, safety, quality = ask(metrics=metrics, instance={**instance, "reference": {"text": "Paris"}})
    yield "unified: a computed metric beside judged ones", "" if exact.score == 1 else str(exact)
    yield "unified: a template", in_place(template, lambda result: score_fault(result, (1, 10)))
    yield "unified: safety_v1", in_place(safety, lambda result: score_fault(result, (0, 1)))
    yield "unified: general_quality_v1", in_place(quality, quality_fault)


def either(fault) -> str:
    """What is wrong with a result, or with the error in its stead."""
    try:
        return fault()
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
            return f"{error.code().name}: {error.details()}"
        return reason_fault(error.details())


def in_place(result, fault) -> str:
    """The same for a metric of the unified form, whose error is part of the answer."""
    if not result.HasField("error"):
        return fault(result)
    if result.HasField("score") or result.error.code != FAILED_PRECONDITION:
        return str(result)
    return reason_fault(result.error.message)


def reason_fault(message: str) -> str:
    """An error gives the number of valid samples, too few of them, and a reason for the others."""
    found = re.search(r"(\d+) of (\d+) samples valid; sample [\d, ]+: .", message)
    few = found and int(found[1]) * 2 <= int(found[2])
    return "" if few else f"an error without its reason: {message}"


def score_fault(result, scale: tuple[float, float] | None) -> str:
    lo, hi = scale or (-math.inf, math.inf)
    if not result.HasField("score") or not math.isfinite(result.score) or not lo <= result.score <= hi:
        return f"no score on the scale: {result}"
    said = [sample.score for sample in result.details.samples if not sample.error]
    if any(not lo <= score <= hi for score in said):
        return f"a vote off the scale: {result}"
    if not said:
        # read off the probabilities of one token: that is no vote, but it has cost tokens
        return "" if result.details.usage.output_tokens else f"a score that nobody gave: {result}"
    top = max(Counter(said).values())
    if Counter(said)[result.score] != top:
        return f"not the score with most votes: {result}"
    return confidence_fault(result, top)


def choice_fault(result) -> str:
    said = Counter(sample.label for sample in result.details.samples if not sample.error)
    top = max(said.values(), default=0)
    leaders = [label for label, count in said.items() if count == top]
    expected = leaders[0] if len(leaders) == 1 else "TIE" if leaders else None
    name = {1: "BASELINE", 2: "CANDIDATE", 3: "TIE"}.get(result.pairwise_choice)
    if name != expected:
        return f"{name}, but the votes say {expected}: {result}"
    return confidence_fault(result, said[name])


def confidence_fault(result, votes: int) -> str:
    """Votes for the answer over samples asked; more than half of them are valid."""
    samples = result.details.samples
    valid = sum(not sample.error for sample in samples)
    if valid * 2 <= len(samples):
        return f"an answer without a quorum: {result}"
    if abs(result.details.confidence - votes / len(samples)) > 1e-6:
        return f"confidence is not {votes}/{len(samples)}: {result}"
    return ""


def raw_fault(result) -> str:
    outputs = result.custom_output.raw_outputs.raw_output
    good = SAMPLES / 2 < len(outputs) <= SAMPLES and all(outputs) and not result.HasField("score")
    return "" if good else f"no raw output: {result}"


def verdicts_fault(result) -> str:
    verdicts = [critique.verdict for critique in result.rubric_critique_results]
    if not verdicts or abs(result.score - sum(verdicts) / len(verdicts)) > 1e-6:
        return f"not the share of rubrics met: {result}"
    return "" if all(critique.rubric.strip() for critique in result.rubric_critique_results) else str(result)


def quality_fault(result) -> str:
    verdicts = [verdict.verdict for verdict in result.rubric_verdicts]
    share = sum(verdicts) / len(verdicts) if verdicts else math.nan
    return "" if abs(result.score - share) <= 1e-6 else f"not the share of rubrics met: {result}"


def rubrics_fault(rubrics) -> str:
    texts = [rubric.content.property.description.strip() for rubric in rubrics]
    return "" if texts and all(texts) else f"no rubrics: {rubrics}"
