#!/usr/bin/env python3
"""Ideas for cosformer_plus, tried before they are built: byte language models in plain torch, attention written out.

    python3 bench/search/byte_lm.py TEXT VARIANT STEPS

trains one variant in the setting of configs/lm/enwiki-25m.toml and prints the validation loss (nats a byte) every 200
steps. Attention is quadratic here, so this says what an idea is worth, not how fast it is. Needs torch 2.4 and a GPU;
without one, a toy size shows that a variant runs. What came out: bench/results/lm/search.log.
"""
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = {
    "softmax": dict(kind="softmax", convolution=4, gate=False, feed_forward=2048),  # rotary positions
    "plus": dict(),  # the preset, but for a gate by SiLU, which the preset has by the sigmoid
    "plus_sigmoid": dict(gate="sigmoid"),
    "taylor16": dict(features="taylor", qk_dim=16, feed_forward=2176),  # 1 + s + s²/2 of queries and keys of 16
    "taylor21": dict(features="taylor", qk_dim=21, feed_forward=2144),
    "taylor16slow": dict(features="taylor", qk_dim=16, feed_forward=2176, longest=16384),
    "taylor16dd": dict(features="taylor", qk_dim=16, feed_forward=2176, token_decay=True),
    "hedge": dict(features="softmax"),  # [softmax(x), softmax(−x)]
    "hybrid": dict(local=256),  # every other layer: softmax over the last 256 bytes
    "mamba2l2": dict(features="unit", token_decay=True, head_norm=True),  # a decay that each token decides on
    "delta": dict(kind="delta", token_decay=True, head_norm=True),  # what a key held before is taken out first
}
DEFAULTS = dict(kind="linear", features="relu", convolution=5, gate="silu", feed_forward=1792, qk_dim=0, longest=512,
                token_decay=False, head_norm=False, local=0)
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
WIDTH, LAYERS, HEADS, TIME, BATCH = (512, 8, 8, 1024, 24) if CUDA else (64, 2, 2, 128, 2)
LR, FINAL_LR, WARMUP, VOCABULARY = 1e-3, 1e-4, 100, 257


def rms(x):
    return (x.float() * (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()).to(x.dtype)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return rms(x) * self.weight.to(x.dtype)


def convolve(x, weight):
    taps = weight.size(0)
    y = x * weight[-1]
    for back in range(1, taps):
        y = y + F.pad(x, (0, 0, back, 0))[:, : x.size(1)] * weight[taps - 1 - back]
    return y


def rotate(x):
    dim = x.size(-1)
    rates = 10000 ** (-torch.arange(0, dim, 2, device=x.device) / dim)
    angles = torch.arange(x.size(-2), device=x.device)[:, None] * rates
    c, s = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


def taylor(x):
    dim = x.size(-1)
    y = x * dim**-0.25
    first, second = torch.triu_indices(dim, dim, 1, device=x.device)
    eye = torch.eye(dim, device=x.device)
    left = torch.cat([eye / math.sqrt(2), F.one_hot(first, dim).t().float()], 1).to(y.dtype)
    right = torch.cat([eye, F.one_hot(second, dim).t().float()], 1).to(y.dtype)
    return torch.cat([torch.ones_like(y[..., :1]), y, (y @ left) * (y @ right)], -1)


def features(kind, x):
    if kind == "relu":
        return x.relu()
    if kind == "taylor":
        return taylor(x)
    if kind == "softmax":
        return torch.cat([x.float().softmax(-1), (-x.float()).softmax(-1)], -1).to(x.dtype)
    return F.normalize(x.float(), dim=-1).to(x.dtype)  # "unit"


def delta_rule(q, k, v, beta, log_decay, chunk=64):
    """Keys of length 1; a key's old value gives way by the share beta. In chunks, states one after another."""
    batch, heads, length, dim = q.shape
    parts = length // chunk
    q, k, v = (x.view(batch, heads, parts, chunk, -1) for x in (q, k, v))
    beta = beta.view(batch, heads, parts, chunk, 1)
    g = log_decay.view(batch, heads, parts, chunk).cumsum(-1)
    later = torch.ones(chunk, chunk, device=q.device, dtype=torch.bool).triu(1)
    decay = (g[..., :, None] - g[..., None, :]).masked_fill(later, -1e30).exp()
    weighted = k * beta
    system = ((weighted @ k.transpose(-1, -2)) * decay).tril(-1) + torch.eye(chunk, device=q.device)
    right = torch.cat([v * beta, weighted * g.exp()[..., None]], -1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    new, old = solved.split([v.size(-1), dim], -1)
    within = (q @ k.transpose(-1, -2)) * decay
    queries, keys = q * g.exp()[..., None], k * (g[..., -1:] - g).exp()[..., None]
    state = torch.zeros(batch, heads, dim, v.size(-1), device=q.device)
    out = []
    for c in range(parts):
        values = new[:, :, c] - old[:, :, c] @ state
        out.append(queries[:, :, c] @ state + within[:, :, c] @ values)
        state = state * g[:, :, c, -1].exp()[..., None, None] + keys[:, :, c].transpose(-1, -2) @ values
    return torch.stack(out, 2).flatten(2, 3) * dim**-0.5


class Attention(nn.Module):
    def __init__(self, o, layer):
        super().__init__()
        self.o = o
        self.kind = "local" if o["local"] and layer % 2 else o["kind"]
        self.dim = WIDTH // HEADS
        self.qk_dim = o["qk_dim"] or self.dim
        inner = HEADS * (2 * self.qk_dim + self.dim)
        self.qkv = nn.Linear(WIDTH, inner, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        bound = o["convolution"] ** -0.5
        self.taps = nn.Parameter(torch.empty(o["convolution"], inner).uniform_(-bound, bound))
        if o["gate"]:
            self.gate = nn.Linear(WIDTH, WIDTH, bias=False)
        lives = 4 * (o["longest"] / 4) ** (torch.arange(HEADS) / (HEADS - 1))
        self.log_rate = nn.Parameter(-lives.log())
        if o["token_decay"]:
            self.step = nn.Linear(WIDTH, HEADS)
        if self.kind == "delta":
            self.beta = nn.Linear(WIDTH, HEADS)
        if o["head_norm"]:
            self.head_norm = nn.Parameter(torch.ones(self.dim))

    def linear(self, x, q, k, v, distance, log_decay):
        if log_decay is None:
            log_weight = -self.log_rate.clamp_max(10).exp()[:, None, None] * distance
        else:
            total = log_decay.cumsum(-1)
            log_weight = total[..., :, None] - total[..., None, :]
        q, k = features(self.o["features"], q), features(self.o["features"], k)
        weights = (q @ k.transpose(-1, -2)).float() * (distance * (math.pi / 2 / x.size(1))).cos()
        weights = weights * log_weight.masked_fill(distance < 0, -1e30).exp()
        if not self.o["head_norm"]:
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-6)
        return weights.to(v.dtype) @ v

    def forward(self, x):
        qkv = convolve(self.qkv(x), self.taps.to(x.dtype))
        sizes = [HEADS * self.qk_dim, HEADS * self.qk_dim, HEADS * self.dim]
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in qkv.split(sizes, -1))
        places = torch.arange(x.size(1), device=x.device)
        distance = places[:, None] - places
        log_decay = None
        if self.o["token_decay"]:  # the step is about 1 at first
            step = F.softplus(self.step(x).float() + 0.54132)
            log_decay = -(step * self.log_rate.clamp_max(10).exp()).transpose(1, 2)
        if self.kind == "softmax":
            out = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        elif self.kind == "local":
            near = (distance >= 0) & (distance < self.o["local"])
            out = F.scaled_dot_product_attention(rotate(q), rotate(k), v, attn_mask=near)
        elif self.kind == "delta":
            beta = self.beta(x).float().sigmoid().transpose(1, 2)
            unit = [F.normalize(y.float(), dim=-1) for y in (q, k)]
            out = delta_rule(*unit, v.float(), beta, log_decay).to(x.dtype)
        else:
            out = self.linear(x, q, k, v, distance, log_decay)
        if self.o["head_norm"]:
            out = rms(out) * self.head_norm.to(out.dtype)
        out = out.transpose(1, 2).flatten(2)
        if self.o["gate"]:
            gate = self.gate(x)
            out = out * (F.silu(gate) if self.o["gate"] == "silu" else gate.sigmoid())
        return self.out(out)


class Block(nn.Module):
    def __init__(self, o, layer):
        super().__init__()
        self.norm1, self.norm2, self.attention = Norm(WIDTH), Norm(WIDTH), Attention(o, layer)
        inner = o["feed_forward"] if CUDA else 96
        self.up, self.down = nn.Linear(WIDTH, inner), nn.Linear(inner, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        nn.init.normal_(self.embedding.weight, 0, WIDTH**-0.5)
        self.blocks = nn.ModuleList(Block(o, layer) for layer in range(LAYERS))
        self.norm = Norm(WIDTH)

    def forward(self, inputs, targets):
        x = self.embedding(inputs)
        for block in self.blocks:
            x = block(x)
        logits = (self.norm(x) @ self.embedding.weight.t().to(x.dtype)).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def windows(text, starts):
    cut = text[(starts[:, None] + torch.arange(TIME + 1)).to(DEVICE)].long()
    return cut[:, :-1].contiguous(), cut[:, 1:].contiguous()


def rate_at(step, steps):
    if step < WARMUP:
        return LR * step / WARMUP
    share = (step - WARMUP) / max(1, steps - WARMUP)
    return FINAL_LR + 0.5 * (LR - FINAL_LR) * (1 + math.cos(math.pi * share))


def main(path, name, steps):
    o = {**DEFAULTS, **VARIANTS[name]}
    torch.manual_seed(0)
    with open(path, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).to(DEVICE)
    train, valid = text[: int(len(text) * 0.99)], text[int(len(text) * 0.99) : int(len(text) * 0.995)]
    model = Model(o).to(DEVICE)
    count = sum(p.numel() for p in model.parameters())
    run = torch.compile(model) if CUDA and o["kind"] != "delta" else model
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [dict(params=decayed, weight_decay=0.1), dict(params=others, weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.95), **(dict(fused=True) if CUDA else {}))
    order = torch.Generator().manual_seed(1)
    apart = (len(valid) - TIME - 1) // 240

    def evaluate():
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16):
            losses = [run(*windows(valid, torch.arange(at, at + BATCH) * apart)) for at in range(0, 240, BATCH)]
        return round(torch.stack(losses).mean().item(), 4)

    losses, start = [], time.time()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps)
        batch = windows(train, torch.randint(0, len(train) - TIME - 1, (BATCH,), generator=order))
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = run(*batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 200 == 0 or step == steps - 1:
            losses.append(evaluate())
            print(f"{name} {step + 1} {losses} {(step + 1) / (time.time() - start):.2f} steps/s {count}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[2] not in VARIANTS:
        sys.exit(f"usage: byte_lm.py TEXT VARIANT STEPS; variants: {', '.join(VARIANTS)}")
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
