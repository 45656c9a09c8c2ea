#!/usr/bin/env bash
# tools/test.sh [--sanitize[=address|thread]] [lit argument or test ...]
#
# Installs what is missing, builds and runs every test, or those that are named
# (test/dialect, --filter=story). Its last line is `N passed, N failed`, with
# `, N skipped` where tests could not run here; each of those is named before it.
# --sanitize tests a build of its own under AddressSanitizer and UBSan, or
# ThreadSanitizer, with assertions on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

folder=build
options=()
packages=("${build_packages[@]}" "${test_packages[@]}")
case ${1-} in
  --sanitize | --sanitize=address) folder=build-sanitize options=(-DKVC_SANITIZE=address) ;;
  --sanitize=thread) folder=build-thread options=(-DKVC_SANITIZE=thread) ;;
  --sanitize=*) die "--sanitize: expected address or thread, but got ${1#*=}" ;;
esac
if ((${#options[@]})); then
  packages+=("${sanitizer_packages[@]}")
  shift
fi

tests=()
arguments=()
for argument; do
  if [[ $argument == test/* && -e $argument ]]; then
    tests+=("$folder/$argument")
  else
    arguments+=("$argument")
  fi
done
((${#tests[@]})) || tests=("$folder/test")

# Without results the count below would be missing; a build that breaks has
# failed too.
trap 'printf "error: no test ran\n0 passed, 1 failed\n"; exit 1' EXIT
install_packages "${packages[@]}"
fetch_model || say "no $model: the tests that need it are skipped"
build "$folder" "${options[@]}" --

results=$folder/results.json
rm -f "$results"
# An hour is a hang. What lit's exit code says, its results say too.
/usr/lib/llvm-22/bin/lit -v --max-time 3600 -j "$(nproc)" --output "$results" \
  "${arguments[@]}" "${tests[@]}" || true
[[ -f $results ]]
trap - EXIT
exec /usr/bin/python3 test/tools/summary.py "$results"
