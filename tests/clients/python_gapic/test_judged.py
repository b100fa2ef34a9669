"""The judged metrics of the official Python client: its score, explanation and confidence."""

import json

import pytest
from google.cloud import aiplatform_v1, aiplatform_v1beta1

# Members of the client's oneof that ask no judge; whatever is none of these has to be judged below.
COMPUTED = {
    "exact_match_input", "bleu_input", "rouge_input", "comet_input", "metricx_input",
    "tool_call_valid_input", "tool_name_match_input", "tool_parameter_key_match_input", "tool_parameter_kv_match_input",
    "trajectory_exact_match_input", "trajectory_in_order_match_input", "trajectory_any_order_match_input",
    "trajectory_precision_input", "trajectory_recall_input", "trajectory_single_tool_use_input",
}  # fmt: skip
# Judged, without a confidence; each has a test of its own below.
GENERIC = {"pointwise_metric_input", "pairwise_metric_input", "rubric_based_instruction_following_input"}


def built_in(api) -> set[str]:
    """The judged metrics that the client knows by name, out of its own oneof."""
    request = api.EvaluateInstancesRequest.pb().DESCRIPTOR
    inputs = {field.name for field in request.oneofs_by_name["metric_inputs"].fields}
    return {name.removesuffix("_input") for name in inputs - COMPUTED - GENERIC}


def result_of(answer, metric: str):
    """The result of this metric, which has to be the one that was asked for."""
    assert answer._pb.WhichOneof("evaluation_results") == f"{metric}_result"
    return getattr(answer, f"{metric}_result")


@pytest.mark.parametrize("api", [aiplatform_v1, aiplatform_v1beta1], ids=["v1", "v1beta1"])
def test_the_verdicts_are_of_all_built_in_metrics_of_the_client(api, verdicts):
    assert built_in(api) == {*verdicts["pointwise"], *verdicts["pairwise"]}
    assert len(built_in(api)) == 14


@pytest.mark.parametrize("metric", sorted(built_in(aiplatform_v1beta1)))
def test_a_built_in_metric_has_its_verdict(service, verdicts, metric):
    arm = getattr(service.api.EvaluateInstancesRequest(), f"{metric}_input")
    texts = {field.name for field in arm.instance._pb.DESCRIPTOR.fields}
    instance = {name: text for name, text in verdicts["instance"].items() if name in texts}
    result = result_of(service.ask(**{f"{metric}_input": {"metric_spec": {}, "instance": instance}}), metric)
    if metric in verdicts["pairwise"]:
        expected = verdicts["pairwise"][metric]
        assert result.pairwise_choice.name == expected["pairwise_choice"]
    else:
        expected = verdicts["pointwise"][metric]
        assert result.score == expected["score"]
        assert result._pb.HasField("score")
    assert result.explanation == expected["explanation"]
    assert result.confidence == expected["confidence"]
    assert result._pb.HasField("confidence")


def texts(**fields: str) -> dict:
    return {"json_instance": json.dumps(fields)}


def test_a_template_of_ones_own_has_score_and_explanation(service):
    asked = {
        "metric_spec": {"metric_prompt_template": "Rate from 1 to 5 how polite this is: {response}"},
        "instance": texts(response="Where is the station, please?"),
    }
    result = result_of(service.ask(pointwise_metric_input=asked), "pointwise_metric")
    # One sample says 2, the others 4.
    assert (result.score, result.explanation) == (4, "Friendly.")


MORE_NATURAL = "Which one sounds more natural?\nA: {baseline_model_response}\nB: {response}"
QUESTION, FRAGMENT = "Where is the station, please?", "Station where?"


@pytest.mark.parametrize(
    ("response", "baseline", "choice", "explanation"),
    [
        # The judge likes the question wherever it stands.
        (QUESTION, FRAGMENT, "CANDIDATE", "It is idiomatic."),
        (FRAGMENT, QUESTION, "BASELINE", "It is idiomatic."),
        # It likes what is shown as A, which half of the time is the one and half of the time the other.
        ("Yes.", "No.", "TIE", "The judge is undecided: of 4 samples 2 prefer the candidate and 2 the baseline."),
    ],
)
def test_a_comparison_of_ones_own_has_choice_and_explanation(service, response, baseline, choice, explanation):
    asked = {
        "metric_spec": {"metric_prompt_template": MORE_NATURAL},
        "instance": texts(response=response, baseline_model_response=baseline),
    }
    result = result_of(service.ask(pairwise_metric_input=asked), "pairwise_metric")
    assert (result.pairwise_choice.name, result.explanation) == (choice, explanation)


def test_instructions_are_written_as_rubrics_and_judged(beta):
    asked = {"metric_spec": {}, "instance": texts(prompt="The capital of France, in one word?", response="It is Paris.")}
    answer = beta.ask(rubric_based_instruction_following_input=asked)
    result = result_of(answer, "rubric_based_instruction_following")
    # All samples see the capital, one of four sees one word.
    assert result.score == 1 / 2
    assert [(one.rubric, one.verdict) for one in result.rubric_critique_results] == [
        ("The response names the capital of France.", True),
        ("The response is one word.", False),
    ]


def test_every_judged_metric_of_the_unified_form_has_its_result(beta):
    polite = "Rate from 1 to 5 how polite this is: {response}"
    answer = beta.ask(
        metrics=[
            {"pointwise_metric_spec": {"metric_prompt_template": polite}},
            {"llm_based_metric_spec": {"metric_prompt_template": polite}},
            {"predefined_metric_spec": {"metric_spec_name": "no_such_metric"}},
            {"predefined_metric_spec": {"metric_spec_name": "general_quality_v1"}},
            {
                "pairwise_metric_spec": {
                    "metric_prompt_template": MORE_NATURAL.replace("baseline_model_response", "reference"),
                    "candidate_response_field_name": "response",
                    "baseline_response_field_name": "reference",
                }
            },
        ],
        instance={"prompt": {"text": "Capital?"}, "response": {"text": QUESTION}, "reference": {"text": FRAGMENT}},
    )
    by_template, by_llm, unknown, by_rubrics, compared = answer.metric_results
    for result in (by_template, by_llm):
        assert (result.score, result.explanation) == (4, "Friendly.")
    assert "no_such_metric" in unknown.error.message
    assert not unknown._pb.HasField("score")
    assert by_rubrics.score == 1 / 2
    assert [(one.verdict, one.reasoning) for one in by_rubrics.rubric_verdicts] == [
        (True, "It says Paris."),
        (False, "It is a sentence."),
    ]
    # 1: the candidate is the better one.
    assert (compared.score, compared.explanation) == (1, "It is idiomatic.")


def test_rubrics_are_written_on_request(beta):
    answer = beta.client.generate_instance_rubrics(
        {
            "location": beta.location,
            "contents": [{"role": "user", "parts": [{"text": "The capital of France?"}]}],
            "predefined_rubric_generation_spec": {"metric_spec_name": "general_quality_v1"},
        },
        timeout=60,
    )
    assert [(one.content.property.description, one.type_, one.importance.name) for one in answer.generated_rubrics] == [
        ("The response names the capital of France.", "CONTENT", "HIGH"),
        ("The response is one word.", "FORMAT:LENGTH", "LOW"),
    ]
