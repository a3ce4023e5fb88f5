"""Times attention as one would compute it without this project, and this project's operator, in one process.

Peers, all written here from their published descriptions:
  released        the cosFormer authors' forms: features of size 2d; bidirectional through one d x 2d product,
                  causal through prefix sums of every token's outer product
  chunked_torch   the causal form in chunks, written with tensor operations
  softmax_unfused softmax written out: scores, their softmax, the product with the values
  softmax_fused   torch's scaled dot product attention, where torch has it (2.0 on); on a GPU each of its kernels
  fla             flash-linear-attention's chunked kernel on 2d features, normalised (GPU; with --fla)
  fla_decay       its kernel of a constant decay per head: no features, no angles, no division (GPU; with --fla)
  ours_decay      this operator with a decay per head, all of it included (with --fla)
  ours            torch.ops.cosformer.attention
  copy            as many bytes as the pass has to read and write, copied: what the memory allows

Prints one JSON object per line; `cosformer bench peers` runs this and makes the table. Without --library only the
peers: for an interpreter whose torch is not the operator's.

The times of CPU peers depend on the allocator: malloc's own settings give large matrices back to the system and have
them cleared anew each time, which nearly doubles the time of softmax written out. The program keeps such memory, and
runs this with settings of malloc that do the same.
"""
import argparse
import json
import math
import statistics
import sys
import time

import fla_source
import torch

EPS = 1e-6


def features(x, horizon):
    """[B, T, H, D] -> [B, H, T, 2D]: ReLU features at their angles, angles in float32."""
    x = x.relu().transpose(1, 2)
    angle = torch.arange(x.shape[2], device=x.device, dtype=torch.float32)[:, None] * (math.pi / (2 * horizon))
    return torch.cat([x * angle.cos().to(x.dtype), x * angle.sin().to(x.dtype)], dim=-1)


def released_bidirectional(q, k, v):
    horizon = max(q.shape[1], k.shape[1])
    q, k, v = features(q, horizon), features(k, horizon), v.transpose(1, 2)
    state = torch.einsum("bhtf,bhte->bhfe", k, v)
    scale = 1 / torch.clamp_min(torch.einsum("bhtf,bhf->bht", q, k.sum(dim=2)), EPS)
    return torch.einsum("bhtf,bhfe,bht->bhte", q, state, scale).transpose(1, 2)


def released_causal(q, k, v):
    horizon = max(q.shape[1], k.shape[1])
    q, k, v = features(q, horizon), features(k, horizon), v.transpose(1, 2)
    states = torch.cumsum(torch.einsum("bhtf,bhte->bhtfe", k, v), dim=2)
    rows = torch.einsum("bhtf,bhtfe->bhte", q, states)
    sums = torch.clamp_min(torch.einsum("bhtf,bhtf->bht", q, torch.cumsum(k, dim=2)), EPS)
    return (rows / sums.unsqueeze(-1)).transpose(1, 2)


def chunked_torch(q, k, v, chunk=64):
    batch, length, heads, dim = q.shape
    chunk = min(chunk, length)
    if length % chunk:
        return None
    value_dim, count, horizon = v.shape[-1], length // chunk, length
    qf = features(q, horizon).view(batch, heads, count, chunk, 2 * dim)
    kf = features(k, horizon).view(batch, heads, count, chunk, 2 * dim)
    ones = torch.ones(*v.shape[:-1], 1, device=v.device, dtype=v.dtype)
    vs = torch.cat([v, ones], dim=-1).transpose(1, 2).reshape(batch, heads, count, chunk, value_dim + 1)
    states = torch.cumsum(torch.matmul(kf.transpose(-1, -2), vs), dim=2)
    before = torch.cat([torch.zeros_like(states[:, :, :1]), states[:, :, :-1]], dim=2)
    scores = torch.matmul(qf, kf.transpose(-1, -2)).tril()
    rows = torch.matmul(scores, vs) + torch.matmul(qf, before)
    rows = rows[..., :-1] / rows[..., -1:].clamp_min(EPS)
    return rows.reshape(batch, heads, length, value_dim).transpose(1, 2)


HAS_FUSED_SOFTMAX = hasattr(torch.nn.functional, "scaled_dot_product_attention")


def softmax(q, k, v, causal):
    """The best that this torch has."""
    return (softmax_fused if HAS_FUSED_SOFTMAX else softmax_unfused)(q, k, v, causal)


def softmax_fused(q, k, v, causal):
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)


def softmax_unfused(q, k, v, causal):
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return torch.matmul(scores.softmax(dim=-1), v).transpose(1, 2)


def softmax_backend(name):
    """torch's softmax through one named GPU kernel."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(q, k, v, causal):
        with sdpa_kernel(getattr(SDPBackend, name)):
            return softmax_fused(q, k, v, causal)

    return run


def flash_linear_attention(q, k, v):
    from fla.ops.linear_attn import chunk_linear_attn

    horizon = max(q.shape[1], k.shape[1])
    qf, kf = features(q, horizon).transpose(1, 2).contiguous(), features(k, horizon).transpose(1, 2).contiguous()
    rows, _ = chunk_linear_attn(qf, kf, v, scale=1.0, normalize=False)
    sums = (qf.float() * torch.cumsum(kf.float(), dim=1)).sum(-1, keepdim=True).clamp_min(EPS)
    return (rows / sums).to(v.dtype)


def ours_with_decay(q, k, v):
    return torch.ops.cosformer.attention(q, k, v, causal=True, log_decay=fla_source.decays(q))


def peers(causal, device, with_fla=False):
    table = {"ours": lambda q, k, v: torch.ops.cosformer.attention(q, k, v, causal=causal)}
    table["released"] = released_causal if causal else released_bidirectional
    if causal:
        table["chunked_torch"] = chunked_torch
    if device == "cpu":
        table["softmax_unfused"] = lambda q, k, v: softmax_unfused(q, k, v, causal)
        if HAS_FUSED_SOFTMAX:
            table["softmax_fused"] = lambda q, k, v: softmax_fused(q, k, v, causal)
    if device == "cuda":
        for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION"):
            run = softmax_backend(name)
            table["softmax_" + name.split("_")[0].lower()] = lambda q, k, v, run=run: run(q, k, v, causal)
        table["released_compiled"] = torch.compile(table["released"])
        if causal and with_fla:
            table["fla"] = flash_linear_attention
            table["fla_decay"] = fla_source.decay_per_head
            table["ours_decay"] = ours_with_decay
    table["copy"] = None  # measure_copy
    return table


def bytes_needed(name, batch, heads, length, dim, element, causal):
    """The largest intermediate, so that what cannot fit is skipped rather than killed."""
    if name.startswith("released") and causal:
        return 3 * batch * heads * length * 2 * dim * dim * element
    if name == "softmax_unfused":
        return 4 * batch * heads * length * length * element
    return 0


def milliseconds(run, seconds, device):
    def once():
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3

    once()
    first = once()
    repeats = max(3, min(100, int(seconds * 1e3 / first)))
    times = sorted(once() for _ in range(repeats))
    return statistics.median(times), times[0], times[min(repeats - 1, repeats * 9 // 10)]


def exact_head(name, q, k, v, causal):
    """One head of the definition in float64, on a few rows."""
    length = q.shape[1]
    q, k, v = (x[0, :, 0].detach().double().cpu() for x in (q, k, v))
    rows = torch.arange(0, length, max(1, length // 16))
    if name.startswith("softmax"):
        scores = q[rows] @ k.T / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.arange(length)[None, :] > rows[:, None], -math.inf)
        return rows, scores.softmax(dim=-1) @ v
    apart = (rows[:, None] - torch.arange(length)[None, :]).double()
    decay = torch.exp(fla_source.SHORTEST * apart.clamp_min(0)) if name.endswith("_decay") else 1
    if name == "fla_decay":
        return rows, ((q[rows] @ k.T) * decay).masked_fill(apart < 0, 0) @ v
    w = (q[rows].relu() @ k.relu().T) * (apart * (math.pi / (2 * length))).cos() * decay
    if causal:
        w = w.masked_fill(torch.arange(length)[None, :] > rows[:, None], 0)
    return rows, (w @ v) / w.sum(-1, keepdim=True).clamp_min(EPS)


def measure_copy(arguments, length, backward):
    """q, k, v, out; backward once more, dout and three gradients: a copy reads one half of the bytes and writes one."""
    shape = (6 if backward else 2, arguments.batch, length, arguments.heads, arguments.dim)
    source = torch.empty(shape, device=arguments.device, dtype=getattr(torch, arguments.dtype)).normal_()
    target = torch.empty_like(source)
    return milliseconds(lambda: target.copy_(source), arguments.seconds, arguments.device), None


def measure(name, call, arguments, length, causal, backward):
    device, dtype = arguments.device, getattr(torch, arguments.dtype)
    shape = (arguments.batch, length, arguments.heads, arguments.dim)
    torch.manual_seed(0)
    q, k, v, dout = (torch.randn(shape).to(device=device, dtype=dtype) for _ in range(4))
    if backward:
        q, k, v = (x.requires_grad_() for x in (q, k, v))

    def run():
        if not backward:
            with torch.no_grad():
                return call(q, k, v)
        out = call(q, k, v)
        torch.autograd.grad(out, (q, k, v), dout)
        return out

    out = run()
    if out is None:
        return None
    rows, expected = exact_head(name, q, k, v, causal)
    error = (out[0, rows.to(out.device), 0].detach().double().cpu() - expected).abs().max().item()
    del out
    return milliseconds(run, arguments.seconds, device), error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="libcosformer.so; without it the peers alone")
    parser.add_argument("--causal", choices=["yes", "no", "both"], default="both")
    parser.add_argument("--pass", dest="passes", choices=["fwd", "fwd+bwd", "both"], default="both")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lengths", default="1024,4096")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--fla", help="GPU: the source tree of flash-linear-attention, whose kernels are peers then")
    parser.add_argument("--most-bytes", type=float, help="skip what needs more; else 12 GB, or what a GPU has free")
    arguments = parser.parse_args()
    if arguments.fla:
        fla_source.use(arguments.fla)
    most_bytes = arguments.most_bytes
    if most_bytes is None:
        most_bytes = torch.cuda.mem_get_info()[0] if arguments.device == "cuda" else 1.2e10
    if arguments.library:
        torch.ops.load_library(arguments.library)
    torch.set_num_threads(arguments.threads)
    element = torch.empty(0, dtype=getattr(torch, arguments.dtype)).element_size()
    for length in map(int, arguments.lengths.split(",")):
        for causal in {"yes": (True,), "no": (False,), "both": (True, False)}[arguments.causal]:
            for backward in {"fwd": (False,), "fwd+bwd": (True,), "both": (False, True)}[arguments.passes]:
                for name, call in peers(causal, arguments.device, bool(arguments.fla)).items():
                    if name in ("ours", "ours_decay", "copy") and not arguments.library:
                        continue
                    line = {"bench": "peers", "peer": name, "torch": torch.__version__, "device": arguments.device,
                            "dtype": arguments.dtype, "causal": causal, "pass": "fwd+bwd" if backward else "fwd",
                            "batch": arguments.batch, "heads": arguments.heads, "length": length,
                            "dim": arguments.dim, "threads": arguments.threads}
                    needed = bytes_needed(name, arguments.batch, arguments.heads, length, arguments.dim, element,
                                          causal)
                    result = None
                    if needed <= most_bytes:
                        try:
                            result = (measure_copy(arguments, length, backward) if call is None else
                                      measure(name, call, arguments, length, causal, backward))
                        except RuntimeError as error:  # a kernel that refuses the shape, or out of memory
                            line["skipped"] = str(error).splitlines()[0]
                        if arguments.device == "cuda":
                            torch.cuda.empty_cache()  # of what the next one may need
                    else:
                        line["skipped"] = f"needs {needed / 1e9:.0f} GB"
                    if result is not None:
                        (line["median_ms"], line["min_ms"], line["p90_ms"]), line["max_error"] = result
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
