#!/usr/bin/env bash
# Runs a measurement and keeps its log: bench/record.sh cpu/attention build/bin/cosformer bench attention …
# The log goes to bench/results/NAME.log and begins with the command, the commit and the machine. Paths within the
# project are written without the way to it.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: bench/record.sh NAME COMMAND..." >&2; exit 2; }
cd "$(dirname "$0")/.."
name=$1
shift
log=bench/results/$name.log
mkdir -p "$(dirname "$log")"
{
  echo "\$ $*"
  echo "commit $(git rev-parse --short HEAD 2> /dev/null || echo unknown), $(date -u +%F)"
  echo "cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
  if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
  fi
  echo
  "$@" 2>&1
} | sed -u "s#$PWD/##g" | tee "$log.part"
mv "$log.part" "$log"
