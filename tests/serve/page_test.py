"""The page that `cosformer serve` shows, in Chromium: what a person does there, by mouse and by keyboard.

    page_test.py PROGRAM RUN [RUN ...]        starts the server and ends it
    page_test.py http://127.0.0.1:8080        uses the one that is there; its sessions stay as they are

Kinds of models that are not served are skipped; at least a language model has to be.
"""
import json
import pathlib
import re
import sys
import unittest
import urllib.request

from page_case import PageCase
from page_driver import CONTRAST, FOCUSED, LENGTHS, STOP_AT_ONCE, chromium, expect

OPTIONS = next((i for i, word in enumerate(sys.argv) if word.startswith("-")), len(sys.argv))  # unittest's: -k back
WHERE = sys.argv[1:OPTIONS]
del sys.argv[1:OPTIONS]
POLICY = {"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:",
          "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"}
PROMPT = "The old man counted the lights along the shore"


class PageTest(PageCase):
    where = WHERE

    def test_policy(self):
        with urllib.request.urlopen(self.server.url + "/", timeout=30) as response:
            policy = response.headers["Content-Security-Policy"]
        self.assertEqual({part.strip() for part in policy.split(";") if part.strip()}, POLICY)

    def test_streams(self):
        self.page.fill("#max_tokens", "1500")
        self.page.fill("#seed", "2")
        self.page.fill("#prompt", PROMPT)
        lengths = self.page.evaluate(LENGTHS)
        self.assertGreater(len(lengths), 3, "the text did not appear little by little")
        self.assertTrue(self.text().startswith(PROMPT))
        self.assertEqual(self.page.locator("#paper .you").text_content(), PROMPT)
        self.assertRegex(self.page.locator("#rate").text_content(), r"^[\d,]+ tokens/s$")
        self.assertRegex(self.page.locator("#first").text_content(), r"ms|s$")
        self.agree()

    def test_continue(self):
        first = self.generate(PROMPT)
        name = self.current()["id"]
        expect(self.page.locator("#generate")).to_have_text("Continue")
        self.assertTrue(self.generate("", seed=3).startswith(first))
        second = self.generate(" And then", seed=4)
        self.assertIn(" And then", second)
        self.assertEqual(self.agree()["id"], name)

    def test_stop(self):
        self.page.fill("#max_tokens", "3000")
        for seed in range(5):  # a model may end the text before anybody can stop it
            self.page.fill("#seed", str(seed))
            self.page.fill("#prompt", PROMPT)
            if self.page.evaluate(STOP_AT_ONCE):
                break
            self.ended()
        self.ended()
        expect(self.page.locator("#note")).to_contain_text("Stopped")
        self.assertLess(self.agree()["tokens"], 3000)
        stopped = self.text()
        self.assertTrue(self.generate("").startswith(stopped))
        self.agree()

    def test_back(self):
        self.page.fill("#temperature", "0")
        written = self.generate(PROMPT)
        longer = self.current()
        self.page.fill("#point", str(len(PROMPT)))
        self.assertEqual(self.page.locator("#paper .after").all_text_contents(), [written[len(PROMPT):]])
        self.page.click("#go-back")
        expect(self.page.locator("#note")).to_contain_text("Went back")
        self.assertEqual(self.text(), PROMPT)
        self.assertNotEqual(self.agree()["id"], longer["id"])
        after = self.ask(f"/v1/sessions/{longer['id']}")
        self.assertEqual(after["tokens"], longer["tokens"], "the longer text changed")
        self.assertEqual(self.generate(""), written, "the same point, greedily, goes on otherwise")
        self.page.fill("#point", "7")  # within a piece: the nearest snapshot, and what is between
        self.page.click("#go-back")
        expect(self.page.locator("#note")).to_contain_text("Went back to character 7")
        self.assertEqual(self.text(), PROMPT[:7])
        self.assertTrue(self.generate(PROMPT[7:]).startswith(PROMPT))

    def test_compare(self):
        text = self.generate(PROMPT)
        self.page.click("#fork")
        self.ended()
        branches = self.page.locator(".branch .paper")
        expect(branches).to_have_count(2)
        a, b = branches.all_text_contents()
        self.assertTrue(a and b)
        self.assertNotEqual(a, b)
        self.page.fill("#seed-B", self.page.locator("#seed-A").input_value())
        self.page.click("#compare-again")
        self.ended()
        self.assertEqual(branches.all_text_contents(), [a, a], "the same seed from the same state writes otherwise")
        self.page.get_by_role("button", name="Go on with B").click()
        self.assertEqual(self.text(), text + a)
        self.agree()
        expect(self.page.locator(".session")).to_have_count(3 + len(self.before))

    def test_sessions(self):
        first = self.generate(PROMPT)
        one = self.current()
        self.page.click("#new")
        self.generate("Another text")
        self.assertNotEqual(self.current()["id"], one["id"])
        row = self.page.locator(".session", has_text=one["id"])
        expect(row).to_contain_text("State")
        expect(row).to_contain_text("Softmax cache")
        row.locator(".open").click()
        expect(self.page.locator("#paper")).to_have_text(first)
        self.page.reload()
        self.page.locator(".session", has_text=one["id"]).locator(".open").click()
        expect(self.page.locator("#paper .model")).to_have_text(first[len(PROMPT):])
        self.page.get_by_role("button", name=f"Delete {one['id']}").click()
        self.page.get_by_role("button", name=f"Delete {one['id']} for good?").click()
        expect(row).to_have_count(0)
        self.assertEqual(self.text(), first, "deleting the session took the text that is shown")
        self.assertTrue(self.generate("").startswith(first), "a text whose session is gone is read again")

    def test_upload(self):
        document = "It was a long document, line by line, and nobody had read it to the end.\n" * 1500
        file = {"name": "long.txt", "mimeType": "text/plain", "buffer": document.encode()}
        self.page.set_input_files("#upload", file)
        expect(self.page.locator("#note")).to_contain_text("Read long.txt", timeout=120000)
        expect(self.page.locator("#paper")).to_contain_text("more characters of long.txt")
        self.assertGreater(self.current()["tokens"], 1500)
        before = self.current()["tokens"]
        self.generate(" Who had read it?")
        self.assertGreater(self.agree()["tokens"], before)
        self.page.set_input_files("#upload", {**file, "name": "no.bin", "buffer": b"\xff\xfe\x00\xd8"})
        expect(self.page.locator("#error")).to_have_text("no.bin is not a text in UTF-8.")

    def test_classify(self):
        self.choose("classifier")
        self.page.fill("#input", "What a lovely afternoon.")
        self.page.get_by_role("button", name="Classify", exact=True).click()
        expect(self.page.locator(".class.best")).to_have_count(1)
        shown = self.page.locator(".class dt").all_text_contents()
        self.assertEqual(set(shown), set(sorted(self.model["classes"])[:12]) if len(shown) < 12 else set(shown))
        lines = "".join(f"Line {i} of the file\n\n" for i in range(70))
        self.page.set_input_files("#lines", {"name": "l.txt", "mimeType": "text/plain", "buffer": lines.encode()})
        expect(self.page.locator("tbody tr")).to_have_count(70, timeout=120000)
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save as TSV").click()
        saved = pathlib.Path(download.value.path()).read_text(encoding="utf-8").splitlines()
        self.assertEqual((len(saved), saved[1].split("\t")[0]), (71, "Line 0 of the file"))

    def test_text_to_text(self):
        self.choose("text_to_text")
        self.page.fill("#input", "The harbour lay in fog.")
        self.page.get_by_role("button", name="Answer").click()
        expect(self.page.locator("#note")).to_contain_text(re.compile(r"\d tokens? in"))
        expect(self.page.locator("#error")).to_be_hidden()

    def test_fill(self):
        self.choose("mlm")
        self.page.fill("#input", "The [MASK] sat on the [MASK].")
        self.page.get_by_role("button", name="Fill").click()
        expect(self.page.locator(".gap")).to_have_count(2)
        self.page.locator(".gap").first.locator(".candidate").nth(1).click()
        expect(self.page.locator(".gap").first.locator(".candidate").nth(1)).to_have_attribute("aria-pressed", "true")

    def failing(self, path, answer):
        """The next request to `path` fails by `answer`, later ones reach the server."""
        self.page.route(f"**{path}", answer, times=1)

    def test_errors(self):
        self.expected = r"Failed to load resource"
        error = self.page.locator("#error")
        self.page.fill("#max_tokens", "-1")
        self.page.fill("#prompt", PROMPT)
        self.page.click("#generate")
        expect(error).to_contain_text("max_tokens")
        expect(self.page.locator("#max_tokens")).to_have_attribute("aria-invalid", "true")
        self.assertEqual(self.page.locator("#prompt").input_value(), PROMPT, "what was typed is lost")
        self.page.fill("#max_tokens", "20")

        def refuse(status, message, **headers):
            body = json.dumps({"error": {"message": message, "type": "overloaded", "param": None, "code": None}})
            return lambda route: route.fulfill(status=status, body=body, headers=headers,
                                               content_type="application/json")
        for answer, words in [(refuse(429, "All streams are taken.", **{"Retry-After": "7"}),
                               "All streams are taken. Try again in 7 seconds."),
                              (refuse(500, "The run cannot be read."), "The run cannot be read."),
                              (lambda route: route.abort(), "The server cannot be reached")]:
            self.failing("/v1/completions", answer)
            self.page.click("#generate")
            expect(error).to_contain_text(words)
            self.assertEqual(self.page.locator("#prompt").input_value(), PROMPT)
        self.assertTrue(self.generate(PROMPT, 20).startswith(PROMPT))  # and it goes on
        broken = 'data: {"error": {"message": "The device failed.", "type": "server_error"}}\n\n'
        self.failing("/v1/completions", lambda route: route.fulfill(status=200, body=broken,
                                                                    content_type="text/event-stream"))
        self.page.click("#generate")
        expect(error).to_contain_text("The device failed.")
        self.ended()
        self.generate("")
        self.agree()

    def test_key(self):
        self.expected = r"Failed to load resource"
        refused = json.dumps({"error": {"message": "A key is needed.", "type": "authentication_error"}})
        self.page.route("**/v1/**", lambda route: route.continue_()
                        if route.request.headers.get("authorization") == "Bearer right"
                        else route.fulfill(status=401, body=refused, content_type="application/json"))
        expect(self.page.locator("#key-form")).to_be_hidden()
        self.page.reload()
        for key, answer in [("wrong", "did not accept"), ("right", None)]:
            expect(self.page.locator("#key")).to_be_focused()
            self.page.keyboard.type(key)
            self.page.keyboard.press("Enter")
            if answer:
                expect(self.page.locator("#key-note")).to_contain_text(answer)
        expect(self.page.locator("#key-form")).to_be_hidden()
        self.assertTrue(self.generate(PROMPT, 10).startswith(PROMPT))

    def tab_to(self, name, key="Tab"):
        for _ in range(25):
            self.page.keyboard.press(key)
            at = self.page.evaluate(FOCUSED)
            self.assertTrue(at["name"] or at["tag"] == "BODY", f"{at}: no name")
            self.assertTrue(at["outline"] != "none" or at["tag"] in ("BODY", "MAIN"), f"{at}: the focus is not seen")
            if at["id"] == name:
                return
        self.fail(f"{name} is not reached by {key}")

    def test_keyboard(self):
        keyboard = self.page.keyboard
        self.page.reload()
        expect(self.page.locator("#prompt")).to_be_visible()
        keyboard.press("Tab")
        self.assertEqual(self.page.evaluate(FOCUSED)["name"], "Skip to the model")
        keyboard.press("Enter")
        self.assertEqual(self.page.evaluate(FOCUSED)["id"], "main")
        self.page.fill("#max_tokens", "40")
        self.page.locator("#main").focus()
        self.tab_to("prompt")
        keyboard.type(PROMPT)
        keyboard.press("Control+Enter")
        self.ended()
        written = self.text()
        self.assertTrue(written.startswith(PROMPT))
        self.tab_to("point", "Shift+Tab")
        keyboard.press("Home")
        for _ in range(3):
            keyboard.press("ArrowRight")  # by words
        self.assertIn("The old man", self.page.locator("#point").get_attribute("aria-valuetext"))
        keyboard.press("Tab")
        keyboard.press("Enter")
        expect(self.page.locator("#note")).to_contain_text("Went back")
        self.assertEqual(self.text(), "The old man")
        expect(self.page.locator("#prompt")).to_be_focused()
        self.page.fill("#max_tokens", "3000")
        self.page.locator("#prompt").focus()
        keyboard.press("Control+Enter")
        keyboard.press("Escape")
        self.ended()
        expect(self.page.locator("#error")).to_be_hidden()
        self.tab_to("upload")
        self.tab_to("temperature")

    def test_looks(self):
        for scheme in ("light", "dark"):
            for width in (360, 1280):
                with self.subTest(scheme=scheme, width=width):
                    self.open(viewport={"width": width, "height": 740}, color_scheme=scheme, reduced_motion="reduce")
                    self.generate(PROMPT, 20)
                    self.assertLessEqual(self.page.evaluate("() => document.documentElement.scrollWidth"), width)
                    for part in ("#paper .you", "#paper .model", ".hint", "#generate", "#go-back", ".tail", "label"):
                        contrast = self.page.locator(part).first.evaluate(CONTRAST)
                        self.assertGreaterEqual(contrast, 4.5, part)
                    animated = "() => document.getAnimations().length"
                    self.assertEqual(self.page.evaluate(animated), 0, "something moves")


if __name__ == "__main__":
    chromium()
    unittest.main(verbosity=2)
