#!/usr/bin/env bash
# The first lines of every log, which scripts/check_numbers.py looks for: the command, the commit, the machine.
#   bash bench/header.sh COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."
beside=
git diff --quiet HEAD -- . ':(exclude)bench/results' ':(exclude)*.md' 2> /dev/null ||
  beside=", with uncommitted changes"
echo "\$ $*"
echo "commit $(git rev-parse --short HEAD 2> /dev/null || echo unknown), $(date -u +%F)$beside"
echo "cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores"
if command -v nvidia-smi > /dev/null; then
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
fi
