#!/usr/bin/env python3
"""What users stored with an earlier program must go on working: this loads each thing in stored/ with the program just
built and compares what it answers with what the program of that time answered.

stored_test.py COSFORMER                     compares
stored_test.py COSFORMER --write FOLDER      writes FOLDER/expected/, for things that were just made by stored/make.sh
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# Processors differ in their instruction sets, and so in the order of sums; a few training steps are among the answers.
RELATIVE, ABSOLUTE = 5e-5, 1e-6
# What depends on the machine, or on nothing that was stored: the floors, which are computed from the data anew.
LEFT_OUT = ("seconds", "per_second", "peak_", "floors", "word_perplexity", "plot")
CPU = ["--device", "cpu"]
TEXTS = ["--set", "data.text_column=review", "--set", "data.label_column=mood"]


def answered(arguments, standard_input=""):
    """What the program writes to standard output."""
    done = subprocess.run([program, *arguments], input=standard_input, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"cosformer {' '.join(arguments)} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def predicted(run, data, *options):
    return rows(answered(["predict", run, "--input", data, "--output", "jsonl", *options, *CPU]))


def generated(run, *options):
    return rows(answered(["generate", run, "--temperature", "0", "--max-tokens", "12", "--json", "--logits", *options,
                          *CPU]))


def evaluated(run, *options):
    return json.loads(answered(["eval", run, "--json", *options, *CPU]))


def trained(run, *options):
    answered(["train", *options])
    return {"metrics": rows(pathlib.Path(run, "metrics.jsonl").read_text(encoding="utf-8")),
            "result": json.loads(pathlib.Path(run, "result.json").read_text(encoding="utf-8"))}


def compared():
    """The table of a comparison that has finished; nothing may be trained again."""
    table = answered(["compare", "--task", "value_sequences", "--data", "data/waves.csv", "--attention",
                      "cosformer,softmax", "--seeds", "1", "--steps", "14", "--lengths", "none", *CPU, "--set",
                      "model.width=8", "--set", "model.heads=1", "--set", "model.layers=1", "--set",
                      "model.feed_forward=16", "--out", "compared"])
    return [line.split() for line in table.splitlines() if line.startswith(("cosformer ", "softmax ", "2 of 2 "))]


# In this order: the last ones change what is stored, in the copy that the test works on.
CASES = {
    "eval_reviews": lambda: evaluated("reviews"),
    "eval_listops": lambda: evaluated("listops"),
    "eval_bars": lambda: evaluated("bars"),
    "eval_waves": lambda: evaluated("waves"),
    "eval_words": lambda: evaluated("words"),
    "eval_stream": lambda: evaluated("stream"),
    "eval_masked": lambda: evaluated("masked"),
    "eval_fine": lambda: evaluated("fine"),
    "eval_answers": lambda: evaluated("answers"),
    "eval_words_bundle": lambda: evaluated("words.bundle", "--data", "data/text.txt"),
    "predict_reviews": lambda: predicted("reviews", "data/reviews.txt"),
    "predict_fine": lambda: predicted("fine", "data/reviews.txt"),
    "predict_listops": lambda: predicted("listops", "data/listops.txt"),
    "predict_bars": lambda: predicted("bars", "data/bars-images-idx3-ubyte", "--first", "6"),
    "predict_bars_bundle": lambda: predicted("bars.bundle", "data/bars-images-idx3-ubyte", "--first", "6"),
    "predict_waves": lambda: predicted("waves", "data/waves.csv", "--labelled", "--first", "6"),
    "predict_answers": lambda: predicted("answers", "data/words.txt"),
    "generate_words": lambda: generated("words", "--prompt", "the host is"),
    "generate_words_bundle": lambda: generated("words.bundle", "--prompt", "the host is"),
    "generate_stream": lambda: generated("stream", "--prompt", "the host is"),
    "generate_words_session": lambda: generated("words", "--session", "words.session"),
    "generate_stream_session": lambda: generated("stream", "--session", "stream.session"),
    "compare": compared,
    "init_from_masked": lambda: trained("new", "--task", "text_files", "--data", "data/reviews.csv", *TEXTS, *CPU,
                                        "--set", "train.init=masked", "--steps", "4", "--out", "new"),
    "resume_bytes": lambda: trained("bytes", "--resume", "bytes"),
    "generate_bytes": lambda: generated("bytes", "--prompt", "the host is"),
    "continue_reviews": lambda: trained("reviews", "--continue", "reviews", "--steps", "36"),
}


def kept(answer):
    """Without what is left out, numbers as short as they are compared."""
    if isinstance(answer, dict):
        return {key: kept(value) for key, value in answer.items() if not any(word in key for word in LEFT_OUT)}
    if isinstance(answer, list):
        return [kept(value) for value in answer]
    return float(f"{answer:.6g}") if isinstance(answer, float) else answer


def differences(place, expected, got):
    """One line for each difference."""
    if isinstance(expected, float) and isinstance(got, (int, float)):
        if not math.isclose(expected, got, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
            yield f"{place}: {got}, expected {expected}"
    elif isinstance(expected, dict) and isinstance(got, dict):
        for key in expected:
            if key not in got:
                yield f"{place}: no {key!r}, which is expected"
            else:
                yield from differences(f"{place}, {key}", expected[key], got[key])
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, pair in enumerate(zip(expected, got)):
            yield from differences(f"{place} {index}", *pair)
    elif expected != got:
        yield f"{place}: {got!r}, expected {expected!r}"


def main():
    here = pathlib.Path(__file__).resolve().parent / "stored"
    write_to = pathlib.Path(sys.argv[3]).resolve() if sys.argv[2:3] == ["--write"] else None
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "stored"
        shutil.copytree(write_to or here, copy)
        os.chdir(copy)
        # Small models on busy machines: threads would only wait for each other.
        os.environ.update(OMP_NUM_THREADS="1", XDG_CACHE_HOME=str(copy / "cache"))
        for name, answer in CASES.items():
            try:
                got = kept(answer())
            except (AssertionError, OSError, ValueError) as error:
                print(f"FAILED: {name}: {error}")
                failures += 1
                continue
            if write_to:
                (write_to / "expected").mkdir(exist_ok=True)
                text = json.dumps(got, ensure_ascii=False, indent=1)
                (write_to / "expected" / f"{name}.json").write_text(text + "\n", encoding="utf-8")
                continue
            expected = json.loads((here / "expected" / f"{name}.json").read_text(encoding="utf-8"))
            found = list(differences(name, expected, got))
            failures += bool(found)
            for line in found[:10]:
                print(f"FAILED: {line}")
            if len(found) > 10:
                print(f"FAILED: {name}: and {len(found) - 10} more differences")
    print(f"{len(CASES) - failures} of {len(CASES)} as expected")
    sys.exit(1 if failures else 0)


program = str(pathlib.Path(sys.argv[1]).resolve())
main()
