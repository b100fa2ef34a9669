"""Whether a judge of 1.5 billion parameters serves graders, general_quality and the accuracy of summaries.

Ten items each, of our own: `grader_items.json`, and the pairs of a right and a wrong answer in `items.json`. Reported:

- label_model: the share of statements whose sentiment is labelled right.
- score_model, general_quality, summarization_accuracy: AUC of right against wrong texts, and both means; see
  `separation.py`.

What is asserted is that the judge is far from guessing, or that its failure is told.
"""

import importlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf.json_format import ParseDict

from separation import AT_ONCE, ITEMS, PAIRWISE, auc, mean
from service import evaluator

GRADED = json.loads((Path(__file__).resolve().parent / "grader_items.json").read_text())
LABELS = ["positive", "neutral", "negative"]
LEAST_RIGHT = 6  # of ten sentiments; guessing gives three or four
LEAST_AUC = 0.6  # guessing gives one half

SENTIMENT = {
    "input": [
        {"role": "developer", "content": "Classify the sentiment as 'positive', 'neutral', or 'negative'"},
        {"role": "user", "content": "Statement: {{item.text}}"},
    ],
    "labels": LABELS,
    "passing_labels": ["positive", "neutral"],
}
QUALITY = {
    "input": [
        {"role": "system", "content": "Rate the response quality from 0 to 1. 1 = perfect, 0 = completely wrong."},
        {"role": "user", "content": "Response: {{sample.output_text}}\nGround Truth: {{item.reference}}"},
    ],
    "range": [0, 1],
}


def checks(binary: Path, judge: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """The name of each check, and what is wrong; empty = nothing. Prints the figures."""
    with evaluator(binary, judge, scratch) as client:
        right = sum(scored(client, GRADED["sentiment"], sentiment))
        print(f"  label_model: {right:.0f} of 10 sentiments are right", flush=True)
        yield "label_model labels sentiments", "" if right >= LEAST_RIGHT else f"{right:.0f} < {LEAST_RIGHT}"
        for name, items, ask in (
            ("score_model", ITEMS["question_answering_correctness"], score),
            ("general_quality", ITEMS[PAIRWISE], quality),
            ("summarization_accuracy", GRADED["summary_accuracy"], accuracy),
        ):
            sides = [scored(client, [(item, item[side]) for item in items], ask) for side in ("right", "wrong")]
            area = auc(*sides)
            means = [mean(side) for side in sides]
            print(f"  {name}: AUC {area:.2f}, mean right {means[0]:.2f}, mean wrong {means[1]:.2f}", flush=True)
            print(f"    right {sides[0]}\n    wrong {sides[1]}", flush=True)
            yield f"{name} separates", "" if area >= LEAST_AUC else f"AUC {area:.3f} < {LEAST_AUC}"


def scored(client, items: list, ask) -> list[float]:
    """A score for each item. A verdict that could not be had counts as none of the two sides', and is told."""

    def one(item) -> float:
        try:
            return ask(client, item)
        except grpc.RpcError as error:
            print(f"  no verdict: {error.code().name}: {error.details()[:200]}", flush=True)
            return -1.0

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, items))


def asked(client, arm: str, module: str, message: str, fields: dict, tokens: int = 600):
    made = getattr(importlib.import_module(f"rapideval.v1.{module}_pb2"), message)()
    return client.ask(samples=1, temperature=0.0, tokens=tokens, **{arm: ParseDict(fields, made)})


def sentiment(client, item: dict) -> float:
    fields = {"metric_spec": SENTIMENT, "instance": {"item": {"text": item["text"]}}}
    return float(asked(client, "label_model_input", "model_grader", "LabelModelInput", fields).label == item["label"])


def score(client, pair: tuple[dict, str]) -> float:
    item, text = pair
    instance = {"item": {"reference": item["reference"]}, "sample": {"output_text": text}}
    fields = {"metric_spec": QUALITY, "instance": instance}
    return asked(client, "score_model_input", "model_grader", "ScoreModelInput", fields).score


def quality(client, pair: tuple[dict, str]) -> float:
    item, text = pair
    instance = {"instruction": item["question"], "context": item["context"], "prediction": text}
    return asked(client, "general_quality_input", "answer_quality", "GeneralQualityInput", {"instance": instance}).score


def accuracy(client, pair: tuple[dict, str]) -> float:
    item, text = pair
    transcript = [{"role": role, "text": said} for role, said in item["transcript"]]
    fields = {"instance": {"transcript": transcript, "sections": [{"key": "summary", "summary": text}]}}
    arm, message = "summarization_accuracy_input", "SummarizationAccuracyInput"
    answer = asked(client, arm, "summarization_evaluation", message, fields, tokens=500)
    return answer.score
