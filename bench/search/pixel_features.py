"""Which parts of "an angle and a decay per feature" matter on gray CIFAR-10 as 1,024 pixels? Plain torch, one GPU.

    python3 pixel_features.py FILE STEPS SECONDS NAME...    FILE: records of a label byte and 1,024 gray bytes

The last sixth of the records is the test part. Both directions, chunks of 32; a model of width 128, four layers, eight
heads of 16; batches of 64; the same steps, schedule and seed for all. An experiment about what is worth building, not
a measurement of the project's kernels.
"""
import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SIDE, WIDTH, LAYERS, HEADS, BATCH, CHUNK = 32, 128, 4, 8, 64, 32
N, D = SIDE * SIDE, WIDTH // HEADS
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VARIANTS = {
    "plus": dict(mixing="division", convolution=5),  # the preset of both directions
    "paper": dict(mixing="division", gate=False),
    "complex": dict(),
    "complex_conv": dict(convolution=5),
    "complex_sigmoid": dict(features="sigmoid"),
    "complex_conv_sigmoid": dict(features="sigmoid", convolution=5),
    "real": dict(angle=False),
    "head": dict(angle=False, per_head=True),
    "narrow_start": dict(start="equal"),
    "batch_norm": dict(norm="batch"),
    "complex_conv_batch_norm": dict(norm="batch", convolution=5),
    "complex_conv_sigmoid_batch_norm": dict(norm="batch", convolution=5, features="sigmoid"),
    "complex_conv_batch_norm_slow_decays": dict(norm="batch", convolution=5, slow=0.1),
    "complex_conv_batch_norm_no_positions": dict(norm="batch", convolution=5, positions=False),
    "head_conv_batch_norm": dict(norm="batch", convolution=5, angle=False, per_head=True),
    "real_conv_batch_norm": dict(norm="batch", convolution=5, angle=False),
    "plus_batch_norm": dict(mixing="division", convolution=5, norm="batch"),
    "no_gate": dict(gate=False),
    "softmax": dict(mixing="softmax", gate=False),
    "softmax_conv": dict(mixing="softmax", convolution=5),
    "softmax_conv_batch_norm": dict(mixing="softmax", convolution=5, norm="batch"),
}
DEFAULTS = dict(mixing="features", features="unit", angle=True, per_head=False, start="spread", convolution=0,
                gate=True, norm="layer", positions=True, slow=1.0)


def masks():
    i = torch.arange(CHUNK, device=DEVICE)
    forward = (i[:, None] >= i).float()
    backward = (i[:, None] > i).float()  # the diagonal counts once
    return torch.stack([forward, backward]).view(2, 1, 1, 1, CHUNK, CHUNK)


def scan(q, k, v, rate, angle):
    """q, k, v [B, H, N, D]; rate, angle [H, D]: both directions, exactly."""
    b, h, n, d = v.shape
    count = n // CHUNK
    q, k, v = (torch.stack([x, x.flip(2)]) for x in (q, k, v))
    place = torch.arange(n, device=v.device, dtype=torch.float32)
    within = (torch.arange(n, device=v.device) % CHUNK).float() - (CHUNK - 1) / 2
    decay = rate[:, None] * within[:, None]  # [H, N, D]
    turn = angle[:, None] * place[:, None]
    qs, ks = q * torch.exp(-decay), k * torch.exp(decay)
    qs, ks = (torch.cat([x * turn.cos(), x * turn.sin()], -1) for x in (qs, ks))
    qs, ks, v = (x.view(2, b, h, count, CHUNK, -1) for x in (qs, ks, v))
    rows = torch.matmul(torch.matmul(qs, ks.transpose(-1, -2)) * masks(), v)
    added = torch.matmul(ks.transpose(-1, -2), v)  # [2, B, H, count, 2D, D]
    c = torch.arange(count, device=v.device)
    apart = (c[:, None] - c).float()
    keep = torch.exp(-(apart[:, :, None, None].clamp_min(0)) * CHUNK * rate) * (apart > 0)[:, :, None, None]
    keep = torch.cat([keep, keep], -1)  # [c, c', H, 2D]
    before = torch.einsum("xyhf,sbhyfe->sbhxfe", keep, added)
    rows = (rows + torch.matmul(qs, before)).view(2, b, h, n, d)
    return rows[0] + rows[1].flip(2)


class Mixing(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.o = o
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        if o["convolution"]:
            taps = torch.rand(3 * WIDTH, 1, o["convolution"]) * 2 - 1
            self.taps = nn.Parameter(taps * o["convolution"] ** -0.5)
        if o["gate"]:
            self.gate = nn.Linear(WIDTH, WIDTH, bias=False)
        if o["mixing"] == "features":
            each = 1 if o["per_head"] else D
            share = torch.arange(HEADS * each).float().view(each, HEADS).t() / (HEADS * each - 1)
            windows = 2 * (N / 4) ** share if o["start"] == "spread" else torch.full_like(share, 64.0)
            self.rate = nn.Parameter(-windows.log())
            if o["angle"]:
                self.angle = nn.Parameter((math.pi * torch.rand(HEADS, each)).log() - 4 * torch.rand(HEADS, each))
            self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        o, b = self.o, x.shape[0]
        p = self.qkv(x)
        if o["convolution"]:
            p = F.conv1d(p.transpose(1, 2), self.taps, padding=o["convolution"] // 2, groups=3 * WIDTH).transpose(1, 2)
        q, k, v = (t.reshape(b, N, HEADS, D).transpose(1, 2) for t in p.split(WIDTH, -1))
        if o["mixing"] == "softmax":
            y = F.scaled_dot_product_attention(q.bfloat16(), k.bfloat16(), v.bfloat16()).float()
        elif o["mixing"] == "division":
            turn = torch.arange(N, device=x.device) * (math.pi / 2 / N)
            q, k = (torch.cat([t.relu() * turn.cos()[:, None], t.relu() * turn.sin()[:, None]], -1) for t in (q, k))
            sums = torch.matmul(q, k.sum(2, keepdim=True).transpose(-1, -2)).clamp_min(1e-6)
            y = torch.matmul(q, torch.matmul(k.transpose(-1, -2), v)) / sums
        else:
            if o["features"] == "sigmoid":
                q, k = q.sigmoid(), k.sigmoid()
            else:
                q, k = (F.normalize(t.relu(), dim=-1, eps=1e-3) for t in (q, k))
            rate = self.rate.exp().clamp_max(0.9).expand(HEADS, D)
            angle = self.angle.exp().expand(HEADS, D) if o["angle"] else torch.zeros_like(rate)
            y = scan(q, k, v, rate, angle)
            y = y * (y.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * self.weight
        y = y.transpose(1, 2).reshape(b, N, WIDTH)
        if o["gate"]:
            y = y * F.silu(self.gate(x))
        return self.out(y)


class Norm(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH) if kind == "batch" else nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(x.flatten(0, 1)).view_as(x) if isinstance(self.norm, nn.BatchNorm1d) else self.norm(x)


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        inner = 224 if o["gate"] else 256 + 32
        self.read = nn.Linear(1, WIDTH)
        self.place = nn.Parameter(torch.randn(N, WIDTH) * 0.02) if o["positions"] else 0
        self.mixing = nn.ModuleList(Mixing(o) for _ in range(LAYERS))
        self.norms = nn.ModuleList(Norm(o["norm"]) for _ in range(2 * LAYERS))
        self.up = nn.ModuleList(nn.Linear(WIDTH, inner) for _ in range(LAYERS))
        self.down = nn.ModuleList(nn.Linear(inner, WIDTH) for _ in range(LAYERS))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, pixels):
        x = self.read(pixels[..., None]) + self.place
        for i in range(LAYERS):
            x = x + self.mixing[i](self.norms[2 * i](x))
            x = x + self.down[i](F.gelu(self.up[i](self.norms[2 * i + 1](x))))
        return self.head(self.last(x).mean(1))


def run(name, data, steps, until):
    o = {**DEFAULTS, **VARIANTS[name]}
    images, labels, test_images, test_labels = data
    torch.manual_seed(0)
    model = Model(o).to(DEVICE)
    special = [p for n, p in model.named_parameters() if n.endswith(("rate", "angle"))]
    flat = [p for n, p in model.named_parameters() if p.dim() < 2 and not n.endswith(("rate", "angle"))]
    wide = [p for n, p in model.named_parameters() if p.dim() > 1 and not n.endswith(("rate", "angle"))]
    groups = [dict(params=wide, weight_decay=0.05), dict(params=flat, weight_decay=0.0)]
    if special:
        groups.append(dict(params=special, weight_decay=0.0))
    optimiser = torch.optim.AdamW(groups, lr=2e-3, fused=DEVICE == "cuda")
    draw = torch.Generator().manual_seed(1)
    begin, losses, curve = time.time(), [], []
    for step in range(steps):
        rate = 2e-3 * min(1, (step + 1) / 60) * 0.5 * (1 + math.cos(math.pi * step / steps))
        for i, group in enumerate(optimiser.param_groups):
            group["lr"] = rate * (o["slow"] if i == 2 else 1)
        chosen = torch.randint(0, len(images), (BATCH,), generator=draw)
        batch = images[chosen]
        flips = torch.rand(BATCH, generator=draw) < 0.5
        batch[flips] = batch[flips].flip(2)
        loss = F.cross_entropy(model(batch.flatten(1)), labels[chosen])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.detach())
        if step % 100 == 99:
            curve.append(round(torch.stack(losses[-50:]).mean().item(), 3))
            if time.time() > until:
                steps = step + 1
                break
    model.eval()
    with torch.no_grad():
        right = sum((model(test_images[i:i + 100].flatten(1)).argmax(-1) == test_labels[i:i + 100]).sum().item()
                    for i in range(0, len(test_images), 100))
    seconds = time.time() - begin
    print(f"{name:36s} test {100 * right / len(test_images):.2f}%  steps {steps}  {seconds:.0f} s  "
          f"{steps * BATCH * N / seconds / 1e3:.0f}k pixels/s  "
          f"parameters {sum(p.numel() for p in model.parameters())}  "
          f"losses {curve}", flush=True)


def main():
    torch.backends.cuda.matmul.allow_tf32 = True
    records = np.fromfile(sys.argv[1], np.uint8).reshape(-1, N + 1)
    steps, until = int(sys.argv[2]), time.time() + float(sys.argv[3])
    pixels = torch.from_numpy(records[:, 1:].copy()).to(DEVICE).float().view(-1, SIDE, SIDE) / 127.5 - 1
    labels = torch.from_numpy(records[:, 0].copy()).to(DEVICE).long()
    cut = len(records) * 5 // 6
    for name in sys.argv[4:]:
        run(name, (pixels[:cut].contiguous(), labels[:cut], pixels[cut:], labels[cut:]), steps, until)


if __name__ == "__main__":
    main()
