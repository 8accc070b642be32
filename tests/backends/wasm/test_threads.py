"""Parallel loops in WebAssembly on several threads: workers of node, on one shared memory."""

from __future__ import annotations

import json

import numpy as np
import pytest

import weft
from tests.lib.linked import linked_for
from tests.lib.node import missing, node
from weft import relax
from weft.backends.wasm.code import options_of
from weft.backends.wasm.link import STACK
from weft.codegen.llvm.compile import compile_text
from weft.target.target import Target

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
op = relax.op
COUNT = 4


def saved(folder, compute, *shape, dtype="float32", target=f"wasm -num-cores={COUNT}"):
    """The folder of a model of one input ``x``; the model compiled for this machine."""
    x = relax.Var("x", relax.TensorStructInfo(shape, dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(compute(builder, x))
    weft.compile(builder.get(), target=target).save(folder)
    return weft.compile(builder.get())


def products(builder, x):
    """Loops of several kinds: products, a softmax over columns, elements."""
    scores = builder.emit(op.nn.softmax(builder.emit(op.matmul(x, x)), 0))
    return builder.emit(op.exp(builder.emit(op.matmul(scores, x))))


def printed(folder, body, *flags):
    """What a script prints as JSON; ``x`` is 192 x 192 numbers."""
    text = f"""\
import {{ load }} from "./model.js";
const n = 192, data = Float32Array.from({{ length: n * n }}, (_, i) => Math.sin(i * 1.7) / 9);
const x = {{ data, shape: [n, n] }}, print = (value) => console.log(JSON.stringify(value));
{body}
"""
    (folder / "run.mjs").write_text(text, encoding="utf-8")
    return json.loads(node([*flags, "run.mjs"], folder))


EQUAL = """\
const one = await load({ threads: 1 }), several = await load({ threads: 99 });
const [wanted] = one.run(x), same = [];
const isWanted = (v, k) => v === wanted.data[k], said = [one.module, one.threads];
for (let i = 0; i < 20; i++) same.push(several.run(x)[0].data.every(isWanted));
print([...said, several.module, several.threads, same.every(Boolean), [...wanted.data]]);
"""


@pytest.mark.parametrize("relaxed", [False, True])
def test_threads_compute_what_one_thread_does(relaxed, tmp_path):
    native = saved(tmp_path, products, 192, 192)
    flags = ["--experimental-wasm-relaxed-simd"] if relaxed else []
    *said, values = printed(tmp_path, EQUAL, *flags)
    if relaxed:
        assert said == ["model-relaxed.wasm", 1, "model-threads-relaxed.wasm", COUNT, True]
    else:
        assert [said[1], *said[3:]] == [1, COUNT, True]
    x = (np.sin(np.arange(192 * 192) * 1.7) / 9).astype("float32").reshape(192, 192)
    wanted = np.asarray(native(x)).ravel()
    np.testing.assert_allclose(np.float32(values), wanted, rtol=1e-4, atol=1e-4)


def test_one_thread_runs_where_memory_cannot_be_shared(tmp_path):
    saved(tmp_path, products, 192, 192)
    script = """\
delete globalThis.SharedArrayBuffer;
const model = await load({ threads: 4 });
print([model.threads, model.module.includes("threads"), model.run(x)[0].shape]);
"""
    assert printed(tmp_path, script) == [1, False, [192, 192]]


def test_one_thread_runs_where_no_worker_starts(tmp_path):
    saved(tmp_path, products, 192, 192)
    (tmp_path / "worker.js").write_text('throw new Error("refused");', encoding="utf-8")
    script = (
        "const model = await load({ threads: 4 }); print([model.threads, model.run(x)[0].shape]);"
    )
    assert printed(tmp_path, script) == [1, [192, 192]]


def test_a_closed_model_is_an_error(tmp_path):
    saved(tmp_path, products, 192, 192)
    script = """\
const model = await load({ threads: 4 });
model.run(x);
model.close();
try { model.run(x); } catch (error) { print(error.message); }
"""
    assert printed(tmp_path, script) == "main: expected an open model, found a closed one"


@pytest.mark.parametrize(("target", "size"), [("wasm", 192), ("wasm -num-cores=4", 4)])
def test_a_model_for_one_core_or_with_short_loops_has_no_threads(target, size, tmp_path):
    saved(tmp_path, products, size, size, target=target)
    assert not [path.name for path in tmp_path.iterdir() if "thread" in path.name]
    assert "thread" not in (tmp_path / "model.js").read_text()
    assert "thread" not in (tmp_path / "model.d.ts").read_text()


def test_a_fault_in_a_part_is_an_error_with_its_text(tmp_path):
    def compute(builder, x):
        indices = builder.emit(op.astype(x, "int64"))
        rows = builder.emit(
            op.take(x, builder.emit(op.reshape(indices, [-1])), axis=0, mode="fast")
        )
        return builder.emit(op.sum(rows, axis=[1]))

    saved(tmp_path, compute, 192, 192)
    script = """\
const model = await load({ threads: 4 });
const said = [];
for (const value of [0, 500, 1, 600]) {
  data.fill(1);
  data[20000] = value;
  try { said.push(model.run(x)[0].data.length); } catch (error) { said.push(error.message); }
}
print(said);
"""
    first, wrong, third, last = printed(tmp_path, script)
    assert first == third == 192 * 192
    assert "index 500 is out of bounds" in wrong
    assert "index 600 is out of bounds" in last


# Every part takes memory twice, fills it, and sums it up; so threads take memory at the same time.
HUNGRY = """
declare i32 @weft_parallel(ptr, ptr, i64, i32)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
define internal i32 @part(ptr %sums, i64 %begin, i64 %end) {
entry:
  %first = call ptr @aligned_alloc(i64 64, i64 40000)
  %second = call ptr @aligned_alloc(i64 64, i64 40000)
  br label %iteration
iteration:
  %i = phi i64 [ %begin, %entry ], [ %i.next, %next ]
  br label %fill
fill:
  %k = phi i64 [ 0, %iteration ], [ %k.next, %fill ]
  %a = getelementptr i64, ptr %first, i64 %k
  %b = getelementptr i64, ptr %second, i64 %k
  store volatile i64 %i, ptr %a
  store volatile i64 %k, ptr %b
  %k.next = add i64 %k, 1
  %filled = icmp eq i64 %k.next, 5000
  br i1 %filled, label %sum, label %fill
sum:
  %m = phi i64 [ 0, %fill ], [ %m.next, %sum ]
  %total = phi i64 [ 0, %fill ], [ %total.b, %sum ]
  %c = getelementptr i64, ptr %first, i64 %m
  %d = getelementptr i64, ptr %second, i64 %m
  %x = load volatile i64, ptr %c
  %y = load volatile i64, ptr %d
  %total.a = add i64 %total, %x
  %total.b = add i64 %total.a, %y
  %m.next = add i64 %m, 1
  %summed = icmp eq i64 %m.next, 5000
  br i1 %summed, label %next, label %sum
next:
  %at = getelementptr i64, ptr %sums, i64 %i
  store i64 %total.b, ptr %at
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %end
  br i1 %done, label %give, label %iteration
give:
  call void @free(ptr %second)
  call void @free(ptr %first)
  ret i32 0
}
define i32 @run(ptr %sums, i64 %n) {
  %code = call i32 @weft_parallel(ptr @part, ptr %sums, i64 %n, i32 -4)
  ret i32 %code
}
"""
# The caller's thread waits until another has run a part, which traps. Stacks tell them apart. There
# are two parts, so that at most two of three threads trap.
TRAP = """
@met = internal global i32 0
declare i32 @weft_parallel(ptr, ptr, i64, i32)
declare void @llvm.trap()
define internal i32 @part(ptr %traps, i64 %begin, i64 %end) {
entry:
  %here = alloca i32, align 4
  store volatile i32 0, ptr %here
  %place = ptrtoint ptr %here to i32
  %is.first = icmp ult i32 %place, 1048576
  br i1 %is.first, label %wait, label %fall
wait:
  %seen = load volatile i32, ptr @met
  %are = icmp ne i32 %seen, 0
  br i1 %are, label %done, label %wait
fall:
  store volatile i32 1, ptr @met
  %is.harmless = icmp eq ptr %traps, null
  br i1 %is.harmless, label %done, label %trap
trap:
  call void @llvm.trap()
  unreachable
done:
  ret i32 0
}
define i32 @run(ptr %traps, i64 %n) {
  store volatile i32 0, ptr @met
  %code = call i32 @weft_parallel(ptr @part, ptr %traps, i64 %n, i32 -4)
  ret i32 %code
}
"""
START = f"""\
import {{ readFileSync }} from "node:fs";
import {{ start }} from "./threads.js";
const pages = Number(process.argv[2]);
const {{ instance }} = await start(() => readFileSync("m.wasm"), {{
  wanted: {COUNT}, most: {COUNT}, pages, stack: {STACK},
}});
const e = instance.exports;
"""


def run_linked(text, script, folder):
    """What a script prints that has ``e``, the exports of the module of LLVM IR text."""
    code = compile_text(text, options_of(Target("wasm")))
    exports = ["run", "aligned_alloc", "free", "weft_fault"]
    module = linked_for(COUNT, code, exports, folder / "m.wasm")
    (folder / "run.mjs").write_text(START + script, encoding="utf-8")
    return json.loads(node(["run.mjs", str(module.pages)], folder))


def test_threads_take_memory_at_the_same_time(tmp_path):
    script = """\
const n = 64, sums = e.aligned_alloc(64n, BigInt(8 * n)), tops = new Set(), wrong = [];
for (let round = 0; round < 200; round++) {
  if (e.run(sums, BigInt(n))) wrong.push("code");
  e.memory.grow(0);
  new BigInt64Array(e.memory.buffer, sums, n).forEach((sum, i) => {
    if (sum !== BigInt(5000 * i + 12497500)) wrong.push([round, i, String(sum)]);
  });
  const top = e.aligned_alloc(64n, 1n);
  tops.add(top);
  e.free(top);
}
console.log(JSON.stringify([wrong, tops.size]));
"""
    assert run_linked(HUNGRY, script, tmp_path) == [[], 1]


def test_a_trap_on_a_thread_is_an_error_and_the_others_go_on(tmp_path):
    script = """\
const said = [], view = () => new DataView(e.memory.buffer);
const run = (traps) => {
  const code = e.run(traps, 2n);
  if (!code) return said.push("done");
  const at = view().getUint32(e.weft_fault() + 4, true), all = new Uint8Array(e.memory.buffer);
  said.push(new TextDecoder().decode(all.slice(at, all.indexOf(0, at))));
};
run(0); run(1); run(0);
console.log(JSON.stringify(said));
"""
    said = run_linked(TRAP, script, tmp_path)
    assert said == ["done", "a thread of the model ran into a trap", "done"]


def test_a_module_for_threads_imports_its_memory_and_stack(tmp_path):
    code = compile_text(HUNGRY, options_of(Target("wasm")))
    linked_for(COUNT, code, ["run"], tmp_path / "m.wasm")
    script = """\
import { readFileSync } from "node:fs";
const module = new WebAssembly.Module(readFileSync("m.wasm"));
const rows = WebAssembly.Module.imports(module).map(({ name, kind }) => [name, kind]);
console.log(JSON.stringify(rows));
"""
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    assert json.loads(node(["run.mjs"], tmp_path)) == [["memory", "memory"], ["stack", "global"]]
