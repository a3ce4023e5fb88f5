#!/usr/bin/env bash
# generate and bench decode from outside: streams, filters, sessions, horizons, what machines read.
# generate_test.sh COSFORMER MAKE_LANGUAGE_RUN
set -uo pipefail
cosformer=$1
make_run=$2
. "$(dirname "$0")/streams.sh"

# field NAME: of the JSON in $work/out
field() {
  python3 -c 'import json, sys; print(json.dumps(json.loads(open(sys.argv[1]).readline())[sys.argv[2]]))' \
    "$work/out" "$1"
}

"$make_run" "$work/plus" cosformer_plus 300 || fail "make a run"
"$make_run" "$work/softmax" softmax 300 || fail "make a run of softmax"
plus=("$cosformer" generate "$work/plus" --device cpu --past-end)

expect 2 "no run" "$cosformer" generate "$work/none"
contains err "is not a run"
mkdir "$work/empty"
expect 2 "a run without weights" "$cosformer" generate "$work/empty"
contains err "is not a run"
expect 2 "a filter that makes no sense" "${plus[@]}" --top-p 0
contains err "--top-p must be above 0"
expect 2 "two prompts" "${plus[@]}" --prompt a --prompt-file b

# The same seed gives the same text; another one another; samples differ.
expect 0 "a text" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 3 --json
first=$(field tokens)
expect 0 "the same text" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 3 --json
[ "$(field tokens)" = "$first" ] || fail "the same seed gave another text"
printf 'Once' > "$work/prompt"
expect 0 "a prompt from a file" "${plus[@]}" --prompt-file "$work/prompt" --max-tokens 40 --seed 3 --json
[ "$(field tokens)" = "$first" ] || fail "a prompt from a file gave another text"
expect 0 "a prompt from standard input" bash -c 'printf Once | "$@"' _ "${plus[@]}" --prompt-file - --max-tokens 40 \
  --seed 3 --json
[ "$(field tokens)" = "$first" ] || fail "a prompt from standard input gave another text"
expect 0 "another text" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 4 --json
[ "$(field tokens)" != "$first" ] || fail "another seed gave the same text"
expect 0 "samples" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 3 --samples 2 --json
[ "$(wc -l < "$work/out")" -eq 2 ] || fail "not two samples"
[ "$(field tokens)" = "$first" ] || fail "the first sample is not the seed's text"
expect 0 "plain text" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 3
iconv -f UTF-8 -t UTF-8 "$work/out" > /dev/null || fail "the text is not UTF-8"
contains err "40 tokens"

# A text in two sittings is the text in one.
for run in plus softmax; do
  command=("$cosformer" generate "$work/$run" --device cpu --past-end --json)
  expect 0 "$run at once" "${command[@]}" --prompt "Once" --max-tokens 60 --seed 3
  whole=$(field tokens)
  expect 0 "$run, first half" "${command[@]}" --prompt "Once" --max-tokens 25 --seed 3 --save-session "$work/s"
  half=$(field tokens)
  expect 0 "$run, second half" "${command[@]}" --max-tokens 35 --session "$work/s"
  python3 - "$whole" "$half" "$(field tokens)" << 'EOF' || fail "$run: a session did not go on as if never ended"
import json, sys
whole, half, rest = map(json.loads, sys.argv[1:])
sys.exit(whole != half + rest)
EOF
done
expect 2 "a session of another model" "${plus[@]}" --session "$work/s"
contains err "another model"
head -c 200 "$work/s" > "$work/cut"
expect 2 "half a session" "$cosformer" generate "$work/softmax" --device cpu --session "$work/cut"
contains err "$work/cut"

# Horizons and stops.
expect 0 "up to the horizon" "${plus[@]}" --prompt "Once" --max-tokens 1000 --json
[ "$(field ended_by)" = '"horizon"' ] || fail "did not end at the horizon"
[ "$(field consumed)" = 300 ] || fail "did not reach the horizon"
contains err "horizon is 300 tokens"
head -c 400 /dev/zero | tr '\0' a > "$work/long"
expect 2 "a prompt beyond the horizon" "${plus[@]}" --prompt-file "$work/long"
contains err "horizon is 300"
expect 0 "without a stop" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 3 --temperature 0 --json
stop=$(python3 - "$work/out" << 'EOF'
import json, sys
text = json.loads(open(sys.argv[1]).readline())["text"]
print(next(text[i:i + 2] for i in range(1, len(text)) if text[i:i + 2].isprintable() and " " not in text[i:i + 2]))
EOF
)
expect 0 "with a stop" "${plus[@]}" --prompt "Once" --max-tokens 40 --seed 3 --temperature 0 --json --stop "$stop"
[ "$(field ended_by)" = '"stop"' ] || fail "did not stop at '$stop'"
python3 - "$work/out" "$stop" << 'EOF' || fail "the stop string is in the text"
import json, sys
sys.exit(sys.argv[2] in json.loads(open(sys.argv[1]).readline())["text"])
EOF

# bench decode
expect 0 "bench decode" "$cosformer" bench decode --contexts 256,4096 --batch 1,2 --layers 1 --width 32 --heads 2 \
  --seconds 0.01 --json "$work/decode.jsonl" --plot "$work/decode"
contains out "the context was set"
python3 - "$work/decode.jsonl" << 'EOF' || fail "bench decode's JSON"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == 12 and all(row["tokens_per_second"] > 0 and row["limit_ms"] > 0 for row in rows)
size = {(r["attention"], r["batch"], r["context"]): r["state_bytes"] for r in rows}
for name in ("cosformer", "cosformer_plus"):
    assert size[name, 1, 256] == size[name, 1, 4096]
    assert size[name, 2, 256] == 2 * size[name, 1, 256]
assert size["softmax", 1, 4096] > 10 * size["softmax", 1, 256]
EOF
if command -v gnuplot > /dev/null; then grep -q "<svg" "$work/decode.svg" || fail "no plot"; fi
expect 0 "bench decode in bfloat16" "$cosformer" bench decode --contexts 64 --layers 1 --width 32 --heads 2 \
  --seconds 0.01 --dtype bfloat16 --json "$work/half.jsonl"
python3 - "$work/half.jsonl" "$work/decode.jsonl" << 'EOF' || fail "bench decode's JSON in bfloat16"
import json, sys
half, full = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
assert len(half) == 3 and all(row["tokens_per_second"] > 0 and row["dtype"] == "bfloat16" for row in half), half
half, full = ({r["attention"]: r for r in rows if r["batch"] == 1} for rows in (half, full))
assert half["softmax"]["state_bytes"] * 128 == full["softmax"]["state_bytes"]  # 64 of 4,096 tokens, half the bytes
EOF
expect 0 "bench decode, consumed" "$cosformer" bench decode --contexts 3000 --attention cosformer,softmax --layers 1 \
  --width 32 --heads 2 --seconds 0.01 --consume
contains out "the context was consumed"
expect 0 "a cache that is too large" "$cosformer" bench decode --contexts 1048576 --attention softmax --layers 1 \
  --width 32 --heads 2 --seconds 0.01 --most-gigabytes 0.1
contains out "more than --most-gigabytes"

[ "$failures" -eq 0 ] && echo "generate_test: all passed"
exit $((failures > 0))
