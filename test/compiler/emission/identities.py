"""Which changes of a model change its identity: identities.py STORY FOLDER."""

import json
import os
import shutil
import subprocess
import sys

story, folder = sys.argv[1:]
os.makedirs(folder)


def identity(model, *options, target="cpu:x86-64-v3"):
    """What the packed file says; a library of another identity is refused."""
    out = os.path.join(folder, "out")
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(["kvc-opt", model, "-o", out, f"--target={target}", *options], check=True)
    name, = (f for f in os.listdir(out) if f.endswith(".safetensors"))
    with open(os.path.join(out, name), "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(length))["__metadata__"]["kvc_identity"]


def copy(name):
    shutil.copytree(story, os.path.join(folder, name))
    return os.path.join(folder, name, "spec.json")


def edited(name, change):
    path = copy(name)
    with open(path) as file:
        spec = json.load(file)
    change(spec)
    with open(path, "w") as file:
        json.dump(spec, file)
    return path


spec = os.path.join(story, "spec.json")
first = identity(spec)


def report(what, other):
    print(f"{'the same' if other == first else 'another'}: {what}")


report("again", identity(spec))
report("from another path", identity(copy("elsewhere")))
report("for another level", identity(spec, target="cpu:x86-64-v4"))
ir = os.path.join(folder, "story.mlir")
subprocess.run(["kvc-opt", spec, "--emit=kvc", "-o", ir], check=True)
report("from its own IR", identity(ir))

flipped = copy("weight")
with open(os.path.join(folder, "weight", "model.safetensors"), "r+b") as file:
    length = int.from_bytes(file.read(8), "little")
    begin, _ = json.loads(file.read(length))["layers.1.up.weight"]["data_offsets"]
    file.seek(8 + length + begin)
    byte = file.read(1)[0]
    file.seek(8 + length + begin)
    file.write(bytes([byte ^ 1]))
report("a last bit of one weight", identity(flipped))
report("epsilon", identity(edited("epsilon", lambda s: s["norm"].update(epsilon=2e-5))))
report("name", identity(edited("name", lambda s: s.update(name="other"))))
for option in "--cache=f32", "--weights=f32", "--capacity=159", "--emit=reference":
    report(option, identity(spec, option))
