#!/usr/bin/env bash
# Installs the distribution packages that building and testing need: only those that are missing, as root or through
# sudo. Debian 12 and 13, Ubuntu 22.04 and 24.04; elsewhere it names what is needed and stops.
# --arm: those for compiling and running 64-bit ARM code (make arm) as well.
set -euo pipefail

packages=(
  make cmake ninja-build g++ git           # the build
  libtorch-dev                             # tensors, autograd
  libopenblas0-openmp                      # torch's matrix products, on the threads that torch itself uses
  nlohmann-json3-dev libcli11-dev          # JSON, command line
  libtomlplusplus-dev                      # settings files
  libfmt-dev                               # messages
  libpng-dev zlib1g-dev                    # images and packed files of data sets
  libssl-dev                               # SHA-256
  libsentencepiece-dev                     # vocabularies of word pieces
  dataset-fashion-mnist                    # the images that the demo trains on
  gnuplot-nox                              # curves
  libgtest-dev                             # tests
  libboost-dev prometheus-cpp-dev          # the server: its network, its counts
  libboost-context-dev                     # the fibers on which the CUDA kernels are tested without a GPU
  python3 python3-torch python3-numpy      # the operator from Python, and the peers it is compared with
  clang-format                             # make format, and its check
)

case "${1:-}" in
  "") ;;
  --arm) packages+=(g++-aarch64-linux-gnu qemu-user googletest) ;;
  *) echo "setup: unknown option $1; there is --arm" >&2; exit 2 ;;
esac

known_distribution() {
  [ -r /etc/os-release ] || return 1
  # shellcheck disable=SC1091
  . /etc/os-release
  case "${ID:-}:${VERSION_ID:-}" in
    debian:12 | debian:13 | ubuntu:22.04 | ubuntu:24.04) return 0 ;;
    *) return 1 ;;
  esac
}

[ -z "${COSFORMER_SKIP_SETUP:-}" ] || exit 0
missing=()
if command -v dpkg-query > /dev/null; then
  for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2> /dev/null || true)
    [ "$status" = "install ok installed" ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && exit 0
else
  missing=("${packages[@]}")
fi

if ! known_distribution; then
  {
    echo "setup: this is not Debian 12/13 or Ubuntu 22.04/24.04, so nothing was installed."
    echo "setup: please install what these Debian packages provide:"
    echo "  ${missing[*]}"
    echo "setup: then tell make that you have: make build COSFORMER_SKIP_SETUP=1 (likewise demo and test)"
  } >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "setup: not root, and there is no sudo. As root, run: apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
