# What the scripts here share: a folder of its own to work in, and what is expected of a command. To be sourced.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export OMP_NUM_THREADS=1  # small models on busy machines: threads would only wait for each other
failures=0
: > input.txt

fail() {
  echo "FAILED: $1"
  sed 's/^/  | /' output.txt | tail -20
  failures=$((failures + 1))
}

# expect CODE PATTERN COMMAND…: the exit code, and a line of the output that matches; input.txt is its standard input.
expect() {
  local code=$1 pattern=$2
  shift 2
  "$@" > output.txt 2>&1 < input.txt
  local got=$?
  [ "$got" -eq "$code" ] || fail "$* exited with $got, not $code"
  grep -qE -- "$pattern" output.txt || fail "$*: nothing matches '$pattern'"
}

# kill_once_there PATTERN COMMAND…: starts it, and kills it as soon as a file of that pattern is there.
kill_once_there() {
  local pattern=$1
  shift
  "$@" > output.txt 2>&1 &
  local process=$!
  for _ in $(seq 1 6000); do
    compgen -G "$pattern" > /dev/null && break
    sleep 0.02
  done
  kill -KILL $process
  wait $process 2> /dev/null
}
