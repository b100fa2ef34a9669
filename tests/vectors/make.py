#!/usr/bin/env python3
"""Makes the expected values of rouge/ again, from the texts and words that are in the files already.

Needs rouge-score==0.1.2, nltk==3.10.4, rapidfuzz==3.14.6 and, in NLTK_DATA, tokenizers/punkt_tab.
Use: NLTK_DATA=FOLDER python make.py [scores] [tokens] [porter]
"""
import json
import os
import sys
from pathlib import Path

import nltk
from nltk.stem.porter import PorterStemmer
from rapidfuzz.distance import LCSseq
from rouge_score import rouge_scorer, scoring, tokenize

HERE = Path(__file__).parent / "rouge"
PORTER = PorterStemmer()
MOST_CELLS = 120_000_000  # of an LCS table that the reference is asked to fill
if "NLTK_DATA" in os.environ:
    nltk.data.path[:] = [os.environ["NLTK_DATA"]]


def lines(name):
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf8").split("\n") if line]


def write(name, rows):
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    (HERE / name).write_text(text, encoding="utf8")


def spelled_out(text):
    return text if isinstance(text, str) else text["sep"].join([text["unit"]] * text["times"])


def remembering(lcs):
    """The same function, asked once for each pair of sentences."""
    known = {}

    def remembered(reference, candidate):
        key = (tuple(reference), tuple(candidate))
        if key not in known:
            known[key] = lcs(reference, candidate)
        return known[key]

    remembered.forget = known.clear
    return remembered


rouge_scorer.lcs_ind = remembering(rouge_scorer.lcs_ind)


def one(kind, reference, prediction, **options):
    rouge_scorer.lcs_ind.forget()
    score = rouge_scorer.RougeScorer([kind], **options).score(reference, prediction)[kind]
    return [float(score.precision), float(score.recall), float(score.fmeasure)]


def scores_of(reference, prediction, stem, notes):
    a, b = (tokenize.tokenize(text, PORTER if stem else None) for text in (reference, prediction))
    big = len(a) * len(b) > MOST_CELLS
    scores = {f"rouge{n}": one(f"rouge{n}", reference, prediction, use_stemmer=stem) for n in range(1, 10)}
    if big:
        length = LCSseq.similarity(a, b)
        precision, recall = length / len(b), length / len(a)
        scores["rougeL"] = [precision, recall, scoring.fmeasure(precision, recall)]
        notes.add("rougeL via rapidfuzz LCSseq")
    else:
        scores["rougeL"] = one("rougeL", reference, prediction, use_stemmer=stem)
    for key, split in (("rougeLsum", False), ("rougeLsum_split", True)):
        if big and not split and "\n" not in reference + prediction:
            scores[key] = scores["rougeL"]
            notes.add("rougeLsum = rougeL (single line)")
        else:
            scores[key] = one("rougeLsum", reference, prediction, use_stemmer=stem, split_summaries=split)
    return scores


def scores():
    rows = []
    for case in lines("scores.jsonl"):
        reference, prediction = spelled_out(case["reference"]), spelled_out(case["prediction"])
        notes = set()
        expected = {
            name: scores_of(reference, prediction, stem, notes) for name, stem in (("plain", False), ("stem", True))
        }
        row = {key: case[key] for key in ("id", "tag", "prediction", "reference")}
        if notes:
            row["note"] = sorted(notes)
        rows.append(row | {"expected": expected})
    write("scores.jsonl", rows)


def tokens():
    write(
        "tokens.jsonl",
        [
            {
                "text": case["text"],
                "tokens": tokenize.tokenize(case["text"], None),
                "stems": tokenize.tokenize(case["text"], PORTER),
                "sentences": nltk.sent_tokenize(case["text"]),
            }
            for case in lines("tokens.jsonl")
        ],
    )


def porter():
    words = [line.split("\t")[0] for line in (HERE / "porter.tsv").read_text(encoding="utf8").splitlines()]
    (HERE / "porter.tsv").write_text("".join(f"{word}\t{PORTER.stem(word)}\n" for word in words), encoding="utf8")


for made in sys.argv[1:] or ["scores", "tokens", "porter"]:
    {"scores": scores, "tokens": tokens, "porter": porter}[made]()
