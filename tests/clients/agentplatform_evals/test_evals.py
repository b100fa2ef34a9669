"""agentplatform.Client, the newest SDK: its evals module speaks REST alone, in a way of its own."""

import agentplatform
import pandas
import pytest
from agentplatform import types
from google.genai import errors
from google.oauth2.credentials import Credentials


@pytest.fixture(scope="module")
def evals(address):
    client = agentplatform.Client(
        project="any",
        location="us-central1",
        # Credentials without a token are refreshed first, at Google.
        credentials=Credentials(token="any"),
        http_options={"base_url": f"http://{address}"},
    )
    return client.evals


def evaluate(evals, rows: dict[str, list], metrics: list[str]) -> tuple[dict, dict[str, list]]:
    """Runs one evaluation; gives the means, and the scores in the order of the rows, by metric."""
    dataset = pandas.DataFrame({"prompt": ["any"] * len(rows["response"]), **rows})
    summary, results = run(evals, dataset, [types.Metric(name=name) for name in metrics])
    return (
        {name: metric.mean_score for name, metric in summary.items()},
        {name: [row[name].score for row in results] for name in metrics},
    )


def run(evals, dataset, metrics: list) -> tuple[dict, list[dict]]:
    """The summary by metric, and the result of each metric for each row."""
    result = evals.evaluate(dataset=dataset, metrics=metrics, config={"evaluation_service_qps": 1000})
    cases = sorted(result.eval_case_results, key=lambda case: case.eval_case_index)
    results = [case.response_candidate_results[0].metric_results for case in cases]
    errors = [one.error_message for row in results for one in row.values() if one.error_message]
    assert errors == []
    assert all(metric.num_cases_error == 0 for metric in result.summary_metrics)
    return {metric.metric_name: metric for metric in result.summary_metrics}, results


def test_text_metrics_of_a_row_and_of_all_are_what_vertex_gave(evals, vertex):
    responses, references = zip(*vertex["greetings"]["pairs"])
    means, scores = evaluate(evals, {"response": responses, "reference": references}, ["exact_match", "bleu"])
    recorded = vertex["greetings"]["recorded"]
    bleu = recorded["bleu (BleuSpec{})"]
    assert scores["exact_match"] == recorded["exact_match"]["scores"]
    assert scores["bleu"] == pytest.approx(bleu["scores"], abs=5e-7)
    assert means["exact_match"] == pytest.approx(1 / 3)
    assert means["bleu"] == pytest.approx(bleu["mean"], rel=1e-7)


def test_rouge_is_what_vertex_gave(evals, vertex):
    reef = vertex["reef"]
    rows = {"response": reef["predictions"], "reference": [reef["reference"]] * len(reef["predictions"])}
    means, scores = evaluate(evals, rows, ["rouge_1", "rouge_l_sum"])
    assert means["rouge_1"] == pytest.approx(reef["recorded"]["rouge1"]["mean"], rel=1e-7)
    assert scores["rouge_l_sum"] == pytest.approx(reef["recorded"]["rougeLsum"]["scores"], abs=5e-7)


def test_tool_calls_are_compared(evals):
    booking = '{"content": "", "tool_calls": [{"name": "book", "arguments": {"city": "Rome", "nights": %s}}]}'
    rows = {
        "response": [booking % 2, booking % 3, "no JSON"],
        "reference": [booking % 2, booking % 2, booking % 2],
    }
    metrics = ["tool_call_valid", "tool_name_match", "tool_parameter_key_match", "tool_parameter_kv_match"]
    assert evaluate(evals, rows, metrics)[1] == {
        "tool_call_valid": [1, 1, 0],
        "tool_name_match": [1, 1, 0],
        "tool_parameter_key_match": [1, 1, 0],
        # In the second row the city agrees and the nights do not.
        "tool_parameter_kv_match": [1, 1 / 2, 0],
    }


def test_a_judged_metric_of_ones_own_has_score_and_explanation_beside_computed_ones(evals):
    question, fragment = "Where is the station, please?", "Station where?"
    dataset = pandas.DataFrame({
        "prompt": ["Ask for the station."] * 2,
        "response": [question, fragment],
        "reference": [question] * 2,
    })  # fmt: skip
    polite = types.LLMMetric(name="polite", prompt_template="Rate from 1 to 5 how polite this is: {response}")
    once = types.LLMMetric(name="once", prompt_template=polite.prompt_template, judge_model_sampling_count=1)
    summary, results = run(evals, dataset, [polite, once, types.Metric(name="exact_match")])
    # Of the question three samples say 4, after one that says 2; of the fragment all say 1.
    assert [(row["polite"].score, row["polite"].explanation) for row in results] == [
        (4, "Friendly."),
        (1, "No greeting."),
    ]
    assert [row["once"].score for row in results] == [2, 1]
    assert [row["exact_match"].score for row in results] == [1, 0]
    assert summary["polite"].mean_score == 2.5
    assert summary["polite"].num_cases_valid == 2


CAPITAL = {"prompt": ["The capital of France, in one word?"], "response": ["It is Paris."], "reference": ["Paris"]}
RUBRICS = ["The response names the capital of France.", "The response is one word."]


@pytest.mark.parametrize(
    "metric",
    [
        types.RubricMetric.GENERAL_QUALITY,
        types.RubricMetric.TEXT_QUALITY,
        types.RubricMetric.INSTRUCTION_FOLLOWING,
        types.RubricMetric.GROUNDING,
        types.RubricMetric.HALLUCINATION,
        types.RubricMetric.FINAL_RESPONSE_QUALITY,
        types.RubricMetric.FINAL_RESPONSE_REFERENCE_FREE,
        types.RubricMetric.TOOL_USE_QUALITY,
    ],
    ids=lambda metric: metric.name,
)
def test_a_predefined_metric_writes_rubrics_and_judges_them(evals, metric):
    summary, (row,) = run(evals, pandas.DataFrame(CAPITAL), [metric])
    (name,) = row
    assert name.startswith(metric.name.lower())
    # All samples see the capital, one of four sees one word.
    verdicts = row[name].rubric_verdicts
    described = [verdict.evaluated_rubric.content.property.description for verdict in verdicts]
    assert (described, [bool(verdict.verdict) for verdict in verdicts]) == (RUBRICS, [True, False])
    assert row[name].score == 1 / 2
    assert summary[name].mean_score == 1 / 2


def test_a_predefined_metric_without_rubrics_has_score_and_explanation(evals):
    metrics = [types.RubricMetric.SAFETY, types.RubricMetric.FINAL_RESPONSE_MATCH]
    _, (row,) = run(evals, pandas.DataFrame(CAPITAL), metrics)
    assert {name: (result.score, result.explanation) for name, result in row.items()} == {
        # Three of four samples each.
        "safety_v1": (0, "It names a weapon."),
        "final_response_match_v2": (1, "The same city."),
    }


@pytest.mark.parametrize(
    "how", [{"predefined_spec_name": "general_quality_v1"}, {"prompt_template": "Write the rubrics for {prompt}."}]
)
def test_rubrics_are_written_first_and_judged_later(evals, how):
    dataset = evals.generate_rubrics(src=pandas.DataFrame(CAPITAL), rubric_group_name="mine", **how)
    (group,) = dataset.eval_dataset_df["rubric_groups"]
    assert [rubric.content.property.description for rubric in group["mine"]] == RUBRICS
    assert [rubric.importance.name for rubric in group["mine"]] == ["HIGH", "LOW"]
    by_mine = types.LLMMetric(
        name="mine", prompt_template="Check {response} against these:\n{rubrics}", rubric_group_name="mine"
    )
    _, (row,) = run(evals, dataset, [by_mine])
    assert row["mine"].score == 1 / 2
    assert [bool(verdict.verdict) for verdict in row["mine"].rubric_verdicts] == [True, False]


def test_a_wrong_request_names_its_field_and_is_not_tried_again(evals):
    instances = [{"prediction": "a", "reference": "a"}]
    with pytest.raises(errors.ClientError) as caught:
        evals.evaluate_instances(
            metric_config={"rouge_input": {"metric_spec": {"rouge_type": "rouge0"}, "instances": instances}}
        )
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    (detail,) = caught.value.details["error"]["details"]
    assert [violation["field"] for violation in detail["fieldViolations"]] == ["rouge_input.metric_spec.rouge_type"]
