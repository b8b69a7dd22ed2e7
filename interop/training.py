"""Compares heed's training with PyTorch's: a ViT, a BERT in pre-training and an encoder-decoder, each from the same weights and on the same
batches, learn for 100 steps with AdamW, warm-up and cosine, clipping, and label smoothing where that is usual. transformers and torch.optim
do the same from the folder that heed wrote.

PyTorch's tables of words take no gradient for padding where they are read. heed's do: published encoder-decoders begin texts with that token.
So Marian comes twice, with a token of its own to begin with, and with padding, of which PyTorch is then told that it is a word like others.

Exits with 1 when a loss differs by more than a thousandth of itself."""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py has a package's name

import torch
import transformers
from safetensors.torch import load_file

KINDS = {"vit": ("ViTForImageClassification", "ViT, classification"), "bert": ("BertForPreTraining", "BERT, masked words and next sentences"),
         "marian": ("MarianMTModel", "Marian, translation"), "marian_pad": ("MarianMTModel", "Marian, texts begin with padding")}


def groups_of(model, stored, decays, weight_decay):
    """Parameters by whether heed lets them decay. Names inside of transformers change with its version, so they are known by what they hold."""
    groups = {True: [], False: []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not name.endswith("embed_positions.weight"):  # sines, which take no gradient
            alike = {decays[other] for other, tensor in stored.items() if other in decays and torch.equal(tensor, parameter)}
            if len(alike) != 1:
                sys.exit(f"interop: {name} is like parameters of heed with {len(alike)} kinds of decay, expected one")
            groups[alike.pop()].append(parameter)
    learned = sum(parameter.numel() for group in groups.values() for parameter in group)
    expected = sum(stored[name].numel() for name in decays)
    if learned != expected:
        sys.exit(f"interop: PyTorch learns {learned} numbers, heed {expected}")
    return [{"params": groups[True], "weight_decay": weight_decay}, {"params": groups[False], "weight_decay": 0.0}]


def rate_at(step, steps, rate, warmup):
    if step < warmup:
        return rate * (step + 1) / warmup
    return rate * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def losses_of(folder, architecture, told):
    """What PyTorch's losses are, step by step."""
    model = getattr(transformers, architecture).from_pretrained(folder / "model", attn_implementation="eager").train()
    if model.config.is_encoder_decoder and model.config.decoder_start_token_id == model.config.pad_token_id:
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                module.padding_idx = None
    steps = [{} for _ in told["losses"]]
    for name, tensor in load_file(folder / "batches.safetensors").items():
        step, name = name.split(".")
        steps[int(step)][name] = tensor
    groups = groups_of(model, load_file(folder / "model" / "model.safetensors"), told["decays"], told["weight_decay"])
    optimizer = torch.optim.AdamW(groups, betas=told["betas"], eps=1e-8)
    losses = []
    for step, batch in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, len(steps), told["rate"], told["warmup"])
        optimizer.zero_grad()
        out = model(**batch)
        loss = out.loss
        if told["label_smoothing"] > 0:
            logits = out.logits.flatten(0, -2)
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"].flatten(), label_smoothing=told["label_smoothing"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), told["clip"])
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(program, kind, limit):
    architecture, name = KINDS[kind]
    with tempfile.TemporaryDirectory() as box:
        folder = Path(box)
        subprocess.run([program, kind, folder], check=True)
        told = json.loads((folder / "learned.json").read_text())
        theirs = losses_of(folder, architecture, told)
    ours = told["losses"]
    apart = [abs(a - b) / abs(b) for a, b in zip(ours, theirs)]
    largest = max(apart)
    good = largest <= limit
    print(f"{name:40} {ours[0]:8.4f} {ours[-1]:8.4f} {theirs[-1]:8.4f}  {largest:.1e} in step {apart.index(largest) + 1}{'' if good else '  DIFFERS'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed_interop_training")
    parser.add_argument("--limit", type=float, default=1e-3, help="the largest difference of a loss, relative to itself")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the models are small: threads would wait for each other
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"{'loss over 100 steps':40} {'first':>8} {'last':>8} {'PyTorch':>8}  largest relative difference", flush=True)
    sys.exit(0 if all([compare(arguments.program, kind, arguments.limit) for kind in KINDS]) else 1)


main()
