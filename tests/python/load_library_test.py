"""The operator from Python through torch.ops.load_library: values, gradients, state, errors."""
import math
import sys
import unittest

import torch

torch.ops.load_library(sys.argv.pop(1))
attention = torch.ops.cosformer.attention
attention_with_state = torch.ops.cosformer.attention_with_state


def quadratic(q, k, v, horizon, causal):
    i, j = torch.arange(q.shape[1], dtype=q.dtype), torch.arange(k.shape[1], dtype=q.dtype)
    w = torch.einsum("bihd,bjhd->bhij", q.relu(), k.relu())
    w = w * torch.cos((i[:, None] - j[None, :]) * math.pi / (2 * horizon))
    if causal:
        w = w.tril()
    return torch.einsum("bhij,bjhd->bihd", w / w.sum(-1, keepdim=True).clamp_min(1e-6), v)


def tensors(*shapes):
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=torch.double, requires_grad=True) for shape in shapes]


DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


class LoadLibrary(unittest.TestCase):
    def test_values(self):
        q, k, v = tensors((2, 6, 3, 4), (2, 9, 3, 4), (2, 9, 3, 5))
        for causal in (False, True):
            torch.testing.assert_close(attention(q, k, v, causal=causal), quadratic(q, k, v, 9, causal))

    def test_gradients(self):
        q, k, v = tensors((1, 5, 2, 3), (1, 5, 2, 3), (1, 5, 2, 2))
        decay = torch.tensor([-0.2, -0.01], dtype=torch.double, requires_grad=True)
        for causal in (False, True):
            self.assertTrue(torch.autograd.gradcheck(
                lambda q, k, v, d: attention(q, k, v, causal=causal, log_decay=d), (q, k, v, decay)))

    def test_gradients_of_one_graph_taken_twice(self):
        """What the forward pass hands to the backward pass is not used up by it."""
        for device in DEVICES:
            for dtype in (torch.float32, torch.bfloat16):
                for causal, dim in ((False, 96), (True, 64), (True, 96), (True, 160)):
                    q, k, v = (x.detach().to(device, dtype).requires_grad_() for x in tensors(*[(1, 1100, 1, dim)] * 3))
                    out = attention(q, k, v, causal=causal)
                    with torch.no_grad():  # which keeps nothing for a backward pass
                        self.assertTrue(torch.equal(out, attention(q, k, v, causal=causal)))
                    first = torch.autograd.grad(out, (q, k, v), torch.ones_like(out), retain_graph=True)
                    second = torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
                    for a, b in zip(first, second):
                        self.assertTrue(torch.equal(a, b) and bool(a.isfinite().all()), f"{device} {dtype} {causal}")

    def test_state_and_its_gradients(self):
        q, k, v, kv = tensors((2, 4, 2, 3), (2, 4, 2, 3), (2, 4, 2, 2), (2, 2, 2, 3, 2))
        z = torch.rand(2, 2, 2, 3, dtype=torch.double, requires_grad=True)
        position = torch.tensor([3, 8])
        self.assertTrue(torch.autograd.gradcheck(
            lambda *x: attention_with_state(*x, position, horizon=40.0), (q, k, v, kv, z)))

    def test_autocast(self):
        """Runs in the lower precision, backward too, as a caller who rounds the inputs would see it."""
        for device in DEVICES:
            wide = [x.detach().to(device, torch.float32).requires_grad_() for x in tensors(*[(2, 70, 3, 64)] * 3)]
            narrow = [x.detach().to(torch.bfloat16).requires_grad_() for x in wide]
            with torch.autocast(device, dtype=torch.bfloat16):
                out = attention(*wide, causal=True)
            expected = attention(*narrow, causal=True)
            self.assertEqual(out.dtype, torch.bfloat16)
            self.assertTrue(torch.equal(out, expected), device)
            gradients = torch.autograd.grad(out, wide, torch.ones_like(out))
            for got, same in zip(gradients, torch.autograd.grad(expected, narrow, torch.ones_like(out))):
                self.assertTrue(got.dtype == torch.float32 and torch.equal(got, same.float()), device)

    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_graphs_and_streams(self):
        """A captured step, replayed on new numbers, and one on another stream give the bits of a plain one."""
        for dtype, dim in ((torch.bfloat16, 64), (torch.bfloat16, 128), (torch.float16, 64), (torch.float32, 40)):
            inputs = [x.detach().to("cuda", dtype).requires_grad_() for x in tensors(*[(1, 1500, 2, dim)] * 3)]
            decay = torch.tensor([-0.1, -0.01], device="cuda", requires_grad=True)

            def step(causal):
                out = attention(*inputs, causal=causal, log_decay=decay)
                return (out, *torch.autograd.grad(out, [*inputs, decay], torch.ones_like(out)))

            for causal in (True, False):
                with torch.cuda.stream(torch.cuda.Stream()):
                    elsewhere = step(causal)
                    torch.cuda.current_stream().synchronize()
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                        captured = step(causal)
                with torch.no_grad():
                    for x in inputs:
                        x.copy_(x.roll(1, dims=1))
                graph.replay()
                torch.cuda.synchronize()
                plain = step(causal)
                for a, b in zip(captured, plain):
                    self.assertTrue(torch.equal(a, b) and bool(a.isfinite().all()), f"graph {dtype} {dim} {causal}")
                with torch.no_grad():
                    for x in inputs:
                        x.copy_(x.roll(-1, dims=1))
                for a, b in zip(elsewhere, step(causal)):
                    self.assertTrue(torch.equal(a, b), f"stream {dtype} {dim} {causal}")

    def test_errors_are_value_errors(self):
        q, k, v = tensors((1, 5, 2, 3), (1, 5, 2, 3), (1, 5, 2, 2))
        with self.assertRaisesRegex(ValueError, "'horizon' must be at least 4"):
            attention(q, k, v, horizon=2.0)
        with self.assertRaisesRegex(ValueError, "'feature_map' must be one of relu"):
            attention(q, k, v, feature_map="gelu")

    def test_meta(self):
        q = torch.empty(2, 6, 3, 4, device="meta")
        self.assertEqual(attention(q, q, q).shape, q.shape)


if __name__ == "__main__":
    unittest.main()
