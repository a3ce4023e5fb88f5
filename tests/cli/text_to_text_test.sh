#!/usr/bin/env bash
# Text to text through the program: train, go on, evaluate, answer, and what it says to wrong requests.
set -uo pipefail
program=$1
. "$(dirname "$0")/expect.sh"
export XDG_CACHE_HOME=$folder/cache

python3 - <<'END'
import json, random
random.seed(1)
words = ["".join(random.choice("abcd") for _ in range(random.randint(1, 5))) for _ in range(1000)]
with open("pairs.tsv", "w") as table, open("pairs.jsonl", "w") as rows, open("words.txt", "w") as lines:
    table.write("source\ttarget\n")
    for word in words:
        table.write(f"{word}\t{word[::-1]}\n")
        rows.write(json.dumps({"en": word, "de": word[::-1]}) + "\n")
    lines.write("\n".join(words[:20]) + "\n")
END
small=(--device cpu --set model.width=32 --set model.heads=2 --set model.layers=1 --set model.feed_forward=64
  --set model.dropout=0 --set train.lr=0.005 --set train.batch_size=32 --set train.eval_every=100
  --set text_to_text.decode_examples=20)
train=("$program" train --task text_to_text --data pairs.tsv "${small[@]}")

expect 0 'exact_match' "${train[@]}" --steps 400 --out run
for file in config.toml best.safetensors metrics.jsonl log.txt result.json tokenizer curves.svg; do
  [ -s "run/$file" ] || fail "run/$file is missing"
done
expect 0 'going on from step 400' "${train[@]}" --steps 400 --out run
expect 0 'floor: the source as it is' "$program" eval run
grep -qE '^cosformer_plus .*%' output.txt || fail "eval has no row of the run"
expect 0 '"exact_match"' "$program" eval run --json
python3 - <<'END' || fail "eval --json and result.json differ"
import json, math
evaluated, result = json.load(open("output.txt")), json.load(open("run/result.json"))
run = evaluated["runs"][0]
for name in ("loss", "perplexity", "token_accuracy"):
    assert math.isclose(run[name], result["test_" + name], rel_tol=1e-5), name
assert run["written"] == run["examples"] == 100, run
assert set(evaluated["floors"]) == {"the most frequent target", "the source as it is"}
END
expect 0 'decoder_block_0.cross.kv_proj.weight' "$program" info run

# Answers: a line each, the same in every form, from a file and from standard input.
"$program" predict run --input words.txt > lines.txt 2> errors.txt < /dev/null || fail "predict of lines"
[ "$(wc -l < lines.txt)" -eq 20 ] || fail "predict gives $(wc -l < lines.txt) lines, not 20"
"$program" predict run --input - < words.txt > piped.txt 2> errors.txt || fail "predict of standard input"
cmp -s lines.txt piped.txt || fail "answers from standard input differ"
"$program" predict run --input pairs.tsv --first 20 --output jsonl > rows.jsonl 2> errors.txt ||
  fail "predict of a table"
"$program" predict run --input words.txt --output tsv > rows.tsv 2> errors.txt || fail "predict in TSV"
python3 - <<'END' || fail "the forms of answers differ"
import json
lines = open("lines.txt").read().split("\n")[:-1]
assert [json.loads(row)["output"] for row in open("rows.jsonl")] == lines
table = [row.split("\t") for row in open("rows.tsv").read().split("\n")[:-1]]
assert table[0] == ["input", "output"] and [row[1] for row in table[1:]] == lines
words = open("words.txt").read().split()
right = sum(line == word[::-1] for line, word in zip(lines, words))
copies = sum(word == word[::-1] for word in words)
assert right >= 2 * copies, (right, copies)  # it has learned something
END
printf 'abcdabcdabcdabcd\n' > long.txt
expect 0 'longer than the model.s 5 tokens' "$program" predict run --input long.txt

# Other columns, another tokenizer, other attention in the decoder.
expect 0 'exact_match' "$program" train --task text_to_text --data pairs.jsonl "${small[@]}" --steps 10 --out other \
  --set data.source_column=en --set data.target_column=de --attention linformer --set attention.rank=4 \
  --set text_to_text.decoder_attention=softmax --set text_to_text.cross_attention=cosformer
expect 0 'linformer.*decoder softmax, cross cosformer' "$program" info other

# What is wrong is said, with its place.
printf 'source\ttarget\nab\tba\ncd\n' > short.tsv
expect 2 'short.tsv. line 3: it has 1 columns; expected 2' "$program" train --task text_to_text --data short.tsv \
  "${small[@]}" --out wrong
printf '{"source": "a", "target": "b"}\n{"source": "a"}\n' > short.jsonl
expect 2 'short.jsonl. line 2: .*no key .target.' "$program" train --task text_to_text --data short.jsonl \
  "${small[@]}" --out wrong
expect 2 'no column .de.' "${train[@]}" --set data.target_column=de --out wrong
expect 2 'nowhere.tsv' "$program" train --task text_to_text --data nowhere.tsv --out wrong
expect 2 'text_to_text.decoder_attention' "${train[@]}" --attention linformer --out wrong
expect 2 'those that can: cosformer' "${train[@]}" --attention linformer --set text_to_text.decoder_attention=softmax \
  --out wrong
[ -e wrong ] && fail "a run that could not begin left its folder"
expect 2 'text-to-text model, which answers texts' "$program" generate run --prompt a
expect 2 'carry' "$program" eval run --carry 8
expect 0 'are not compared here; cosformer eval RUN RUN' "$program" compare --task text_to_text --data pairs.tsv \
  --attention softmax --steps 2 --dry-run --out compared
expect 2 '--top is for classifiers' "$program" predict run --input words.txt --top 2
head -9 pairs.tsv > few.tsv
expect 0 "^all of 'few.tsv': 8 examples" "$program" eval run --data few.tsv
grep -q 'standard error of a share of 8 answers' output.txt || fail "nothing says what ± is"
printf 'ab\n\nba\n' > gaps.txt
expect 0 '^ab	' "$program" predict run --input gaps.txt --echo
[ "$(wc -l < output.txt)" -eq 3 ] || fail "a blank line has no line of its own"
cp pairs.tsv kept.tsv
printf 'more\tof it\n' >> pairs.tsv
expect 2 'they have changed since' "$program" eval run
expect 0 '^test part: ' "$program" eval run --data kept.tsv
mv kept.tsv pairs.tsv
expect 2 'not a classifier' "$program" attention-map run --input words.txt --out map
"$program" data tokenizer --kind words --input words.txt --out words.tokenizer > /dev/null
cp words.tokenizer run/tokenizer
expect 2 'another tokenizer' "$program" predict run --input words.txt

[ $failures -eq 0 ] && echo "all as expected"
exit $((failures > 0))
