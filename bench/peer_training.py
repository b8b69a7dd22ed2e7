"""Steps of training for peers.py: the models of training_job.cc as `transformers` builds them, eager or compiled."""

import os
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import transformers  # noqa: E402

WORDS = 8000


def words(texts, tokens):
    return torch.randint(WORDS, (texts, tokens))


def vit_tiny(images):
    config = transformers.ViTConfig(
        image_size=32, patch_size=4, hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768, num_labels=10
    )
    inputs = {"pixel_values": torch.randn(images, 3, 32, 32), "labels": torch.randint(10, (images,))}
    model = transformers.ViTForImageClassification._from_config(config, attn_implementation="sdpa")
    return model, lambda: model(**inputs).loss


def bert_mini(texts, tokens=128, share=0.15):
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    labels = words(texts, tokens).flatten()
    labels[torch.rand(texts * tokens) >= share] = -100
    inputs = {
        "input_ids": words(texts, tokens),
        "token_type_ids": torch.zeros(texts, tokens, dtype=torch.long),
        "labels": labels.view(texts, tokens),
        "next_sentence_label": torch.randint(2, (texts,)),
    }
    model = transformers.BertForPreTraining._from_config(config, attn_implementation="sdpa")
    return model, lambda: model(**inputs).loss


def transformer_small(texts, tokens=24):
    config = transformers.MarianConfig(
        vocab_size=WORDS,
        d_model=256,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=0,
        decoder_start_token_id=0,
    )
    source, labels = words(texts, tokens), words(texts, tokens)
    target = torch.cat((torch.zeros(texts, 1, dtype=torch.long), labels[:, :-1]), 1)
    model = transformers.MarianMTModel._from_config(config, attn_implementation="sdpa")

    def loss():
        logits = model(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, WORDS), labels.view(-1), label_smoothing=0.1)

    return model, loss


MODELS = {"vit_tiny": vit_tiny, "bert_mini": bert_mini, "transformer_small": transformer_small}


def build(name, group, sizes):
    model, loss = MODELS[name](*sizes)
    model.train()
    if group == "compiled":
        loss = torch.compile(loss)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

    def call():
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return call


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def memory(name, threads):
    """As memory.cc: the most that steps hold beyond what the process had before there was a model. What it takes to import the
    libraries does not count, nor does what the compiler takes while it compiles."""
    torch.set_num_threads(threads)
    model, group, sizes = name.split("/")[0], name.split("/")[2], tuple(int(size) for size in name.split("/")[3].split("x"))
    if group == "compiled":
        x = torch.ones(8, requires_grad=True)
        torch.compile(lambda y: (y * y).sum())(x).backward()
    for kind in ("ViTForImageClassification", "BertForPreTraining", "MarianMTModel"):
        getattr(transformers, kind)
    before = status("VmRSS")
    call = build(model, group, sizes)
    for _ in range(2):
        call()
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the peak begins anew
    for _ in range(3):
        call()
    return status("VmHWM") - before


if __name__ == "__main__":
    print(memory(sys.argv[1], int(sys.argv[2])))
