"""Whole models for peers.py: as `transformers` builds them for PyTorch, and the same exported for ONNX Runtime."""

import io
import math
import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


class Plain(torch.nn.Module):
    """A model with one tensor as input and one as output, as the exporter requires."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x, return_dict=False)[0]


class Decoder(torch.nn.Module):
    """GPT-2 with the keys and values of earlier tokens as an input and an output: `transformers` keeps them in objects that
    cannot be exported. past: (layers, 2, heads, length, width)"""

    def __init__(self, model):
        super().__init__()
        self.model, self.heads = model.transformer, model.config.n_head

    def forward(self, token, place, past):
        x = self.model.wte(token) + self.model.wpe(place)
        present = []
        for layer, block in enumerate(self.model.h):
            y = block.attn.c_attn(block.ln_1(x))
            q, k, v = (part.view(1, 1, self.heads, -1).transpose(1, 2) for part in y.split(y.shape[-1] // 3, -1))
            k, v = torch.cat((past[layer, 0][None], k), 2), torch.cat((past[layer, 1][None], v), 2)
            present.append(torch.stack((k[0], v[0])))
            weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1)
            x = x + block.attn.c_proj((weights @ v).transpose(1, 2).reshape(x.shape))
            x = x + block.mlp(block.ln_2(x))
        return self.model.ln_f(x) @ self.model.wte.weight.T, torch.stack(present)


def vit_b16(images):
    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))
    return model.eval(), torch.randn(images, 3, 224, 224)


def bert_base(texts, tokens):
    model = transformers.BertForSequenceClassification(transformers.BertConfig())
    return model.eval(), torch.randint(1000, 30000, (texts, tokens))


def session(module, inputs, names, dynamic=None):
    box = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(module, inputs, box, input_names=names, dynamic_axes=dynamic, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(box.getvalue(), options, providers=["CPUExecutionProvider"])


def forward_call(model, x, onnx):
    if onnx:
        ready, inputs = session(Plain(model), (x,), ["x"]), {"x": x.numpy()}
        return lambda: ready.run(None, inputs)

    def call():
        with torch.inference_mode():
            return model(x)

    return call


def decode_call(tokens, onnx):
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    if onnx:
        past = numpy.zeros((12, 2, 12, 0, 64), numpy.float32)
        example = (torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, dtype=torch.long), torch.zeros(12, 2, 12, 3, 64))
        ready = session(Decoder(model), example, ["token", "place", "past"], {"past": {3: "length"}})

    def onnx_call():
        token, keep = numpy.zeros((1, 1), numpy.int64), past
        for place in range(tokens):
            logits, keep = ready.run(None, {"token": token, "place": numpy.array([[place]]), "past": keep})
            token = logits[:, -1:].argmax(-1)

    def call():
        token, keep = torch.zeros(1, 1, dtype=torch.long), transformers.DynamicCache()
        with torch.inference_mode():
            for _ in range(tokens):
                token = model(token, past_key_values=keep, use_cache=True).logits[:, -1:].argmax(-1)

    return onnx_call if onnx else call


def build(name, group, sizes):
    onnx = group == "onnx"
    if name == "gpt2":
        return decode_call(sizes[1], onnx)
    return forward_call(*{"vit_b16": vit_b16, "bert_base": bert_base}[name](*sizes), onnx)
