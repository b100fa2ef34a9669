"""random.jsonl: seeded random texts with their tokens, and their fuzz.ratio to the text before.

`pip install nltk==3.10.4 sacremoses==0.1.1 rapidfuzz==3.14.6`, then `python make_random.py`. NLTK's NIST tokenizer
reads its classes of characters from the copies that sacremoses ships. The texts have marks that end
sentences at their end only, so that their words don't depend on the sentence splitter.
"""
import json
import pathlib
import random
import shutil
import tempfile

import nltk
import sacremoses

DATA = pathlib.Path(tempfile.mkdtemp())
shutil.copytree(pathlib.Path(sacremoses.__file__).parent / "data" / "perluniprops", DATA / "misc" / "perluniprops")
nltk.data.path[:] = [str(DATA)]

from nltk.tokenize.destructive import NLTKWordTokenizer
from nltk.tokenize.nist import NISTTokenizer
from rapidfuzz import fuzz

HERE = pathlib.Path(__file__).parent
CHANCE = random.Random(2026)
PIECES = list(" '\"`:,;-*()[]{}<>@#$%&/5a\t\n") + [
    "  ", "''", "``", "--", "\u2014", "\u2019", "\u201c", "\u00ab", "\u00bb", "n't", "N'T", "'s", "'S ", "'ll", "'re ", "'RE", "'tis ", "'Twas ", "cannot",
    "Gonna", " gimme", "d'ye ", "more'n", "wanna ", "lemme", "gotta", "don't", "word", "B2", "3,14", "_x", "'em", "'cause", "'n ",
    "caf\u00e9", "\u4e2d\u6587", "\uff0c", "\u3002", "\u20ac", "&amp;", "&lt;", "&amp;lt;", "&#124;", "&apos;", "<skipped>", "\u2028", "\u00bd", "\u0660",
    "\u0301", "\U0001f600", "\uac00", "\u30a2", "\u00a0", "\u2460", "\u2603", "\u0964"]
ENDS = ["", ".", ".'", ".)\"", "?", "!", ".\u201d ", ". ) \t", ",", ":", "..", "\n"]

word, nist = NLTKWordTokenizer(), NISTTokenizer()
before = ""
with open(HERE / "random.jsonl", "w", encoding="utf-8", newline="\n") as out:
    for _ in range(1500):
        text = "".join(CHANCE.choices(PIECES, k=CHANCE.randint(0, 16)))
        # The splitter takes white space off the end.
        sentence = (text + CHANCE.choice(ENDS)).rstrip()
        row = {"text": sentence, "word_tokenize": word.tokenize(sentence), "nist_international": nist.international_tokenize(sentence),
               "ratio_to_last": fuzz.ratio(before, sentence)}
        out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
        before = sentence
