"""EvalTask of the Vertex AI SDK, generally available and preview: a data frame in, a summary and a table out."""

import json

import grpc
import pandas
import pytest
import vertexai
import vertexai.evaluation
import vertexai.preview.evaluation
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform_v1, aiplatform_v1beta1
from vertexai.evaluation import utils as ga_utils
from vertexai.preview.evaluation import metrics as preview_metrics
from vertexai.preview.evaluation import utils as preview_utils
from vertexai.preview.evaluation.metrics.custom_output_config import CustomOutputConfig

TRANSPORTS = ["grpc", "rest"]

RELEASES = {
    "ga": (vertexai.evaluation.EvalTask, ga_utils, aiplatform_v1),
    "preview": (vertexai.preview.evaluation.EvalTask, preview_utils, aiplatform_v1beta1),
}


@pytest.fixture(params=TRANSPORTS)
def transport(request, address, monkeypatch) -> str:
    """Points the SDK at the server."""
    place = {"project": "any", "location": "us-central1", "credentials": AnonymousCredentials()}
    if request.param == "rest":
        vertexai.init(**place, api_endpoint=f"http://{address}", api_transport="rest")
        return request.param
    vertexai.init(**place)
    # The SDK has no option for gRPC without TLS, so it is given a client that is already connected.
    for _, utils, api in RELEASES.values():
        channel = api.EvaluationServiceClient.get_transport_class("grpc")(channel=grpc.insecure_channel(address))
        client = api.EvaluationServiceClient(transport=channel)
        monkeypatch.setattr(utils, "create_evaluation_service_client", lambda client=client: client)
    return request.param


@pytest.fixture(params=RELEASES)
def evaluate(request, transport):
    """Runs one EvalTask; gives its summary and its table, a list for each metric and for what it says beside a score."""
    return lambda rows, metrics: run(request.param, rows, metrics)


@pytest.fixture
def evaluate_preview(transport):
    return lambda rows, metrics: run("preview", rows, metrics)


def run(release: str, rows: dict[str, list], metrics: list) -> tuple[dict, dict[str, list]]:
    eval_task = RELEASES[release][0]
    result = eval_task(dataset=pandas.DataFrame(rows), metrics=metrics).evaluate(evaluation_service_qps=1000)
    table = result.metrics_table
    return result.summary_metrics, {
        column.removesuffix("/score"): table[column].tolist() for column in table.columns if "/" in column
    }


def test_text_metrics_of_a_row_and_of_all_are_what_vertex_gave(evaluate, vertex):
    responses, references = zip(*vertex["greetings"]["pairs"])
    summary, table = evaluate(
        {"response": list(responses), "reference": list(references)}, ["exact_match", "bleu", "rouge"]
    )
    recorded = vertex["greetings"]["recorded"]
    bleu, rouge = recorded["bleu (BleuSpec{})"], recorded["rouge (RougeSpec{}: no rouge_type)"]
    assert table["exact_match"] == recorded["exact_match"]["scores"]
    assert table["bleu"] == pytest.approx(bleu["scores"], abs=5e-7)
    assert table["rouge"] == pytest.approx(rouge["scores"], abs=5e-7)
    assert summary["row_count"] == 3
    assert summary["exact_match/mean"] == pytest.approx(1 / 3)
    for metric, expected in [("bleu", bleu), ("rouge", rouge)]:
        assert summary[f"{metric}/mean"] == pytest.approx(expected["mean"], rel=1e-15)
        assert summary[f"{metric}/std"] == pytest.approx(expected["std"], rel=1e-15)


def test_every_rouge_is_what_vertex_gave(evaluate, vertex):
    reef = vertex["reef"]
    rows = {"response": reef["predictions"], "reference": [reef["reference"]] * len(reef["predictions"])}
    summary, table = evaluate(rows, ["rouge_1", "rouge_2", "rouge_l", "rouge_l_sum"])
    recorded = reef["recorded"]
    assert summary["rouge_1/mean"] == pytest.approx(recorded["rouge1"]["mean"], rel=1e-15)
    assert summary["rouge_1/std"] == pytest.approx(recorded["rouge1"]["std"], rel=1e-15)
    assert summary["rouge_2/mean"] == pytest.approx(recorded["rouge2"]["mean"], rel=1e-15)
    assert table["rouge_l"] == pytest.approx(recorded["rougeL"]["scores"], abs=5e-7)
    assert table["rouge_l_sum"] == pytest.approx(recorded["rougeLsum"]["scores"], abs=5e-7)


def test_tool_calls_are_compared(evaluate):
    booking = '{"content": "", "tool_calls": [{"name": "book", "arguments": {"city": "Rome", "nights": %s}}]}'
    rows = {
        "response": [booking % 2, booking % 3, "no JSON"],
        "reference": [booking % 2, booking % 2, booking % 2],
    }
    metrics = ["tool_call_valid", "tool_name_match", "tool_parameter_key_match", "tool_parameter_kv_match"]
    summary, table = evaluate(rows, metrics)
    assert table == {
        "tool_call_valid": [1, 1, 0],
        "tool_name_match": [1, 1, 0],
        "tool_parameter_key_match": [1, 1, 0],
        # In the second row the city agrees and the nights do not.
        "tool_parameter_kv_match": [1, 1 / 2, 0],
    }
    assert summary["tool_parameter_kv_match/mean"] == pytest.approx(1 / 2)


@pytest.mark.parametrize("release", RELEASES)
def test_judged_metrics_stand_beside_computed_ones(release, transport):
    question, fragment = "Where is the station, please?", "Station where?"
    module = vertexai.evaluation if release == "ga" else vertexai.preview.evaluation
    rows = {
        "prompt": ["Ask a passer-by for the station."] * 3,
        "response": [question, fragment, question],
        "baseline_model_response": [fragment, question, question],
        "reference": [question] * 3,
    }
    politeness = module.PointwiseMetric(
        metric="politeness", metric_prompt_template="Rate from 1 to 5 how polite this is: {response}"
    )
    nature = module.PairwiseMetric(
        metric="nature",
        metric_prompt_template="Which one sounds more natural?\nA: {baseline_model_response}\nB: {response}",
    )
    summary, table = run(release, rows, ["exact_match", "fluency", politeness, nature])
    undecided = "The judge is undecided: of 4 samples 2 prefer the candidate and 2 the baseline."
    assert table == {
        "exact_match": [1, 0, 1],
        # Of the question three samples say 5, of the fragment three say 2.
        "fluency": [5, 2, 5],
        "fluency/explanation": ["Flawless.", "No verb.", "Flawless."],
        # Of the question three samples say 4, after one that says 2; of the fragment all say 1.
        "politeness": [4, 1, 4],
        "politeness/explanation": ["Friendly.", "No greeting.", "Friendly."],
        # The judge likes the question. Where both are the question it likes what is shown as A.
        "nature/pairwise_choice": ["CANDIDATE", "BASELINE", "TIE"],
        "nature/explanation": ["It is idiomatic.", "It is idiomatic.", undecided],
    }
    assert summary["row_count"] == 3
    assert summary["exact_match/mean"] == pytest.approx(2 / 3)
    assert summary["fluency/mean"] == pytest.approx(12 / 3)
    # The squares of 1, 2 and 1 are 6, over one row less than three.
    assert summary["fluency/std"] == pytest.approx(3**0.5)
    assert summary["politeness/mean"] == pytest.approx(9 / 3)
    assert summary["nature/candidate_model_win_rate"] == pytest.approx(1 / 3)
    assert summary["nature/baseline_model_win_rate"] == pytest.approx(1 / 3)


def test_the_number_of_samples_is_the_callers(transport):
    rows = {"response": ["Where is the station, please?"]}
    politeness = vertexai.preview.evaluation.PointwiseMetric(
        metric="politeness", metric_prompt_template="Rate from 1 to 5 how polite this is: {response}"
    )
    one = vertexai.preview.evaluation.AutoraterConfig(sampling_count=1)
    task = vertexai.preview.evaluation.EvalTask(
        dataset=pandas.DataFrame(rows), metrics=[politeness], autorater_config=one
    )
    table = task.evaluate(evaluation_service_qps=1000).metrics_table
    # The first sample says 2; asked four times, the judge says 4.
    assert table["politeness/score"].tolist() == [2]
    assert table["politeness/explanation"].tolist() == ["Curt."]


def test_what_the_judge_said_can_be_read_by_the_caller(transport):
    def smallest(said: list[str]) -> dict:
        return {"score": min(json.loads(text)["score"] for text in said), "explanation": f"{len(said)} samples"}

    politeness = vertexai.preview.evaluation.PointwiseMetric(
        metric="politeness",
        metric_prompt_template="Rate from 1 to 5 how polite this is: {response}",
        custom_output_config=CustomOutputConfig(return_raw_output=True, parsing_fn=smallest),
    )
    _, table = run("preview", {"response": ["Where is the station, please?"]}, [politeness])
    # Of 2, 4, 4 and 4, which the service would have called a 4.
    assert table == {"politeness": [2], "politeness/explanation": ["4 samples"]}


def test_trajectories_are_compared(evaluate_preview):
    def trajectory(*tools: str) -> list[dict]:
        return [{"tool_name": tool, "tool_input": {"of": tool, "days": 2}} for tool in tools]

    predicted = [["search", "book"], ["book", "search"], ["search", "weather", "book"], ["search"], []]
    rows = {
        "predicted_trajectory": [trajectory(*tools) for tools in predicted],
        "reference_trajectory": [trajectory("search", "book")] * len(predicted),
    }
    summary, table = evaluate_preview(
        rows,
        [
            "trajectory_exact_match",
            "trajectory_in_order_match",
            "trajectory_any_order_match",
            "trajectory_precision",
            "trajectory_recall",
            preview_metrics.TrajectorySingleToolUse(tool_name="book"),
        ],
    )
    assert table == {
        "trajectory_exact_match": [1, 0, 0, 0, 0],
        "trajectory_in_order_match": [1, 0, 1, 0, 0],
        "trajectory_any_order_match": [1, 1, 1, 0, 0],
        "trajectory_precision": pytest.approx([1, 1, 2 / 3, 1, 0], rel=1e-6),
        "trajectory_recall": [1, 1, 1, 1 / 2, 0],
        "trajectory_single_tool_use": [1, 1, 1, 0, 0],
    }
    assert summary["trajectory_recall/mean"] == pytest.approx(3.5 / 5)
