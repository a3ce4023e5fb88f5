#!/usr/bin/env python3
"""What the operators compute, to the last bit, and what a call of one costs: for changes that shall change neither.

    python3 bench/operator_bits.py LIBRARY [--cases 200] [--seed 1] [--threads 2]    a line with a hash each
    python3 bench/operator_bits.py LIBRARY --calls [--threads 1]                     microseconds of a small call

A case is drawn from its seed alone: dtype, shapes, direction, options, key mask, packing or state. Its hash is of the
bits of every output and gradient. Two libraries cannot be loaded into one process: run this for each and compare the
lines.
"""
import argparse
import hashlib
import random
import time

import torch

MAPS = ("relu", "elu1", "leaky_relu", "silu", "identity")


def draw(choose, *shape, dtype, gradient=True):
    """Numbers of shape [batch, time, ...] in one of the layouts that the operator takes."""
    x = torch.randn(*shape, dtype=torch.double)
    layout = choose.choice(("dense", "head-major", "gapped"))
    x = x.to(dtype)
    if layout == "head-major":
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    elif layout == "gapped":
        x = torch.nn.functional.pad(x, (0, 3))[..., :shape[-1]]
    return x.requires_grad_(gradient)


def per_head(heads, scale, dtype):
    return (torch.rand(heads, dtype=torch.double) * scale).to(torch.double if dtype == torch.double else torch.float32)


def boundaries(choose, total, sequences):
    cuts = sorted(choose.randint(0, total) for _ in range(sequences - 1))
    return torch.tensor([0, *cuts, total], dtype=choose.choice((torch.int32, torch.int64)))


def run(seed):
    """What the case is, and the tensors that it results in."""
    choose = random.Random(seed)
    torch.manual_seed(seed)
    dtype = choose.choice((torch.float32, torch.bfloat16, torch.float16, torch.double))
    kind = choose.choice(("whole", "whole", "packed", "state"))
    batch, heads = 1 if kind == "packed" else choose.randint(1, 3), choose.randint(1, 3)
    dim, value_dim = choose.choice((1, 5, 16, 32, 64, 100)), choose.choice((1, 7, 16, 64))
    tq = choose.choice((1, 2, 17, 64, 130, 700))
    tk = tq if kind == "state" or choose.random() < 0.6 else choose.choice((1, 33, 64, 300))
    sequences = choose.randint(1, 4)
    causal = kind == "state" or choose.random() < 0.5
    reweight = choose.random() < 0.8
    options = {"feature_map": choose.choice(MAPS), "reweight": reweight,
               "normalizer": choose.choice(("sum", "sum", "none")), "eps": choose.choice((1e-6, 1e-6, 1e-3))}
    if choose.random() < 0.4:
        options["log_decay"] = (-per_head(heads, 0.3, dtype)).requires_grad_()
    if reweight and choose.random() < 0.25:
        options["theta"] = per_head(heads, 0.002, dtype)
    q, k = draw(choose, batch, tq, heads, dim, dtype=dtype), draw(choose, batch, tk, heads, dim, dtype=dtype)
    v = draw(choose, batch, tk, heads, value_dim, dtype=dtype)
    inputs = [q, k, v] + [options[name] for name in ("log_decay",) if name in options]
    ops = torch.ops.cosformer
    if kind == "state":
        kv, z, position = ops.attention_state(q, v)
        kv, z = torch.randn_like(kv).requires_grad_(), (torch.randn_like(z) * 0.1 + 20).requires_grad_()
        position += choose.choice((0, 1, 77, 5000))
        inputs += [kv, z]
        outputs = ops.attention_with_state(q, k, v, kv, z, position, horizon=6000.5, **options)
    else:
        options["causal"] = causal
        if choose.random() < 0.4:
            options["horizon"] = max(tq, tk) + choose.random() * 10
        if choose.random() < 0.35:
            options["key_mask"] = torch.rand(batch, tk) < 0.7
        if kind == "packed":
            options["cu_seqlens_q"] = boundaries(choose, tq, sequences)
            options["cu_seqlens_k"] = boundaries(choose, tk, sequences)
        outputs = [ops.attention(q, k, v, **options)]
    gradients = torch.autograd.grad(outputs, inputs, [torch.randn_like(x) for x in outputs])
    names = [name if isinstance(value, torch.Tensor) else f"{name}={value}" for name, value in options.items()]
    return (f"{str(dtype)[6:]} {kind} B{batch} {tq}x{tk} H{heads} D{dim} Dv{value_dim} {' '.join(names)}",
            [*outputs, *gradients])


def hash_of(tensors):
    digest = hashlib.sha256()
    for x in tensors:
        digest.update(f"{tuple(x.shape)} {x.dtype} ".encode())
        digest.update(bytes(x.detach().contiguous().view(torch.uint8).flatten().numpy()) if x.numel() else b"")
    return digest.hexdigest()[:16]


def microseconds(call, calls=2000, rounds=15):
    """The least of several means: what else the machine does only adds."""
    means = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        means.append((time.perf_counter() - begin) / calls * 1e6)
    return min(means)


def print_calls():
    q, k, v = (torch.randn(1, 64, 1, 16) for _ in range(3))
    g, decay, one = torch.ones_like(q), torch.full((1,), -0.1), torch.randn(1, 1, 1, 16)
    attention, with_state = torch.ops.cosformer.attention, torch.ops.cosformer.attention_with_state
    kv, z, position = torch.ops.cosformer.attention_state(q, q)
    needed = [x.clone().requires_grad_() for x in (q, k, v)]
    calls = {
        "1 x 64 x 1 x 16, forward": lambda: attention(q, k, v),
        "1 x 64 x 1 x 16, causal with a decay, forward": lambda: attention(q, k, v, causal=True, log_decay=decay),
        "1 x 64 x 1 x 16, forward and backward": lambda: torch.autograd.grad(attention(*needed), needed, g),
        "1 x 1 x 1 x 16 on a state": lambda: with_state(one, one, one, kv, z, position, horizon=100),
    }
    for name, call in calls.items():
        print(f"{name}: {microseconds(call):.2f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--calls", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.ops.load_library(given.library)
    if given.calls:
        return print_calls()
    for seed in range(given.seed, given.seed + given.cases):
        what, tensors = run(seed)
        print(f"{seed} {hash_of(tensors)} {what}")


if __name__ == "__main__":
    main()
