"""Compares `heed embed` and `heed predict` with PyTorch: cosines of sentences by the trained MiniLM, and labels by heads of random numbers
on top of it, for sentences, pairs, words and masks.

Exits with 1 when a cosine or a probability differs by more than --tolerance. Says so and succeeds where MiniLM could not be fetched."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py has a package's name

import torch
import transformers as t

PAIRS = [("Someone is eating food.", "A man is having lunch."), ("A man is eating a piece of bread.", "A person has food in the mouth."),
         ("A woman plays the violin.", "Somebody makes music."), ("The sky is blue today.", "A cheetah runs behind its prey."),
         ("", "An empty sentence is one, too."), ("A long one. " * 200, "Short."), ("naïve café, 你好!", "NAIVE CAFE")]


def heed(*arguments, lines):
    ran = subprocess.run(["build/heed", *map(str, arguments), "--json"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"interop: heed {arguments[0]}: {ran.stderr}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def encoded(tokenizer, *sentences):
    return tokenizer(*sentences, padding=True, truncation=True, max_length=512, return_token_type_ids=True, return_tensors="pt")


def vectors(model, tokenizer, sentences, pooling):
    batch = encoded(tokenizer, sentences)
    states, mask = model(**batch).last_hidden_state, batch["attention_mask"][..., None]
    pooled = {"mean": (states * mask).sum(1) / mask.sum(1), "cls": states[:, 0], "max": states.masked_fill(mask == 0, -1e30).amax(1)}[pooling]
    return torch.nn.functional.normalize(pooled)


def cosines(folder, tokenizer):
    model = t.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    for pooling in ("mean", "cls", "max"):
        a, b = (vectors(model, tokenizer, list(side), pooling) for side in zip(*PAIRS))
        found = heed("embed", folder, "--pairs", "--pooling", pooling, lines=["\t".join(pair) for pair in PAIRS])
        yield f"cosines, {pooling}", torch.tensor([each["cosine"] for each in found]), (a * b).sum(1)


def with_head(folder, tokenizer, kind, **config):
    """A folder with MiniLM and a head of random numbers on top of it."""
    torch.manual_seed(1)
    model = kind.from_pretrained(folder, dtype=torch.float32, **config).eval()
    out = folder / kind.__name__
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return model, out


def labels(folder, tokenizer):
    first, second = map(list, zip(*PAIRS))
    for name, problem in (("sentences", "single_label_classification"), ("several labels", "multi_label_classification")):
        model, head = with_head(folder, tokenizer, t.BertForSequenceClassification, num_labels=4, problem_type=problem)
        logits = model(**encoded(tokenizer, first)).logits
        found = [sorted(each["labels"], key=lambda label: label["id"]) for each in heed("predict", head, "--top", 4, lines=first)]
        yield name, torch.tensor([[label["score"] for label in each] for each in found]), logits.softmax(-1) if "single" in problem else logits.sigmoid()
    model, head = with_head(folder, tokenizer, t.BertForNextSentencePrediction)
    found = heed("predict", head, "--pairs", "--top", 2, lines=["\t".join(pair) for pair in PAIRS])
    expected = model(**encoded(tokenizer, first, second)).logits.softmax(-1)[:, 0]
    yield "pairs", torch.tensor([next(label["score"] for label in each["labels"] if label["label"] == "is_next") for each in found]), expected

    model, head = with_head(folder, tokenizer, t.BertForTokenClassification, num_labels=5)
    found = heed("predict", head, lines=["The violin is blue today"])[0]["words"]
    yield "words", torch.tensor([each["score"] for each in found]), model(**encoded(tokenizer, ["The violin is blue today"])).logits.softmax(-1).amax(-1)[0, 1:-1]

    model, head = with_head(folder, tokenizer, t.BertForMaskedLM)
    text = "The [MASK] is blue."
    best = model(**encoded(tokenizer, [text])).logits.softmax(-1)[0, 2].topk(5)
    found = heed("predict", head, lines=[text])[0]["masks"][0]["words"]
    yield "masked words", torch.tensor([each["score"] for each in found]), best.values
    yield "which words", torch.tensor([each["id"] for each in found]), best.indices


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder with MiniLM's files as they were published")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    options = parser.parse_args()
    weights = options.model / "model.fp16.safetensors"
    if not weights.exists():
        print("interop: sentences are SKIPPED: MiniLM could not be fetched", file=sys.stderr)
        return 0
    t.logging.set_verbosity_error()
    t.logging.disable_progress_bar()
    worst = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, to in (("config.json", "config.json"), ("tokenizer.json", "tokenizer.json"), (weights.name, "model.safetensors")):
            (folder / to).write_bytes((options.model / file).read_bytes())
        tokenizer = t.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
        for check in (cosines, labels):
            for what, found, expected in check(folder, tokenizer):
                difference = (found - expected).abs().max().item()
                worst = max(worst, difference)
                print(f"{what:16} {found.numel():4} numbers, largest difference {difference:.1e}")
    print("heed and PyTorch agree" if worst <= options.tolerance else f"heed and PyTorch differ by more than {options.tolerance}")
    return int(worst > options.tolerance)


if __name__ == "__main__":
    sys.exit(main())
