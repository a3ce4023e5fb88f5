"""Loads a trained language model of bytes and computes its logits: python3 load_run.py LIBCOSFORMER RUN PROMPT

Attention: cosformer, cosformer_plus or linear, as their names imply; norms come first. The weights: docs/language.md.
"""
import json
import sys
import tomllib

import torch
from torch.nn.functional import conv1d, embedding, gelu, layer_norm, linear, relu, silu


def read_run(run):
    """The weights by name, and the settings, from RUN/best.safetensors."""
    with open(run + "/best.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    settings = tomllib.loads(header.pop("__metadata__")["cosformer.language_model"])
    tensor = lambda entry: torch.frombuffer(data[slice(*entry["data_offsets"])], dtype=torch.float32)
    return {name: tensor(entry).view(entry["shape"]) for name, entry in header.items()}, settings


def attend(x, w, at, settings):
    model, options = settings["model"], settings["attention"]
    qkv = linear(x, w[at + "qkv_proj.weight"], w.get(at + "qkv_proj.bias"))
    if at + "convolution.weight" in w:  # [width, channels], causal
        kernel = w[at + "convolution.weight"].t().unsqueeze(1)
        qkv = conv1d(qkv.mT, kernel, padding=kernel.shape[2] - 1, groups=kernel.shape[0]).mT[:, :x.shape[1]]
    q, k, v = qkv.contiguous().view(1, x.shape[1], 3, model["heads"], -1).unbind(2)
    decay = -w[at + "mechanism.log_rate"].exp() if at + "mechanism.log_rate" in w else None
    out = torch.ops.cosformer.attention(
        q, k, v, causal=True, horizon=float(options["horizon"] or settings["input"]["max_length"]), log_decay=decay,
        feature_map=options["feature_map"], reweight=options["reweight"], eps=options["eps"]).flatten(2)
    if at + "gate_proj.weight" in w:
        out = out * linear(x, w[at + "gate_proj.weight"], w.get(at + "gate_proj.bias")).sigmoid()
    return linear(out, w[at + "out_proj.weight"], w.get(at + "out_proj.bias"))


def logits(run, prompt):
    """Of the byte that follows each byte of the prompt; the first is that of a text's first byte."""
    w, settings = read_run(run)
    norm = lambda x, name: (
        layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-6) if name + ".bias" in w else
        x * (x.square().mean(-1, True) + 1e-6).rsqrt() * w[name + ".weight"])
    gated = lambda h: silu(h.chunk(2, -1)[0]) * h.chunk(2, -1)[1]
    activation = {"gelu": gelu, "relu": relu, "gated": gated}[settings["model"]["activation"]]
    x = embedding(torch.tensor([[256, *prompt]]), w["token_embedding.weight"])  # 256 stands before every text
    for layer in range(settings["model"]["layers"]):
        at = f"block_{layer}."
        x = x + attend(norm(x, at + "attention_norm"), w, at + "attention.", settings)
        inner = activation(linear(norm(x, at + "feed_forward_norm"), w[at + "feed_forward.in_proj.weight"],
                                  w[at + "feed_forward.in_proj.bias"]))
        x = x + linear(inner, w[at + "feed_forward.out_proj.weight"], w[at + "feed_forward.out_proj.bias"])
    return linear(norm(x, "norm"), w.get("output.weight", w.get("token_embedding.weight")))[0]


if __name__ == "__main__":
    torch.ops.load_library(sys.argv[1])
    likely = logits(sys.argv[2], sys.argv[3].encode())[-1].softmax(-1).topk(5)
    print(*(f"{p:.3f}  {chr(i)!r}" for p, i in zip(likely.values, likely.indices)), sep="\n")
