"""Loads folders that heed writes in `transformers`: every fixture and random models of every architecture, converted to f32 in one file and in
shards, must load there without a warning, and their outputs must equal those of `transformers` for the original; heed's outputs too.

Exits with 1 if a name is missing or unused, there is a warning, or an output differs by more than --tolerance of its largest value."""
import argparse
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py has a package's name

import torch
import transformers as t
from safetensors.torch import load_file, save_file


def vision(rng):
    patch, heads = rng.choice([2, 3, 4]), rng.choice([1, 2, 5])
    return dict(hidden_size=heads * rng.choice([6, 8]), num_hidden_layers=rng.randrange(1, 4), num_attention_heads=heads, patch_size=patch,
                intermediate_size=rng.randrange(11, 60), image_size=patch * rng.randrange(2, 6), num_labels=rng.randrange(2, 9),
                hidden_act=rng.choice(["gelu", "relu", "gelu_new"]), qkv_bias=rng.choice([True, False]))


def dinov2(rng):
    config = vision(rng) | dict(mlp_ratio=rng.choice([1, 2, 4]), use_swiglu_ffn=rng.choice([True, False]), layerscale_value=rng.choice([1.0, 0.1]))
    del config["intermediate_size"]
    return config


def registers(rng):
    return dinov2(rng) | dict(num_register_tokens=rng.randrange(1, 5))


def bert(rng):
    heads = rng.choice([1, 2, 5])
    return dict(vocab_size=rng.randrange(40, 90), hidden_size=heads * rng.choice([6, 8]), num_hidden_layers=rng.randrange(1, 4),
                num_attention_heads=heads, intermediate_size=rng.randrange(11, 60), max_position_embeddings=rng.randrange(12, 30),
                num_labels=rng.randrange(2, 6))


def roberta(rng):
    return bert(rng) | dict(pad_token_id=rng.choice([0, 1, 2]), type_vocab_size=rng.choice([1, 2]), tie_word_embeddings=rng.choice([True, False]),
                            hidden_act=rng.choice(["gelu", "relu", "silu"]))


def answers(config):
    """Of models with two logits for every token: the start and the end of an answer."""
    return lambda rng: {key: value for key, value in config(rng).items() if key != "num_labels"}


def modernbert(rng):
    heads = rng.choice([1, 2, 5])
    return dict(vocab_size=rng.randrange(40, 90), hidden_size=heads * rng.choice([6, 8]), num_hidden_layers=rng.randrange(1, 5),
                num_attention_heads=heads, intermediate_size=rng.randrange(11, 60), max_position_embeddings=rng.randrange(12, 30),
                num_labels=rng.randrange(2, 6), local_attention=rng.choice([6, 7, 9, 12]), global_attn_every_n_layers=rng.choice([2, 3]),
                pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, classifier_pooling=rng.choice(["cls", "mean"]),
                hidden_activation=rng.choice(["gelu", "silu"]), **{key: rng.choice([True, False]) for key in
                ("norm_bias", "attention_bias", "mlp_bias", "decoder_bias", "classifier_bias", "tie_word_embeddings")})


def distilbert(rng):
    heads = rng.choice([1, 2, 5])
    return dict(vocab_size=rng.randrange(40, 90), dim=heads * rng.choice([6, 8]), n_layers=rng.randrange(1, 4), n_heads=heads,
                hidden_dim=rng.randrange(11, 60), max_position_embeddings=rng.randrange(12, 30), num_labels=rng.randrange(2, 6))


def gpt2(rng):
    heads = rng.choice([1, 2, 5])
    return dict(vocab_size=rng.randrange(40, 90), n_embd=heads * rng.choice([6, 8]), n_layer=rng.randrange(1, 4), n_head=heads,
                n_positions=rng.randrange(12, 30), bos_token_id=0, eos_token_id=0)


def classified(config):
    """Decoders classify by the last token that is not padding."""
    return lambda rng: config(rng) | dict(pad_token_id=0, num_labels=rng.randrange(2, 6))


def t5(rng):
    heads = rng.choice([1, 2, 5])
    return dict(vocab_size=rng.randrange(40, 90), d_model=rng.choice([12, 20]), d_kv=rng.choice([6, 8]), d_ff=rng.randrange(11, 60),
                num_layers=rng.randrange(1, 4), num_decoder_layers=rng.randrange(1, 4), num_heads=heads, decoder_start_token_id=0,
                relative_attention_num_buckets=rng.choice([4, 8, 32]), relative_attention_max_distance=rng.choice([20, 128]),
                feed_forward_proj=rng.choice(["relu", "gated-gelu", "gated-silu"]), tie_word_embeddings=rng.choice([True, False]))


def clip(rng):
    patch, heads = rng.choice([2, 3, 4]), rng.choice([1, 2, 5])
    act = dict(hidden_act=rng.choice(["quick_gelu", "gelu"]))
    text = dict(vocab_size=rng.randrange(40, 90), hidden_size=heads * 8, num_hidden_layers=rng.randrange(1, 4), num_attention_heads=heads,
                intermediate_size=rng.randrange(11, 60), max_position_embeddings=rng.randrange(12, 30), bos_token_id=0,
                eos_token_id=rng.choice([2, 39]), pad_token_id=1)
    image = dict(hidden_size=heads * 6, num_hidden_layers=rng.randrange(1, 4), num_attention_heads=heads, patch_size=patch,
                 intermediate_size=rng.randrange(11, 60), image_size=patch * rng.randrange(2, 6) + rng.choice([0, 1]))
    return dict(text_config=text | act, vision_config=image | act, projection_dim=rng.randrange(8, 20))


def marian(rng):
    heads = rng.choice([1, 2, 5])
    words = rng.randrange(40, 90)
    return dict(vocab_size=words, d_model=heads * rng.choice([6, 8]), encoder_layers=rng.randrange(1, 3), decoder_layers=rng.randrange(1, 3),
                encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=rng.randrange(11, 60),
                decoder_ffn_dim=rng.randrange(11, 60), max_position_embeddings=rng.randrange(12, 30), pad_token_id=words - 1, eos_token_id=0,
                decoder_start_token_id=words - 1, forced_eos_token_id=0, scale_embedding=rng.choice([True, False]))


def llama(rng):
    heads, groups = rng.choice([(2, 1), (4, 2), (3, 3)])
    return dict(vocab_size=rng.randrange(40, 90), hidden_size=heads * rng.choice([6, 8]), num_hidden_layers=rng.randrange(1, 4),
                num_attention_heads=heads, num_key_value_heads=groups, intermediate_size=rng.randrange(11, 60),
                max_position_embeddings=rng.randrange(12, 30), bos_token_id=1, eos_token_id=2, tie_word_embeddings=rng.choice([True, False]))


def mistral(rng):
    return llama(rng) | dict(sliding_window=rng.choice([4, 6, None]), head_dim=rng.choice([6, 10]))


def qwen2(rng):
    return llama(rng) | dict(use_sliding_window=rng.choice([True, False]), sliding_window=rng.choice([4, 6]), max_window_layers=rng.randrange(0, 3))


ARCHITECTURES = {
    "Dinov2Model": dinov2, "Dinov2ForImageClassification": dinov2, "Dinov2WithRegistersModel": registers,
    "Dinov2WithRegistersForImageClassification": registers, "ViTForImageClassification": vision, "ViTModel": vision, "DeiTForImageClassification": vision,
    "DeiTForImageClassificationWithTeacher": vision, "DeiTModel": vision, "BertModel": bert, "BertForPreTraining": bert, "BertForMaskedLM": bert,
    "BertForNextSentencePrediction": bert, "BertForSequenceClassification": bert, "BertForTokenClassification": bert, "DistilBertModel": distilbert,
    "DistilBertForSequenceClassification": distilbert, "GPT2LMHeadModel": gpt2, "MarianMTModel": marian, "LlamaForCausalLM": llama,
    "BertForQuestionAnswering": answers(bert), "RobertaModel": roberta, "RobertaForMaskedLM": roberta, "RobertaForSequenceClassification": roberta,
    "RobertaForTokenClassification": roberta, "RobertaForQuestionAnswering": answers(roberta), "XLMRobertaForMaskedLM": roberta,
    "DistilBertForMaskedLM": distilbert, "DistilBertForTokenClassification": distilbert, "DistilBertForQuestionAnswering": answers(distilbert),
    "GPT2ForSequenceClassification": classified(gpt2), "LlamaForSequenceClassification": classified(llama), "MistralForCausalLM": mistral,
    "MistralForSequenceClassification": classified(mistral), "Qwen2ForCausalLM": qwen2, "Qwen2ForSequenceClassification": classified(qwen2),
    "ModernBertModel": modernbert, "ModernBertForMaskedLM": modernbert, "ModernBertForSequenceClassification": modernbert,
    "ModernBertForTokenClassification": modernbert, "T5ForConditionalGeneration": t5, "T5EncoderModel": t5, "CLIPModel": clip,
}


def loaded(folder):
    """The model, and what did not fit."""
    kind = getattr(t, json.loads((folder / "config.json").read_text())["architectures"][0])
    model, info = kind.from_pretrained(folder, output_loading_info=True, attn_implementation="eager", dtype=torch.float32)
    return model.eval(), [f"{key}: {sorted(map(str, names))[:3]}" for key, names in info.items() if names]


def outputs_of(model, inputs):
    with torch.no_grad():
        outputs = model(**inputs)
    return {f"out.{name}": value for name, value in outputs.items() if isinstance(value, torch.Tensor)}


def make_random(name, rng, folder):
    """A folder as transformers writes it, with weights that all matter, and inputs."""
    kind = getattr(t, name)
    config = kind.config_class(**ARCHITECTURES[name](rng))
    model = kind(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * (0.3 if p.dim() < 2 else 1.2 / p.shape[-1] ** 0.5))
        for key, p in model.named_parameters():
            if key.endswith("Attention.q.weight"):  # T5 does not scale scores: its queries are small instead
                p.mul_(config.d_kv**-0.5)
    inputs = {}
    if name.startswith(("ViT", "DeiT", "Dinov2", "CLIP")):
        size = getattr(config, "vision_config", config).image_size
        other = rng.randrange(config.patch_size, 2 * size) if name.startswith("Dinov2") else size  # which takes images of any size
        inputs["pixel_values"] = torch.randn(2, 3, size, other)
    if not name.startswith(("ViT", "DeiT", "Dinov2")):
        text = config.get_text_config()
        inputs |= {"input_ids": torch.randint(3, text.vocab_size - 1, (3, 9)), "attention_mask": torch.ones(3, 9, dtype=torch.long)}
        inputs["attention_mask"][1, 6:] = 0
        if text.pad_token_id is not None:
            inputs["input_ids"][1, 6:] = text.pad_token_id
        if name.startswith("CLIP"):
            inputs["input_ids"][[0, 1, 2], [8, 5, 4]] = text.vocab_size - 1 if text.eos_token_id == 2 else text.eos_token_id
        if name in ("MarianMTModel", "T5ForConditionalGeneration"):
            inputs["decoder_input_ids"] = torch.randint(3, text.vocab_size - 1, (3, 5))
    model.save_pretrained(folder)
    save_file({f"in.{key}": value for key, value in inputs.items()}, folder / "io.safetensors")


class Heard(logging.Handler):
    """What transformers warns about."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage().split("\n")[0])


def heard_loading(folder, heard):
    """The model, and all messages of transformers while it loads."""
    heard.lines.clear()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model, complaints = loaded(folder)
    return model, complaints + heard.lines + [str(each.message) for each in given]


def against_transformers(folder, inputs, expected, heard, known):
    """The largest difference relative to the largest value, and complaints other than those about the original."""
    model, complaints = heard_loading(folder, heard)
    complaints = [each for each in complaints if each not in known]
    outputs = outputs_of(model, inputs)
    return max(float((outputs[name] - value).abs().max() / value.abs().max().clamp(min=1e-30)) for name, value in expected.items()), complaints


def against_heed(program, folder, io, tolerance):
    done = subprocess.run([program, "parity", folder, "--io", io, "--tolerance", str(tolerance)], capture_output=True, text=True)
    relative = [float(found) for found in re.findall(r"\d\.\de[+-]\d\d +(\d\.\de[+-]\d\d) ", done.stdout)]
    return max(relative, default=float("nan")), [] if done.returncode == 0 else [(done.stderr or done.stdout).strip().split("\n")[-1]]


def convert(program, source, target, *flags):
    done = subprocess.run([program, "convert", source, target, "--dtype", "f32", *flags], capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"convert: {done.stderr.strip()}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/heed")
    parser.add_argument("--fixtures", type=Path, default=Path("tests/fixtures"))
    parser.add_argument("--random", type=int, default=2, help="so many random models of each architecture")
    parser.add_argument("--only", nargs="+", default=list(ARCHITECTURES), help="random models of these architectures, and no fixtures")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    torch.manual_seed(arguments.seed)
    t.utils.logging.disable_progress_bar()
    heard = Heard()
    t.utils.logging.get_logger("transformers").addHandler(heard)
    failed = 0
    print(f"{'folder':24} {'architecture':38} {'one file':>9} {'shards':>9} {'of heed':>9}  largest difference, relative to the largest value")
    with tempfile.TemporaryDirectory() as box:
        fixtures = [] if len(arguments.only) < len(ARCHITECTURES) else arguments.fixtures.glob("*/io.safetensors")
        sources = sorted(path.parent for path in fixtures)
        for name in arguments.only:
            for number in range(arguments.random):
                sources.append(Path(box) / f"random-{name}-{number}")
                make_random(name, rng, sources[-1])
        for source in sources:
            whole, shards = Path(box) / f"{source.name}.whole", Path(box) / f"{source.name}.shards"
            complaints = convert(arguments.program, source, whole) + convert(arguments.program, whole, shards, "--shard", "20KB")
            figures = [float("nan")] * 3
            if not complaints:
                inputs = {key[3:]: value for key, value in load_file(source / "io.safetensors").items() if key.startswith("in.")}
                original, known = heard_loading(source, heard)
                expected = outputs_of(original, inputs)
                io = Path(box) / f"{source.name}.safetensors"
                save_file({f"in.{key}": value for key, value in inputs.items()} | {key: value.contiguous().clone() for key, value in expected.items()}, io)
                for at, folder in enumerate((whole, shards)):
                    figures[at], more = against_transformers(folder, inputs, expected, heard, known)
                    figures[2], even_more = against_heed(arguments.program, folder, io, arguments.tolerance)
                    complaints += more + even_more
                if not list(shards.glob("model-*-of-*.safetensors")):
                    complaints.append("no shards were written")
            wrong = bool(complaints) or not all(figure <= arguments.tolerance for figure in figures)
            failed += wrong
            architecture = json.loads((source / "config.json").read_text())["architectures"][0]
            label = "random" if source.name.startswith("random-") else source.name
            print(f"{label:24} {architecture:38} " + " ".join(f"{figure:9.1e}" for figure in figures) + ("  DIFFERS" if wrong else ""), flush=True)
            for complaint in complaints:
                print(f"    {complaint[:200]}")
    print(f"{len(sources)} folders, {failed} differ")
    sys.exit(1 if failed else 0)


main()
