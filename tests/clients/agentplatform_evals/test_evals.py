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
    result = evals.evaluate(
        dataset=pandas.DataFrame({"prompt": ["any"] * len(rows["response"]), **rows}),
        metrics=[types.Metric(name=name) for name in metrics],
        config={"evaluation_service_qps": 1000},
    )
    assert all(metric.num_cases_error == 0 for metric in result.summary_metrics)
    cases = sorted(result.eval_case_results, key=lambda case: case.eval_case_index)
    rows_of = [case.response_candidate_results[0].metric_results for case in cases]
    return (
        {metric.metric_name: metric.mean_score for metric in result.summary_metrics},
        {name: [row[name].score for row in rows_of] for name in metrics},
    )


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


def test_a_wrong_request_names_its_field_and_is_not_tried_again(evals):
    instances = [{"prediction": "a", "reference": "a"}]
    with pytest.raises(errors.ClientError) as caught:
        evals.evaluate_instances(
            metric_config={"rouge_input": {"metric_spec": {"rouge_type": "rouge0"}, "instances": instances}}
        )
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
    (detail,) = caught.value.details["error"]["details"]
    assert [violation["field"] for violation in detail["fieldViolations"]] == ["rouge_input.metric_spec.rouge_type"]
