"""`cosformer serve` through its port.

server_test.py COSFORMER MAKE_LANGUAGE_RUN [unittest's arguments]
"""
import concurrent.futures
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from server_process import Server

PROGRAM, MAKE_RUN = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory()
SMALL = ["model.layers=2", "model.width=32", "model.heads=2", "model.feed_forward=64"]


def run_of(name, attention="cosformer_plus", length=1 << 20):
    folder = os.path.join(FOLDER.name, name)
    if not os.path.exists(folder):
        subprocess.run([MAKE_RUN, folder, attention, str(length), *SMALL], check=True)
    return folder


def generated(run, prompt, **options):
    """What the program writes alone: its JSON."""
    arguments = [PROGRAM, "generate", run, "--prompt", prompt, "--json", "--device", "cpu"]
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            arguments += [f"--{name.replace('_', '-')}", str(each)]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_folder = run_of("book")
        cls.server = Server(PROGRAM, [cls.run_folder, run_of("other", "softmax", 4096)])

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def refused(self, status, path, body, method="POST", headers=None):
        got, answer_headers, answer = self.server.ask(method, path, body, headers)
        self.assertEqual(got, status, answer)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        self.assertEqual(self.server.ask("GET", "/health")[0], 200)
        return answer["error"], answer_headers

    def test_health_and_models(self):
        self.assertEqual(self.server.ask("GET", "/health")[2], {"status": "ok"})
        self.assertEqual(self.server.ask("GET", "/ready")[2], {"status": "ready"})
        models = self.server.ask("GET", "/v1/models")[2]["data"]
        self.assertEqual([model["id"] for model in models], ["book", "other"])
        self.assertEqual(models[0]["kind"], "lm")
        self.assertEqual(models[0]["vocabulary"], 258)
        self.assertGreater(models[0]["state_bytes"], 0)
        self.assertEqual(models[0]["softmax_cache_bytes_per_token"], 2 * 2 * 32 * 4)
        self.assertEqual(models[1]["context_length"], 4096)

    def test_a_completion_is_what_generate_writes(self):
        expected = generated(self.run_folder, "Once upon", seed=5, max_tokens=30, temperature=0.8)
        answer = self.server.complete(model="book", prompt="Once upon", seed=5, max_tokens=30, temperature=0.8)
        self.assertEqual(answer["object"], "text_completion")
        self.assertEqual(answer["choices"][0]["text"], expected["text"])
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")
        self.assertEqual(answer["usage"]["prompt_tokens"], 9)
        self.assertEqual(answer["usage"]["completion_tokens"], 30)
        self.assertEqual(answer["usage"]["total_tokens"], 39)
        as_tokens = self.server.complete(model="book", prompt=list(b"Once upon"), seed=5, max_tokens=30,
                                         temperature=0.8)
        self.assertEqual(as_tokens["choices"][0]["text"], expected["text"])

    def test_many_at_once_are_what_generate_writes_alone(self):
        draw = random.Random(3)
        start = "".join(draw.choice("abcdefgh ") for _ in range(700))
        cases = []
        for at in range(24):
            prompt = start[:draw.randrange(700)] + "".join(draw.choice("xyz ,.") for _ in range(draw.randrange(20)))
            options = {"seed": draw.randrange(1 << 32), "max_tokens": draw.randrange(1, 40),
                       "temperature": draw.choice([0, 0.7, 1.2])}
            if at % 3 == 0:
                options["top_k"] = 12
            if at % 4 == 0:
                options["top_p"] = 0.8
            if at % 5 == 0:
                options["repetition_penalty"] = 1.3
            cases.append((prompt, options, draw.choice([[], ["a"], ["xx", "b"]]), draw.choice(["book", "other"])))
        expected = [generated(os.path.join(FOLDER.name, model), prompt, stop=stop, **options)
                    for prompt, options, stop, model in cases]

        def ask(case):
            prompt, options, stop, model = case
            time.sleep(draw.random() * 0.2)
            if stop == ["a"]:
                pieces = self.server.stream(model=model, prompt=prompt, stop=stop, **options)
                return "".join(piece["choices"][0]["text"] for piece in pieces)
            return self.server.complete(model=model, prompt=prompt, stop=stop, **options)["choices"][0]["text"]

        for _ in range(3):  # the second time from the prefix cache
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                for case, wanted, got in zip(cases, expected, pool.map(ask, cases)):
                    self.assertEqual(got, wanted["text"], case)

    def test_a_stream(self):
        whole = self.server.complete(model="book", prompt="The", seed=2, max_tokens=40)
        events = list(self.server.stream(model="book", prompt="The", seed=2, max_tokens=40,
                                         stream_options={"include_usage": True}))
        self.assertEqual("".join(e["choices"][0]["text"] for e in events[:-1]), whole["choices"][0]["text"])
        self.assertEqual([e["choices"][0]["finish_reason"] for e in events[:-2]], [None] * (len(events) - 2))
        self.assertEqual(events[-2]["choices"][0]["finish_reason"], "length")
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["completion_tokens"], 40)
        self.assertEqual(len({e["id"] for e in events}), 1)

    def test_choices_echo_and_logprobs(self):
        answer = self.server.complete(model="book", prompt="The", seed=2, n=3, max_tokens=8, echo=True)
        singles = [self.server.complete(model="book", prompt="The", seed=2 + at, max_tokens=8) for at in range(3)]
        self.assertEqual([c["text"] for c in answer["choices"]], ["The" + s["choices"][0]["text"] for s in singles])
        self.assertEqual([c["index"] for c in answer["choices"]], [0, 1, 2])
        answer = self.server.complete(model="book", prompt="The", temperature=0, max_tokens=6, logprobs=3)
        told = answer["choices"][0]["logprobs"]
        self.assertEqual(len(told["tokens"]), 6)
        for chance, likeliest in zip(told["token_logprobs"], told["top_logprobs"]):
            self.assertEqual(len(likeliest), 3)
            self.assertEqual(chance, max(likeliest.values()))  # temperature 0
            self.assertLess(chance, 0)

    def test_a_prompt_that_was_read_is_not_read_again(self):
        prompt = "".join(random.Random(8).choice("abc ") for _ in range(3000))
        first = self.server.complete(model="book", prompt=prompt, seed=1, max_tokens=20)
        again = self.server.complete(model="book", prompt=prompt, seed=1, max_tokens=20)
        longer = self.server.complete(model="book", prompt=prompt + " and", seed=1, max_tokens=20)
        self.assertEqual(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertEqual(again["usage"]["prompt_tokens_details"]["cached_tokens"], 3000)
        self.assertGreaterEqual(longer["usage"]["prompt_tokens_details"]["cached_tokens"], 2500)
        self.assertEqual(again["choices"], first["choices"])
        self.assertEqual(longer["choices"][0]["text"],
                         generated(self.run_folder, prompt + " and", seed=1, max_tokens=20)["text"])

    def test_tokens(self):
        tokens = self.server.ask("POST", "/tokenize", {"model": "book", "content": "Hé"})[2]
        self.assertEqual(tokens, {"tokens": [72, 195, 169]})
        content = self.server.ask("POST", "/detokenize", {"model": "book", **tokens})[2]
        self.assertEqual(content, {"content": "Hé"})

    def test_embeddings(self):
        _, _, answer = self.server.ask("POST", "/v1/embeddings", {"model": "book", "input": ["one", "two", "one"]})
        vectors = [each["embedding"] for each in answer["data"]]
        self.assertEqual(len(vectors[0]), 32)
        self.assertAlmostEqual(sum(x * x for x in vectors[0]), 1, places=5)
        self.assertEqual(vectors[0], vectors[2])
        self.assertNotEqual(vectors[0], vectors[1])
        self.assertEqual(answer["usage"]["prompt_tokens"], 9)

    def test_what_is_wrong_is_said(self):
        wrong = [({"model": "book", "prompt": 3}, "prompt"), ({"model": "book", "prompt": [258]}, "prompt"),
                 ({"model": "book", "prompt": [-1]}, "prompt"), ({"model": "book", "max_tokens": -1}, "max_tokens"),
                 ({"model": "book", "max_tokens": 1.5}, "max_tokens"),
                 ({"model": "book", "temperature": "x"}, "temperature"),
                 ({"model": "book", "temperature": -1}, "temperature"), ({"model": "book", "top_p": 0}, "top_p"),
                 ({"model": "book", "n": 0}, "n"), ({"model": "book", "n": 100}, "n"),
                 ({"model": "book", "stop": [1]}, "stop"),
                 ({"model": "book", "seed": "x"}, "seed"), ({"model": "book", "stream": "yes"}, "stream"),
                 ({"model": "book", "logprobs": 21}, "logprobs"), ({"prompt": "x"}, "model"), ({"model": 1}, "model"),
                 ({"model": "book", "state": "AAAA"}, "state"), ({"model": "book", "state": "?"}, "state"),
                 ({"model": "other", "prompt": "x" * 5000}, "prompt"),
                 ({"model": "book", "max_tokens": 1 << 63}, "max_tokens")]
        for body, param in wrong:
            error, _ = self.refused(400, "/v1/completions", body)
            self.assertEqual(error["param"], param, body)
            self.assertEqual(error["type"], "invalid_request_error")
        self.refused(404, "/v1/completions", {"model": "none", "prompt": "x"})
        self.refused(404, "/v1/nothing", {})
        self.refused(404, "/../../etc/passwd", None, "GET")
        self.refused(405, "/v1/completions", None, "GET")
        self.refused(405, "/health", {}, "POST")
        self.refused(400, "/v1/chat/completions", {"model": "book", "messages": []})

    def test_bodies_that_are_none(self):
        for body in [b"", b"{", b"[]", b"\xff\xfe", b'{"prompt": "\xc3"}', b"[" * 100000, b'{"a":' * 5000, b"nul",
                     '{"prompt": "é"}'.encode("latin-1"), '{"model": "book"}'.encode("utf-16")]:
            self.refused(400, "/v1/completions", body)

    def test_texts_of_any_language(self):
        for text in ["日本語", "🙂🙂", "\u0000\u0001", "e\u0301"]:
            answer = self.server.complete(model="book", prompt=text, max_tokens=3, temperature=0, echo=True)
            self.assertTrue(answer["choices"][0]["text"].startswith(text))
        raw = self.server.ask("POST", "/v1/completions", b'{"model": "book", "prompt": "\\ud800", "max_tokens": 1}')
        self.assertEqual(raw[0], 400)

    def test_documents_for_people_and_programs(self):
        status, headers, document = self.server.ask("GET", "/openapi.json")
        self.assertEqual((status, document["openapi"]), (200, "3.1.0"))
        status, headers, page = self.server.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        self.assertEqual(self.server.ask("GET", "/", headers={"If-None-Match": headers["ETag"]})[0], 304)
        status, headers, nothing = self.server.ask("HEAD", "/")
        self.assertEqual((status, nothing), (200, b""))
        self.assertEqual(int(headers["Content-Length"]), len(page))
        figures = self.server.figures()
        self.assertGreater(figures['cosformer_tokens_total{kind="completion",model="book"}'], 0)

    def test_a_connection_is_kept(self):
        connection = self.server.connection()
        for _ in range(50):
            self.assertEqual(self.server.ask("GET", "/health", connection=connection)[0], 200)
        self.assertEqual(self.server.ask("POST", "/v1/completions", {"model": "none"}, connection=connection)[0], 404)
        self.assertEqual(self.server.ask("GET", "/health", connection=connection)[0], 200)
        connection.close()

    def test_the_log_says_no_contents(self):
        self.server.complete(model="book", prompt="SECRET-PROMPT", max_tokens=2)
        self.server.wait_for(lambda: any("POST /v1/completions 200" in line for line in self.server.log))
        self.assertNotIn("SECRET", "".join(self.server.log))


class Sessions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=FOLDER.name)
        self.run_folder = run_of("book")
        self.server = self.started()

    def tearDown(self):
        self.server.kill()

    def started(self):
        return Server(PROGRAM, [self.run_folder], "--sessions", self.folder)

    def ask(self, method, path, body=None, status=200):
        got, _, answer = self.server.ask(method, "/v1/sessions" + path, body)
        self.assertEqual(got, status, answer)
        return answer

    def write(self, **fields):
        return self.server.complete(max_tokens=20, seed=4, **fields)["choices"][0]["text"]

    def test_a_session_goes_on_as_generate_does(self):
        session = os.path.join(self.folder, "file")
        expected = [generated(self.run_folder, "Once", seed=4, max_tokens=20, save_session=session)["text"],
                    generated(self.run_folder, " upon", seed=4, max_tokens=20, session=session)["text"]]
        made = self.ask("POST", "", {"id": "mine", "prompt": "Once"}, 201)
        self.assertEqual((made["tokens"], made["text_tail"], made["saved"]), (5, "Once", False))
        self.assertEqual(made["softmax_cache_bytes"], 5 * 512)
        self.assertEqual([self.write(session="mine"), self.write(session="mine", prompt=" upon")], expected)
        now = self.ask("GET", "/mine")
        self.assertEqual(now["tokens"], 1 + 4 + 20 + 5 + 20)
        self.assertEqual(now["snapshots"], [{"position": 5}, {"position": 25}])

    def test_append_fork_and_back(self):
        self.ask("POST", "", {"id": "a", "prompt": "Once"}, 201)
        self.assertEqual(self.ask("POST", "/a/append", {"content": " upon"})["tokens"], 10)
        self.ask("POST", "/a/fork", {"id": "b"}, 201)
        self.assertEqual(self.ask("POST", "/a/fork", {"id": "c", "at": 5}, 201)["text_tail"], "Once")
        at_a = self.write(session="a")
        self.assertEqual(self.write(session="b"), at_a)
        self.assertEqual(self.write(session="c", prompt=" upon"), at_a)
        self.ask("POST", "/a/fork", {"id": "d", "at": 7}, 400)
        self.ask("POST", "/a/fork", {"id": "b"}, 409)
        self.assertEqual([s["id"] for s in self.ask("GET", "")["data"]], ["a", "b", "c"])
        self.ask("DELETE", "/a")
        self.ask("GET", "/a", status=404)
        self.ask("POST", "/a/append", {"content": "x"}, 404)

    def test_saved_sessions_survive_a_kill(self):
        self.ask("POST", "", {"id": "kept", "prompt": "Once"}, 201)
        self.write(session="kept")
        self.assertTrue(self.ask("POST", "/kept/save")["saved"])
        expected = self.write(session="kept")
        self.assertFalse(self.ask("GET", "/kept")["saved"])
        self.server.process.send_signal(signal.SIGKILL)
        self.server.kill()
        self.server = self.started()
        self.ask("GET", "/kept", status=404)
        self.assertTrue(self.ask("POST", "/kept/restore")["saved"])
        self.assertEqual(self.write(session="kept"), expected)

    def test_all_are_saved_at_the_end(self):
        self.ask("POST", "", {"id": "one", "prompt": "Once"}, 201)
        self.assertEqual(self.server.end(), 0)
        self.server.kill()
        self.server = self.started()
        self.assertEqual(self.ask("POST", "/one/restore")["tokens"], 5)

    def test_damaged_files_are_that_requests_error(self):
        self.ask("POST", "", {"id": "one", "prompt": "Once"}, 201)
        self.ask("POST", "/one/save")
        path = os.path.join(self.folder, "book", "one.session")
        with open(path, "r+b") as file:
            file.seek(-5, os.SEEK_END)
            file.write(b"\x7f\x7f\x7f")
        message = self.ask("POST", "/one/restore", status=400)["error"]["message"]
        self.assertIn("damaged", message)
        self.assertNotIn(self.folder, message)
        self.assertEqual(self.ask("GET", "/one")["tokens"], 5)

    def test_a_folder_that_cannot_be_written(self):
        self.ask("POST", "", {"id": "one"}, 201)
        os.rmdir(os.path.join(self.folder, "book"))
        got, _, answer = self.server.ask("POST", "/v1/sessions/one/save")
        self.assertEqual(got, 500, answer)
        self.assertNotIn(self.folder, answer["error"]["message"])
        self.assertEqual(self.ask("GET", "/one")["tokens"], 1)

    def test_names(self):
        for name in ["", "a/b", "..", "a b", "é", "x" * 65, "a.b"]:
            self.ask("POST", "", {"id": name}, 400)
        for path in ["/..", "/%2e%2e", "/../../x", "/a%00b"]:
            self.assertIn(self.server.ask("POST", f"/v1/sessions{path}/restore")[0], (400, 404))
        self.ask("POST", "/none/save", status=404)
        self.ask("POST", "/none/restore", status=404)
        made = self.ask("POST", "", {}, 201)
        self.assertRegex(made["id"], "^[A-Za-z0-9_-]{1,64}$")

    def test_one_request_at_a_time_works_with_a_session(self):
        self.ask("POST", "", {"id": "one", "prompt": "Once"}, 201)
        stream = self.server.stream(session="one", max_tokens=1 << 20, past_end=True)
        next(stream)
        self.ask("POST", "/one/append", {"content": "x"}, 409)
        self.ask("DELETE", "/one", status=409)
        stream.close()

    def test_a_stopped_answer_is_kept(self):
        self.ask("POST", "", {"id": "one", "prompt": "Once"}, 201)
        connection = self.server.connection()
        connection.request("POST", "/v1/completions", json.dumps({"session": "one", "max_tokens": 1 << 20,
                                                                  "past_end": True, "stream": True}))
        response = connection.getresponse()
        for _ in range(10):
            response.readline()
        response.close()
        connection.close()
        self.server.wait_for(lambda: self.server.figures()['cosformer_texts{model="book",state="writing"}'] == 0)
        self.assertGreater(self.ask("GET", "/one")["tokens"], 6)

    def test_a_state_goes_to_the_client_and_back(self):
        first = self.server.complete(prompt="Once", seed=4, max_tokens=10, return_state=True)
        second = self.server.complete(prompt=" upon", state=first["state"], seed=4, max_tokens=10)
        self.ask("POST", "", {"id": "same", "prompt": "Once"}, 201)
        self.assertEqual(self.server.complete(session="same", seed=4, max_tokens=10)["choices"], first["choices"])
        self.assertEqual(self.server.complete(session="same", prompt=" upon", seed=4, max_tokens=10)["choices"],
                         second["choices"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
