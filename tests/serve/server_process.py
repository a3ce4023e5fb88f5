"""A server in a process of its own, and requests to it, with Python's standard library alone."""
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time


class Server:
    def __init__(self, program, runs, *options, environment=None):
        self.process = subprocess.Popen([program, "serve", *runs, "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        self.log = []
        line = self.process.stdout.readline()
        self._reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self._reader.start()
        if not line.startswith("listening on http://"):
            self.process.wait(10)
            self._reader.join(10)
            raise RuntimeError(f"no server: {line!r} {''.join(self.log)}")
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.kill()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self.process.stdout.close()
        self._reader.join(10)
        self.process.stderr.close()

    def end(self, seconds=60):
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def connection(self, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self, timeout=60):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Status, headers and body; the body as JSON where it is."""
        own = connection or self.connection()
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        own.request(method, path, data, headers or {})
        response = own.getresponse()
        content = response.read()
        if connection is None:
            own.close()
        if response.headers.get("Content-Type", "").startswith("application/json"):
            content = json.loads(content)
        return response.status, response.headers, content

    def complete(self, **fields):
        status, _, answer = self.ask("POST", "/v1/completions", fields)
        assert status == 200, answer
        return answer

    def stream(self, path="/v1/completions", **fields):
        """The events of a stream, one after the other, without the last, [DONE], which must be there."""
        connection = self.connection()
        connection.request("POST", path, json.dumps({**fields, "stream": True}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.headers["Content-Type"] == "text/event-stream"
        done = False
        for line in response:
            if not line.strip():
                continue
            assert line.startswith(b"data: ") and not done, line
            done = line.strip() == b"data: [DONE]"
            if not done:
                yield json.loads(line[6:])
        assert done
        connection.close()

    def wait_for(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it does not happen"
            time.sleep(0.02)

    def figures(self):
        """The numbers of /metrics by name and labels."""
        _, _, text = self.ask("GET", "/metrics")
        lines = [line.rsplit(" ", 1) for line in text.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}
