"""EvalTask of June 2024, google-cloud-aiplatform 1.53.0: gRPC over TLS alone, one metric of the service for each name."""

import os

# gRPC reads this once, when it is imported.
os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = os.environ["AUTHORITY_FILE"]

import pandas
import pytest
import vertexai
from google.auth.credentials import AnonymousCredentials
from vertexai.preview.evaluation import EvalTask, PairwiseMetric, constants

JUDGED = constants.Metric.MODEL_BASED_METRIC_LIST
# Names that this SDK has and never sends.
UNSENT = {"response_recall", "rag_context_recall"}
# The columns of its data frame, by the names that the service gives them.
COLUMNS = {
    "prediction": "response",
    "baseline_prediction": "baseline_model_response",
    "instruction": "instruction",
    "context": "context",
    "reference": "reference",
}


@pytest.fixture(scope="module", autouse=True)
def server(address):
    """Points the SDK at the server, by the name in its certificate."""
    port = address.rpartition(":")[2]
    vertexai.init(
        project="any", location="us-central1", credentials=AnonymousCredentials(), api_endpoint=f"localhost:{port}"
    )


def evaluate(rows: dict[str, list], metrics: list) -> tuple[dict, pandas.DataFrame]:
    result = EvalTask(dataset=pandas.DataFrame(rows), metrics=metrics).evaluate()
    return result.summary_metrics, result.metrics_table


@pytest.fixture
def rows(verdicts) -> dict[str, list]:
    """Two rows of the same, for a summary of more than one."""
    return {COLUMNS[name]: [text] * 2 for name, text in verdicts["instance"].items()}


def test_text_metrics_are_what_vertex_gave(vertex):
    reef, greetings = vertex["reef"], vertex["greetings"]
    responses, references = zip(*greetings["pairs"])
    summary, table = evaluate({"response": responses, "reference": references}, ["exact_match", "bleu"])
    recorded = greetings["recorded"]
    assert table["exact_match"].tolist() == recorded["exact_match"]["scores"]
    assert table["bleu"].tolist() == pytest.approx(recorded["bleu (BleuSpec{})"]["scores"], abs=5e-7)
    assert summary["row_count"] == 3
    assert summary["bleu/mean"] == pytest.approx(recorded["bleu (BleuSpec{})"]["mean"], rel=1e-7)

    rows = {"response": reef["predictions"], "reference": [reef["reference"]] * len(reef["predictions"])}
    summary, table = evaluate(rows, ["rouge_1", "rouge_2", "rouge_l", "rouge_l_sum"])
    assert table["rouge_l"].tolist() == pytest.approx(reef["recorded"]["rougeL"]["scores"], abs=5e-7)
    assert table["rouge_l_sum"].tolist() == pytest.approx(reef["recorded"]["rougeLsum"]["scores"], abs=5e-7)
    for name in ("rouge_1", "rouge_2"):
        assert summary[f"{name}/mean"] == pytest.approx(reef["recorded"][name.replace("_", "")]["mean"], rel=1e-7)


def test_tool_calls_are_compared():
    booking = '{"content": "", "tool_calls": [{"name": "book", "arguments": {"city": "Rome", "nights": %s}}]}'
    rows = {
        "response": [booking % 2, booking % 3, "no JSON"],
        "reference": [booking % 2, booking % 2, booking % 2],
    }
    expected = {
        "tool_call_valid": [1, 1, 0],
        "tool_name_match": [1, 1, 0],
        "tool_parameter_key_match": [1, 1, 0],
        # In the second row the city agrees and the nights do not.
        "tool_parameter_kv_match": [1, 1 / 2, 0],
    }
    _, table = evaluate(rows, list(expected))
    assert {name: table[name].tolist() for name in expected} == expected


def test_the_computed_metrics_above_are_all_that_this_sdk_has():
    texts = {"exact_match", "bleu", "rouge_1", "rouge_2", "rouge_l", "rouge_l_sum"}
    tools = {"tool_call_valid", "tool_name_match", "tool_parameter_key_match", "tool_parameter_kv_match"}
    assert set(constants.Metric.AUTOMATIC_METRIC_LIST) == texts | tools


def test_every_pointwise_metric_has_score_explanation_and_confidence(rows, verdicts):
    metrics = [metric for metric in JUDGED if metric not in UNSENT]
    assert set(metrics) == set(verdicts["pointwise"])
    summary, table = evaluate(rows, metrics)
    for metric in metrics:
        expected = verdicts["pointwise"][metric]
        assert table[metric].tolist() == [expected["score"]] * 2, metric
        assert table[f"{metric}/explanation"].tolist() == [expected["explanation"]] * 2, metric
        assert table[f"{metric}/confidence"].tolist() == [expected["confidence"]] * 2, metric
        assert (summary[f"{metric}/mean"], summary[f"{metric}/std"]) == (expected["score"], 0), metric


@pytest.mark.parametrize("use_reference", [False, True])
def test_every_pairwise_metric_has_choice_explanation_and_confidence(rows, verdicts, use_reference):
    names = constants.Metric.PAIRWISE_METRIC_LIST
    assert set(names) == set(verdicts["pairwise"])
    metrics = [
        PairwiseMetric(metric=name.removeprefix("pairwise_"), baseline_model=None, use_reference=use_reference)
        for name in names
    ]
    summary, table = evaluate(rows, metrics)
    for name in names:
        expected = verdicts["pairwise"][name]
        assert table[f"{name}/pairwise_choice"].tolist() == [expected["pairwise_choice"]] * 2
        assert table[f"{name}/explanation"].tolist() == [expected["explanation"]] * 2
        assert table[f"{name}/confidence"].tolist() == [expected["confidence"]] * 2
        for side in ("candidate", "baseline"):
            assert summary[f"{name}/{side}_model_win_rate"] == (expected["pairwise_choice"] == side.upper())
