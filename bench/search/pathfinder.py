"""What gets a Transformer of Pathfinder off the ground: ideas in plain torch, tried before they are built.

    python3 bench/search/pathfinder.py IDEA --data FOLDER [--steps N] [--seconds S]

FOLDER is what `cosformer data pathfinder` makes. Prints the training loss and the accuracy on 4,000 validation images.
Every idea is a model of 4 layers of width 128 that reads the 1,024 pixels of an image, or those that are not blank, 128
images a step, where nothing else is asked for.
"""

import argparse
import math
import struct
import time

import numpy
import torch
from torch import nn
from torch.nn import functional as F

SIDE = 32
LENGTH = SIDE * SIDE

IDEAS = {
    "learned": dict(),
    "sines": dict(positions="sines"),
    "sines_tied": dict(positions="sines", tied=True),
    "values": dict(positions="sines", tied=True, reading="values"),
    "masked": dict(positions="sines", tied=True, masked_steps=1500),
    "masked_learned": dict(masked_steps=1500),
    "convolution": dict(convolution=3, gate=True),
    "softmax": dict(attention="softmax", positions="sines", tied=True),
    "softmax_masked": dict(attention="softmax", positions="sines", tied=True, masked_steps=1500),
    "pooled_masked": dict(pool="batch", positions="sines", tied=True, masked_steps=4000),
    "network": dict(network=True),
    "drawn": dict(pool="batch", drawn=576),
    "convolution_masked": dict(convolution=3, gate=True, masked_steps=1500),
}


def read(path):
    """Pixels [n, 1024] and labels [n] of a data set file."""
    content = numpy.memmap(path, numpy.uint8, "r")
    description, count, sequences, elements = struct.unpack("<4Q", bytes(content[16:48]))
    at = 64 + (description + 7) // 8 * 8
    labels = content[at : at + 4 * count].view(numpy.int32)
    at += (4 * count + 7) // 8 * 8 + 8 * sequences
    pixels = content[at : at + elements].reshape(count, LENGTH)
    return torch.from_numpy(numpy.array(pixels)).cuda(), torch.from_numpy(numpy.array(labels)).long().cuda()


def sines(width):
    """[1024, width]: half of the features say the row, half the column."""
    half = width // 2
    rates = torch.exp(torch.linspace(0, math.log(1 / 64), half // 2)) * math.pi / 2
    place = torch.arange(SIDE)[:, None] * rates
    line = torch.cat([place.sin(), place.cos()], 1)
    rows, columns = line[:, None].expand(SIDE, SIDE, half), line[None].expand(SIDE, SIDE, half)
    return torch.cat([rows, columns], 2).reshape(LENGTH, width)


class Attention(nn.Module):
    def __init__(self, width, heads, attention="cosformer", tied=False, convolution=0, gate=False):
        super().__init__()
        self.heads, self.kind = heads, attention
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if tied:
            with torch.no_grad():
                self.qkv.weight[width : 2 * width] = self.qkv.weight[:width]
                self.qkv.bias[width : 2 * width] = self.qkv.bias[:width]
        self.convolution = None
        if convolution:
            self.convolution = nn.Conv2d(3 * width, 3 * width, convolution, padding=convolution // 2, groups=3 * width)
        self.gate = nn.Linear(width, width) if gate else None
        angle = math.pi / 2 * torch.arange(LENGTH) / LENGTH
        self.register_buffer("cosine", angle.cos()[:, None])
        self.register_buffer("sine", angle.sin()[:, None])

    def forward(self, x, places=None, present=None):
        batch, time_, width = x.shape
        qkv = self.qkv(x)
        if self.convolution is not None:
            image = qkv.transpose(1, 2).reshape(batch, 3 * width, SIDE, SIDE)
            qkv = qkv + self.convolution(image).flatten(2).transpose(1, 2)
        q, k, v = qkv.view(batch, time_, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.kind == "softmax":
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            q, k = F.relu(q), F.relu(k)
            cosine, sine = self.cosine, self.sine
            if places is not None:
                k = k * present[:, None, :, None]
                cosine, sine = cosine[places][:, None], sine[places][:, None]
            q, k = torch.cat([q * cosine, q * sine], -1), torch.cat([k * cosine, k * sine], -1)
            sums = k.transpose(2, 3) @ v
            below = (q @ k.sum(2, dtype=torch.float)[..., None].to(q.dtype)).float().clamp_min(1e-6)
            y = ((q @ sums) / below).to(v.dtype)
        y = y.transpose(1, 2).reshape(batch, time_, width)
        return self.out(y * F.silu(self.gate(x)) if self.gate is not None else y)


class Model(nn.Module):
    def __init__(self, positions="learned", reading="tokens", layers=4, width=128, heads=4, pool="plain", drawn=0,
                 **attention):
        super().__init__()
        self.pooled = nn.BatchNorm1d(width) if pool == "batch" else nn.Identity()
        self.reading, self.drawn = reading, drawn
        self.pixels = nn.Embedding(257, width)
        nn.init.normal_(self.pixels.weight, std=0.5 if positions == "sines" else 0.02)
        self.level = nn.Linear(1, width)
        table = sines(width) if positions == "sines" else torch.randn(LENGTH, width) * 0.02
        self.positions = nn.Parameter(table)
        norm = lambda: nn.LayerNorm(width, elementwise_affine=False)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            self.layers.append(nn.ModuleList([norm(), Attention(width, heads, **attention), norm(), mlp]))
        self.norm = norm()
        self.answer = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 2))
        self.pixel = nn.Linear(width, 256)

    def forward(self, pixels, each=False):
        x = self.pixels(pixels) if self.reading == "tokens" else self.level(pixels[..., None] / 64.0)
        places = present = None
        x = x + self.positions
        if self.drawn:
            places = (pixels == 0).to(torch.int8).argsort(dim=1, stable=True)[:, : self.drawn]
            present = pixels.gather(1, places) > 0
            x = x.gather(1, places[..., None].expand(-1, -1, x.shape[2]))
        for before, attention, middle, mlp in self.layers:
            x = x + attention(before(x), places, present)
            x = x + mlp(middle(x))
        x = self.norm(x)
        if self.drawn:
            x = x * present[..., None]
            return self.answer(self.pooled(x.float().sum(1) / present.sum(1, keepdim=True)))
        return self.pixel(x) if each else self.answer(self.pooled(x.mean(1)))


class Network(nn.Module):
    """A convolutional network, to know what can be learned at all."""

    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Conv2d(1, width, 5, padding=2)
        self.steps = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(14))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(14))
        self.answer = nn.Sequential(nn.Linear(64 * width, 256), nn.ReLU(), nn.Linear(256, 2))

    def forward(self, pixels):
        x = F.relu(self.first(pixels.view(-1, 1, SIDE, SIDE) / 64.0))
        for at, (step, norm) in enumerate(zip(self.steps, self.norms)):
            x = x + F.relu(norm(step(x)))
            if at in (5, 10):
                x = F.max_pool2d(x, 2)
        return self.answer(x.flatten(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("idea", choices=IDEAS)
    parser.add_argument("--data", required=True)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--masked", type=float, default=0, help="seconds of masked pixels; 0: as the idea says")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    options = dict(IDEAS[arguments.idea])
    masked_steps = options.pop("masked_steps", 0)
    options |= dict(layers=arguments.layers, width=arguments.width, heads=arguments.heads)
    images, labels = read(arguments.data + "/pathfinder32-train.data")
    valid_images, valid_labels = (x[:4000] for x in read(arguments.data + "/pathfinder32-valid.data"))
    model = (Network() if options.pop("network", False) else Model(**options)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    fast = torch.compile(model)
    begin, mean = time.time(), 0.0
    masked, labels_since = True, 0
    for step in range(arguments.steps):
        if masked and not (time.time() - begin < arguments.masked if arguments.masked else step < masked_steps):
            masked, labels_since = False, step
        for group in optimizer.param_groups:
            group["lr"] = arguments.lr * min(1.0, (step - labels_since + 1) / 200)
        chosen = torch.randint(0, len(images), (arguments.batch,), device="cuda")
        batch = images[chosen].long().view(-1, SIDE, SIDE)
        if step % 2:
            batch = batch.flip(2)
        if step % 4 > 1:
            batch = batch.transpose(1, 2)
        batch = batch.reshape(-1, LENGTH)
        with torch.autocast("cuda", torch.bfloat16):
            if masked:
                hidden = torch.rand(batch.shape, device="cuda") < 0.4
                guess = fast(torch.where(hidden, 256, batch), True)
                each = F.cross_entropy(guess.float().flatten(0, 1), batch.flatten(), reduction="none")
                loss = (each * hidden.flatten()).sum() / hidden.sum()
            else:
                loss = F.cross_entropy(fast(batch).float(), labels[chosen])
        loss.backward()
        mean += loss.detach() / 250
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step == 0:
            begin = time.time()
        if step % 250 == 249:
            line = f"{arguments.idea} step {step + 1} {time.time() - begin:.0f} s loss {mean.item():.4f}"
            mean = 0.0
            if not masked:
                right, asked = 0, 4000 // arguments.batch * arguments.batch
                with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                    for begin_at in range(0, asked, arguments.batch):
                        part = slice(begin_at, begin_at + arguments.batch)
                        right += (fast(valid_images[part].long()).argmax(1) == valid_labels[part]).sum().item()
                line += f" accuracy {100 * right / asked:.1f}"
            print(line, flush=True)
            if time.time() - begin > arguments.seconds:
                break


main()
