#!/usr/bin/env bash
# Runs a measurement and keeps its log: bench/record.sh cpu/attention build/bin/cosformer bench attention …
# The log goes to bench/results/NAME.log and begins with the command, the commit and the machine (header.sh). Paths
# within the project are written without the way to it.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: bench/record.sh NAME COMMAND..." >&2; exit 2; }
cd "$(dirname "$0")/.."
name=$1
shift
log=bench/results/$name.log
mkdir -p "$(dirname "$log")"
{
  bash bench/header.sh "$@"
  echo
  "$@" 2>&1
} | sed -u "s#$PWD/##g" | tee "$log.part"
mv "$log.part" "$log"
