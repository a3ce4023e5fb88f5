#!/usr/bin/env python3
"""Kills a training with SIGKILL at ten random moments; every loss must equal that of a run never killed."""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

program = sys.argv[1]
# Small models on busy machines: threads would only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
kills_wanted = 10
seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
print(f"seed {seed}")
random.seed(seed)


def write_texts(path):
    """Texts of changing length in which one letter tells the class."""
    source = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("text\tlabel\n")
        for _ in range(300):
            label = source.choice("abc")
            text = [source.choice("mnopqrst") for _ in range(source.randrange(30, 300))]
            text[source.randrange(len(text))] = label
            file.write("".join(text) + "\t" + label + "\n")


def command(data, out):
    settings = ["train.steps=60", "train.batch_size=4", "train.log_every=1", "train.eval_every=20",
                "train.checkpoint_every=4", "train.accumulate=2", "model.dropout=0.3", "model.layers=2",
                "model.width=32", "train.lr=0.003"]
    flags = [flag for setting in settings for flag in ("--set", setting)]
    return [program, "train", "--task", "text_files", "--data", str(data), "--device", "cpu", "--out", str(out), *flags]


def numbers(run):
    """What was logged, without clocks and rates."""
    entries = []
    for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        entry.pop("seconds", None)
        entry.pop("tokens_per_second", None)
        entries.append(entry)
    return entries


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        data = folder / "texts.tsv"
        write_texts(data)
        begin = time.monotonic()
        subprocess.run(command(data, folder / "whole"), check=True, capture_output=True)
        whole_seconds = time.monotonic() - begin

        # Moments are drawn from the time that such a run takes; a process that ends before its moment comes is not
        # counted as killed, and the killed run then begins anew.
        kills, attempts, run = 0, 0, folder / "killed-0"
        while kills < kills_wanted:
            process = subprocess.Popen(command(data, run), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                _, errors = process.communicate(timeout=random.uniform(0.2, 0.5) * whole_seconds)
                assert process.returncode == 0, errors.decode()
                compare(folder / "whole", run)
                attempts += 1
                run = folder / f"killed-{attempts}"
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
        subprocess.run(command(data, run), check=True, capture_output=True)
        compare(folder / "whole", run)
    print(f"{kills} kills, {len_compared} lines of metrics equal")


len_compared = 0


def compare(whole, killed):
    global len_compared
    expected, got = numbers(whole), numbers(killed)
    assert len(expected) == 63, len(expected)
    assert got == expected, next((g, e) for g, e in zip(got + [None], expected) if g != e)
    assert (whole / "best.safetensors").read_bytes() == (killed / "best.safetensors").read_bytes()
    len_compared += len(expected)


main()
