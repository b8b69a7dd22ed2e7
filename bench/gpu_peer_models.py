"""Training steps and inference for gpu_peers.py, as in gpu_models.cc: bf16 by autocast with f32 weights to train, bf16 weights to infer."""

import os

import torch
import torch.nn.functional as F

import gpu_peer_networks as networks
from gpu_peer_ways import Way, compiled, sizes_text, targets

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# image, patch, width, layers, heads, feed-forward, classes
VIT_CIFAR, VIT_B16, T6 = (32, 4, 192, 12, 3, 768, 10), (224, 16, 768, 12, 12, 3072, 1000), (32, 2, 400, 6, 9, 512, 10)
GPT2 = (768, 12, 12, 3072, 50257)


def in_tiny(sizes, heads=2):
    image, patch, *_, classes = sizes
    return (min(image, 32), patch, 32, 1, heads, 64, classes)


def training_call(model, loss, device):
    """Forward, backward, clipping, AdamW."""
    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01, fused=True)

    def call():
        with torch.autocast(device, dtype=torch.bfloat16):
            value = loss()
        value.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return call


def training_ways(build, device):
    """build: () -> (model, function that computes the loss)"""

    def make(mode=None):
        def made():
            model, loss = build()
            return training_call(model, compiled(loss, mode) if mode else loss, device)

        return made

    return [
        Way("eager", make()),
        Way("graphs", make("reduce-overhead"), rank=1, graphs=True),
        Way("autotuned", make("max-autotune-no-cudagraphs"), rank=2),
    ]


def image_training(name, network, sizes, images, device):
    def build():
        model = network(*sizes).to(device).train()
        pixels, labels = torch.randn(images, 3, sizes[0], sizes[0], device=device), targets((images,), sizes[-1], device)
        return model, lambda: F.cross_entropy(model(pixels).float(), labels)

    return {"name": f"{name}/train/{images}", "ways": lambda: training_ways(build, device), "items": images}


def masked_training(tiny, device):
    """The head computes the tokens with a label only, as heed's does: `transformers` would compute all of them."""
    texts, tokens, words = (2, 8, 100) if tiny else (64, 128, 30522)

    def build():
        import transformers

        small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64} if tiny else {}
        config = transformers.BertConfig(vocab_size=words, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **small)
        model = transformers.BertForMaskedLM._from_config(config, attn_implementation="sdpa").to(device).train()
        ids = targets((texts, tokens), words, device)
        chosen = (torch.rand(texts * tokens, device=device) < 0.15).nonzero().flatten()
        labels = ids.flatten()[chosen]

        def loss():
            states = model.bert(ids, return_dict=False)[0].flatten(0, 1)[chosen]
            return F.cross_entropy(model.cls(states).float(), labels)

        return model, loss

    return {"name": f"bert-base/train/{sizes_text((texts, tokens))}", "ways": lambda: training_ways(build, device), "items": texts}


def inference_line(name, network, sizes, images, device):
    def make(mode=None):
        def made():
            model = network(*sizes).to(device, torch.bfloat16).eval()
            pixels = torch.randn(images, 3, sizes[0], sizes[0], device=device, dtype=torch.bfloat16)
            run = compiled(model, mode) if mode else model

            def call():
                with torch.no_grad():
                    run(pixels)

            return call

        return made

    def ways():
        return [
            Way("eager", make()),
            Way("graphs", make("reduce-overhead"), rank=1, graphs=True),
            Way("autotuned graphs", make("max-autotune"), rank=2, graphs=True),
        ]

    return {"name": f"{name}/forward/{images}", "ways": ways, "items": images}


def decoding_line(tiny, device):
    prompt, tokens = (3, 2) if tiny else (16, 128)
    width, layers, heads, wide, words = (32, 1, 2, 64, 100) if tiny else GPT2

    def make(mode=None):
        def made():
            model = networks.Gpt2(width, layers, heads, wide, words, prompt + tokens).to(device, torch.bfloat16).eval()
            first, places = targets((1, prompt), words, device), torch.arange(prompt + tokens, device=device)
            step = compiled(model, mode) if mode else model

            def call():
                with torch.no_grad():
                    token = model(first, places[:prompt])
                    for i in range(prompt, prompt + tokens - 1):
                        token = step(token.clone(), places[i : i + 1])  # a graph's output is overwritten by its next run

            return call

        return made

    def by_transformers():
        import transformers

        small = {"n_embd": width, "n_layer": layers, "n_head": heads, "n_inner": wide}
        config = transformers.GPT2Config(vocab_size=words, bos_token_id=0, eos_token_id=0, **small)
        model = transformers.GPT2LMHeadModel(config).to(device, torch.bfloat16).eval()
        first = targets((1, prompt), words, device)
        mask = torch.ones_like(first)
        options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "pad_token_id": 0}
        return lambda: model.generate(first, attention_mask=mask, cache_implementation="static", **options)

    def ways():
        return [
            Way("eager", make()),
            Way("graphs", make("reduce-overhead"), rank=1, graphs=True),
            Way("autotuned graphs", make("max-autotune"), rank=2, graphs=True),
            Way("transformers, static cache", by_transformers, rank=2, graphs=True),
        ]

    weights = layers * (4 * width * width + 2 * width * wide) + width * words
    name = f"gpt2/decode/{sizes_text((1, prompt, tokens))}"
    return {"name": name, "ways": ways, "bytes": tokens * 2 * weights, "items": tokens}


def lines(tiny, device):
    cifar, b16, t6 = (in_tiny(VIT_CIFAR), in_tiny(VIT_B16), in_tiny(T6, 9)) if tiny else (VIT_CIFAR, VIT_B16, T6)
    out = []
    for name, network, sizes, batches in (
        ("vit-cifar", networks.VisionTransformer, cifar, (128, 1024)),
        ("vit-b16", networks.VisionTransformer, b16, (128,)),
        ("t6", networks.GaussianTransformer, t6, (100, 1000)),
    ):
        out += [image_training(name, network, sizes, images, device) for images in ((2,) if tiny else batches)]
    out.append(masked_training(tiny, device))
    out += [inference_line("vit-b16", networks.VisionTransformer, b16, images, device) for images in ((1, 2) if tiny else (1, 64))]
    out.append(decoding_line(tiny, device))
    return out
