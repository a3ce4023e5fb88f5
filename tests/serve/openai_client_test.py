"""`cosformer serve` and OpenAI's Python client. Exits with 77 where that cannot be had.

openai_client_test.py COSFORMER MAKE_LANGUAGE_RUN FOLDER_FOR_A_VIRTUAL_ENVIRONMENT
"""
import os
import subprocess
import sys
import tempfile
import unittest

from server_process import Server

PROGRAM, MAKE_RUN, ENVIRONMENT = sys.argv[1:4]


def be_the_environments_python():
    python = os.path.join(ENVIRONMENT, "bin", "python")
    if os.path.abspath(sys.prefix) == os.path.abspath(ENVIRONMENT):
        return
    if subprocess.run([python, "-c", "import openai"], capture_output=True, check=False).returncode != 0 \
            if os.path.exists(python) else True:
        try:
            for command in ([sys.executable, "-m", "venv", ENVIRONMENT],
                            [python, "-m", "pip", "install", "--quiet", "--retries", "1", "openai>=1,<3"]):
                subprocess.run(command, capture_output=True, check=True, timeout=120)
        except (subprocess.SubprocessError, OSError):
            print("OpenAI's client cannot be installed here")
            sys.exit(77)
    os.execv(python, [python, *sys.argv])


be_the_environments_python()
import openai  # noqa: E402


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        run = os.path.join(cls.folder.name, "book")
        subprocess.run([MAKE_RUN, run, "cosformer_plus", "4096"], check=True)
        cls.server = Server(PROGRAM, [run], environment={"COSFORMER_API_KEY": "sesame"})
        cls.client = cls.client_with("sesame")

    @classmethod
    def client_with(cls, key):
        return openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key=key, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.folder.cleanup()

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["book"])

    def test_completions(self):
        whole = self.client.completions.create(model="book", prompt="The", max_tokens=20, seed=3, n=2, logprobs=2)
        self.assertEqual(len(whole.choices), 2)
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(len(whole.choices[0].logprobs.tokens), 20)
        self.assertEqual(whole.usage.completion_tokens, 40)
        self.assertEqual(whole.usage.prompt_tokens_details.cached_tokens, 0)

    def test_streams(self):
        options = {"model": "book", "prompt": "The", "max_tokens": 20, "seed": 3}
        whole = self.client.completions.create(**options)
        pieces = list(self.client.completions.create(**options, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(p.choices[0].text for p in pieces if p.choices), whole.choices[0].text)
        self.assertEqual(pieces[-1].usage.completion_tokens, 20)

    def test_own_fields(self):
        answer = self.client.completions.create(model="book", prompt="The", max_tokens=3,
                                                extra_body={"return_state": True})
        again = self.client.completions.create(model="book", prompt="", max_tokens=3,
                                               extra_body={"state": answer.state})
        self.assertEqual(again.usage.completion_tokens, 3)

    def test_embeddings(self):
        floats = self.client.embeddings.create(model="book", input=["a", "b"], encoding_format="float")
        packed = self.client.embeddings.create(model="book", input=["a", "b"])
        self.assertEqual([len(each.embedding) for each in floats.data], [24, 24])
        for x, y in zip(floats.data[0].embedding, packed.data[0].embedding):
            self.assertAlmostEqual(x, y, places=6)

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.completions.create(model="none", prompt="x")
        with self.assertRaises(openai.BadRequestError) as refused:
            self.client.completions.create(model="book", prompt="x", max_tokens=-1)
        self.assertEqual(refused.exception.body["param"], "max_tokens")
        with self.assertRaises(openai.AuthenticationError):
            self.client_with("wrong").models.list()
        with self.assertRaises(openai.BadRequestError):
            self.client.chat.completions.create(model="book", messages=[{"role": "user", "content": "x"}])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
