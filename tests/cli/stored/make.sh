#!/usr/bin/env bash
# What is stored here, made by a program: make.sh COSFORMER FOLDER
# It is meant for new kinds of stored files. Those that are here stay as the program of their time wrote them.
set -euo pipefail
program=$1
mkdir -p "$2"
cd "$2"
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$PWD/cache

python3 - <<'END'
import json, pathlib, random, struct
random.seed(1)
data = pathlib.Path("data")
data.mkdir()
good, bad = ["kind", "warm", "swift", "clear"], ["cruel", "cold", "slow", "vague"]
things = ["host", "soup", "train", "answer", "café", "Zürich"]


def said(words):
    return f"a {random.choice(words)} {random.choice(things)}, and a {random.choice(words)} {random.choice(things)}"


with open(data / "reviews.csv", "w", encoding="utf-8") as table:
    table.write("review,mood\n")
    for _ in range(100):
        words, mood = random.choice([(good, "good"), (bad, "bad")])
        table.write(f'"{said(words)}",{mood}\n')
with open(data / "reviews.txt", "w", encoding="utf-8") as new:
    new.writelines(said(random.choice([good, bad])) + "\n" for _ in range(6))
with open(data / "text.txt", "w", encoding="utf-8") as text:
    for _ in range(250):
        text.write(f"the {random.choice(things)} is {random.choice(good + bad)} in {random.choice(things)}.\n")
with open(data / "pairs.tsv", "w", encoding="utf-8") as table, open(data / "words.txt", "w", encoding="utf-8") as new:
    table.write("source\ttarget\n")
    words = ["".join(random.choice("abcd") for _ in range(random.randint(2, 4))) for _ in range(200)]
    table.writelines(f"{word}\t{word[::-1]}\n" for word in words)
    new.writelines(f"{word}\n" for word in words[:6])
with open(data / "listops.txt", "w", encoding="utf-8") as new:
    new.write("[MAX 2 9 [MIN 4 7 ] 0 ]\n[SM 1 2 3 ]\n[MED 5 5 [MAX 1 8 ] 0 ]\n")
# Bars that lie or stand, in the IDX format.
images, labels = [], []
for _ in range(80):
    label, place = random.randrange(2), random.randrange(1, 7)
    images.append(bytes(random.randrange(60) + 150 * ((row if label else column) == place)
                        for row in range(8) for column in range(8)))
    labels.append(label)
(data / "bars-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, len(images), 8, 8) + b"".join(images))
(data / "bars-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, len(labels)) + bytes(labels))
with open(data / "waves.csv", "w", encoding="utf-8") as table:
    for _ in range(60):
        label = random.randrange(2)
        wave = [f"{(-1) ** (place * label) + random.gauss(0, 1):.2f}" for place in range(12)]
        table.write(",".join([f"w{label}", *wave]) + "\n")
END

prepare() {  # NAME TASK ATTENTION SETTING…: the command that trains
  local name=$1 task=$2 attention=$3
  shift 3
  local settings=()
  for setting in "$@"; do settings+=(--set "$setting"); done
  command=("$program" train --task "$task" --attention "$attention" --device cpu --out "$name" --set model.width=16
    --set model.heads=2 --set model.layers=1 --set model.feed_forward=32 --set train.batch_size=8 --set train.lr=0.01
    --set train.log_every=20 "${settings[@]}")
}
train() { prepare "$@" && "${command[@]}"; }
keep() {  # NAME…: leaves out of runs what is only to be looked at, and the checkpoints of runs that have ended
  for name in "$@"; do
    rm -r "$name"/tensorboard "$name"/checkpoints
    rm -f "$name"/curves.* "$name"/log.txt "$name"/output.txt
  done
}

columns=(data.text_column=review data.label_column=mood)
train reviews text_files cosformer_plus data.path=data/reviews.csv "${columns[@]}" train.steps=30 train.eval_every=15 \
  model.width=8
rm -r reviews/tensorboard reviews/curves.* reviews/log.txt
rm -r reviews/checkpoints/step-00000015  # --continue goes on from the end
train listops listops softmax data.path=data/listops data.generate_train=200 data.generate_valid=40 \
  data.generate_test=40 data.generate_longer_than=5 data.generate_shorter_than=30 data.max_length=40 train.steps=60 \
  model.positions=rotary
train bars idx_images linformer data.path=data/bars-images-idx3-ubyte attention.rank=8 model.positions=grid \
  model.pooling=cls train.steps=200
train waves value_sequences cosformer data.path=data/waves.csv model.layers=2 train.steps=14
train words lm cosformer_plus data.path=data/text.txt data.tokenizer=words data.window=32 data.carry=true \
  data.max_length=128 model.positions=none attention.decay=true train.steps=60
train stream lm softmax data.path=data/text.txt data.window=32 model.positions=rotary model.norm=rms \
  model.activation=gated train.steps=60
train masked mlm cosformer data.path=data/text.txt data.tokenizer=sentencepiece data.tokenizer_vocabulary=290 \
  data.window=32 train.steps=60
train fine text_files cosformer data.path=data/reviews.csv "${columns[@]}" train.init=masked train.steps=40 \
  train.layer_decay=0.8
train answers text_to_text cosformer data.path=data/pairs.tsv seq2seq.decode_examples=20 train.steps=600 \
  seq2seq.cross_attention=softmax

# A byte model that was interrupted; its last checkpoint is at most a few steps before the end.
prepare bytes lm linear data.path=data/text.txt data.window=32 model.positions=none attention.decay=true \
  attention.token_decay=true \
  attention.convolution=4 attention.gate=true model.norm=rms train.steps=200 train.eval_every=100 \
  train.checkpoint_every=190 train.accumulate=2
"${command[@]}" &
process=$!
while kill -0 $process && ! [ -d bytes/checkpoints/step-00000190 ]; do sleep 0.005; done
kill -KILL $process
wait $process || true
[ ! -e bytes/checkpoints/step-00000200 ] || { echo "it was not killed in time; try again"; exit 1; }
for step in bytes/checkpoints/step-*; do [ "$step" = bytes/checkpoints/step-00000190 ] || rm -r "$step"; done
rm -rf bytes/tensorboard bytes/curves.*

# Sessions, of a carried state and of keys and values that are kept.
for name in words stream; do
  "$program" generate $name --device cpu --prompt 'the train is' --max-tokens 8 --temperature 0 \
    --save-session $name.session
done
for name in bars words; do "$program" bundle $name --out $name.bundle; done
"$program" compare --task value_sequences --data data/waves.csv --attention cosformer,softmax --seeds 1 --steps 14 \
  --lengths none --device cpu --set model.width=8 --set model.heads=1 --set model.layers=1 \
  --set model.feed_forward=16 --out compared
rm -r compared/plots compared/report.html
keep compared/cells/*
keep listops bars waves words stream masked fine answers
find . -name .lock -delete
rm -rf cache
