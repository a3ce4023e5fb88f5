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
                for causal in (False, True):
                    q, k, v = (x.detach().to(device, dtype).requires_grad_() for x in tensors(*[(1, 1100, 1, 96)] * 3))
                    out = attention(q, k, v, causal=causal)
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
