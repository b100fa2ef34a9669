"""The official Python client, google-cloud-aiplatform, in both of its versions of the API."""

import random

import grpc
import pytest
from google.api_core import exceptions
from google.rpc import error_details_pb2


def pairs(*texts: tuple[str, str]) -> list[dict]:
    return [{"prediction": prediction, "reference": reference} for prediction, reference in texts]


def violations(error: exceptions.GoogleAPICallError) -> list[str]:
    """The fields that the error's details name; over REST the client leaves the details as JSON."""
    (detail,) = error.details
    if isinstance(detail, dict):
        assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"
        return [violation["field"] for violation in detail["fieldViolations"]]
    assert isinstance(detail, error_details_pb2.BadRequest)
    return [violation.field for violation in detail.field_violations]


def test_exact_match_tells_equal_from_different_and_sends_the_zero(service):
    assert service.scores("exact_match", {}, pairs(("a b", "a b"), ("a b", "A b"), ("a b", "a b "), ("", ""))) == [
        1, 0, 0, 1,
    ]  # fmt: skip


def test_bleu_is_what_vertex_gave(service, vertex):
    greetings = vertex["greetings"]
    expected = greetings["recorded"]["bleu (BleuSpec{})"]["scores"]
    assert service.scores("bleu", {}, pairs(*greetings["pairs"])) == pytest.approx(expected, abs=5e-7)


def test_bleu_of_one_equal_word_needs_the_effective_order(service):
    # One word has no 2-, 3- and 4-grams: without the effective order their precision is 0.
    assert service.scores("bleu", {"use_effective_order": False}, pairs(("yes", "yes"))) == [0]
    assert service.scores("bleu", {"use_effective_order": True}, pairs(("yes", "yes"))) == [1]


@pytest.mark.parametrize("kind", ["rougeL", "rougeLsum"])
def test_rouge_is_what_vertex_gave(service, vertex, kind):
    reef = vertex["reef"]
    texts = [(prediction, reef["reference"]) for prediction in reef["predictions"]]
    scores = service.scores("rouge", {"rouge_type": kind}, pairs(*texts))
    assert scores == pytest.approx(reef["recorded"][kind]["scores"], abs=5e-7)


@pytest.mark.parametrize("kind", ["rouge1", "rouge2"])
def test_mean_rouge_is_what_vertex_gave(service, vertex, kind):
    reef = vertex["reef"]
    texts = [(prediction, reef["reference"]) for prediction in reef["predictions"]]
    scores = service.scores("rouge", {"rouge_type": kind}, pairs(*texts))
    assert sum(scores) / len(scores) == pytest.approx(reef["recorded"][kind]["mean"], abs=5e-7)


def test_rouge_without_a_type_is_what_vertex_gave(service, vertex):
    greetings = vertex["greetings"]
    expected = greetings["recorded"]["rouge (RougeSpec{}: no rouge_type)"]["scores"]
    assert service.scores("rouge", {}, pairs(*greetings["pairs"])) == pytest.approx(expected, abs=5e-7)


def test_the_stemmer_of_rouge_can_be_switched_on(service):
    texts = pairs(("running", "runs"))
    assert service.scores("rouge", {"rouge_type": "rouge1", "use_stemmer": False}, texts) == [0]
    assert service.scores("rouge", {"rouge_type": "rouge1", "use_stemmer": True}, texts) == [1]


BOOKING = '{"content": "", "tool_calls": [{"name": "book", "arguments": {"city": "Rome", "nights": %s}}]}'
TOOL_CALLS = pairs(
    (BOOKING % 2, BOOKING % 2),
    (BOOKING % 2, BOOKING % 3),
    (BOOKING.replace("book", "cancel") % 2, BOOKING % 2),
    ("no JSON", BOOKING % 2),
    (BOOKING.replace('"city": "Rome", ', "") % 2, BOOKING % 2),
)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("tool_call_valid", [1, 1, 1, 0, 1]),
        ("tool_name_match", [1, 1, 0, 0, 1]),
        # Of the parameters city and nights: both, both, both, none, one.
        ("tool_parameter_key_match", [1, 1, 1, 0, 1 / 2]),
        # With equal values: both, only the city, both, none, only the nights.
        ("tool_parameter_kv_match", [1, 1 / 2, 1, 0, 1 / 2]),
    ],
)
def test_tool_calls_are_compared(service, metric, expected):
    assert service.scores(metric, {}, TOOL_CALLS) == expected


def trajectory(*tools: str) -> dict:
    return {"tool_calls": [{"tool_name": tool, "tool_input": f'{{"of": "{tool}"}}'} for tool in tools]}


TRAJECTORIES = [
    {"predicted_trajectory": trajectory(*predicted), "reference_trajectory": trajectory("search", "book")}
    for predicted in [["search", "book"], ["book", "search"], ["search", "weather", "book"], ["search"]]
] + [{"reference_trajectory": trajectory("search", "book")}]  # the client leaves an empty prediction out


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("trajectory_exact_match", [1, 0, 0, 0, 0]),
        ("trajectory_in_order_match", [1, 0, 1, 0, 0]),
        ("trajectory_any_order_match", [1, 1, 1, 0, 0]),
        ("trajectory_precision", [1, 1, 2 / 3, 1, 0]),
        ("trajectory_recall", [1, 1, 1, 1 / 2, 0]),
    ],
)
def test_trajectories_are_compared(beta, metric, expected):
    assert beta.scores(metric, {}, TRAJECTORIES) == pytest.approx(expected, rel=1e-7)


def test_a_trajectory_is_searched_for_one_tool(beta):
    instances = [{"predicted_trajectory": instance.get("predicted_trajectory")} for instance in TRAJECTORIES]
    assert beta.scores("trajectory_single_tool_use", {"tool_name": "book"}, instances) == [1, 1, 1, 0, 0]


def test_thousands_of_instances_come_back_in_order(service):
    texts = [(str(number), str(number - number % 3)) for number in range(5000)]
    assert service.scores("exact_match", {}, pairs(*texts)) == [number % 3 == 0 for number in range(5000)]


def test_an_unknown_rouge_type_is_named_in_the_error_details(service):
    with pytest.raises(service.refused, match="rouge0") as caught:
        service.scores("rouge", {"rouge_type": "rouge0"}, pairs(("a", "a")))
    assert violations(caught.value) == ["rouge_input.metric_spec.rouge_type"]


def test_a_missing_reference_is_named_in_the_error_details(service):
    with pytest.raises(service.refused) as caught:
        service.scores("bleu", {}, [*pairs(("a", "a")), {"prediction": "a"}])
    assert violations(caught.value) == ["bleu_input.instances[1].reference"]


def test_no_instances_is_an_error_and_no_empty_answer(service):
    with pytest.raises(service.refused) as caught:
        service.scores("exact_match", {}, [])
    assert violations(caught.value) == ["exact_match_input.instances"]


def test_a_request_without_a_metric_is_an_error(service):
    with pytest.raises(service.refused, match="names no metric"):
        service.ask()


def test_what_is_not_offered_says_so(service):
    with pytest.raises(exceptions.MethodNotImplemented, match="neural scorer"):
        service.ask(comet_input={"instance": {"prediction": "a", "reference": "a", "source": "b"}})


def unified(prediction: str, reference: str) -> dict:
    return {"response": {"text": prediction}, "reference": {"text": reference}}


def test_every_metric_of_the_unified_form_has_its_result(beta):
    answer = beta.ask(
        metrics=[
            {"exact_match_spec": {}},
            {"rouge_spec": {"rouge_type": "rouge1"}},
            {"bleu_spec": {"use_effective_order": True}},
            {"computation_based_metric_spec": {"type_": "EXACT_MATCH"}},
            {"computation_based_metric_spec": {"type_": "ROUGE", "parameters": {"rouge_type": "rougeL"}}},
            {"computation_based_metric_spec": {"type_": "BLEU", "parameters": {"use_effective_order": True}}},
        ],
        instance=unified("the cat", "the cat sat"),
    )
    # ROUGE: precision 2/2, recall 2/3. BLEU: 1- and 2-grams all match, two words for three: exp(1 - 3/2).
    expected = [0, 0.8, 0.60653066, 0, 0.8, 0.60653066]
    assert [result.score for result in answer.metric_results] == pytest.approx(expected, abs=1e-7)
    assert all(result._pb.HasField("score") for result in answer.metric_results)


def test_a_failed_metric_of_the_unified_form_hurts_no_other(beta):
    answer = beta.ask(
        metrics=[{"rouge_spec": {"rouge_type": "rouge0"}}, {"exact_match_spec": {}}],
        instance=unified("a", "a"),
    )
    failed, scored = answer.metric_results
    assert failed.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert "rouge0" in failed.error.message
    assert not failed._pb.HasField("score")
    assert scored.score == 1
    assert not scored._pb.HasField("error")


def test_a_deadline_that_passes_is_its_own_error_and_the_next_call_is_served(service):
    # 10 tables of 50,000 by 50,000 words: a good part of a second of work for any CPU.
    words = random.Random(1).choices([str(number) for number in range(100)], k=50_000)
    slow = pairs(*[(" ".join(words), " ".join(words[::-1]))] * 10)
    slow = {"metric_spec": {"rouge_type": "rougeL"}, "instances": slow}
    request = service.api.EvaluateInstancesRequest(location=service.location, rouge_input=slow)
    with pytest.raises(service.too_late):
        service.client.evaluate_instances(request, timeout=0.05)
    assert service.scores("exact_match", {}, pairs(("a", "a"))) == [1]
