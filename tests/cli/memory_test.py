"""A training on texts of mixed lengths stays within a bound of memory, and says what it took.

    memory_test.py COSFORMER
"""
import json
import os
import random
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
STEPS, MEGABYTE = 300, 1e6


def write_texts(path, seed):
    choose = random.Random(seed)
    with open(path, "w", encoding="ascii") as file:
        file.write("text\tlabel\n")
        for _ in range(600):
            favourite = choose.choice("ab")
            length = choose.randrange(16, 1600)
            file.write("".join(choose.choice("cdefgh" + 3 * favourite) for _ in range(length)) + f"\t{favourite}\n")


def train(folder, steps):
    run = os.path.join(folder, f"run-{steps}")
    command = [PROGRAM, "train", "--task", "text_files", "--data", os.path.join(folder, "texts.tsv"), "--out", run,
               "--device", "cpu", "--steps", str(steps)]
    for setting in ("train.batch_size=4", "train.eval_every=100000", "model.layers=1", "model.width=64",
                    "model.feed_forward=256", "data.max_length=1600"):
        command += ["--set", setting]
    output = subprocess.run(command, capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    assert "in the machine's memory" in output.stdout, output.stdout
    with open(os.path.join(run, "result.json"), encoding="ascii") as file:
        return json.load(file)


seed = random.randrange(1 << 30)
print("seed", seed)
with tempfile.TemporaryDirectory() as folder:
    write_texts(os.path.join(folder, "texts.tsv"), seed)
    short, long = train(folder, 2), train(folder, STEPS)
tensors, resident = long["peak_memory"] / MEGABYTE, long["peak_resident"] / MEGABYTE
program = (short["peak_resident"] - short["peak_memory"]) / MEGABYTE
print(f"{STEPS} steps: {tensors:.0f} MB of tensors at most, {resident:.0f} MB resident; "
      f"beside the tensors of two steps {program:.0f} MB")
# A block is up to a quarter larger than what is in it, a quarter of the peak of blocks or 134 MB are kept besides, and
# there are the libraries, whose share two steps show, with what they compile for a few shapes.
blocks = 1.25 * tensors
bound = blocks + max(0.25 * blocks, 134) + program + 60
assert resident <= bound, f"{resident:.0f} MB resident; expected at most {bound:.0f}"
