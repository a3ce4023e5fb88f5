#!/usr/bin/env python3
"""Checks that each table of measured numbers in README and docs names a log, and that the log is of the present code.

A table or fenced block with measured numbers must name, in itself or in the paragraph before or after it, a log or a
folder of logs under bench/results. Every log there says on top by which command ("$ ...") and at which commit it was
made; a folder says it in its command.txt. bench/results/sources.toml says which code each log measures, and which later
commits touched that code without changing what is measured. Where others did, the table must say of which commit its
numbers are.

    scripts/check_numbers.py [--list] [FOLDER OF THE PROJECT]     --list also prints each table with its logs
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
import typing

try:
    import tomllib
except ImportError:
    sys.exit("check_numbers.py: needs Python 3.11, whose standard library reads TOML")

FOLDERS = ("cpu", "cuda", "lm", "lra")
HEADER = 12  # lines at the top of a log in which command and commit stand
COMMIT = re.compile(r"\bcommit (?:at or before |after |before )?([0-9a-f]{7,40})\b")
# 1.5, 1,024, 12%, 3 ms, 4.6×; not the 64 of a default setting.
MEASURED = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+(?:e-?\d+)?|,\d{3})|\d\s?(?:%|×|ms\b|us\b|ns\b|[MG]B\b)")


class Block(typing.NamedTuple):
    kind: str  # heading, table, fence, text
    line: int
    text: str


def blocks_of(markdown: str) -> list[Block]:
    result, kind, begin, lines = [], "", 0, []

    def end():
        nonlocal kind, lines
        if lines:
            result.append(Block(kind, begin, "\n".join(lines)))
        kind, lines = "", []

    for number, line in enumerate(markdown.splitlines(), 1):
        if kind == "fence":
            lines.append(line)
            if line.startswith("```"):
                end()
            continue
        this = ("fence" if line.startswith("```") else "heading" if line.startswith("#") else
                "table" if line.startswith("|") else "text" if line.strip() else "")
        if this != kind or this == "heading":
            end()
            kind, begin = this, number
        if this:
            lines.append(line)
    end()
    return result


def is_measured(block: Block) -> bool:
    """Whether a table or fence holds measured numbers: two or more outside of `code` and beyond its heading."""
    if block.kind == "table":
        cells = [cell for row in block.text.splitlines()[2:] for cell in row.split("|")]
        return sum(bool(MEASURED.search(re.sub(r"`[^`]*`", "", cell))) for cell in cells) >= 2
    return block.kind == "fence" and block.text.startswith("```\n") and len(MEASURED.findall(block.text)) >= 2


class Logs:
    """What lies under bench/results."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        self.tops = sorted(name for name in files if name.endswith((".log", "command.txt")))
        self.files = set(files)
        self.folders = {parent.as_posix() for name in files for parent in pathlib.PurePosixPath(name).parents}

    def find(self, name: str) -> list[str]:
        """The logs that a name in the docs means: a path, the end of one, or a pattern; of a folder all in it."""
        name = name.removesuffix("/")
        if name in self.folders:
            return [top for top in self.tops if top.startswith(name + "/")]
        pattern = name if "/" in name else "*/" + name
        return sorted(fnmatch.filter(self.files, pattern))

    def commit(self, log: str) -> tuple[str | None, bool]:
        """The commit at the top of a log, and whether its command stands there."""
        with open(self.folder / log, encoding="utf-8", errors="replace") as file:
            top = [line for _, line in zip(range(HEADER), file)]
        found = COMMIT.search("".join(top))
        return found and found.group(1), any(line.startswith("$ ") for line in top)


def names_in(text: str) -> list[str]:
    """Logs and folders of logs that a text names, by links and in backticks, as paths under bench/results."""
    result = re.findall(r"\]\((?:[^)\s]*bench/)?results/([^)\s]*)\)", text)
    for word in re.findall(r"`([^`\s]+)`", text):
        path = word.removeprefix("bench/results/")
        # A whole folder is no name of a log.
        if path.endswith(".log") or (path.split("/")[0] in FOLDERS and "/" in path):
            result.append(path)
    return sorted(set(result))


class History:
    """What git knows; `missing` says why it cannot be asked."""

    def __init__(self, root: pathlib.Path):
        self.root, self.missing, self.asked = root, None, {}
        if (self.git("rev-parse", "--is-inside-work-tree") or "").strip() != "true":
            self.missing = "this is no git repository"
        elif self.git("rev-parse", "--is-shallow-repository").strip() == "true":
            self.missing = "this clone is shallow"
        if not self.missing:
            lines = self.git("log", "--format=%H %s").splitlines()
            self.subjects = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}

    def git(self, *arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=self.root, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout if done.returncode == 0 else None

    def find(self, name: str) -> str | None:
        """The commit of a hash's first digits, or whose first line begins with the name, which outlives a rebase."""
        is_hash = re.fullmatch(r"[0-9a-f]{7,40}", name)
        return next((commit for commit, subject in self.subjects.items()
                     if (commit.startswith(name) if is_hash else subject.startswith(name))), None)

    def changes(self, commit: str, paths: tuple[str, ...]) -> list[str]:
        """The commits since that changed the paths."""
        key = (commit, paths)
        if key not in self.asked:
            log = self.git("log", "--format=%H", f"{commit}..HEAD", "--", *paths)
            self.asked[key] = log.split() if log else []
        return self.asked[key]


class Source(typing.NamedTuple):
    """A table of sources.toml: which code the logs measure, and the commits since that changed nothing measured."""
    logs: list[str]
    paths: tuple[str, ...]
    unchanged: set[str]


def read_sources(root: pathlib.Path, history: History, problems: list[str]) -> list[Source]:
    name = "bench/results/sources.toml"
    content = tomllib.loads((root / name).read_text(encoding="utf-8"))

    def commits(table: dict[str, str]) -> set[str]:
        found = set()
        for commit, reason in table.items():
            if len(reason.split()) < 3:
                problems.append(f"{name}: commit '{commit}' needs a sentence that says why it changed nothing measured")
            if history.missing:
                continue
            found.add(history.find(commit))
            if None in found:
                problems.append(f"{name}: there is no commit '{commit}' in the history")
            found.discard(None)
        return found

    everywhere = commits(content.get("unchanged", {}))
    result = []
    for entry in content["measured"]:
        unchanged = everywhere | commits(entry.get("unchanged", {}))
        for path in entry["paths"]:
            if not path.startswith(":") and not (root / path).exists():
                problems.append(f"{name}: there is no {path}")
        result.append(Source(entry["logs"], tuple(entry["paths"]), unchanged))
    return result


def check_age(log: str, commit: str, text: str, sources: list[Source], history: History) -> str | None:
    """What is wrong with numbers of this log in a table with this text around it, if anything is."""
    which = [source for source in sources if any(fnmatch.fnmatch(log, pattern) for pattern in source.logs)]
    if not which:
        return f"sources.toml does not say which code {log} measures"
    if history.missing or any(word.startswith(commit[:7]) for word in re.findall(r"\b[0-9a-f]{7,40}\b", text)):
        return None
    full = history.find(commit)
    if not full:
        return f"{log} is of commit {commit}, which is not in the history"
    later = [change for source in which for change in history.changes(full, source.paths)
             if change not in source.unchanged]
    if not later:
        return None
    newest = f"{later[0][:7]} '{history.subjects[later[0]][:60]}'"
    return (f"{log} is of commit {commit}, and {len(later)} commits since have changed what it measures, the last "
            f"being {newest}; measure again, or say in the text that the numbers are of commit {commit}, or in "
            f"sources.toml why these commits change nothing")


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    logs, history, problems = Logs(root / "bench/results"), History(root), []
    tops = {log: logs.commit(log) for log in logs.tops}
    for log, (commit, has_command) in tops.items():
        if not has_command:
            problems.append(f"bench/results/{log}: no line '$ COMMAND' at its top")
        if not commit:
            problems.append(f"bench/results/{log}: no line 'commit HASH' at its top")
    sources = read_sources(root, history, problems)
    documents = [root / "README.md", root / "bench/README.md", *sorted((root / "docs").rglob("*.md"))]
    tables = 0
    for document in filter(pathlib.Path.is_file, documents):
        where = document.relative_to(root).as_posix()
        blocks = blocks_of(document.read_text(encoding="utf-8"))
        for block in blocks:
            for name in names_in(block.text):
                if not logs.find(name):
                    problems.append(f"{where}:{block.line}: names {name}, which is not in bench/results")
        for i, block in enumerate(blocks):
            if not is_measured(block):
                continue
            tables += 1
            around = [blocks[j].text for j in (i - 1, i + 1) if 0 <= j < len(blocks) and blocks[j].kind == "text"]
            text = "\n".join([block.text, *around])
            named = sorted({log for name in names_in(text) for log in logs.find(name)})
            if "--list" in sys.argv:
                print(f"{where}:{block.line}: {', '.join(names_in(text))}")
            if not named:
                problems.append(f"{where}:{block.line}: a table of numbers that names no log of bench/results")
            for log in named:
                commit = tops.get(log, (None, False))[0]
                problem = commit and check_age(log, commit, text, sources, history)
                if problem:
                    problems.append(f"{where}:{block.line}: {problem}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if history.missing:
        print(f"numbers: {history.missing}: whether code has changed since its logs were made cannot be checked here")
    print(f"numbers: {tables} tables, {len(tops)} logs, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
