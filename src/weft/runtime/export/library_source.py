"""C text of an exported model: its header, and what stands between a C program and compiled code.

A CallPlan printed as C: its checks (``weft.runtime.export.check_text``), working memory, the native
call, results. Extents are integer expressions over symbols, which become C expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weft.runtime.call.plan import Arena, Pass
from weft.runtime.call.spec import ParamSpec
from weft.runtime.export.c_text import (
    DTYPES,
    HEADER,
    LIFE,
    SCALARS,
    c_expression,
    in_string,
    shape_text,
    size_text,
)
from weft.runtime.export.check_text import CheckText
from weft.runtime.export.described_call import DescribedCall, Item
from weft.runtime.model.signature import Signature
from weft.runtime.ndarray import NDArray, storage_dtype
from weft.runtime.vm.bytecode import NativeEntry


class LibrarySource(DescribedCall):
    """The C text of one model; ``prefix`` begins the names that C programs see."""

    def __init__(
        self,
        prefix: str,
        signature: Signature,
        entry: NativeEntry,
        offsets: Sequence[int],
        states: Sequence[NDArray],
    ) -> None:
        super().__init__(signature, entry, states)
        self.prefix, self.offsets = prefix, offsets

    # The header.

    def header(self) -> str:
        """What a C program includes."""
        p, upper = self.prefix, self.prefix.upper()
        dtypes = "\n".join(
            [f"#define {upper}_{name.upper()} {number}" for number, name in enumerate(DTYPES)]
        )
        described = [
            f"   input {n}: {self.names[i]}, {self._described(self.inputs[i])}"
            for n, i in enumerate(self.public)
        ]
        described += [
            f"   output {n}: {r.name}, {r.dtype} {shape_text(r.shape)}"
            for n, r in enumerate(self.results)
        ]
        lines = "\n".join(described)
        return (
            HEADER.replace("@TABLE@", lines)
            .replace("@DTYPES@", dtypes)
            .replace("@UPPER@", upper)
            .replace("@P@", p)
            .replace("@INPUTS@", str(len(self.public)))
            .replace("@OUTPUTS@", str(len(self.results)))
        )

    def _described(self, param: ParamSpec) -> str:
        return f"{param.dtype} {shape_text(param.shape)}"

    # The source.

    def source(self) -> str:
        """The C file, to be compiled beside the object code."""
        parts = [
            _c_file("library_support.c"),
            f'#include "{self.prefix}.h"',
            self._blob(),
            self._prototype(),
            self._tables(),
            self._tensor_checks(),
            self._sizes(),
            self._run(),
            self._life(),
        ]
        return "\n\n".join(parts) + "\n"

    def _tensor_checks(self) -> str:
        names = ", ".join([f'"{name}"' for name in DTYPES])
        sizes = ", ".join([str(storage_dtype(name).itemsize) for name in DTYPES])
        text = _c_file("library_checks.c")
        return (
            text.replace("@DTYPE_NAMES@", names)
            .replace("@DTYPE_SIZES@", sizes)
            .replace("@P@", self.prefix)
        )

    def _blob(self) -> str:
        return (
            '__asm__(".section .weft,\\"a\\",@progbits\\n.balign 64\\n'
            'weft_artifact:\\n.incbin \\"model.weft\\"\\n.previous\\n");\n'
            'extern const char weft_artifact[] __attribute__((visibility("hidden")));'
        )

    def _prototype(self) -> str:
        types = [self._native_type(item) for item in self.plan.passed]
        symbol = self.plan.native_symbol
        return f'extern int32_t native_entry({", ".join(types)}) __asm__("{symbol}");'

    def _native_type(self, item: Pass) -> str:
        if item.kind == "argument" and self.inputs[item.index].kind == "scalar":
            return SCALARS[self.inputs[item.index].dtype]
        return "int64_t" if item.kind == "symbol" else "void *"

    def _tables(self) -> str:
        p = self.prefix
        lines = []
        for kind, items in (
            (
                "in",
                [(self.names[i], self.inputs[i].dtype, self.inputs[i].shape) for i in self.public],
            ),
            ("out", [(r.name, r.dtype, r.shape) for r in self.results]),
        ):
            rows: list[str] = []
            for number, (name, dtype, shape) in enumerate(items):
                extents = [str(x) if isinstance(x, int) else "-1" for x in shape] or ["0"]
                lines.append(
                    f"static const int64_t {kind}_shape_{number}[] = {{{', '.join(extents)}}};"
                )
                rows.append(
                    f'  {{"{in_string(name)}", {DTYPES.index(dtype)}, {len(shape)}, '
                    f"{kind}_shape_{number}}},"
                )
            body = "\n".join(rows) or "  {0, 0, 0, 0},"
            lines.append(f"static const {p}_info {kind}_infos[] = {{\n{body}\n}};")
        return "\n".join(lines)

    def _sizes(self) -> str:
        """The function that checks inputs and binds symbols, and the shapes of outputs."""
        p, symbols = self.prefix, self.plan.symbols
        fields = "".join([f" int64_t v_{name};" for name in symbols]) or " char none;"
        checks = CheckText(self.plan, self.names, dict(zip(self.states, self.shapes, strict=True)))
        return "\n".join(
            [
                f"typedef struct {{{fields} }} symbols;",
                "",
                f"static int bind(const {p}_tensor *in, symbols *s, int runs) {{",
                "  (void)s;",
                "  misfit = 0;",
                f'  if (check_tensors("input", {len(self.public)}, in, in_infos, runs)) return -1;',
                *checks.bindings(),
                *self._unpacked_symbols("s->"),
                *checks.comparisons(),
                *[line for item in self.signature.ranges for line in checks.in_range(*item)],
                "  return misfit ? fail_misfit() : 0;",
                "}",
            ]
        )

    def _unpacked_symbols(self, at: str) -> list[str]:
        return [f"  int64_t v_{name} = {at}v_{name}; (void)v_{name};" for name in self.plan.symbols]

    def _run(self) -> str:
        p = self.prefix
        lines = [
            f"struct {p}_model {{ block_pool pool; pthread_mutex_t lock; "
            f"char *states[{len(self.states) + 1}]; }};",
            "",
            "static void shapes_of(symbols s, int index, int64_t *shape) {",
            *self._unpacked_symbols("s."),
            "  switch (index) {",
        ]
        for number, result in enumerate(self.results):
            stores = " ".join(
                [
                    f"shape[{axis}] = {c_expression(extent)};"
                    for axis, extent in enumerate(result.shape)
                ]
            )
            lines.append(f"  case {number}: {stores} (void)shape; break;")
        lines += ["  }", "}", "", *self._call(), "", *self._entry_points()]
        return "\n".join(lines)

    def _call(self) -> list[str]:
        """The native call on checked arguments."""
        p = self.prefix
        lines = [
            f"static int call({p}_model *model, const {p}_tensor *in, {p}_tensor *out,",
            "                symbols s) {",
            *self._unpacked_symbols("s."),
            "  (void)in, (void)out, (void)model;",
            *self._arena(),
        ]
        targets, copies = self._targets()
        outputs = []
        for index, target in enumerate(targets):
            if target is None:
                output = self.plan.outputs[index]
                size = size_text(output.dtype, output.shape)
                lines += [
                    f"  int64_t at_{index} = plan;",
                    f"  plan = plus(plan, padded({size}));",
                ]
            outputs.append(target or f"work->data + at_{index}")
        lines += [
            "  if (misfit) return fail_misfit();",
            "  block *work = take_block(&model->pool, plan);",
            '  if (!work) return fail("no memory for %lld bytes", (long long)plan);',
        ]
        lines += self._native(outputs)
        lines += [f"  if (!code) {{ {copy} }}" for copy in copies]
        lines += ["  give_block(&model->pool, work);", "  return code ? faulted(code) : 0;", "}"]
        return lines

    def _arena(self) -> list[str]:
        """The size of working memory, and where tensors of varying sizes stand in it."""
        arena = self.plan.arena or Arena(0)
        planned = arena.planned
        if planned is None:
            return [f"  int64_t plan = INT64_C({-(-arena.size // 64) * 64});"]
        count = len(planned.sizes)
        lives = ", ".join([f"{{{first}, {last}}}" for first, last in planned.lives])
        sizes = ", ".join([c_expression(size) for size in planned.sizes])
        return [
            f"  static const int32_t lives[{count}][2] = {{{lives}}};",
            f"  int64_t sizes[{count}] = {{{sizes}}}, offsets[{count}];",
            f"  int64_t plan = place({count}, sizes, lives, offsets);",
        ]

    def _targets(self) -> tuple[list[str | None], list[str]]:
        """Where each native output is written (None: working memory), and copies after the call."""
        targets: list[str | None] = [None] * len(self.plan.outputs)
        copies = []
        for number, result in enumerate(self.results):
            kind, content = result.source
            size = size_text(result.dtype, result.shape)
            if kind == "output" and targets[content] is None:
                targets[content] = f"out[{number}].data"
            elif kind == "output":
                copies.append(f"memcpy(out[{number}].data, {targets[content]}, (size_t)({size}));")
            elif kind == "input":
                copies.append(
                    f"memcpy(out[{number}].data, {self._input(content)}, (size_t)({size}));"
                )
            else:
                copies.append(f"*(int64_t *)out[{number}].data = {c_expression(content)};")
        items = self.items()
        for place, state in enumerate(self.signature.states):
            copies.append(self._state_copy(place, items[state.output], targets))
        for source, output in self.signature.written:
            copies.append(self._written_copy(source, items[output], targets))
        return targets, copies

    def _state_copy(self, place: int, item: tuple[str, object], targets: list[str | None]) -> str:
        return (
            f"memcpy(model->states[{place}], {self._value(item, targets)}, "
            f"{self.state_sizes[place]});"
        )

    def _written_copy(
        self, source: int, item: tuple[str, object], targets: list[str | None]
    ) -> str:
        param = self.inputs[source]
        size = size_text(param.dtype, param.shape)
        target, value = f"(void *){self._input(source)}", self._value(item, targets)
        return f"memcpy({target}, {value}, (size_t)({size}));"

    def _value(self, item: Item, targets: list[str | None]) -> str:
        kind, content = item
        if kind == "input":
            return self._input(content)
        return targets[content] or f"work->data + at_{content}"

    def _input(self, index: int) -> str:
        if index in self.states:
            return f"model->states[{self.states.index(index)}]"
        return f"in[{self.public.index(index)}].data"

    def _native(self, outputs: Sequence[str]) -> list[str]:
        passed = ", ".join([self._passed(item, outputs) for item in self.plan.passed])
        lines = [f"  int32_t code = native_entry({passed});"]
        if self.plan.constants:
            rows = ", ".join([f"(void *)(weft_artifact + {at})" for at in self.offsets])
            lines.insert(0, f"  void *const table[] = {{{rows}}};")
        return lines

    def _passed(self, item: Pass, outputs: Sequence[str]) -> str:
        """The text of one native argument."""
        if item.kind == "argument":
            param, value = self.inputs[item.index], self._input(item.index)
            is_number = param.kind == "scalar"
            return f"*(const {SCALARS[param.dtype]} *){value}" if is_number else f"(void *){value}"
        if item.kind == "output":
            return outputs[item.index]
        return f"v_{item.symbol}" if item.kind == "symbol" else _HANDLES[item.kind]

    def _entry_points(self) -> list[str]:
        p = self.prefix
        count = len(self.results)
        check = [
            f'  if (check_tensors("output", {count}, out, out_infos, 1)) return -1;',
            f"  for (int i = 0; i < {count}; i++) {{",
            "    int64_t shape[64];",
            "    shapes_of(s, i, shape);",
            "    for (int k = 0; k < out[i].ndim; k++)",
            '      if (check_extent("output", i, &out[i], &out_infos[i], k, shape[k], ""))',
            "        return -1;",
            "  }",
            "  if (misfit) return fail_misfit();",
            f"  if (check_overlaps({len(self.public)}, in, {count}, out)) return -1;",
        ]
        guard = ["  pthread_mutex_lock(&model->lock);"] if self.states else []
        release = ["  pthread_mutex_unlock(&model->lock);"] if self.states else []
        return [
            f"int {p}_run({p}_model *model, const {p}_tensor *in, {p}_tensor *out) {{",
            "  symbols s;",
            "  memset(&s, 0, sizeof s);",
            '  if (!model) return fail("expected a model, got NULL");',
            "  if (bind(in, &s, 1)) return -1;",
            *check, *guard, "  int code = call(model, in, out, s);", *release, "  return code;",
            "}",
            "",
            f"int {p}_output_shape(const {p}_tensor *in, int index, int64_t *shape) {{",
            "  symbols s;",
            "  memset(&s, 0, sizeof s);",
            f"  if (index < 0 || index >= {len(self.results)})",
            f'    return fail("expected an output below {len(self.results)}, got %d", index);',
            "  if (bind(in, &s, 0)) return -1;",
            "  if (out_infos[index].ndim && !shape)",
            '    return fail("expected memory for %d extents of the shape, got NULL", '
            "(int)out_infos[index].ndim);",
            "  shapes_of(s, index, shape);",
            "  return misfit ? fail_misfit() : 0;",
            "}",
        ]  # fmt: skip

    def _life(self) -> str:
        p = self.prefix
        first = len(self.plan.constants)
        states = []
        for place, size in enumerate(self.state_sizes):
            at = self.offsets[first + place]
            states.append(
                f"  if (!(model->states[{place}] = aligned_alloc(64, {-(-size // 64) * 64 or 64})))"
                f" return NULL;\n  memcpy(model->states[{place}], weft_artifact + {at}, {size});"
            )
        body = "\n".join(states)
        return (
            LIFE.replace("@STATES@", body)
            .replace("@COUNT@", str(len(self.state_sizes)))
            .replace("@INPUTS@", str(len(self.public)))
            .replace("@OUTPUTS@", str(len(self.results)))
            .replace("@P@", p)
        )


def _c_file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_HANDLES: Final[dict[str, str]] = {
    "arena": "work->data", "offsets": "offsets", "constants": "(void *)table",
}  # fmt: skip
"""Native arguments beside tensors, by the kind of ``Pass``."""
