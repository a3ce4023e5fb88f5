#!/usr/bin/env python3
"""scripts/check_numbers.py on small projects of its own: what passes, and each thing that must not."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_numbers.py"
SOURCES = '[[measured]]\nlogs = ["cpu/speed.log", "lm/*"]\npaths = ["src/kernel.cc"]\n'
TABLE = "| | ms |\n|---|---|\n| ours | 1.5 |\n| theirs | 3.25 |\n"


class Project:
    """A repository with a kernel, a log of its first commit, and a README that names it."""

    def __init__(self, folder: str):
        self.root = pathlib.Path(folder)
        self.write("src/kernel.cc", "first")
        self.write("docs/more.md", "No numbers.\n\n| option | default |\n|---|---|\n| `block` | 64 |\n| `a` | 9 |\n")
        self.git("init", "-q")
        self.commit("kernel: first")
        self.first = self.git("rev-parse", "--short", "HEAD").strip()
        self.write("bench/results/sources.toml", SOURCES)
        self.log(f"$ bench speed\ncommit {self.first}, 2026-01-01\n\n1.5\n")
        self.readme()
        self.commit("docs: numbers")

    def write(self, name: str, text: str):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def log(self, text: str):
        self.write("bench/results/cpu/speed.log", text)

    def readme(self, before: str = "Speeds ([log](bench/results/cpu/speed.log)):", table: str = TABLE):
        self.write("README.md", f"# Project\n\n{before}\n\n{table}\nThe end.\n")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@n", *arguments], cwd=self.root,
                              check=True, capture_output=True, text=True)
        return done.stdout

    def commit(self, message: str):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def change_kernel(self):
        self.write("src/kernel.cc", "second")
        self.commit("kernel: second, faster")

    def check(self) -> tuple[int, str]:
        done = subprocess.run([sys.executable, SCRIPT, self.root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class CheckNumbers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.project = Project(folder.name)

    def passes(self, *words: str):
        code, output = self.project.check()
        self.assertEqual(code, 0, output)
        for word in words:
            self.assertIn(word, output)

    def fails(self, *words: str):
        code, output = self.project.check()
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def test_numbers_of_the_present_code(self):
        self.passes("1 tables, 1 logs, 0 problems")

    def test_a_table_without_a_log(self):
        self.project.readme(before="Speeds:")
        self.fails("README.md:5", "names no log")

    def test_a_block_of_output_without_a_log(self):
        self.project.readme(before="It prints:", table="```\nours 1.5\ntheirs 3.25\n```\n")
        self.fails("README.md:5", "names no log")

    def test_a_log_that_is_not_there(self):
        self.project.readme(before="Speeds (`cpu/gone.log`):")
        self.fails("names cpu/gone.log, which is not")

    def test_a_log_without_command_or_commit(self):
        self.project.log("1.5\n")
        self.fails("speed.log: no line '$ COMMAND'", "speed.log: no line 'commit HASH'")

    def test_code_that_changed_since(self):
        self.project.change_kernel()
        self.fails("'kernel: second, faster'", "measure again")

    def test_a_table_that_says_of_which_commit_it_is(self):
        self.project.change_kernel()
        self.project.readme(before=f"Speeds ([log](bench/results/cpu/speed.log)) of commit {self.project.first}:")
        self.passes()

    def test_commits_that_change_nothing_measured(self):
        self.project.change_kernel()
        why = '[measured.unchanged]\n"{}" = "Moves a file, the same machine code."\n'
        self.project.write("bench/results/sources.toml", SOURCES + why.format("kernel: second"))
        self.passes()
        changed = self.project.git("rev-parse", "--short", "HEAD").strip()
        self.project.write("bench/results/sources.toml", SOURCES + why.format(changed))
        self.passes()
        self.project.write("bench/results/sources.toml", SOURCES + why.format("kernel: third"))
        self.fails("no commit 'kernel: third'")
        self.project.write("bench/results/sources.toml", SOURCES + f'[measured.unchanged]\n{changed} = "moved"\n')
        self.fails("needs a sentence")

    def test_a_log_of_unknown_code(self):
        self.project.write("bench/results/sources.toml", SOURCES.replace("cpu/speed.log", "cpu/other.log"))
        self.fails("does not say which code cpu/speed.log measures")

    def test_paths_that_are_gone(self):
        self.project.write("bench/results/sources.toml", SOURCES.replace("kernel.cc", "gone.cc"))
        self.fails("there is no src/gone.cc")

    def test_a_log_of_a_commit_that_is_not_in_the_history(self):
        self.project.log("$ bench speed\ncommit 0123abc, 2026-01-01\n")
        self.fails("0123abc, which is not in the history")

    def test_folders_of_runs(self):
        run = "bench/results/lm/run/"
        self.project.write(run + "command.txt", f"$ train\ncommit at or before {self.project.first}: unknown\n")
        self.project.write(run + "metrics.jsonl", "{}\n")
        self.project.readme(before="Losses (`lm/run`):")
        self.passes("2 logs")
        self.project.change_kernel()
        self.fails("lm/run/command.txt is of commit")

    def test_a_shallow_clone_says_what_it_cannot_check(self):
        self.project.change_kernel()
        clone = Project.__new__(Project)
        clone.root = self.project.root / "clone"
        self.project.git("clone", "-q", "--depth", "1", f"file://{self.project.root}", str(clone.root))
        self.project = clone
        self.passes("clone is shallow", "cannot be checked here")
        clone.readme(before="Speeds:")
        self.fails("names no log", "clone is shallow")

    def test_a_folder_without_git(self):
        with tempfile.TemporaryDirectory() as folder:
            self.project.git("checkout-index", "-a", f"--prefix={folder}/")
            self.project.root = pathlib.Path(folder)
            self.passes("no git repository")


if __name__ == "__main__":
    unittest.main()
