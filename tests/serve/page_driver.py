"""What the test of the page drives: the program with runs, or a server that is there, and Chromium by Playwright."""
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77  # what ctest takes for "skipped"

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    print("skipped: the Playwright package for Python is not installed (pip install playwright)")
    sys.exit(SKIPPED)


def chromium():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = [os.environ.get("CHROMIUM")] + [shutil.which(name) for name in names]
    for path in filter(None, found):
        return path
    print("skipped: Chromium is not installed (apt-get install chromium, or its path in CHROMIUM)")
    sys.exit(SKIPPED)


class Server:
    """At `where`, an address; or the program with runs, which says at which address it listens."""

    def __init__(self, where):
        self.process = None
        if re.match(r"https?://", where[0]):
            self.url = where[0].rstrip("/")
            return
        command = [where[0], "serve", *where[1:], "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        match = re.match(r"listening on (http://\S+)", line)
        if not match:
            self.process.kill()
            raise RuntimeError(f"{' '.join(command)}: expected 'listening on http://…' as the first line, got {line!r}")
        self.url = match[1].rstrip("/")

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
            self.process.stdout.close()


class Browser:
    def __init__(self):
        self.playwright = sync_playwright().start()
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.chromium = self.playwright.chromium.launch(executable_path=chromium(), args=arguments)

    def context(self, **options):
        made = self.chromium.new_context(**options)
        made.set_default_timeout(30000)
        made.add_init_script("""addEventListener("securitypolicyviolation", (event) =>
          console.error("policy violated: " + event.violatedDirective + " by " + event.blockedURI));""")
        return made

    def stop(self):
        self.chromium.close()
        self.playwright.stop()


# Stops as soon as the model's first text after what is there is seen; false when it ended before.
STOP_AT_ONCE = """() => new Promise((done) => {
  const before = document.querySelector("#paper").textContent.length;
  const stop = document.querySelector("#stop");
  const seen = new MutationObserver(() => {
    if (document.querySelector("#paper").textContent.length <= before) return;
    seen.disconnect();
    const runs = !stop.hasAttribute("aria-disabled");
    if (runs) stop.click();
    done(runs);
  });
  seen.observe(document.querySelector("#paper"), {childList: true, subtree: true, characterData: true});
  document.querySelector("#generate").click();
})"""

# The lengths of the text that were shown while the model wrote.
LENGTHS = """() => new Promise((done) => {
  const lengths = new Set();
  const paper = document.querySelector("#paper");
  const stop = document.querySelector("#stop");
  const note = () => lengths.add(paper.textContent.length);
  const seen = new MutationObserver(note);
  seen.observe(paper, {childList: true, subtree: true, characterData: true});
  new MutationObserver((_, ended) => {
    if (!stop.hasAttribute("aria-disabled")) return;
    ended.disconnect();
    seen.disconnect();
    done([...lengths]);
  }).observe(stop, {attributes: true});
  document.querySelector("#generate").click();
})"""

# The contrast of an element's text with what is behind it, as WCAG defines it.
CONTRAST = """(element) => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  let behind = element;
  const opaque = (node) => (channels(getComputedStyle(node).backgroundColor)[3] ?? 1) > 0;
  while (behind.parentElement && !opaque(behind)) behind = behind.parentElement;
  const a = light(channels(getComputedStyle(element).color));
  const b = light(channels(getComputedStyle(behind).backgroundColor));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""

# What has the focus: its id, its name for those who do not see it, and whether it can be seen to have it.
FOCUSED = """() => {
  const at = document.activeElement;
  const shown = at.closest(".pick")?.querySelector("span") ?? at;
  const words = at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent;
  return {tag: at.tagName, id: at.id, name: words.trim(), outline: getComputedStyle(shown).outlineStyle};
}"""

__all__ = ["Browser", "CONTRAST", "FOCUSED", "LENGTHS", "STOP_AT_ONCE", "Server", "chromium", "expect"]
