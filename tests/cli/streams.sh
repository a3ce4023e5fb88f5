# For scripts that look at standard output and standard error apart. To be sourced.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect CODE DESCRIPTION COMMAND…: runs it, leaves $work/out and $work/err
expect() {
  local code=$1 what=$2
  shift 2
  "$@" > "$work/out" 2> "$work/err"
  local got=$?
  if [ "$got" -ne "$code" ]; then
    fail "$what: exit code $got, expected $code"
    cat "$work/err"
  fi
}

# contains FILE TEXT
contains() {
  grep -qF -- "$2" "$work/$1" || { fail "'$2' is not in std$1:"; head -20 "$work/$1"; }
}
