"""What every test of the page begins and ends with, and the steps that several of them take."""
import json
import re
import unittest
import urllib.request

from page_driver import Browser, Server, expect


class PageCase(unittest.TestCase):
    where = []  # an address, or the program and its runs

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.where)
        cls.addClassCleanup(cls.server.stop)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.stop)
        cls.models = cls.ask("/v1/models")["data"]
        cls.before = {session["id"] for session in cls.ask("/v1/sessions")["data"]}

    @classmethod
    def ask(cls, path, method="GET"):
        request = urllib.request.Request(cls.server.url + path, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or b"null")

    def setUp(self):
        self.expected = r"^$"  # errors in the console that this test brings about
        self.errors = []
        self.open()

    def open(self, **options):
        context = self.browser.context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.addCleanup(context.close)
        self.page = context.new_page()
        self.page.on("console", lambda line: line.type in ("error", "warning") and self.errors.append(line.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(self.server.url)
        self.choose("lm")

    def tearDown(self):
        for session in self.ask("/v1/sessions")["data"]:
            if session["id"] not in self.before:
                self.ask(f"/v1/sessions/{session['id']}", "DELETE")
        self.assertEqual([line for line in self.errors if not re.search(self.expected, line)], [])

    def choose(self, kind):
        names = [model["id"] for model in self.models if model["kind"] == kind]
        if not names:
            self.skipTest(f"no model of kind {kind} is served")
        self.page.select_option("#model", names[0])
        self.model = next(model for model in self.models if model["id"] == names[0])
        return names[0]

    def ended(self):
        expect(self.page.locator("#stop")).to_have_attribute("aria-disabled", "true", timeout=120000)

    def generate(self, prompt, tokens=60, seed=2):
        self.page.fill("#max_tokens", str(tokens))
        self.page.fill("#seed", str(seed))
        self.page.fill("#prompt", prompt)
        self.page.click("#generate")
        self.ended()
        expect(self.page.locator("#error")).to_be_hidden()
        return self.text()

    def text(self):
        return self.page.locator("#paper").text_content()

    def current(self):
        """The session that the page shows, as the server knows it."""
        self.ended()
        name = self.page.locator(".session.current .name").text_content()
        return self.ask(f"/v1/sessions/{name}")

    def agree(self):
        """Page and server hold the same text. Bytes that are no characters may look different at a cut."""
        session = self.current()
        tail = session["text_tail"].replace("\ufffd", "")[-60:]
        self.assertTrue(tail)
        self.assertTrue(self.text().replace("\ufffd", "").endswith(tail), (self.text(), tail))
        self.assertEqual(self.page.locator("#length").text_content(), f"{session['tokens']:,} tokens")
        return session
