"""The part of WordNet 3.0 that the texts beside this file touch, in WordNet's own files: `python make_wordnet.py /usr/share/wordnet`.

That folder is Debian's package wordnet-base; `pip install nltk==3.10.4` for the stemmer. Index lines whose word is a base form of
some stem of the texts, the synsets they name (without relations and glosses), and exception lines of stems are kept, with the licence.
"""
import json
import pathlib
import re
import sys

from nltk.stem.porter import PorterStemmer
from nltk.tokenize.destructive import NLTKWordTokenizer

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(sys.argv[1])
RULES = {"": [""], "s": [""], "ses": ["s"], "ves": ["f"], "xes": ["x"], "zes": ["z"], "ches": ["ch"], "shes": ["sh"], "men": ["man"],
         "ies": ["y"], "es": ["e", ""], "ed": ["e", ""], "ing": ["e", ""], "er": ["", "e"], "est": ["", "e"]}


def texts():
    for line in (HERE / "scores.jsonl").read_text(encoding="utf-8").split("\n"):
        if line:
            row = json.loads(line)
            for text in (row["prediction"], row["reference"]):
                yield text if isinstance(text, str) else text["unit"] + text["sep"] + text["unit"]
    for row in json.loads((HERE / "graders.json").read_text(encoding="utf-8"))["text_similarity"]:
        yield from (row["input"], row["reference"])


words = set()
for text in texts():
    for piece in (text.split(), NLTKWordTokenizer().tokenize(text), re.findall(r"\w+", text), re.findall(r"[A-Za-z]+", text)):
        words.update(word.lower() for word in piece)
stems = {PorterStemmer().stem(word) for word in words}
forms = {stem[:len(stem) - len(ending)] + base for stem in stems for ending, bases in RULES.items() if stem.endswith(ending) for base in bases}

for part in ("noun", "verb", "adj", "adv"):
    exceptions = [line.split() for line in (SOURCE / f"{part}.exc").read_text().splitlines()]
    exceptions = [line for line in exceptions if line[0] in stems]
    wanted = forms | {base for line in exceptions for base in line[1:]}
    (HERE / "wordnet" / f"{part}.exc").write_text("".join(" ".join(line) + "\n" for line in exceptions))
    places = set()
    for name, keep in ((f"index.{part}", lambda fields: fields[0] in wanted), (f"data.{part}", lambda fields: fields[0] in places)):
        kept = []
        for line in (SOURCE / name).read_text().splitlines():
            fields = line.split()
            if line.startswith(" ") or keep(fields):
                if name.startswith("index") and not line.startswith(" "):
                    places.update(fields[-int(fields[2]):])
                elif not line.startswith(" "):
                    line = " ".join(fields[:4 + 2 * int(fields[3], 16)]) + " 000"
                kept.append(line.rstrip())
        (HERE / "wordnet" / name).write_text("\n".join(kept) + "\n")
