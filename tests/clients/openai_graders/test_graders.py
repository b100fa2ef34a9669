"""OpenAI's own Python client runs and validates graders here, with nothing changed but `base_url`.

The examples are those of Azure's page on graders; the published scores are those of tests/vectors/similarity/graders.json.
"""

import json
from importlib.metadata import version
from pathlib import Path

import openai
import pytest

GOLDEN = json.loads((Path(__file__).parents[2] / "vectors/similarity/graders.json").read_text())
ROW = {
    "query": "What is the weather like today?",
    "response": "It's sunny and warm with clear skies.",
    "ground_truth": "Today is sunny with temperatures around 75°F.",
}
EXACT = {
    "type": "string_check",
    "name": "exact_match",
    "input": "{{item.response}}",
    "reference": "{{item.ground_truth}}",
    "operation": "eq",
}
SIMILAR = {
    "type": "text_similarity",
    "name": "similarity_check",
    "input": "{{item.response}}",
    "reference": "{{item.ground_truth}}",
    "evaluation_metric": "bleu",
    "pass_threshold": 0.8,
}
LABEL = {
    "type": "label_model",
    "name": "sentiment_check",
    "model": "judge-2",
    "input": [
        {"role": "developer", "content": "Classify the sentiment as 'positive', 'neutral', or 'negative'"},
        {"role": "user", "content": "Statement: {{item.query}}"},
    ],
    "labels": ["positive", "neutral", "negative"],
    "passing_labels": ["positive", "neutral"],
}
SCORE = {
    "type": "score_model",
    "name": "quality_score",
    "model": "judge-2",
    "input": [
        {"role": "system", "content": "Rate the response quality from 0 to 1. 1 = perfect, 0 = completely wrong."},
        {"role": "user", "content": "Response: {{item.response}}\nGround Truth: {{item.ground_truth}}"},
    ],
    "pass_threshold": 0.7,
    "range": [0, 1],
}
MULTI = {
    "type": "multi",
    "name": "both",
    "graders": {"label": LABEL, "score": SCORE},
    "calculate_output": "0.5 * label + 0.5 * score",
}
EVERY = [EXACT, SIMILAR, LABEL, SCORE, MULTI]


@pytest.fixture(params=["openai", "azure"])
def graders(address, request):
    if request.param == "openai":
        client = openai.OpenAI(base_url=f"http://{address}/v1", api_key="any", max_retries=1)
    else:
        client = openai.AzureOpenAI(
            azure_endpoint=f"http://{address}", api_version="2025-04-01-preview", api_key="any", max_retries=1
        )
    return client.fine_tuning.alpha.graders


def run(graders, grader, sample="It's sunny.", item=ROW):
    return graders.run(grader=grader, model_sample=sample, item=item)


def raised(answer) -> set[str]:
    return {name for name, flag in answer.metadata.errors.to_dict().items() if flag is True}


def test_the_client_is_the_one_that_the_folder_is_for(request):
    assert version("openai").split(".")[0] == ("1" if "v1" in str(request.path) else "3")


@pytest.mark.parametrize(
    "grader, reward", [(EXACT, 0), (SIMILAR, 0.03030492851898195), (LABEL, 1), (SCORE, 0.85), (MULTI, 0.925)],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_every_type_of_grader_runs(graders, grader, reward):
    answer = run(graders, grader)
    assert answer.reward == pytest.approx(reward, abs=1e-9)
    assert (answer.metadata.name, answer.metadata.type, raised(answer)) == (grader["name"], grader["type"], set())
    assert answer.metadata.execution_time >= 0
    if grader is MULTI:
        assert answer.sub_rewards == {"label": 1, "score": 0.85} == answer.metadata.scores
    else:
        assert (answer.sub_rewards, answer.metadata.scores) == ({}, {grader["name"]: answer.reward})


@pytest.mark.parametrize("grader", EVERY, ids=lambda grader: grader["type"])
def test_every_type_of_grader_is_validated(graders, grader):
    assert graders.validate(grader=grader).grader.to_dict(mode="json") == grader


def test_the_published_scores_are_met(graders):
    metrics = ["fuzzy_match", "bleu", "gleu", "rouge_1", "rouge_2", "rouge_3", "rouge_4", "rouge_5", "rouge_l"]
    for pair in GOLDEN["text_similarity"]:
        for metric in metrics:
            grader = SIMILAR | {"evaluation_metric": metric, "input": "{{sample.output_text}}", "reference": "{{item.r}}"}
            answer = run(graders, grader, pair["input"], {"r": pair["reference"]})
            assert answer.reward == pytest.approx(pair[metric], abs=1e-9), (metric, pair)


def test_a_judges_number_beyond_the_range_is_moved_into_it(graders):
    grader = SCORE | {"input": [{"role": "user", "content": "Rate beyond the range: {{sample.output_text}}"}]}
    assert run(graders, grader).reward == 1


def test_a_judge_that_gives_no_verdict_is_a_reward_of_0_and_a_flag(graders):
    grader = SCORE | {"input": [{"role": "user", "content": "Say something about {{sample.output_text}}"}]}
    answer = run(graders, grader)
    # The client has another name for members that begin with `model_`, and gives them back under their own.
    assert (answer.reward, raised(answer)) == (0, {"model_grader_parse_error"})
    assert answer.metadata.errors.api_model_grader_parse_error is True


def test_a_value_that_is_not_there_is_a_flag(graders):
    answer = run(graders, EXACT | {"reference": "{{item.gone}}"})
    assert answer.reward == 0 and answer.metadata.errors.invalid_variable_error is True


@pytest.mark.parametrize(
    "grader, param",
    [
        (EXACT | {"operation": "contains"}, "grader.operation"),
        (MULTI | {"graders": [EXACT]}, "grader.graders"),
        (MULTI | {"calculate_output": "label +"}, "grader.calculate_output"),
        ({"type": "python", "name": "p", "source": "def grade(sample, item): return 1.0"}, "grader.type"),
    ],
)
def test_a_malformed_grader_is_a_bad_request_at_once(graders, grader, param):
    with pytest.raises(openai.BadRequestError) as refused:
        graders.validate(grader=grader)
    assert (refused.value.param, refused.value.type) == (param, "invalid_request_error")
    assert param in str(refused.value)
