"""The example that loads a run in Python gives the logits that the program gives.

    load_run_test.py LIBRARY COSFORMER MAKE_LANGUAGE_RUN EXAMPLES
"""
import json
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch

LIBRARY, PROGRAM, MAKE_RUN, EXAMPLES = sys.argv[1:5]
del sys.argv[1:5]
sys.path.insert(0, EXAMPLES)
import load_run  # noqa: E402

torch.ops.load_library(LIBRARY)
PROMPT = "The state never grows, é."


LONG = "The state never grows, é. " * 6  # more than two segments of a token's decay

# Of the mechanisms that go on with a text: what else a model can have. The others are refused.
WITH_OPTIONS = [
    ["cosformer"],
    ["cosformer", "attention.feature_map=leaky_relu", "attention.horizon=500"],
    ["cosformer", "model.activation=relu", "model.attention_bias=true", "language.tied=true"],
    ["cosformer_plus"],
    ["cosformer_plus", "model.norm=rms", "model.activation=gated"],
    ["cosformer_plus", "attention.token_decay=true"],
    ["cosformer_plus", "attention.token_decay=true", "attention.feature_map=silu", "attention.head_norm=true",
     "attention.theta_spread=true"],
    ["cosformer_plus", "attention.theta_learned=true"],
    ["cosformer_plus", "attention.theta_learned=true", "attention.theta_spread=true", "attention.head_norm=true"],
    ["cosformer_plus", "attention.normalizer=none", "attention.feature_map=identity", "model.head_dim=5"],
    ["linear", "model.norm_place=after", "model.positions=sinusoidal"],
    ["linear", "attention.decay=true", "attention.token_decay=true", "model.positions=learned"],
    ["performer", "model.positions=none"],
    ["performer", "model.positions=rotary", "attention.convolution=3"],
    ["softmax"],
    ["softmax", "model.positions=learned", "attention.gate=true"],
    ["hybrid"],
    ["softmax", "model.pattern=cosformer,same,linear,performer", "model.layers=5", "model.positions=rotary",
     "model.pattern_options=performer.features=20,linear.head_norm=true,linear.eps=0.001"],
    ["softmax", "model.positions=sinusoidal", "attention.head_norm=false", "model.norm=rms"],
]
REFUSED = [  # with the words of the refusal
    (["cosformer", "attention.feature_map=softmax"], "attention.feature_map softmax"),
    (["cosformer", "model.positions=stochastic"], "stochastic positions"),
    (["cosformer", "model.causal=false"], "a masked model"),
    (["cosformer", "tokenizer.hash=abc"], "a tokenizer that is not bytes"),
    (["cosformer", "language.cutoffs=100,200"], "language.cutoffs"),
]


def mechanisms():
    refusal = subprocess.run([PROGRAM, "train", "--attention", "none"], capture_output=True, text=True).stderr
    return re.search(r"must be one of (.*); got", refusal).group(1).split(", ")


def make_run(run, model):
    subprocess.run([MAKE_RUN, run, model[0], "256", *model[1:]], check=True, capture_output=True)


class LoadRun(unittest.TestCase):
    def program(self, run, *arguments):
        return subprocess.run([PROGRAM, "generate", run, *arguments, "--max-tokens", "0", "--json", "--logits",
                               "--device", "cpu"], capture_output=True, text=True)

    def test_logits_are_the_programs(self):
        for model in WITH_OPTIONS:
            prompt = LONG if "attention.token_decay=true" in model else PROMPT
            with self.subTest(model), tempfile.TemporaryDirectory() as run:
                make_run(run, model)
                error = bound = 0
                # One text's error may be luck, either way: the worst of several is compared.
                for text in (prompt, prompt[len(prompt) // 3:], prompt[len(prompt) // 2:]):
                    output = self.program(run, "--prompt", text)
                    self.assertEqual(output.returncode, 0, output.stderr)
                    theirs = torch.tensor(json.loads(output.stdout)["logits"])
                    ours = load_run.logits(run, text.encode())[-1]
                    exact = self.in_double(run, text)
                    self.assertGreater(theirs.std().item(), 0.1)
                    error = max(error, (theirs - exact).abs().max().item())
                    bound = max(bound, 2 * (ours - exact).abs().max().item())
                self.assertLessEqual(error, bound)
                self.assertLess(bound, 1e-3 * theirs.std().item())

    def test_every_mechanism_is_right_or_refused_by_name(self):
        names = mechanisms()
        self.assertGreaterEqual(len(names), 16)
        for name in names:
            with self.subTest(name), tempfile.TemporaryDirectory() as run:
                try:
                    make_run(run, [name])
                except subprocess.CalledProcessError:  # cannot be causal
                    make_run(run, [name, "model.causal=false"])
                if self.program(run, "--prompt", PROMPT).returncode == 0:
                    self.assertIn([name], [model[:1] for model in WITH_OPTIONS])
                    load_run.logits(run, PROMPT.encode())
                else:
                    with self.assertRaisesRegex(NotImplementedError, f"has attention {name}, which"):
                        load_run.logits(run, PROMPT.encode())

    def test_what_is_not_computed_is_refused_by_name(self):
        for model, words in REFUSED:
            with self.subTest(model), tempfile.TemporaryDirectory() as run:
                make_run(run, model)
                with self.assertRaisesRegex(NotImplementedError, f"has {words}"):
                    load_run.logits(run, PROMPT.encode())

    def in_double(self, run, prompt):
        weights, settings = load_run.read_run(run)
        doubled = {name: tensor.double() for name, tensor in weights.items()}
        with unittest.mock.patch.object(load_run, "read_run", lambda _: (doubled, settings)):
            return load_run.logits(run, prompt.encode())[-1]

    def test_it_runs_as_a_program(self):
        with tempfile.TemporaryDirectory() as run:
            make_run(run, ["cosformer_plus"])
            output = subprocess.run([sys.executable, EXAMPLES + "/load_run.py", LIBRARY, run, PROMPT], check=True,
                                    capture_output=True, text=True)
            self.assertEqual(len(output.stdout.splitlines()), 5)


if __name__ == "__main__":
    unittest.main()
