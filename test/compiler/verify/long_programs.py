"""Programs of a few kilobytes in which something doubles: long_programs.py KIND."""

import sys

HEAD = """!cache = !kvc.cache<layers 1, kv_heads 1, capacity 20, key 4, value 4, f32, #kvc.contiguous>
kvc.weight @w : tensor<2x4xf32> from "{}.w"
"""


def sums():
    """Each is of the one before, twice."""
    lines = [f"    %{i + 1} = arith.addi %{i}, %{i} : index" for i in range(60)]
    return """func.func @sums(%x: tensor<?x4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %layer = %zero to %one step %one {
    %0 = arith.addi %layer, %layer : index
""" + "\n".join(lines) + """
    %y = kvc.rms_norm %x by @w layer %60 epsilon 1.0e-05 : tensor<?x4xf32>
  }
  return
}
"""


def calls():
    """Each function calls the next one twice."""
    text = "func.func @calls() {\n  call @f0() : () -> ()\n  return\n}\n"
    for i in range(40):
        call = f"  call @f{i + 1}() : () -> ()\n"
        text += f"func.func private @f{i}() {{\n{call}{call}  return\n}}\n"
    return text + "func.func private @f40() {\n  return\n}\n"


def nested_calls():
    """Each function calls the next one."""
    text = "func.func @calls() {\n  call @f0() : () -> ()\n  return\n}\n"
    for i in range(1000):
        text += f"func.func private @f{i}() {{\n  call @f{i + 1}() : () -> ()\n  return\n}}\n"
    return text + "func.func private @f1000() {\n  return\n}\n"


def nested_branches():
    """Each of some functions calls the next one under a hundred branches."""
    text = "func.func @calls() {\n  call @f0() : () -> ()\n  return\n}\n"
    for i in range(60):
        text += f"func.func private @f{i}() {{\n%true = arith.constant true\n" + "scf.if %true {\n" * 100
        text += f"func.call @f{i + 1}() : () -> ()\n" + "}\n" * 100 + "return\n}\n"
    return text + "func.func private @f60() {\n  return\n}\n"


def loops():
    """Each loop is in another one of two iterations."""
    text = ["func.func @loops(%x: tensor<?x4xf32>) {", "%zero = arith.constant 0 : index",
            "%one = arith.constant 1 : index", "%two = arith.constant 2 : index"]
    text += [f"scf.for %i{i} = %zero to %two step %one {{" for i in range(40)]
    text += ["%y = kvc.rms_norm %x by @w layer %i39 epsilon 1.0e-05 : tensor<?x4xf32>"] + ["}"] * 40
    return "\n".join(text) + "\nreturn\n}\n"


print(HEAD + {f.__name__: f for f in (sums, calls, nested_calls, nested_branches, loops)}[sys.argv[1]]())
