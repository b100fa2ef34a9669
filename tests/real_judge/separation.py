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
READOUTS = ("replies", "logprobs")
LEAST_AUC = 0.95  # asked of the better readout
AT_ONCE = 2


def checks(binary: Path, judge: str, scratch: Path) -> Iterator[tuple[str, str]]:
    """The name of each check, and what is wrong; empty = nothing. Prints the table."""
    flag = f"openai:{judge}#local-judge"
    best = dict.fromkeys(POINTWISE, 0.0)
    print("| metric | readout | AUC | mean right | mean wrong |\n|---|---|---|---|---|", flush=True)
    for readout in reversed(READOUTS):
        settings = {"RAPID_EVAL__JUDGE__READOUT": readout}
        with evaluator(binary, scratch / "evaluator.log", "--judge", flag, **settings) as client:
            for metric in POINTWISE:
                right, wrong = scores(client, metric, "right"), scores(client, metric, "wrong")
                area = auc(right, wrong)
                best[metric] = max(best[metric], area)
                print(f"| {metric} | {readout} | {area:.3f} | {mean(right):.2f} | {mean(wrong):.2f} |", flush=True)
    for metric, area in best.items():
        yield f"{metric} separates", "" if area >= LEAST_AUC else f"AUC {area:.3f} < {LEAST_AUC}"
    with evaluator(binary, scratch / "evaluator.log", "--judge", flag) as client:
        yield "pairwise has no winner that is wrong", pairwise(client)


def scores(client, metric: str, side: str) -> list[float]:
    def score(item: dict) -> float:
        texts = {"instruction": item.get("question"), "context": item.get("context"), "reference": item.get("reference")}
        instance = {"prediction": item[side], **{name: text for name, text in texts.items() if text is not None}}
        arm = {"metric_spec": {"use_reference": True} if "reference" in item else {}, "instance": instance}
        return client.ask(samples=1, temperature=0.0, **{f"{metric}_input": arm}).score

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(score, ITEMS[metric]))


def pairwise(client) -> str:
    """Each item with the right answer as the candidate and two samples, one in each order."""
    outcomes = []
    for item in ITEMS[PAIRWISE]:
        instance = {"instruction": item["question"], "context": item["context"]}
        instance |= {"prediction": item["right"], "baseline_prediction": item["wrong"]}
        result = client.ask(samples=2, temperature=0.0, **{f"{PAIRWISE}_input": {"instance": instance}})
        outcomes.append({1: "BASELINE", 2: "CANDIDATE", 3: "TIE"}[result.pairwise_choice])
    won, tied, lost = (outcomes.count(choice) for choice in ("CANDIDATE", "TIE", "BASELINE"))
    print(f"\n{PAIRWISE}: right answer wins {won}, ties {tied}, loses {lost} of {len(outcomes)}", flush=True)
    return "" if won > lost and lost <= 1 else f"the wrong answer won {lost} of {len(outcomes)}"


def auc(right: list[float], wrong: list[float]) -> float:
    won = sum((r > w) + (r == w) / 2 for r in right for w in wrong)
    return won / (len(right) * len(wrong))


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
