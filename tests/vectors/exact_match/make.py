"""Expected values from CPython 3.11 (Unicode 14): `python make.py`.

casefold.tsv: every character that full case folding changes, and what it becomes.
punctuation.tsv: first and last character of each range of general category P.
loose.jsonl: pairs of seeded random texts and whether they are equal under each set of options.
"""
import itertools
import json
import pathlib
import random
import sys
import unicodedata

HERE = pathlib.Path(__file__).parent
WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def is_punctuation(character):
    return unicodedata.category(character).startswith("P")


def loosened(text, form, ignore_case, ignore_punctuation, trim):
    text = unicodedata.normalize(form, text) if form else text
    text = text.casefold() if ignore_case else text
    text = "".join(c for c in text if not is_punctuation(c)) if ignore_punctuation else text
    text = text.strip(WHITE_SPACE) if trim else text
    return unicodedata.normalize(form, text) if form else text


def casefold_rows():
    return [f"{ord(c):04X}\t{' '.join(f'{ord(f):04X}' for f in c.casefold())}" for c in CHARACTERS if c.casefold() != c]


def punctuation_rows():
    codes = [ord(c) for c in CHARACTERS if is_punctuation(c)]
    for _, group in itertools.groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        group = [code for _, code in group]
        yield f"{group[0]:04X}\t{group[-1]:04X}"


def loose_rows():
    chance = random.Random(2026)
    families = [["a", "A", "a."], ["é", "e\u0301", "É"], ["ß", "ss", "SS", "ẞ"], ["ﬁ", "fi", "FI"], ["５", "5"], ["²", "2"], ["ς", "σ", "Σ"],
                ["İ", "i\u0307"], ["-", "", "—", "„"], ["$", "＄"], [" ", "\u00a0", "  ", "\n"], ["\u3000", ""], ["Ω", "Ω", "ω"], ["\u0345", "ι"],
                ["\u1f80", "\u1f88", "\u1f00\u03b9"], ["한", "\u1112\u1161\u11ab"], ["!", "！"], ["\u1c90", "\u10d0"], ["\uab70", "\u13a0"]]
    for _ in range(300):
        chosen = chance.choices(families, k=chance.randint(1, 5))
        pair = ["".join(chance.choice(family) for family in chosen) for _ in range(2)]
        equal = [" ".join(filter(None, [form, case and "case", marks and "punctuation", trim and "trim"]))
                 for form in ("", "NFC", "NFKC") for case in (False, True) for marks in (False, True) for trim in (False, True)
                 if loosened(pair[0], form, case, marks, trim) == loosened(pair[1], form, case, marks, trim)]
        yield json.dumps({"prediction": pair[0], "reference": pair[1], "equal": equal}, ensure_ascii=False)


for name, rows in (("casefold.tsv", casefold_rows()), ("punctuation.tsv", punctuation_rows()), ("loose.jsonl", loose_rows())):
    (HERE / name).write_text("".join(row + "\n" for row in rows), encoding="utf-8", newline="\n")
