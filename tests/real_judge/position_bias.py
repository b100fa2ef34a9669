"""A judge that prefers what it is shown first must not name a winner, once half of its samples are flipped.

Half a billion parameters make such a judge. The pairs are easy, and one of the two answers is plainly wrong: only
its position can make it win. Both orders are asked once, at temperature 0. If the judge chooses by position in
both, the votes cancel out and the answer is TIE; whatever it does, a winner needs the votes of both orders.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from separation import ITEMS, PAIRWISE
from service import evaluator

MODEL = "qwen-0.5b"
PAIRS = 8
CHOICES = {1: "BASELINE", 2: "CANDIDATE", 3: "TIE"}


def checks(binary: Path, judge: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """The name of each check, and what is wrong; empty = nothing. Prints how biased the judge is."""
    shown_first = Counter()
    with evaluator(binary, judge, scratch) as client:
        for item in ITEMS[PAIRWISE][:PAIRS]:
            result = ask(client, item)
            votes = [place_of(sample) for sample in result.details.samples if not sample.error]
            shown_first.update(votes)
            yield f"{item['question']} {'/'.join(votes)}: {CHOICES[result.pairwise_choice]}", fault(result)
    decided = shown_first["first"] + shown_first["second"]
    print(f"  shown first and chosen: {shown_first['first']} of {decided} votes, {shown_first['same']} for neither")
    yield "the judge is biased by position", "" if shown_first["first"] > decided / 2 else str(shown_first)


def ask(client, item: dict):
    instance = {"instruction": item["question"], "context": item["context"]}
    instance |= {"prediction": item["right"], "baseline_prediction": item["wrong"]}
    return client.ask(samples=2, temperature=0.0, **{f"{PAIRWISE}_input": {"instance": instance}})


def place_of(sample) -> str:
    """Where the chosen answer stood."""
    if sample.label == "TIE":
        return "same"
    return "first" if (sample.label == "CANDIDATE") == sample.flipped else "second"


def fault(result) -> str:
    """The winner is who won in both orders; nobody else."""
    samples = [sample for sample in result.details.samples if not sample.error]
    if len(samples) != 2 or samples[0].flipped == samples[1].flipped:
        return f"not one valid sample in each order: {result}"
    labels = [sample.label for sample in samples]
    expected = labels[0] if labels[0] == labels[1] else "TIE"
    return "" if CHOICES[result.pairwise_choice] == expected else f"the votes are {labels}: {result}"
