"""`cosformer serve` and clients that are slow, rude, many or gone.

hostile_clients_test.py COSFORMER MAKE_LANGUAGE_RUN [unittest's arguments]
"""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server_process import Server

PROGRAM, MAKE_RUN = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory()
RUN = os.path.join(FOLDER.name, "book")
WRITING = 'cosformer_texts{model="book",state="writing"}'


def setUpModule():
    subprocess.run([MAKE_RUN, RUN, "cosformer_plus", str(1 << 20), "model.layers=2", "model.width=32", "model.heads=2",
                    "model.feed_forward=64"], check=True)


def post(body, path="/v1/completions", *headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def everything(connection):
    """What comes until the server closes."""
    received = b""
    try:
        while piece := connection.recv(1 << 16):
            received += piece
    except ConnectionResetError:
        pass
    return received


class Hostile(unittest.TestCase):
    def setUp(self):
        self.server = Server(PROGRAM, [RUN], *self.options())

    def tearDown(self):
        alive = self.server.process.poll() is None
        healthy = alive and self.server.ask("GET", "/health")[0] == 200
        self.server.kill()
        self.assertTrue(healthy, "".join(self.server.log[-20:]))

    def options(self):
        return ["--max-queue", "4", "--batch", "2", "--max-body", "65536", "--max-connections", "40"]

    def send(self, data, half_close=False):
        with self.server.socket() as connection:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return everything(connection)

    def test_heads_that_are_none(self):
        for head in [b"\r\n\r\n\r\n", b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01",
                     b"GET /\x00 HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345"]:
            answer = self.send(head + b"\r\n\r\n", half_close=True)
            self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 4"), (head, answer))

    def test_random_bytes(self):
        draw = random.Random(1)
        good = post({"prompt": "x", "max_tokens": 1}) + b"GET /v1/models HTTP/1.1\r\n\r\n"
        for _ in range(300):
            data = bytearray(good)
            for _ in range(draw.randrange(1, 8)):
                at = draw.randrange(len(data))
                choice = draw.randrange(3)
                if choice == 0:
                    data[at] = draw.randrange(256)
                elif choice == 1:
                    del data[at:at + draw.randrange(20)]
                else:
                    data[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(20)))
                if not data:
                    break
            self.send(bytes(data), half_close=True)

    def test_too_large(self):
        self.assertTrue(self.send(b"GET / HTTP/1.1\r\nX: " + b"y" * 100000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431"))
        self.assertTrue(self.send(b"GET /" + b"y" * 100000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 4"))
        self.assertTrue(self.send(post(b"x" * 70000)).startswith(b"HTTP/1.1 413"))
        claimed = b"POST /v1/completions HTTP/1.1\r\nContent-Length: 1000000000000\r\n\r\n"
        self.assertTrue(self.send(claimed).startswith(b"HTTP/1.1 413"))

    def test_bodies_of_unknown_length(self):
        chunked = b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        self.assertTrue(self.send(chunked).startswith(b"HTTP/1.1 411"))

    def test_pipelined_requests_are_answered_in_their_order(self):
        requests = [post({"prompt": "ab", "max_tokens": n, "seed": 1, "past_end": True}, "/v1/completions")
                    for n in (30, 1, 5)]
        data = b"".join(requests) + b"GET /health HTTP/1.1\r\n\r\n" + \
            b"GET /ready HTTP/1.1\r\nConnection: close\r\n\r\n"
        answer = self.send(data)
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 5)
        counts = [piece.split(b",")[0] for piece in answer.split(b'"completion_tokens":')[1:]]
        self.assertEqual(counts, [b"30", b"1", b"5"])
        self.assertLess(answer.index(b'"status":"ok"'), answer.index(b'"status":"ready"'))

    def test_http_1_0_and_expectations(self):
        self.assertIn(b"Connection: close", self.send(b"GET /health HTTP/1.0\r\n\r\n"))
        streamed = self.send(post({"prompt": "x", "max_tokens": 3, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0"))
        self.assertNotIn(b"chunked", streamed)
        self.assertTrue(streamed.endswith(b"data: [DONE]\n\n"))
        with self.server.socket() as connection:
            whole = post({"prompt": "x", "max_tokens": 1}, "/v1/completions", "Expect: 100-continue",
                         "Connection: close")
            head, body = whole.split(b"\r\n\r\n")
            connection.sendall(head + b"\r\n\r\n")
            self.assertTrue(connection.recv(100).startswith(b"HTTP/1.1 100"))
            connection.sendall(body)
            self.assertTrue(everything(connection).startswith(b"HTTP/1.1 200"))

    def test_slow_heads_end_and_hold_nobody_up(self):
        slow = [self.server.socket() for _ in range(20)]
        for connection in slow:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nX-")
        begin = time.monotonic()
        while time.monotonic() - begin < 13:
            for connection in slow:
                try:
                    connection.sendall(b"y")
                except OSError:
                    pass
            self.assertEqual(self.server.ask("GET", "/health")[0], 200)
            time.sleep(0.5)
        self.server.wait_for(lambda: self.server.figures()["cosformer_connections"] <= 2, 10)
        for connection in slow:
            connection.close()

    def test_too_many_connections(self):
        many = [self.server.socket() for _ in range(60)]
        closed = 0
        for connection in many:
            connection.settimeout(0.05)
            try:
                closed += connection.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                closed += 1
        self.assertGreaterEqual(closed, 20)
        for connection in many:
            connection.close()
        self.server.wait_for(lambda: self.reachable())

    def reachable(self):
        try:
            return self.server.ask("GET", "/health")[0] == 200
        except OSError:
            return False

    def test_who_comes_when_the_queue_is_full_is_told_so(self):
        waiting = [self.server.socket() for _ in range(6)]
        for connection in waiting:
            connection.sendall(post({"prompt": "x", "max_tokens": 1 << 20, "past_end": True}))
            time.sleep(0.05)
        self.server.wait_for(lambda: self.server.figures()['cosformer_texts{model="book",state="waiting"}'] == 4)
        status, headers, answer = self.server.ask("POST", "/v1/completions", {"prompt": "x"})
        self.assertEqual((status, answer["error"]["type"]), (429, "overloaded"))
        self.assertEqual(headers["Retry-After"], "1")
        for connection in waiting:
            connection.close()
        self.server.wait_for(lambda: self.server.figures()[WRITING] == 0)
        self.assertEqual(self.server.ask("POST", "/v1/completions", {"prompt": "x"})[0], 200)

    def test_clients_that_go_are_noticed(self):
        for stream in (True, False):
            connection = self.server.socket()
            connection.sendall(post({"prompt": "x", "max_tokens": 1 << 20, "past_end": True, "stream": stream}))
            self.server.wait_for(lambda: self.server.figures()[WRITING] == 1)
            connection.close()
            self.server.wait_for(lambda: self.server.figures()[WRITING] == 0)

    def test_clients_that_never_read_are_dropped(self):
        connection = self.server.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(post({"prompt": "x", "max_tokens": 1 << 20, "past_end": True, "stream": True,
                                 "logprobs": 20}))
        self.server.wait_for(lambda: self.server.figures()[WRITING] == 1)
        self.server.wait_for(lambda: self.server.figures()[WRITING] == 0, 60)
        connection.close()


class Ends(unittest.TestCase):
    def test_sigterm_lets_answers_end(self):
        server = Server(PROGRAM, [RUN])
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            server.complete(prompt="x", max_tokens=3000, seed=1, past_end=True)["usage"]["completion_tokens"]))
        thread.start()
        server.wait_for(lambda: server.figures()[WRITING] == 1)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(60), 0)
        thread.join()
        self.assertEqual(answers, [3000])
        server.kill()

    def test_a_second_sigterm_ends_at_once(self):
        server = Server(PROGRAM, [RUN])
        connection = server.socket()
        connection.sendall(post({"prompt": "x", "max_tokens": 1 << 20, "past_end": True}))
        server.wait_for(lambda: server.figures()[WRITING] == 1)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for(lambda: server.ask("GET", "/ready")[0] == 503)
        self.assertEqual(server.ask("POST", "/v1/completions", {"prompt": "x"})[0], 503)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(5), 130)
        connection.close()
        server.kill()


class Keys(unittest.TestCase):
    def test_other_machines_need_one(self):
        with self.assertRaisesRegex(RuntimeError, "COSFORMER_API_KEY"):
            Server(PROGRAM, [RUN], "--host", "0.0.0.0")
        with Server(PROGRAM, [RUN], "--host", "0.0.0.0", "--no-auth") as server:
            self.assertEqual(server.ask("GET", "/v1/models")[0], 200)

    def test_only_the_key_opens(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("sesame\n")
            file.flush()
            with Server(PROGRAM, [RUN], "--api-key-file", file.name) as server:
                for given in [None, "sesame", "Bearer", "Bearer ", "Bearer sesam", "Bearer sesamee", "bearer sesame"]:
                    headers = {} if given is None else {"Authorization": given}
                    for path in ["/v1/models", "/metrics", "/v1/sessions"]:
                        status, _, answer = server.ask("GET", path, headers=headers)
                        self.assertEqual((status, answer["error"]["type"]), (401, "authentication_error"), given)
                self.assertEqual(server.ask("GET", "/v1/models", headers={"Authorization": "Bearer sesame"})[0], 200)
                for path in ["/health", "/ready", "/", "/openapi.json"]:
                    self.assertEqual(server.ask("GET", path)[0], 200)

    def test_the_environment_has_one_too(self):
        with Server(PROGRAM, [RUN], environment={"COSFORMER_API_KEY": "x y"}) as server:
            self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Authorization": "Bearer x y"})[0], 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
