#!/usr/bin/env python3
"""Kills small trainings of each kind at a call that writes, syncs, renames, makes or removes a file, and goes on.

    kill_at_call_test.py PROGRAM LIBRARY KILLS [SEED]

What comes out in the end must be what an uninterrupted training gives, bit for bit, and nothing may be left over.
LIBRARY is kill_at_call.cc. KILLS is how many of each kind; "every" takes each call of a training in turn (an hour).
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

program, library, kills_wanted = sys.argv[1:4]
seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 30)
print(f"seed {seed}", flush=True)
random.seed(seed)

TINY = ["model.width=8", "model.heads=1", "model.layers=1", "model.feed_forward=8", "model.dropout=0.1",
        "train.steps=6", "train.batch_size=4", "train.log_every=1", "train.eval_every=3", "train.checkpoint_every=2",
        "train.lr=0.01"]
KINDS = {
    "classifier": ("text_files", "texts.tsv", []),
    "language": ("lm", "text.txt", ["data.window=16", "data.valid_fraction=0.2", "data.test_fraction=0.2"]),
    "masked": ("mlm", "text.txt", ["data.window=16", "data.valid_fraction=0.2", "data.test_fraction=0.2",
                                   "data.tokenizer=words"]),
    "text_to_text": ("text_to_text", "pairs.tsv", ["data.tokenizer=words", "text_to_text.decode_examples=4"]),
}
CLOCKS = ("seconds", "tokens_per_second", "steps_per_second", "test_batches_per_second", "peak_memory",
          "peak_resident")


def write_data(folder):
    words = ["one", "two", "three", "four", "five"]
    with open(folder / "texts.tsv", "w", encoding="utf-8") as texts, \
            open(folder / "pairs.tsv", "w", encoding="utf-8") as pairs, \
            open(folder / "text.txt", "w", encoding="utf-8") as text:
        texts.write("text\tlabel\n")
        pairs.write("source\ttarget\n")
        for i in range(40):
            line = " ".join(words[(i * k) % 5] for k in range(1, 4 + i % 3))
            texts.write(f"{line}\t{words[i % 2]}\n")
            pairs.write(f"{line}\t{words[i % 5]}\n")
            text.write((line + "\n" * (1 + i % 2)) * 40)


def without_clocks(entry):
    return {name: value for name, value in entry.items() if name not in CLOCKS}


def outcome(run):
    """All that a run leaves that does not depend on clocks, by name."""
    found = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if name.startswith("tensorboard") or name in ("log.txt", ".lock"):
            continue
        if path.is_dir():
            found[name] = "a folder"
        elif name == "metrics.jsonl":
            found[name] = [without_clocks(json.loads(line)) for line in path.read_text().splitlines()]
        elif name == "result.json":
            found[name] = without_clocks(json.loads(path.read_text()))
        elif name.endswith("checkpoint.json"):
            state = json.loads(path.read_text())["checkpoint"]
            state["state"] = {k: v for k, v in state["state"].items() if "seconds" not in k}
            found[name] = state
        else:
            found[name] = path.read_bytes()
    return found


class Kind:
    def __init__(self, name, folder):
        task, data, settings = KINDS[name]
        self.name, self.folder, self.runs = name, folder / name, 0
        self.folder.mkdir()
        self.command = [program, "train", "--task", task, "--data", str(folder / data), "--device", "cpu"]
        for setting in TINY + settings:
            self.command += ["--set", setting]
        self.calls = 0
        assert self.train(self.new_run(), 0) == 0
        self.calls = int((self.folder / "count").read_text())
        assert self.calls > 50, f"{name}: only {self.calls} calls seen; is the library loaded?"
        self.whole = outcome(self.run)

    def new_run(self):
        self.runs += 1
        self.run = self.folder / f"run-{self.runs}"
        return self.run

    def train(self, run, kill_at):
        # One folder for the run and all that it may put elsewhere; without gnuplot, which draws no part of the outcome.
        environment = {"OMP_NUM_THREADS": "1", "PATH": "", "LD_PRELOAD": library, "KILL_FOLDER": str(self.folder),
                       "KILL_AT": str(kill_at), "KILL_COUNT": str(self.folder / "count"),
                       "XDG_CACHE_HOME": str(self.folder / "cache"), "TMPDIR": str(self.folder)}
        process = subprocess.run(self.command + ["--out", str(run)], env=environment, capture_output=True, check=False)
        if process.returncode not in (0, -9):
            raise AssertionError(f"{self.name}: ended with {process.returncode}: {process.stderr.decode()}")
        return process.returncode

    def compare(self, how):
        got = outcome(self.run)
        assert got.keys() == self.whole.keys(), f"{self.name}, {how}: {sorted(got.keys() ^ self.whole.keys())}"
        for name, expected in self.whole.items():
            assert got[name] == expected, f"{self.name}, {how}: {name} differs"
        left = [str(path) for path in self.folder.rglob("*")
                if path.name.endswith(".tmp") or path.name in (".partial", ".removed")]
        assert not left, f"{self.name}, {how}: left over: {left}"

    def kill_at_random(self, wanted):
        """One run after another, each killed until it comes to its end."""
        kills, places = 0, []
        self.new_run()
        while kills < wanted:
            place = random.randint(1, self.calls)
            places.append(place)
            if self.train(self.run, place) == 0:
                self.compare(f"killed at the calls {places[:-1]}")
                self.new_run()
                places = []
            else:
                kills += 1
        assert self.train(self.run, 0) == 0
        self.compare(f"killed at the calls {places}")
        print(f"{self.name}: {kills} kills among {self.calls} calls, {self.runs - 1} runs equal", flush=True)

    def kill_at_every(self):
        for place in range(1, self.calls + 1):
            self.new_run()
            self.train(self.run, place)
            assert self.train(self.run, 0) == 0
            self.compare(f"killed at the call {place}")
        print(f"{self.name}: killed at each of {self.calls} calls", flush=True)


with tempfile.TemporaryDirectory() as temporary:
    place_of_all = pathlib.Path(temporary).resolve()
    write_data(place_of_all)
    for kind_name in KINDS:
        kind = Kind(kind_name, place_of_all)
        if kills_wanted == "every":
            kind.kill_at_every()
        else:
            kind.kill_at_random(int(kills_wanted))
