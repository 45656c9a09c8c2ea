//===- Passes.td - passes of the kvc compiler -----------------------------===//
//
// In the order of the pipelines in compiler/Pipelines.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef KVC_PASSES
#define KVC_PASSES

include "mlir/Pass/PassBase.td"

def Inline : Pass<"kvc-inline", "::mlir::ModuleOp"> {
  let summary = "puts functions in the place of their calls";
  let description = [{
    A module with a function `@forward` is a program whose entry that is: the
    others become private. In every function that isn't private, calls of functions
    of one block are inlined, and calls in these. A function that calls itself,
    more than 64 inside of each other and more than 65536 ops in the place of calls
    are errors. `symbol-dce` removes what is left. A `kvc.together` of a text that
    was fused before is replaced by its ops.

    ```mlir
    func.func private @layer(%x: !rows) -> !rows {         // before
      %h = kvc.activate %x relu : !rows
      return %h : !rows
    }
    func.func @forward(...) {
      %y = call @layer(%x) : (!rows) -> !rows
    func.func @forward(...) {                              // after
      %h = kvc.activate %x relu : !rows
    ```
    Each op keeps its location and, behind it, that of the call.
  }];
}

def VerifyCacheContract : Pass<"kvc-verify-cache-contract", "::mlir::ModuleOp"> {
  let summary = "rejects programs that break the contract of the KV cache";
  let description = [{
    docs/cache-contract.md has the mistakes that this pass finds. It follows each
    function that isn't private as it runs: loops iteration by iteration, of an
    `scf.if` the branch that runs. So bounds, conditions and layers are constants, or
    made of such by arithmetic of type index; ops of a step under others, a call
    (`kvc-inline` comes before), values in memory and more than 2^20 ops are errors
    that say so.

    A cache value is consumed by the op that makes the next one (append, advance,
    truncate, fork, reorder), or that hands it on (a loop, a terminator); reading is
    free. Because of this check the lowerings update caches in place. Positions are
    what rotary, append and attend take as such, and the ids of a `kvc.embed` that
    are i64 (tokens are i32).

    A step: `kvc.positions` of a cache, one `kvc.append` to each layer at these
    positions, each before the `kvc.attend`s to the layer, one `kvc.advance`. Rows
    that were made at positions, by rotary, by embedding them or of rows that were,
    are appended and attended at the same positions. A layer is one of the cache
    and of the weights that it indexes. A function starts and ends between two
    steps.

    A layout that forgets positions is an error, except in a function with the
    attribute `kvc.inexact`: its attention isn't over the full prefix.
  }];
}

def VerifyForward : Pass<"kvc-verify-forward", "::mlir::ModuleOp"> {
  let summary = "checks that @forward stays inside what the runtime checks";
  let description = [{
    Generated code indexes memory without checks; the runtime's plan checks the
    arguments of a call. So in `@forward`, after `kvc-inline` and beside the cache
    contract: sequences are its argument 1, token ids its argument 0, selected rows
    its argument 2; positions come from `kvc.positions`; a token table has a row for
    each logit; rotary angles are below 2^30, up to where sines are right; every
    tensor has a row a token or a row an output, and no op mixes the two; rows are
    of the logits' type; and lengths change by one `kvc.advance` of the returned
    cache, and in no other way.

    What it may use is what both lowerings know (`verify/ForwardOps.h`): ops of kvc
    but truncate, fork and reorder, arithmetic on rows and on indices, `scf.for` over
    indices and `scf.if`.
  }];
}

def DeferAdvance : Pass<"kvc-defer-advance", "::mlir::ModuleOp"> {
  let summary = "leaves the growth of lengths to the runtime";
  let description = [{
    In `@forward`, the entry of a generated library, `kvc.advance` of the
    returned cache goes: the runtime commits lengths itself, when all slices of
    a call are computed.

    ```mlir
    %4 = kvc.advance %3 by %sequences      // before
    return %logits, %4
    return %logits, %3                     // after
    ```
  }];
}

def Fuse : Pass<"kvc-fuse", "::mlir::ModuleOp"> {
  let summary = "moves activations, residuals and gates into linear layers, and "
                "dispatches what is independent together";
  let description = [{
    ```mlir
    %h = kvc.linear %x by @up              // before
    %a = kvc.activate %h gelu
    %a = kvc.linear %x by @up activation gelu             // after

    %y = kvc.linear %a by @down            // before
    %z = arith.addf %x, %y
    %z = kvc.linear %a by @down residual(%x)              // after

    %g = kvc.linear %x by @gate            // before
    %u = kvc.linear %x by @up
    %s = kvc.activate %g silu
    %m = arith.mulf %s, %u
    %m = kvc.gated_linear %x by @gate, @up activation silu // after
    ```
    Legal where the value that disappears has no other use. What is left of linear
    layers is then grouped by input, where none needs another's result:
    ```mlir
    %q = kvc.linear %h by @query           // before
    %k = kvc.linear %h by @key
    %q, %k = kvc.together {                               // after
      %q_0 = kvc.linear %h by @query
      %k_0 = kvc.linear %h by @key
      kvc.yield %q_0, %k_0
    }
    ```
  }];
  let dependentDialects = ["::kvc::KVCDialect"];
}

def AssignPacking : Pass<"kvc-assign-packing", "::mlir::ModuleOp"> {
  let summary = "gives every weight its offset in the packed file";
  let description = [{
    Adds `packed #kvc.packing<offset, panel>` to each `kvc.weight`, in the order
    of declaration, each at a multiple of 64 bytes.

    ```mlir
    kvc.weight @up : tensor<96x24xf32> from "up"                               // before
    kvc.weight @up : tensor<96x24xf32> from "up" packed <offset 0, panel 16>   // after
    ```
  }];
  let options = [Option<"panels", "panels", "bool", "true",
      "whether rows of a matrix stand side by side, in the lanes of vectors">];
}

def LowerToLinalg : Pass<"kvc-lower-to-linalg", "::mlir::ModuleOp"> {
  let summary = "each op's definition, in upstream dialects";
  let description = [{
    The reference lowering: slow and plain. Activations stay tensors; a cache
    becomes three buffers, updated in place: the pool (memref<?xi8>), the page
    table (memref<?xi64>, a byte offset for each page of each sequence) and the
    lengths (memref<?xi64>). What an iteration of a loop hands on is copied into
    the buffer that it came in. A function that reads weights, itself or by a call,
    gets the data section of the packed file, row-major
    (`kvc-assign-packing{panels=false}`), as its first argument.

    ```mlir
    %y = kvc.activate %x relu : tensor<?x8xf32>            // before
    %0 = tensor.empty(%rows) : tensor<?x8xf32>              // after
    %y = linalg.generic ... ins(%x) outs(%0) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.maximumf %in, %zero : f32
      linalg.yield %1 : f32
    } -> tensor<?x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def ExportReference : Pass<"kvc-export-reference", "::mlir::ModuleOp"> {
  let summary = "gives @forward of the reference its exported signature";
  let description = [{
    After `kvc-lower-to-linalg`, `@forward` takes the weights, tensors of tokens,
    sequences and outputs and the buffers of a cache, and gives logits and the
    cache. It becomes `kvc_forward_function` of runtime/include/kvc/abi.h: all
    arguments are buffers, and the logits are written to one of them, each NaN
    as the same one. Weights are offsets in the code by then, so each
    `kvc.weight` goes.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

def LowerToKernels : Pass<"kvc-lower-to-kernels", "::mlir::ModuleOp"> {
  let summary = "the fast CPU lowering: loops over vectors";
  let description = [{
    Turns `@forward`, inlined, fused and packed, into one function over buffers
    with the signature of `kvc_forward_function` (runtime/include/kvc/abi.h).
    Work is written as `scf.parallel` over independent tasks, vectors have 16
    virtual lanes, and each output element is reduced in one order that depends
    on no size, thread or register. Buffers are `memref.alloc`s for
    `kvc-plan-workspace`.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "256",
      "bits of a register (this and the rest from the target description)">,
    Option<"byteDot", "byte-dot", "bool", "false",
      "whether the machine has dot products of bytes (AVX-512 VNNI)">,
    Option<"pairDot", "pair-dot", "bool", "false",
      "whether it has dot products of two bf16 (AVX-512 BF16)">,
    Option<"tiles", "tiles", "bool", "false",
      "whether the machine has tiles of bytes and bf16 (AMX)">,
    Option<"tileRows", "tile-rows", "int64_t", "6",
      "rows of attention's register tile">,
    Option<"tileGroups", "tile-groups", "int64_t", "1",
      "groups of 16 columns of attention's register tile">,
    Option<"taskRows", "task-rows", "int64_t", "224",
      "rows of a task of a product of many, about">,
    Option<"taskBytes", "task-bytes", "int64_t", "0",
      "bytes of a task's own memory on a device, whose memory the host doesn't read; 0: "
      "the CPU's">,
    ListOption<"floatShapes", "float-shapes", "int64_t",
      "rows and groups of the register tile of a product of floats, of few rows and "
      "of many: 2,2,6,1">,
    ListOption<"integerShapes", "integer-shapes", "int64_t",
      "the same of a product of integers: 2,2,4,1">];
  let dependentDialects = ["::mlir::amx::AMXDialect",
    "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

def JoinRowLoops : Pass<"kvc-join-row-loops", "::mlir::ModuleOp"> {
  let summary = "joins loops over the same rows";
  let description = [{
    A kernel that works row by row, such as a norm, says so by the attribute
    `kvc.rows` of its `scf.parallel`: its task n touches row n alone of what other
    such loops touch. Where one follows another, of as many rows, and nothing in
    between has an effect, they become one: rotary embedding and append, a norm and
    the rounding of its rows. A dispatch is saved, and a row is in the caches still.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def PlanWorkspace : Pass<"kvc-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "replaces allocations by views of the workspace";
  let description = [{
    Each `memref.alloc(%n)` of `@forward` becomes a view of the workspace; two
    buffers share bytes only where their lives don't overlap. Sizes are those
    for `max-tokens` rows. The workspace's size becomes the function's attribute
    `kvc.workspace_bytes`.
  }];
  let options = [Option<"maxTokens", "max-tokens", "int64_t", "256",
      "tokens of one call at most">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"];
}

def OutlineParallel : Pass<"kvc-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "turns parallel loops into tasks of the runtime's executor";
  let description = [{
    Each outermost `scf.parallel` of `@forward`, of one dimension, becomes a
    function `(context, begin, end)` and a call of the executor's
    `parallel_for` with the address of the captured values. A single task, and those
    of up to 8 rows (`kvc.rows`), are called instead: no thread is asked.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def ExpandMath : Pass<"kvc-expand-math"> {
  let summary = "one polynomial for each function, the same on every CPU";
  let description = [{
    Replaces `math.exp`, `math.exp2`, `math.tanh`, `math.erfc`, `math.sin`,
    `math.cos` on f32 and f64, scalars and vectors, by arithmetic that gives the
    same bits everywhere; no call of libm remains. Conversions to and from bf16 become integer arithmetic, since
    instructions differ in how they treat denormals, and code generation without
    such instructions calls libgcc.
  }];
  let options = [Option<"scalef", "scalef", "bool", "false",
      "end an exponential of 16 f32 by AVX-512's vscalefps, which gives the same bits">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def OutlineLaunches : Pass<"kvc-outline-launches", "::mlir::ModuleOp"> {
  let summary = "turns parallel loops into kernels of a CUDA device";
  let description = [{
    Each outermost `scf.parallel` of `@forward`, of one dimension, becomes a
    `gpu.func` of the `gpu.module` `@kernels`, whose parameters are the number of tasks
    and the captured values, and a call of the launcher's `launch` (kvc/abi.h). Half a
    warp has a task. The host touches no memory of the device: a load of anything but a
    constant is an error.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::gpu::GPUDialect",
    "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def DistributeLanes : Pass<"kvc-distribute-lanes", "::mlir::gpu::GPUModuleOp"> {
  let summary = "gives each lane of a vector a thread";
  let description = [{
    In each kernel a vector of up to 16 numbers becomes one number of each of 16
    threads, element i that of thread i, one of 16 k numbers a vector of k, and what
    crosses lanes a shuffle: `vector.load` reads one element, `vector.extract` asks the
    lane that has it. A dot product of bytes is `dp4a`, exact as every other. A
    task's own memory (`memref.alloca`) is the block's shared memory, or the thread's
    where no other touches it; stores that others read stand between two barriers of
    the task.
  }];
  let dependentDialects = ["::mlir::NVVM::NVVMDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect"];
}

def ConvertKernels : Pass<"kvc-convert-kernels", "::mlir::gpu::GPUModuleOp"> {
  let summary = "the kernels' numbers and branches become the LLVM and NVVM dialects";
  let description = [{
    As `convert-gpu-to-nvvm`, but for functions such as a square root, which become
    LLVM's intrinsics and so single instructions: that pass calls libdevice.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // KVC_PASSES
