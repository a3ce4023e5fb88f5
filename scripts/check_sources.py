#!/usr/bin/env python3
"""Small rules that keep the sources readable: file length, line length, no stray whitespace, no vague file names."""
import pathlib
import subprocess
import sys

MOST_LINES = 400
MOST_COLUMNS = 120
VAGUE = ("utils", "util", "helpers", "helper", "common", "misc")
SCRIPTS = {".py", ".sh", ".cmake", ".js", ".css", ".html"}
CODE = {".h", ".cc", ".cuh", ".cu"} | SCRIPTS

root = pathlib.Path(__file__).resolve().parent.parent
names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
problems = []
for name in filter(None, names):
    path = root / name
    if path.suffix not in CODE or not path.is_file():
        continue
    if path.stem in VAGUE:
        problems.append(f"{name}: a name that says nothing; name the file after what is in it")
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > MOST_LINES:
        problems.append(f"{name}: {len(lines)} lines; split files past {MOST_LINES}")
    for number, line in enumerate(lines, 1):
        if path.suffix in SCRIPTS and len(line) > MOST_COLUMNS:  # C++ and CUDA are clang-format's business
            problems.append(f"{name}:{number}: {len(line)} columns, at most {MOST_COLUMNS}")
        if line != line.rstrip():
            problems.append(f"{name}:{number}: whitespace at the end of the line")
for problem in problems:
    print(problem, file=sys.stderr)
print(f"sources: {len(problems)} problems")
sys.exit(1 if problems else 0)
