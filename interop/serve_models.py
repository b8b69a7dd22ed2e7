"""Models for measuring speed: the shapes of all-MiniLM-L6-v2 and GPT-2, random weights, and tokenizers of made-up words. GPT-2 is written for
heed (safetensors) and for llama.cpp (GGUF), with the same weights in f32."""
import json

import gguf
import numpy as np
from safetensors.numpy import save_file

WORDS = "the a cat dog river market engine sleeps runs falls sharply slowly under over bank music of in and with small old green rate".split()


def random_weights(shapes, seed):
    """Small normal numbers; ones for the scales of norms and zeros for biases."""
    chance = np.random.default_rng(seed)
    out = {}
    for name, shape in shapes.items():
        scale = name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight", "LayerNorm.weight"))
        plain = np.ones if scale else np.zeros
        out[name] = plain(shape, np.float32) if scale or name.endswith("bias") else chance.normal(0, 0.02, shape).astype(np.float32)
    return out


def write_json(path, value):
    path.write_text(json.dumps(value))


def write_minilm(folder):
    D, wide, layers, words = 384, 1536, 6, 30522
    shapes = {"embeddings.word_embeddings.weight": (words, D), "embeddings.position_embeddings.weight": (512, D),
              "embeddings.token_type_embeddings.weight": (2, D), "embeddings.LayerNorm.weight": (D,), "embeddings.LayerNorm.bias": (D,)}
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        for name, (out, into) in {"attention.self.query": (D, D), "attention.self.key": (D, D), "attention.self.value": (D, D),
                                  "attention.output.dense": (D, D), "intermediate.dense": (wide, D), "output.dense": (D, wide)}.items():
            shapes |= {f"{at}{name}.weight": (out, into), f"{at}{name}.bias": (out,)}
        for name in ["attention.output.LayerNorm", "output.LayerNorm"]:
            shapes |= {f"{at}{name}.weight": (D,), f"{at}{name}.bias": (D,)}
    shapes |= {"pooler.dense.weight": (D, D), "pooler.dense.bias": (D,)}
    folder.mkdir(parents=True)
    save_file(random_weights(shapes, 1), folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": D, "intermediate_size": wide, "num_hidden_layers": layers,
        "num_attention_heads": 12, "vocab_size": words, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12, "pad_token_id": 0})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: i for i, word in enumerate(special + WORDS)}
    added = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, word in enumerate(special)]
    template = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    write_json(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "post_processor": {"type": "TemplateProcessing", "single": template, "pair": template + [{"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {word: {"id": word, "ids": [vocabulary[word]], "tokens": [word]} for word in ["[CLS]", "[SEP]"]}},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": vocabulary}})
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512} | names)


def byte_letters():
    """The letter that byte-level BPE shows for each byte."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(each) for each in kept] + [chr(256 + i) for i in range(256 - len(kept))]


def write_gpt2(folder, file):
    D, layers, words, positions = 768, 12, 50257, 1024
    shapes = {"wte.weight": (words, D), "wpe.weight": (positions, D), "ln_f.weight": (D,), "ln_f.bias": (D,)}
    for layer in range(layers):
        for name, (into, out) in {"attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D), "mlp.c_fc": (D, 4 * D), "mlp.c_proj": (4 * D, D)}.items():
            shapes |= {f"h.{layer}.{name}.weight": (into, out), f"h.{layer}.{name}.bias": (out,)}
        for name in ["ln_1", "ln_2"]:
            shapes |= {f"h.{layer}.{name}.weight": (D,), f"h.{layer}.{name}.bias": (D,)}
    weights = random_weights(shapes, 2)
    folder.mkdir(parents=True)
    save_file({f"transformer.{name}": value for name, value in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": D, "n_layer": layers, "n_head": 12, "n_positions": positions,
        "vocab_size": words, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5})
    letters = byte_letters()
    tokens = letters + [letters[188 + 32] + "w"]  # the space is the 33rd byte without a letter of its own
    tokens += [f"{tokens[-1]}{i}" for i in range(words - len(tokens))]
    space, merges = tokens[256][0], [f"{tokens[256][0]} w"]
    assert space == "\u0120", space
    write_json(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}})

    writer = gguf.GGUFWriter(file, "gpt2")
    writer.add_block_count(layers)
    writer.add_context_length(positions)
    writer.add_embedding_length(D)
    writer.add_feed_forward_length(4 * D)
    writer.add_head_count(12)
    writer.add_layer_norm_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * words)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(words - 1)
    writer.add_eos_token_id(words - 1)
    names = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm", "attn.c_attn": "attn_qkv",
             "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for name, value in weights.items():
        module, kind = name.rsplit(".", 1)
        if module.startswith("h."):
            _, layer, part = module.split(".", 2)
            module = f"blk.{layer}.{names[part]}"
        else:
            module = names[module]
        is_linear = value.ndim == 2 and module.startswith("blk.")  # GPT-2 stores (inputs, outputs)
        writer.add_tensor(f"{module}.{kind}", np.ascontiguousarray(value.T) if is_linear else value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
