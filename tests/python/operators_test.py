"""The documented operators: a state that is advanced, signatures that are the schemas', errors in the operators' words.

    operators_test.py LIBRARY EXAMPLES
"""
import inspect
import itertools
import random
import sys
import unittest

import torch

LIBRARY, EXAMPLES = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, EXAMPLES)
import cosformer  # noqa: E402

cosformer.load(LIBRARY)
ops = torch.ops.cosformer
FUNCTIONS = (cosformer.attention, cosformer.attention_with_state, cosformer.attention_state)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.double)


class State(unittest.TestCase):
    def test_pieces_with_the_state_are_the_whole(self):
        torch.manual_seed(1)
        q, k, v = draw(2, 23, 3, 4), draw(2, 23, 3, 4), draw(2, 23, 3, 5)
        whole = cosformer.attention(q, k, v, causal=True, horizon=40)
        state, outs, begin = cosformer.attention_state(q, v), [], 0
        for length in (7, 1, 1, 14):
            piece = slice(begin, begin + length)
            out, state = cosformer.attention_with_state(q[:, piece], k[:, piece], v[:, piece], state, horizon=40)
            outs.append(out)
            begin += length
            self.assertEqual(state[2].tolist(), [begin, begin])
        torch.testing.assert_close(torch.cat(outs, 1), whole)

    def test_the_state_that_came_in_is_as_it_was(self):
        q = draw(1, 3, 2, 4)
        state = cosformer.attention_state(q, q)
        cosformer.attention_with_state(q, q, q, state, horizon=9)
        self.assertTrue(all(bool((part == 0).all()) for part in state))

    def test_gradients_go_through_the_state(self):
        torch.manual_seed(2)
        q, k, v = (draw(1, 6, 2, 3).requires_grad_() for _ in range(3))

        def streamed(q, k, v):
            first, state = cosformer.attention_with_state(q[:, :4], k[:, :4], v[:, :4],
                                                          cosformer.attention_state(q, v), horizon=9)
            second, _ = cosformer.attention_with_state(q[:, 4:], k[:, 4:], v[:, 4:], state, horizon=9)
            return torch.cat([first, second], 1)

        self.assertTrue(torch.autograd.gradcheck(streamed, (q, k, v)))

    def test_tensors_one_by_one_as_before(self):
        q = draw(1, 3, 2, 4)
        kv, z, position = cosformer.attention_state(q, q)
        out, kv, z = ops.attention_with_state(q, q, q, kv, z, position, horizon=9)
        same, state = cosformer.attention_with_state(q, q, q, cosformer.attention_state(q, q), horizon=9)
        for a, b in zip((out, kv, z), (same, *state)):
            self.assertTrue(torch.equal(a, b))

    def test_dtypes(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            q = torch.randn(1, 3, 2, 4).to(dtype)
            kv, z, position = cosformer.attention_state(q, q)
            self.assertEqual((kv.dtype, z.dtype, position.dtype), (torch.float32, torch.float32, torch.int64))
            out, _ = cosformer.attention_with_state(q, q, q, [kv, z, position], horizon=9)
            self.assertEqual(out.dtype, dtype)


class Documentation(unittest.TestCase):
    def test_signatures_are_the_schemas(self):
        for function in FUNCTIONS:
            packet = getattr(ops, function.__name__)
            overload = packet.carried if "carried" in packet.overloads() else packet.default
            schema = {a.name: a.default_value if a.has_default_value() else inspect.Parameter.empty
                      for a in overload._schema.arguments}
            ours = {name: p.default for name, p in inspect.signature(function).parameters.items()}
            self.assertEqual(ours, schema, function.__name__)

    def test_every_argument_is_explained_where_python_looks(self):
        for function in FUNCTIONS:
            self.assertEqual(getattr(ops, function.__name__).__doc__, function.__doc__)
        for name in inspect.signature(cosformer.attention).parameters:
            self.assertRegex(cosformer.attention.__doc__, rf"\b{name}\b")


class Refusals(unittest.TestCase):
    def test_a_state_that_is_none(self):
        q = draw(1, 3, 2, 4)
        with self.assertRaisesRegex(ValueError, "'state' must be the three tensors.*got 2"):
            cosformer.attention_with_state(q, q, q, [q, q], horizon=9)
        with self.assertRaisesRegex(ValueError, "'v' must be of 4 dimensions"):
            cosformer.attention_state(q, q[0])

    def test_wrong_arguments_are_never_torchs_to_explain(self):
        """Random shapes and dtypes: what is refused is refused by name, before torch's own checks see it."""
        seed = random.randrange(1 << 30)
        choose = random.Random(seed)
        sizes, dtypes = (0, 1, 2, 3), (torch.float32, torch.double, torch.bfloat16, torch.int64, torch.bool)
        right = {"q": (2, 3, 2, 4), "k": (2, 3, 2, 4), "v": (2, 3, 2, 3), "theta": (2,), "log_decay": (2,),
                 "key_mask": (2, 3), "state_kv": (2, 2, 2, 4, 3), "state_z": (2, 2, 2, 4), "position": (2,)}

        def tensor(name, wrong):
            shape, dtype = list(right[name]), torch.float32
            dtype = {"key_mask": torch.bool, "position": torch.int64}.get(name, dtype)
            if wrong:
                change = choose.randrange(4)
                if change == 0:
                    shape[choose.randrange(len(shape))] = choose.choice(sizes)
                elif change == 1:
                    shape.insert(choose.randrange(len(shape) + 1), choose.choice(sizes))
                elif change == 2:
                    del shape[choose.randrange(len(shape))]
                else:
                    dtype = choose.choice(dtypes)
            made = torch.zeros(shape, dtype=dtype)
            return made.to_sparse() if wrong and choose.random() < 0.1 else made

        refused = 0
        for _, causal in itertools.product(range(250), (False, True)):
            wrong = {name: choose.random() < 0.2 for name in right}
            t = {name: tensor(name, wrong[name]) for name in right}
            call = (lambda: ops.attention(t["q"], t["k"], t["v"], causal=causal, theta=t["theta"],
                                          log_decay=t["log_decay"], key_mask=t["key_mask"]))
            if choose.random() < 0.5:
                call = (lambda: cosformer.attention_with_state(
                    t["q"], t["k"], t["v"], [t["state_kv"], t["state_z"], t["position"]], horizon=9, theta=t["theta"],
                    log_decay=t["log_decay"]))
            try:
                call()
            except ValueError as error:
                refused += 1
                self.assertRegex(str(error), r"^cosformer::attention(_with_state)?: argument '", f"seed {seed}")
            except Exception as error:  # noqa: BLE001
                self.fail(f"seed {seed}: {type(error).__name__}: {error}; of "
                          f"{ {name: (tuple(x.shape), x.dtype, x.layout) for name, x in t.items()} }")
        self.assertGreater(refused, 100)


if __name__ == "__main__":
    unittest.main()
