"""The example that loads a run in Python gives the logits that the program gives.

    load_run_test.py LIBRARY COSFORMER MAKE_LANGUAGE_RUN EXAMPLES
"""
import json
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


class LoadRun(unittest.TestCase):
    def test_logits_are_the_programs(self):
        for model in (["cosformer", "128"], ["cosformer_plus", "128"], ["linear", "128"],
                      ["cosformer_plus", "128", "gated"]):
            with self.subTest(model), tempfile.TemporaryDirectory() as run:
                subprocess.run([MAKE_RUN, run, *model], check=True)
                output = subprocess.run([PROGRAM, "generate", run, "--prompt", PROMPT, "--max-tokens", "0", "--json",
                                         "--logits", "--device", "cpu"], check=True, capture_output=True, text=True)
                theirs = torch.tensor(json.loads(output.stdout)["logits"])
                ours = load_run.logits(run, PROMPT.encode())[-1]
                exact = self.in_double(run)
                self.assertGreater(theirs.std().item(), 0.1)
                error, bound = (theirs - exact).abs().max().item(), 2 * (ours - exact).abs().max().item()
                self.assertLessEqual(error, bound)
                self.assertLess(bound, 1e-3 * theirs.std().item())

    def in_double(self, run):
        weights, settings = load_run.read_run(run)
        doubled = {name: tensor.double() for name, tensor in weights.items()}
        with unittest.mock.patch.object(load_run, "read_run", lambda _: (doubled, settings)):
            return load_run.logits(run, PROMPT.encode())[-1]

    def test_it_runs_as_a_program(self):
        with tempfile.TemporaryDirectory() as run:
            subprocess.run([MAKE_RUN, run, "cosformer_plus", "128"], check=True)
            output = subprocess.run([sys.executable, EXAMPLES + "/load_run.py", LIBRARY, run, PROMPT], check=True,
                                    capture_output=True, text=True)
            self.assertEqual(len(output.stdout.splitlines()), 5)

    def test_it_is_short(self):
        with open(EXAMPLES + "/load_run.py", encoding="utf-8") as file:
            self.assertLessEqual(len(file.readlines()), 60)


if __name__ == "__main__":
    unittest.main()
