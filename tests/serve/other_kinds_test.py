"""`cosformer serve` with a classifier, a text-to-text model and a masked model, beside what the program says alone.

other_kinds_test.py COSFORMER [unittest's arguments]
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from server_process import Server

PROGRAM = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory()
SMALL = ["--device", "cpu", "--set", "model.width=32", "--set", "model.heads=2", "--set", "model.layers=1", "--set",
         "model.feed_forward=32", "--set", "train.batch_size=16", "--set", "train.eval_every=20", "--steps", "40"]


def path(name):
    return os.path.join(FOLDER.name, name)


def train(name, *arguments):
    subprocess.run([PROGRAM, "train", *arguments, *SMALL, "--out", path(name)], check=True, capture_output=True)


def setUpModule():
    draw = random.Random(1)
    words = ["".join(draw.choice("abcd") for _ in range(draw.randint(2, 9))) for _ in range(400)]
    with open(path("classes.tsv"), "w", encoding="utf-8") as file:
        file.write("label\ttext\n")
        file.writelines(f"{'many' if word.count('a') > 1 else 'few'}\t{word}\n" for word in words)
    with open(path("pairs.tsv"), "w", encoding="utf-8") as file:
        file.write("source\ttarget\n")
        file.writelines(f"{word}\t{word[::-1]}\n" for word in words)
    with open(path("text.txt"), "w", encoding="utf-8") as file:
        file.write(" ".join(words * 20))
    train("labels", "--task", "text_files", "--data", path("classes.tsv"), "--set", "data.max_length=16")
    train("answers", "--task", "text_to_text", "--data", path("pairs.tsv"), "--set", "text_to_text.decode_examples=5")
    train("masked", "--task", "mlm", "--data", path("text.txt"), "--set", "data.window=32")


def predicted(run, lines, *options):
    command = [PROGRAM, "predict", path(run), "--input", "-", "--output", "jsonl", "--device", "cpu", *options]
    result = subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, capture_output=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, [path("labels"), path("answers"), path("masked")], "--device", "cpu")

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def ask(self, where, **body):
        status, _, answer = self.server.ask("POST", where, body)
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, where, param, **body):
        status, _, answer = self.server.ask("POST", where, body)
        self.assertEqual((status, answer["error"]["param"]), (400, param), answer)

    def test_models(self):
        models = self.server.ask("GET", "/v1/models")[2]["data"]
        self.assertEqual([(m["id"], m["kind"]) for m in models],
                         [("labels", "classifier"), ("answers", "text_to_text"), ("masked", "mlm")])
        self.assertEqual(sorted(models[0]["classes"]), ["few", "many"])
        self.assertTrue(all(m["parameters"] > 1000 for m in models))

    def test_a_classifier_says_what_predict_says(self):
        texts = ["aaab", "bcd", "dacab"]
        answer = self.ask("/v1/classify", model="labels", input=texts)["data"]
        for alone, served in zip(predicted("labels", texts), answer):
            self.assertEqual(served["label"], alone["label"])
            for name, probability in alone["probabilities"].items():
                self.assertAlmostEqual(served["probabilities"][name], probability, places=5)
            self.assertFalse(served["truncated"])
        one = self.ask("/v1/classify", model="labels", input="aaab", top=1)["data"]
        self.assertEqual((len(one), len(one[0]["probabilities"])), (1, 1))
        self.assertTrue(self.ask("/v1/classify", model="labels", input="ab" * 40)["data"][0]["truncated"])

    def test_a_text_to_text_model_answers_what_predict_answers(self):
        for text, alone in zip(["abc", "dcba"], predicted("answers", ["abc", "dcba"])):
            answer = self.ask("/v1/completions", model="answers", prompt=text)
            self.assertEqual(answer["choices"][0]["text"], alone["output"])
            pieces = list(self.server.stream(model="answers", prompt=text, temperature=0))
            self.assertEqual("".join(p["choices"][0]["text"] for p in pieces), alone["output"])
        self.refused("/v1/completions", "temperature", model="answers", prompt="x", temperature=1)
        self.refused("/v1/completions", "n", model="answers", prompt="x", n=2)
        self.refused("/v1/completions", "session", model="answers", prompt="x", session="a")

    def test_a_masked_model_fills_gaps(self):
        answer = self.ask("/v1/fill", model="masked", input="ab[MASK]d [MASK]", top=4)["data"]
        self.assertEqual([len(gap["candidates"]) for gap in answer], [4, 4])
        for gap in answer:
            chances = [each["probability"] for each in gap["candidates"]]
            self.assertEqual(chances, sorted(chances, reverse=True))
            self.assertLessEqual(sum(chances), 1 + 1e-9)
            self.assertTrue(set("abcd ") & {each["token"] for each in gap["candidates"]}, gap)
        for wrong in ["no gap", "[MASK]" + "x" * 10000]:
            self.assertEqual(self.server.ask("POST", "/v1/fill", {"model": "masked", "input": wrong})[0], 400)

    def test_each_is_asked_what_it_can(self):
        self.refused("/v1/classify", "model", model="answers", input="x")
        self.refused("/v1/fill", "model", model="labels", input="[MASK]")
        self.refused("/v1/completions", "model", model="labels", prompt="x")
        self.refused("/v1/completions", "model", model="masked", prompt="x")
        self.refused("/v1/embeddings", "model", model="masked", input="x")
        self.refused("/v1/sessions", "model", model="labels")
        for wrong in [None, "", [], [1], [["a", "b"]], ["x"] * 300, [""], {}]:
            self.refused("/v1/classify", "input", model="labels", input=wrong)
        self.assertEqual(self.server.ask("GET", "/v1/sessions")[2]["data"], [])
        self.assertEqual(self.server.ask("GET", "/metrics")[0], 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
