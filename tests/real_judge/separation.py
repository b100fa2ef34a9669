"""Whether a judge of 1.5 billion parameters tells right answers from wrong ones through our prompts.

`items.json` holds ten pairs for each metric, written for this purpose: one answer that meets the criteria and one
that plainly does not. Reported per metric:

- pointwise: AUC, the share of (right, wrong) pairs, over all items, in which the right answer has the higher
  score; a pair with equal scores counts one half. 0.5 is guessing.
- pairwise: the share of items whose right answer wins, ties aside counted as not won, with both orders asked.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from service import evaluator

MODEL = "qwen-1.5b"
ITEMS = json.loads((Path(__file__).resolve().parent / "items.json").read_text())
POINTWISE = [name for name in ITEMS if not name.startswith("pairwise")]
[PAIRWISE] = [name for name in ITEMS if name.startswith("pairwise")]
READOUTS = ("logprobs", "replies")
BASELINE, CANDIDATE, TIE = 1, 2, 3  # of the enum PairwiseChoice
LEAST_AUC = 0.75  # of the better readout: far from guessing; the table says how far
AT_ONCE = 2


def checks(binary: Path, judge: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """The name of each check, and what is wrong; empty = nothing. Prints the table."""
    table = ["| metric | readout | AUC | mean right | mean wrong |", "|---|---|---|---|---|"]
    best = dict.fromkeys(POINTWISE, 0.0)
    for readout in READOUTS:
        with evaluator(binary, judge, scratch, readout) as client:
            for metric in POINTWISE:
                right, wrong = scores(client, metric, "right"), scores(client, metric, "wrong")
                best[metric] = max(best[metric], auc(right, wrong))
                table.append(
                    f"| {metric} | {readout} | {auc(right, wrong):.3f} | {mean(right):.2f} | {mean(wrong):.2f} |"
                )
                print(table[-1], flush=True)
    with evaluator(binary, judge, scratch) as client:
        won, tied, lost = pairwise(client)
    print("\n".join(table))
    print(f"\n{PAIRWISE}, both orders: the right answer wins {won}, ties {tied}, loses {lost}", flush=True)
    for metric, area in best.items():
        yield f"{metric} separates", "" if area >= LEAST_AUC else f"AUC {area:.3f} < {LEAST_AUC}"
    yield f"{PAIRWISE}: the wrong answer hardly ever wins", "" if lost <= 1 and lost < won else f"it won {lost} times"


def scores(client, metric: str, side: str) -> list[float]:
    def score(item: dict) -> float:
        names = {"question": "instruction", "context": "context", "reference": "reference"}
        instance = {names[name]: text for name, text in item.items() if name in names} | {"prediction": item[side]}
        arm = {"metric_spec": {"use_reference": True} if "reference" in item else {}, "instance": instance}
        return client.ask(samples=1, temperature=0.0, **{f"{metric}_input": arm}).score

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(score, ITEMS[metric]))


def pairwise(client) -> tuple[int, int, int]:
    """How often the right answer wins, ties and loses, as the candidate, with one sample in each order."""
    outcomes = []
    for item in ITEMS[PAIRWISE]:
        instance = {"instruction": item["question"], "context": item["context"]}
        instance |= {"prediction": item["right"], "baseline_prediction": item["wrong"]}
        result = client.ask(samples=2, temperature=0.0, **{f"{PAIRWISE}_input": {"instance": instance}})
        outcomes.append(result.pairwise_choice)
    return outcomes.count(CANDIDATE), outcomes.count(TIE), outcomes.count(BASELINE)


def auc(right: list[float], wrong: list[float]) -> float:
    won = sum((r > w) + (r == w) / 2 for r in right for w in wrong)
    return won / (len(right) * len(wrong))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
