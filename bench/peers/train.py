"""Times training steps of this project's classifier as one would write it in torch, on the forms of attention.py.

The model: token embedding and learned positions; blocks of LayerNorm, attention, LayerNorm and a GELU feed-forward part
with residual connections; a last LayerNorm, the mean over tokens, a hidden layer with ReLU and the classes. A step:
cross-entropy, backward, clipping to norm 1, AdamW (no weight decay on vectors). Weights and the batch come from a
safetensors file that `cosformer bench train` writes, so that losses can be compared step by step.

One peer, one shape and one process: memory is by how much the process grew. Prints one JSON object;
`cosformer bench train --peers` runs this and makes the table.
"""
import argparse
import contextlib
import json
import statistics
import struct
import sys
import time

import torch
from torch.nn import functional

import attention

WARM_UPS = 5  # their losses are compared
DTYPES = {"F32": torch.float32, "I32": torch.int32, "I64": torch.int64}


def read_safetensors(path):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            flat = torch.frombuffer(content[begin:end], dtype=DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Attention(torch.nn.Module):
    def __init__(self, width, heads, form):
        super().__init__()
        self.heads, self.form = heads, form
        self.qkv_proj = torch.nn.Linear(width, 3 * width, bias=False)
        self.out_proj = torch.nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv_proj(x).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        return self.out_proj(self.form(q, k, v).reshape(batch, length, width))


class FeedForward(torch.nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.in_proj = torch.nn.Linear(width, inner)
        self.out_proj = torch.nn.Linear(inner, width)

    def forward(self, x):
        return self.out_proj(functional.gelu(self.in_proj(x)))


class Block(torch.nn.Module):
    def __init__(self, options, form):
        super().__init__()
        self.dropout = options.dropout
        self.attention_norm = torch.nn.LayerNorm(options.width, eps=1e-6)
        self.attention = Attention(options.width, options.heads, form)
        self.feed_forward_norm = torch.nn.LayerNorm(options.width, eps=1e-6)
        self.feed_forward = FeedForward(options.width, options.feed_forward)

    def drop(self, x):
        return functional.dropout(x, self.dropout) if self.dropout > 0 else x

    def forward(self, x):
        x = x + self.drop(self.attention(self.attention_norm(x)))
        return x + self.drop(self.feed_forward(self.feed_forward_norm(x)))


class Encoder(torch.nn.Module):
    def __init__(self, options, vocabulary, form):
        super().__init__()
        self.dropout, self.layers = options.dropout, options.layers
        self.token_embedding = torch.nn.Embedding(vocabulary, options.width)
        self.position_embedding = torch.nn.Parameter(torch.empty(options.length, options.width))
        for layer in range(options.layers):
            self.add_module(f"block_{layer}", Block(options, form))
        self.norm = torch.nn.LayerNorm(options.width, eps=1e-6)

    def forward(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding
        if self.dropout > 0:
            x = functional.dropout(x, self.dropout)
        for layer in range(self.layers):
            x = getattr(self, f"block_{layer}")(x)
        return self.norm(x).mean(dim=1)


class Classifier(torch.nn.Module):
    def __init__(self, options, vocabulary, classes, form):
        super().__init__()
        self.encoder = Encoder(options, vocabulary, form)
        self.hidden = torch.nn.Linear(options.width, options.feed_forward)
        self.output = torch.nn.Linear(options.feed_forward, classes)

    def forward(self, tokens):
        return self.output(self.hidden(self.encoder(tokens)).relu())


def form_of(options):
    if options.peer == "softmax":
        return lambda q, k, v: attention.softmax(q, k, v, options.causal)
    if options.peer == "chunked_torch":
        return attention.chunked_torch
    return attention.released_causal if options.causal else attention.released_bidirectional


def bytes_needed(options):
    """The large intermediates that are kept for the backward pass, and those of the backward pass itself."""
    heads, dim = options.batch * options.heads, options.width // options.heads
    element = 2 if options.precision == "bf16" else 4
    if options.peer.startswith("released") and options.causal:
        return (options.layers + 3) * heads * options.length * 2 * dim * dim * element
    if options.peer == "softmax" and not hasattr(functional, "scaled_dot_product_attention"):
        return ((3 if options.causal else 2) * options.layers + 2) * heads * options.length ** 2 * element
    return 0


def status_bytes(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))


def make_step(options, tensors):
    """A function that takes one step and returns its loss, and the number of parameters."""
    tokens = tensors.pop("batch.tokens").to(options.device)
    labels = tensors.pop("batch.labels").to(options.device)
    vocabulary, classes = tensors["encoder.token_embedding.weight"].shape[0], tensors["output.bias"].shape[0]
    model = Classifier(options, vocabulary, classes, form_of(options))
    model.load_state_dict(tensors)
    model.to(options.device)
    parameters = list(model.parameters())
    fast = {"fused": True} if options.device == "cuda" else {}
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.05},
         {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}],
        lr=1e-3, betas=(0.9, 0.98), eps=1e-8, **fast)
    call = torch.compile(model) if options.peer.endswith("_compiled") else model
    precision = contextlib.nullcontext
    if options.precision == "bf16":
        precision = lambda: torch.autocast(options.device, dtype=torch.bfloat16)  # noqa: E731

    def step():
        with precision():
            loss = functional.cross_entropy(call(tokens).float(), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step, sum(p.numel() for p in parameters)


def measure(options):
    on_gpu = options.device == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    tensors = read_safetensors(options.exchange)
    if not on_gpu:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # forget the highest resident memory so far
        before = status_bytes("VmRSS")
    step, parameters = make_step(options, tensors)
    losses = []
    start = time.perf_counter()
    for done in range(1, WARM_UPS + 1):
        losses.append(step().item())
        seconds = (time.perf_counter() - start) / done
        if seconds > options.most_seconds:
            return {"skipped": f"a step takes {seconds:.2g} s"}

    def milliseconds(together):
        wait()
        start = time.perf_counter()
        for _ in range(together):
            step()
        wait()
        return (time.perf_counter() - start) * 1e3 / together

    first = milliseconds(1)
    together = min(max(int(20 / first), 1), 50) if on_gpu else 1
    repeats = min(max(int(options.seconds * 1e3 / (first * together)), 3), 500)
    times = sorted(milliseconds(together) for _ in range(repeats))
    median = statistics.median_high(times)
    return {"parameters": parameters, "median_ms": median, "min_ms": times[0],
            "p90_ms": times[min(repeats - 1, repeats * 9 // 10)], "steps_per_s": 1e3 / median,
            "tokens_per_s": options.batch * options.length / median * 1e3,
            "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
            "resident_bytes": 0 if on_gpu else max(0, status_bytes("VmHWM") - before), "losses": losses}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, choices=["released", "released_compiled", "chunked_torch", "softmax"])
    parser.add_argument("--exchange", required=True, help="the safetensors file with weights and batch")
    parser.add_argument("--causal", action="store_true")
    for name in ("length", "batch", "width", "layers", "heads", "feed-forward", "threads"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--most-seconds", type=float, default=60.0)
    parser.add_argument("--most-bytes", type=float, default=1.2e10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    line = {"bench": "train", "peer": options.peer, "torch": torch.__version__, "device": options.device,
            "precision": options.precision, "causal": options.causal, "length": options.length,
            "batch": options.batch, "width": options.width, "layers": options.layers, "heads": options.heads,
            "feed_forward": options.feed_forward, "dropout": options.dropout, "threads": options.threads}
    needed = bytes_needed(options)
    if options.device == "cpu" and 0 < options.most_bytes < needed:
        line["skipped"] = f"needs {needed / 1e9:.2g} GB"
    elif options.peer == "chunked_torch" and options.length % min(64, options.length):
        line["skipped"] = "its chunks of 64 do not divide the length"
    else:
        try:
            line.update(measure(options))
        except RuntimeError as error:  # out of memory
            line["skipped"] = str(error).splitlines()[0]
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
