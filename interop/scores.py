"""Compares heed's BLEU and chrF with sacreBLEU: random lines full of punctuation and odd characters, and, where the data is there, lines of
Multi30k with words lost, doubled, exchanged and misspelt. Whole sets, and single lines.

Exits with 1 when a score differs by more than 1e-9."""
import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py has a package's name

from sacrebleu.metrics import BLEU, CHRF

WORDS = ["a", "dog", "Hund", "läuft", "3.14", "1,000", "10-20", "e.g.", "don't", "well-known", "U.S.", "&quot;", "&amp;lt;", "&gt;", "<skipped>", "$5",
         "50%", "...", "--", "'", "``", "''", "(x)", "[1]", "a/b", "me@home", "x=y", "#tag", "日本語", "。", "привет", "naïve", "e\u0301", "😀", "½", "¿qué?",
         "„so“", "–", "…", "5.", ".5", ",", ".", "5,", ",5", "1-", "-1", "a-", "<b>", "~", "^", "|", "\\", "{}", "\u200b", "\ufeff"]
GAPS = [" "] * 12 + ["", "", "  ", "\t", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\x1c", "\x1f", "\x0b", "\r", "-\r"]


def random_line(rng):
    out = ""
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 21])):
        kind = rng.random()
        if kind < 0.8:
            out += rng.choice(WORDS)
        elif kind < 0.9:
            out += "".join(chr(rng.randrange(32, 127)) for _ in range(rng.randrange(1, 8)))
        else:
            out += "".join(chr(rng.choice([rng.randrange(0x80, 0x3000), rng.randrange(0xe000, 0x110000)])) for _ in range(rng.randrange(1, 5)))
        out += rng.choice(GAPS)
    return out


def corrupted(rng, line):
    words = line.split(" ")
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 5])):
        place = rng.randrange(len(words) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            del words[place:place + 1]
        elif kind == 1:
            words[place:place] = words[place:place + rng.randrange(1, 4)] or [rng.choice(WORDS)]
        elif kind == 2:
            rng.shuffle(words)
        elif kind == 3:
            words[place:place + 1] = [rng.choice(WORDS)]
        elif place < len(words) and words[place]:
            letters = list(words[place])
            letters[rng.randrange(len(letters))] = rng.choice("abcäöü.,-'0123456789 ")
            words[place] = "".join(letters)
    return " ".join(words)


def theirs(written, references):
    found = BLEU().corpus_score(written, [references])
    return dict(bleu=found.score, brevity=found.bp, precisions=found.precisions, chrf=CHRF().corpus_score(written, [references]).score)


def off(a, b):
    return max(abs(x - y) for x, y in zip([a["bleu"], a["brevity"], a["chrf"], *a["precisions"]], [b["bleu"], b["brevity"], b["chrf"], *b["precisions"]]))


def compare(program, name, pairs):
    written, references = [a for a, _ in pairs], [b for _, b in pairs]
    with tempfile.TemporaryDirectory() as box:
        files = [Path(box) / "written", Path(box) / "references"]
        for file, lines in zip(files, (written, references)):
            file.write_bytes("".join(line + "\n" for line in lines).encode())
        ours = [json.loads(line) for line in subprocess.run([program, *files], capture_output=True, text=True, check=True).stdout.splitlines()]
    whole = theirs(written, references)
    apart = [off(one, theirs([a], [b])) for one, (a, b) in zip(ours[1:], pairs)]
    largest = max([off(ours[0], whole)] + apart)
    good = largest <= 1e-9 and len(ours) == len(pairs) + 1
    print(f"{name:24} {len(pairs):6} {whole['bleu']:8.4f} {whole['chrf']:8.4f}  {largest:.1e}{'' if good else '  DIFFERS'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed_interop_scores")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--multi30k", default=os.environ.get("HEED_MULTI30K", "shared/data/multi30k-ende"), help="folder of test_2016_flickr.*.gz")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    print(f"{'lines':24} {'count':>6} {'BLEU':>8} {'chrF2':>8}  largest difference")
    sets = {"random, unlike": [(random_line(rng), random_line(rng)) for _ in range(arguments.lines)]}
    lines = [random_line(rng) for _ in range(arguments.lines)]
    sets["random, corrupted"] = [(corrupted(rng, line), line) for line in lines]
    sets["short and empty"] = [(random_line(rng)[:3].replace("\n", ""), random_line(rng)[:4]) for _ in range(arguments.lines // 4)]
    for language in "de", "en":
        file = Path(arguments.multi30k) / f"test_2016_flickr.{language}.gz"
        if file.exists():
            lines = gzip.open(file, "rt", encoding="utf-8").read().splitlines()
            sets[f"multi30k {language}, corrupted"] = [(corrupted(rng, line), line) for line in lines]
    if len(sets) == 3:
        print(f"interop: Multi30k is left out: there is no {arguments.multi30k}", file=sys.stderr)
    results = [compare(arguments.program, name, pairs) for name, pairs in sets.items()]
    sys.exit(0 if all(results) else 1)


main()
