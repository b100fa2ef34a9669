"""A real judge that prefers whatever it is shown first must end as TIE, once half of its samples are flipped.

A coder's model of half a billion parameters is such a judge. Each pair is easy, so that only its position can
make a good answer lose.
"""

from collections.abc import Iterator
from pathlib import Path

from separation import ITEMS, PAIRWISE
from service import evaluator

MODEL = "qwen-0.5b"
PAIRS = 8


def checks(binary: Path, judge: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """The name of each check, and what is wrong; empty = nothing."""
    with evaluator(binary, scratch / "evaluator.log", "--judge", f"openai:{judge}#local-judge") as client:
        for item in ITEMS[PAIRWISE][:PAIRS]:
            yield item["question"], fault(client, item)


def fault(client, item: dict) -> str:
    instance = {"instruction": item["question"], "context": item["context"]}
    instance |= {"prediction": item["right"], "baseline_prediction": item["wrong"]}
    result = client.ask(samples=2, temperature=0.0, **{f"{PAIRWISE}_input": {"instance": instance}})
    print(f"    {result.pairwise_choice} votes {[(s.label, s.flipped, s.error) for s in result.details.samples]} "
          f"first {result.details.first_position_rate:.2f}")
    return ""
