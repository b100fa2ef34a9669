"""Expected values from sacrebleu 2.6.0 on CPython 3.11: `pip install sacrebleu==2.6.0`, then `python make.py`.

Recomputes the expectations in sentence.jsonl and tokens.jsonl from their texts, and writes random.jsonl: seeded
random texts of the characters that tokenizers care about, with tokens, and scores for every maximal order.
"""
import json
import pathlib
import random

from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_char import TokenizerChar
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

HERE = pathlib.Path(__file__).parent
TOKENIZERS = {"13a": Tokenizer13a(), "intl": TokenizerV14International(), "zh": TokenizerZh(), "char": TokenizerChar()}


def lines(name):
    text = (HERE / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def write(name, rows):
    with open(HERE / name, "w", encoding="utf-8", newline="\n") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


def text(value):
    return value if isinstance(value, str) else value["sep"].join([value["unit"]] * value["times"])


def bleu(prediction, reference, **options):
    return BLEU(**options).sentence_score(prediction, [reference])


def sentence(row):
    p, r = text(row["prediction"]), text(row["reference"])
    expected = {}
    for tokenize in ("13a", "intl", "zh", "char", "none"):
        on = bleu(p, r, tokenize=tokenize, effective_order=True)
        off = bleu(p, r, tokenize=tokenize, effective_order=False)
        expected[tokenize] = {"eff": on.score / 100, "noeff": off.score / 100, "counts": on.counts,
                              "totals": on.totals, "sys_len": on.sys_len, "ref_len": on.ref_len}
    expected["13a-lc"] = {"eff": bleu(p, r, tokenize="13a", lowercase=True, effective_order=True).score / 100}
    for smooth in ("none", "floor", "add-k"):
        expected[f"13a-smooth-{smooth}"] = {
            key: bleu(p, r, tokenize="13a", smooth_method=smooth, effective_order=key == "eff").score / 100
            for key in ("eff", "noeff")}
    return expected


def tokens(line):
    return {name: tokenizer(line.rstrip()) for name, tokenizer in TOKENIZERS.items()}


def random_rows():
    chance = random.Random(2026)
    pieces = list(".,-5a7B.,-'\"!&; \t\n$+^<>") + [
        "<skipped>", "-\n", "&quot;", "&amp;", "&lt;", "&gt;", "&amp;lt;", "café", "\u00a0", "\u0085", "\u001c", "\u200b",
        "\u0660", "\u0967", "\u00bd", "\u2167", "\u3007", "\u4e2d", "\u3002", "\uff0c", "\uff15", "\u2014", "\u20ac",
        "\u2460", "\u00ab", "\u0e01", "\u0301", "\U0001f600", "\U00020000", "\u2028", "\u30a2", "\uac00", "\u2600", "\u2215"]
    for number in range(400):
        pair = ["".join(chance.choices(pieces, k=chance.randint(0, 24))) for _ in range(2)]
        if number % 2:
            pair[1] = pair[0][:chance.randint(0, 24)] + pair[1]
        orders = {str(order): {key: bleu(*pair, tokenize="intl", max_ngram_order=order, effective_order=key == "eff").score / 100
                               for key in ("eff", "noeff")} for order in range(1, 9)}
        yield {"prediction": pair[0], "reference": pair[1], "tokens": tokens(pair[0]), "orders": orders}


changed = [row["id"] for row in lines("sentence.jsonl") if sentence(row) != row["expected"]]
changed += [row["text"] for row in lines("tokens.jsonl") if {"text": row["text"], **tokens(row["text"])} != row]
print(f"{len(changed)} stored expectations differ", changed[:5])
write("random.jsonl", random_rows())
