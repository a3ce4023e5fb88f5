#!/usr/bin/env python3
"""Checks that #include goes one way between the folders of src/, as CONTRIBUTING.md states it."""
import pathlib
import re
import sys

# A folder may include itself and these.
ALLOWED = {
    "base": set(),
    "kernels": {"base"},
    "ops": {"base", "kernels", "cosformer"},
    "nn": {"base", "kernels", "ops", "cosformer"},
    "models": {"base", "kernels", "ops", "nn", "cosformer"},
    "data": {"base"},
    "runs": {"base", "ops", "nn", "models", "data", "cosformer"},
    "train": {"base", "ops", "nn", "models", "data", "runs", "cosformer"},
    "serve": {"base", "ops", "nn", "models", "data", "runs", "cosformer"},
    "cli": {"base", "kernels", "ops", "nn", "models", "data", "runs", "train", "serve", "cosformer"},
}
TORCH_FREE = {"base", "kernels", "data"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
TORCH = re.compile(r"^(torch|ATen|c10)/")

root = pathlib.Path(__file__).resolve().parent.parent
sources = [p for p in (root / "src").rglob("*") if p.suffix in {".h", ".cc", ".cuh", ".cu", ".in"}]
problems = []
for path in sorted(sources):
    folder = path.relative_to(root / "src").parts[0]
    if folder not in ALLOWED:
        problems.append(
            f"{path.relative_to(root)}: '{folder}' is not a known folder; add it to {__file__} with what it may see")
        continue
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        where = f"{path.relative_to(root)}:{number}"
        target = match.group(1) or match.group(2)
        if folder in TORCH_FREE and TORCH.match(target):
            problems.append(f"{where}: {folder}/ knows no torch, but includes <{target}>")
        other = target.split("/")[0]
        if "/" in target and other in ALLOWED | {"cosformer": 0} and other != folder:
            if other not in ALLOWED[folder]:
                problems.append(f"{where}: {folder}/ may not include {other}/ ({target})")
for problem in problems:
    print(problem, file=sys.stderr)
print(f"layers: {len(sources)} files, {len(problems)} problems")
sys.exit(1 if problems else 0)
