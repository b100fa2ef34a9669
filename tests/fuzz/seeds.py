"""Writes seed corpora into corpus/<target>/ from the test vectors: python3 tests/fuzz/seeds.py

A seed is a few bytes that choose options and then the texts, with the byte FF between them (src/texts.rs).
"""

import hashlib
import json
import random
from pathlib import Path

HERE = Path(__file__).parent
VECTORS = HERE.parent / "vectors"
# How many bytes of choices stand before the texts, and how many seeds there may be.
TARGETS = {"text": 1, "rouge": 5, "bleu": 5, "exact_match": 1, "tool_call": 1, "similarity": 2, "checks": 3}
MOST, LONGEST = 400, 2048


def rows(file):
    return [json.loads(line) for line in (VECTORS / file).read_text("utf-8").split("\n") if line.strip()]


def texts():
    for file in ["rouge/scores.jsonl", "bleu/random.jsonl", "bleu/sentence.jsonl", "exact_match/loose.jsonl"]:
        yield from ((row["prediction"], row["reference"]) for row in rows(file))
    for line in filter(None, (VECTORS / "exact_match/casefold.tsv").read_text("utf-8").split("\n")[::5]):
        yield tuple("".join(chr(int(code, 16)) for code in side.split()) for side in line.split("\t"))


def formulas():
    yield "0.25 * a + 0.75 * b", "a"
    yield "min(1, a / b) ^ -2", "min"
    yield "-2^2^.5 - -max(a, b, min)*exp(+1e-1)", "exp"
    yield "floor(.5)/ceil(1.5E+3)", "1"
    yield "sqrt(é_1 + 2) - (log(abs(b)))", "é_1"


def calls():
    for row in rows("cases/tool_call.jsonl"):
        for step in [row, *row.get("more", [])]:
            for given in step.get("request", {}).values():
                for instance in given.get("instances", []):
                    yield instance.get("prediction", ""), instance.get("reference", "")


def main():
    choose = random.Random(1)
    for target, choices in TARGETS.items():
        pairs = calls() if target == "tool_call" else texts()
        # Some vectors describe a long text instead of holding it.
        pairs = sorted({pair for pair in pairs if all(isinstance(text, str) for text in pair)})
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        chosen = choose.sample(pairs, min(MOST, len(pairs)))
        if target == "checks":
            chosen += formulas()
        for prediction, reference in chosen:
            body = prediction.encode() + b"\xff" + reference.encode()
            # tool_call: 0 to 3 take the texts as they are.
            head = bytes(1) if target == "tool_call" else choose.randbytes(choices)
            if len(body) <= LONGEST:
                (folder / hashlib.sha256(head + body).hexdigest()[:16]).write_bytes(head + body)


main()
