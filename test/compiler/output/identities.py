"""Which changes of a model change its identity: identities.py FIXTURES FOLDER."""

import json
import os
import shutil
import subprocess
import sys

fixtures, folder = sys.argv[1:]
story, llama = (os.path.join(fixtures, name) for name in ("story", "llama3-rope"))
os.makedirs(folder)


def identity(model, *options, target="cpu:x86-64-v3"):
    """What the packed file says; a library of another identity is refused."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(["kvc-test-opt", model, "-o", out, f"--target={target}", *options], check=True)
    name, = (f for f in os.listdir(out) if f.endswith(".safetensors"))
    with open(os.path.join(out, name), "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(length))["__metadata__"]["kvc_identity"]


def copy(name, model=story):
    """A folder that is called as the model's: a Hugging Face model is named so."""
    return shutil.copytree(model, os.path.join(folder, name, os.path.basename(model)))


def edit(path, change):
    with open(path) as file:
        description = json.load(file)
    change(description)
    with open(path, "w") as file:
        json.dump(description, file)


def edited(name, change):
    path = os.path.join(copy(name), "spec.json")
    edit(path, change)
    return path


def rotary(**settings):
    """Llama with other rotary settings."""
    path = copy("-".join(settings), llama)
    edit(os.path.join(path, "config.json"), lambda s: s["rope_parameters"].update(settings))
    return path


spec = os.path.join(story, "spec.json")
first = identity(spec)


def report(what, other, than=first):
    assert len(other) == 64, f"expected 256 bits, but got {other}"
    print(f"{'the same' if other == than else 'another'}: {what}")


report("again", identity(spec))
report("from another path", identity(os.path.join(copy("elsewhere"), "spec.json")))
report("for another level", identity(spec, target="cpu:x86-64-v4"))
ir = os.path.join(folder, "story.mlir")
subprocess.run(["kvc-opt", spec, "--emit=kvc", "-o", ir], check=True)
report("from its own IR", identity(ir))

flipped = copy("weight")
with open(os.path.join(flipped, "model.safetensors"), "r+b") as file:
    length = int.from_bytes(file.read(8), "little")
    begin, _ = json.loads(file.read(length))["layers.1.up.weight"]["data_offsets"]
    file.seek(8 + length + begin)
    byte = file.read(1)[0]
    file.seek(8 + length + begin)
    file.write(bytes([byte ^ 1]))
report("a last bit of one weight", identity(os.path.join(flipped, "spec.json")))
report("epsilon", identity(edited("epsilon", lambda s: s["norm"].update(epsilon=2e-5))))
report("name", identity(edited("name", lambda s: s.update(name="other"))))
report("activation", identity(edited("activation", lambda s: s.update(activation="relu"))))
for option in ("--cache=f32", "--cache=paged<16>", "--weights=f32", "--capacity=159", "--emit=reference",
               "--numerics-version=0"):
    report(option, identity(spec, option))
pages = [identity(spec, f"--cache=paged<{size}>") for size in (16, 32)]
report("pages of another size", pages[1], than=pages[0])

base = identity(llama)
spoken = copy("tokenizer", llama)
with open(os.path.join(spoken, "tokenizer.json"), "w") as file:
    file.write("{}")
report("a tokenizer beside it", identity(spoken), than=base)
report("rotary base", identity(rotary(rope_theta=10001.0)), than=base)
report("rotary scaling", identity(rotary(factor=4.0)), than=base)
report("one band of it", identity(rotary(low_freq_factor=1.5)), than=base)
