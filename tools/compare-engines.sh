#!/usr/bin/env bash
# tools/compare-engines.sh MODEL.gguf --llama-bench NAME=COMMAND [...] [option ...]
#                          [-- kvc-opt option ...]
#
# Compiles a GGUF file, and measures it and other engines on the same file in turns,
# round after round: prompts, decoding, decoding behind many positions. Prints a
# table in Markdown, with how many times as fast as the best of them kvc is.
# A COMMAND is the path of a `llama-bench`, that of llama.cpp or of a fork, and its
# own options, such as "llama.cpp=/opt/llama/bin/llama-bench -fa 1". The cache is f16
# on both sides, unless kvc-opt is told otherwise. `compare_engines.py --help` lists
# the options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

(($#)) && [[ $1 != -* ]] ||
  die "expected tools/compare-engines.sh MODEL.gguf --llama-bench NAME=COMMAND [...]"
model=$1
shift
[[ -f $model ]] || die "$model: expected a GGUF file, but it isn't there"
options=()
while (($#)) && [[ $1 != -- ]]; do
  options+=("$1")
  shift
done
(($#)) && shift

install_packages "${build_packages[@]}" python3
build build -- kvc-opt kvc-bench >&2
out=build/compare/$(basename "$model" .gguf)
rm -rf "$out"
build/bin/kvc-opt "$model" --cache=f16 -o "$out" "$@" >&2
exec /usr/bin/python3 tools/compare_engines.py "$model" "$out" \
  --kvc-bench build/bin/kvc-bench "${options[@]}"
