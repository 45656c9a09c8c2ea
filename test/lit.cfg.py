# One lit suite for the whole repository.
import os
import subprocess

import lit.formats

config.name = "kvc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["fixtures", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.source_root, "test")
config.test_exec_root = os.path.join(config.build_root, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.build_root, "bin"), config.llvm_tools, os.environ["PATH"]]
)

config.substitutions += [
    ("%python", config.python),
    ("%source_root", config.source_root),
    ("%build_root", config.build_root),
    ("%reference", os.path.join(config.source_root, "test", "reference")),
    ("%fixtures", os.path.join(config.source_root, "test", "fixtures")),
    ("%llvm_lib", config.llvm_lib),
    ("%cc", config.c_compiler),
]

# Models that aren't part of the repository.
shared = os.path.normpath(os.path.join(config.source_root, "..", "shared"))
if os.path.isdir(os.path.join(shared, "models", "stories260k")):
    config.available_features.add("shared")
    config.substitutions.append(("%shared", shared))
smollm2 = os.path.join(
    config.source_root, "models", "SmolLM2-135M-Instruct.Q4_1.gguf"
)
if os.path.isfile(smollm2):
    config.available_features.add("smollm2")
    config.substitutions.append(("%smollm2", smollm2))

# Where processes may trace others.
try:
    subprocess.run(["strace", "-f", "true"], check=True, capture_output=True)
    config.available_features.add("strace")
except (OSError, subprocess.CalledProcessError):
    pass

# What this machine can run.
with open("/proc/cpuinfo") as f:
    flags = next((line for line in f if line.startswith("flags")), "").split()
if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= set(flags):
    config.available_features.add("x86-64-v4")

# An instrumented build: tests that are about the ordinary one don't run.
if config.sanitize:
    config.available_features.add("sanitize")
    config.available_features.add("sanitize-" + config.sanitize)
    # LLVM's arenas poison what they have not handed out, but the packages' half
    # of that code isn't instrumented and hands out without unpoisoning.
    config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0"
    # Nor are the threads that passes run in.
    config.environment["TSAN_OPTIONS"] = "suppressions=" + os.path.join(
        config.source_root, "test", "thread-sanitizer.txt"
    )

# Generated code isn't instrumented, so there fewer levels of it and fewer random
# cases do.
levels = "cpu:x86-64-v3,cpu:x86-64-v4-vnni"
config.substitutions += [
    ("%targets", f"--target={levels}" if config.sanitize else ""),
    ("%batches", "100" if config.sanitize else "1000"),
    ("%mutants", "4" if config.sanitize else "12"),
]
