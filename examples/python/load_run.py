"""Loads a trained language model of bytes and computes its logits: python3 load_run.py LIBCOSFORMER RUN PROMPT

For every model of bytes that `cosformer generate` can use: attention cosformer, cosformer_plus, linear, performer and
softmax with their options, one of them in all layers or several in a pattern of layers, whatever the positions and
norms. What it does not compute it refuses by name. What each
weight is: docs/language.md.
"""
import hashlib
import json
import math
import struct
import sys
import tomllib

import torch
from torch.nn.functional import conv1d, elu, embedding, gelu, layer_norm, leaky_relu, linear, relu, silu, softplus

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
FEATURE_MAPS = {"relu": relu, "elu1": lambda x: elu(x) + 1, "leaky_relu": leaky_relu, "silu": silu,
                "identity": lambda x: x}
MECHANISMS = ("cosformer", "cosformer_plus", "linear", "performer", "softmax")
# Of a mechanism in a pattern of layers: what a run does not write, since no preset changes it and nobody may set it.
PLAIN = {"horizon": 0, "feature_map": "relu", "reweight": True, "normalizer": "sum", "eps": 1e-6, "head_norm": False}
TEXTS = ("feature_map", "normalizer", "variant")  # options that are words; others are written as in JSON
BYTES = hashlib.sha256(struct.pack("<IIQ", 1, 1, 0)).hexdigest()  # the hash of the tokenizer that makes bytes tokens


def read_run(run):
    """The weights by name, and the settings, from RUN/best.safetensors."""
    with open(run + "/best.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    metadata = header.pop("__metadata__", {})
    if "cosformer.language_model" not in metadata:
        raise NotImplementedError(f"{run} is no language model, which alone load_run.py computes")
    settings = tomllib.loads(metadata["cosformer.language_model"])
    require_known(run, settings)
    tensor = lambda entry: torch.frombuffer(data[slice(*entry["data_offsets"])], dtype=DTYPES[entry["dtype"]])
    return {name: tensor(entry).view(entry["shape"]) for name, entry in header.items()}, settings


def layer_settings(settings, layer):
    """The settings with model.attention and attention.* as this layer has them, which a pattern of layers may say."""
    model = settings["model"]
    pattern = model.get("pattern") or ["same"]
    name = pattern[layer % len(pattern)]
    if name in ("same", model["attention"]):
        return settings
    options = dict(PLAIN)
    for text in model.get("pattern_options", []):  # "softmax.convolution=4"
        key, value = text.split("=", 1)
        mechanism, option = key.split(".", 1)
        if mechanism == name:
            options[option] = value if option in TEXTS else json.loads(value)
    return settings | {"model": model | {"attention": name}, "attention": options}


def require_known(run, settings):
    model, language = settings["model"], settings["language"]
    layers = [layer_settings(settings, layer) for layer in range(model["layers"])]
    names = [layer["model"]["attention"] for layer in layers]
    positions, tokenizer = model["positions"], settings.get("tokenizer", {}).get("hash")
    unknown = {
        **{f"attention {name}": name not in MECHANISMS for name in names},
        "attention.feature_map softmax": any(one["attention"]["feature_map"] not in FEATURE_MAPS for one in layers),
        f"{positions} positions": positions not in ("none", "sinusoidal", "learned", "rotary"),
        "a tokenizer that is not bytes": tokenizer and tokenizer != BYTES,
        "language.cutoffs": language.get("cutoffs"),
        "a masked model, which is not causal": not model["causal"],
    }
    for what in (what for what, is_so in unknown.items() if is_so):
        raise NotImplementedError(f"{run} has {what}, which load_run.py does not compute")


def angles(time, count):
    """[time, count], in double so that far tokens keep their digits."""
    frequencies = (torch.arange(count).double() * (-math.log(10000) / max(count, 1))).exp()
    return torch.arange(time).double()[:, None] * frequencies


def rotate(x):
    turn = angles(x.shape[1], x.shape[3] // 2).unsqueeze(1)
    cosine, sine, (a, b) = turn.cos().to(x.dtype), turn.sin().to(x.dtype), x.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def softmax(q, k, v):
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    scores = (q @ k.mT) / math.sqrt(q.shape[3])
    later = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
    return (scores.masked_fill(later, -math.inf).softmax(-1) @ v).transpose(1, 2)


def performer(q, k, v, w, options):
    def logarithms(x):
        x = x.transpose(1, 2) * x.shape[3] ** -0.25
        return x @ w["projection"].mT - x.square().sum(-1, True) / 2

    count = math.sqrt(w["projection"].shape[1])
    query, key = logarithms(q), logarithms(k)
    query, key = (query - query.amax(-1, True)).exp() / count, (key - key.amax((2, 3), True)).exp() / count
    return torch.ops.cosformer.attention(query.transpose(1, 2), key.transpose(1, 2), v, causal=True,
                                         feature_map="identity", reweight=False, eps=options["eps"])


def cosine(x, q, k, v, w, settings):
    """Attention cosformer, cosformer_plus and linear."""
    options = settings["attention"]
    horizon = float(options["horizon"] or settings["input"]["max_length"])
    decay = -w["log_rate"].clamp_max(10).exp() if "log_rate" in w else None
    divides, theta = options["normalizer"] == "sum" and not options["head_norm"], w.get("theta")
    if "angle" in w:  # a trained one per head
        paper = math.pi / (2 * horizon)
        theta = w["angle"].sigmoid() * paper if divides else w["angle"] * (paper if theta is None else theta)
    common = {"horizon": horizon, "theta": theta, "reweight": options["reweight"], "eps": options["eps"],
              "normalizer": "sum" if divides else "none"}
    if "step_proj.weight" not in w:
        return torch.ops.cosformer.attention(q, k, v, causal=True, log_decay=decay, feature_map=options["feature_map"],
                                             **common)
    # attention.token_decay: each token decides how much is kept of what came before it.
    kept = (softplus(linear(x, w["step_proj.weight"], w["step_proj.bias"])) * decay).clamp_min(-0.9)  # ln, [1, T, H]
    q, k = FEATURE_MAPS[options["feature_map"]](q), FEATURE_MAPS[options["feature_map"]](k)
    state, parts = torch.ops.cosformer.attention_state(q, v), []
    for part in (slice(begin, begin + 64) for begin in range(0, q.shape[1], 64)):
        since = kept[:, part].cumsum(1).exp().unsqueeze(-1)
        out, (kv, z, position) = torch.ops.cosformer.attention_with_state(
            q[:, part] * since, k[:, part] / since, v[:, part], state, feature_map="identity", **common)
        state = [kv * since[:, -1, :, None, None], z * since[:, -1, :, None], position]
        parts.append(out)
    return torch.cat(parts, 1)


def attend(x, w, settings):
    model, options = settings["model"], settings["attention"]
    qkv = linear(x, w["qkv_proj.weight"], w.get("qkv_proj.bias"))
    if "convolution.weight" in w:  # [width, channels], causal
        kernel = w["convolution.weight"].t().unsqueeze(1)
        qkv = conv1d(qkv.mT, kernel, padding=kernel.shape[2] - 1, groups=kernel.shape[0]).mT[:, :x.shape[1]]
    q, k, v = qkv.contiguous().view(1, x.shape[1], 3, model["heads"], -1).unbind(2)
    if model["positions"] == "rotary" and model["attention"] in ("softmax", "performer"):
        q, k = rotate(q), rotate(k)
    own = under(w, "mechanism.")
    if model["attention"] == "softmax":
        out = softmax(q, k, v)
    elif model["attention"] == "performer":
        out = performer(q, k, v, own, options)
    else:
        out = cosine(x, q, k, v, own, settings)
    if "head_norm_weight" in w:
        out = out * (out.square().mean(-1, True) + 1e-6).rsqrt() * w["head_norm_weight"]
    out = out.flatten(2)
    if "gate_proj.weight" in w:
        out = out * linear(x, w["gate_proj.weight"], w.get("gate_proj.bias")).sigmoid()
    return linear(out, w["out_proj.weight"], w.get("out_proj.bias"))


def under(w, prefix):
    return {name[len(prefix):]: tensor for name, tensor in w.items() if name.startswith(prefix)}


def norm(x, w):
    if "bias" in w:
        return layer_norm(x, x.shape[-1:], w["weight"], w["bias"], 1e-6)
    return x * (x.square().mean(-1, True) + 1e-6).rsqrt() * w["weight"]


def feed_forward(x, w, activation):
    inner = linear(x, w["in_proj.weight"], w["in_proj.bias"])
    gated = lambda h: silu(h.chunk(2, -1)[0]) * h.chunk(2, -1)[1]
    return linear({"gelu": gelu, "relu": relu, "gated": gated}[activation](inner), w["out_proj.weight"],
                  w["out_proj.bias"])


def logits(run, prompt):
    """Of the byte that follows each byte of the prompt; the first is that of a text's first byte."""
    w, settings = read_run(run)
    model = settings["model"]
    x = embedding(torch.tensor([[256, *prompt]]), w["token_embedding.weight"])  # 256 stands before every text
    time, width = x.shape[1:]
    if model["positions"] == "learned":
        x = x + w["position_embedding"][:time]
    elif model["positions"] == "sinusoidal":
        turn = angles(time, (width + 1) // 2)
        x = x + torch.cat([turn.sin(), turn.cos()], 1)[:, :width].to(x.dtype)
    for layer in range(model["layers"]):
        own = under(w, f"block_{layer}.")
        attended = lambda x: attend(x, under(own, "attention."), layer_settings(settings, layer))
        fed = lambda x: feed_forward(x, under(own, "feed_forward."), model["activation"])
        norms = under(own, "attention_norm."), under(own, "feed_forward_norm.")
        if model["norm_place"] == "before":
            x = x + attended(norm(x, norms[0]))
            x = x + fed(norm(x, norms[1]))
        else:
            x = norm(x + attended(x), norms[0])
            x = norm(x + fed(x), norms[1])
    return linear(norm(x, under(w, "norm.")), w.get("output.weight", w["token_embedding.weight"]))[0]


if __name__ == "__main__":
    torch.ops.load_library(sys.argv[1])
    try:
        likely = logits(sys.argv[2], sys.argv[3].encode())[-1].softmax(-1).topk(5)
    except NotImplementedError as error:
        sys.exit(f"load_run.py: {error}")
    print(*(f"{p:.3f}  {chr(i)!r}" for p, i in zip(likely.values, likely.indices)), sep="\n")
