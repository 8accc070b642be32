"""FunctionBuilder: the text of one LLVM function, block by block.

A value is the text of its operand (``%v7``, ``42``); its type is passed beside it. Functions return
a status, as ``weft.runtime.call.abi`` has it: ``exit_with(code)`` leaves the function, on the way
through blocks that free the heap memory which is live there, the innermost first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from weft.codegen.llvm.context import ModuleContext
from weft.runtime.call.abi import RAISE

COLD: Final = "!0"
"""The metadata of a branch whose condition is almost always true: the other block is cold."""


@dataclass
class _Held:
    """A heap allocation, and the exits of the function from places where it is live.

    ``exits`` are the pairs of a status and the block that jumps with it to ``label``, where the
    memory is freed. The first one of a function has no memory: its block returns the status.
    """

    pointer: str
    exits: list[tuple[str, str]] = field(default_factory=list)
    label: str = ""


class FunctionBuilder:
    """Appends instructions to the current block; allocas go to the entry block."""

    def __init__(self, context: ModuleContext) -> None:
        self.context = context
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.block = "entry"
        self.terminated = False
        self.serial = 0
        self.stack_bytes = 0
        self.held: list[_Held] = [_Held("")]
        self.finished: list[tuple[str, str]] = []
        self.line = 0
        self._marks: list[tuple[int, int]] = []

    def at_line(self, line: int) -> None:
        """What follows comes from this line of the printed function."""
        if line != self.line:
            self.line = line
            self._marks.append((len(self.lines), line))

    def name(self) -> str:
        """The name of a new value."""
        self.serial += 1
        return f"%v{self.serial}"

    def op(self, text: str) -> str:
        """Append ``%new = text`` and return the new value."""
        self.serial = serial = self.serial + 1
        self.lines.append(f"  %v{serial} = {text}")
        return f"%v{serial}"

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append("  " + text)

    def label(self, stem: str) -> str:
        """The name of a new block."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label
        self.terminated = False

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        if not self.terminated:
            self.lines.append(f"  br label %{label}")
            self.terminated = True

    def branch_if(
        self, condition: str, then: str, other: str, weights: str = "", loop: str = ""
    ) -> None:
        """End the block with a conditional jump.

        ``weights`` is the metadata of its probabilities, ``loop`` that of the loop which it closes.
        """
        if self.terminated:
            return
        tail = f", !prof {weights}" if weights else ""
        tail += f", !llvm.loop {loop}" if loop else ""
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{other}{tail}")
        self.terminated = True

    def phi(self, kind: str, arms: list[tuple[str, str]]) -> str:
        """A phi at the start of the current block, of pairs of a value and its block."""
        return self.op(f"phi {kind} " + ", ".join([f"[ {v}, %{b} ]" for v, b in arms]))

    def alloca(self, text: str) -> str:
        """The address of memory on the stack, which lives as long as the call of the function."""
        name = self.name()
        self.allocas.append(f"  {name} = alloca {text}")
        return name

    def call(
        self, name: str, result: str, args: list[tuple[str, str]], attributes: str = ""
    ) -> str:
        """Call an external function, declaring it; ``result`` may be void."""
        kinds = ", ".join([kind for kind, _ in args])
        callee = self.context.declare(name, result, kinds, attributes)
        return self.call_operand(callee, result, args)

    def call_operand(
        self, callee: str, result: str, args: list[tuple[str, str]], attributes: str = ""
    ) -> str:
        """Call ``callee``, which is declared or defined already."""
        values = ", ".join([f"{kind} {value}" for kind, value in args])
        text = f"call {result} {callee}({values})" + (f" {attributes}" if attributes else "")
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    # The error scheme.

    def exit_with(self, code: str) -> None:
        """Leave the function with the status ``code``, freeing what is held; ends the block."""
        if self.terminated:
            return
        target = self.held[-1]
        if not target.label:
            target.label = self.label("leave")
        target.exits.append((code, self.block))
        self.branch(target.label)

    def check_code(self, code: str) -> None:
        """Leave the function unless ``code`` is 0."""
        failed = self.op(f"icmp ne i32 {code}, 0")
        bad, good = self.label("failed"), self.label("ok")
        self.branch_if(failed, bad, good, "!1")
        self.start(bad)
        self.exit_with(code)
        self.start(good)

    def raise_unless(
        self, condition: str, kind: int, text: str, a: str = "0", b: str = "0"
    ) -> None:
        """Leave the function with a new fault unless the i1 ``condition`` holds."""
        bad, good = self.label("fault"), self.label("ok")
        self.branch_if(condition, good, bad, COLD)
        self.start(bad)
        self.raise_fault(kind, text, a, b)
        self.start(good)

    def raise_fault(self, kind: int, text: str, a: str = "0", b: str = "0") -> None:
        """Leave the function with a new fault; ends the block."""
        message = self.context.string(text)
        args = [("i32", str(int(kind))), ("ptr", message), ("i64", a), ("i64", b)]
        self.exit_with(self.call(RAISE, "i32", args, "cold"))

    def hold(self, pointer: str) -> None:
        """From here to ``release`` every exit of the function frees ``pointer``."""
        self.held.append(_Held(pointer))

    def release(self) -> None:
        """End the scope of the last ``hold``: free its memory here.

        The exits from within the scope come to a block of their own, which frees it as well and
        goes on to the exit of the scope around.
        """
        item = self.held.pop()
        if not self.terminated:
            self.free(item.pointer)
        if not item.label:
            return
        after = "" if self.terminated else self.label("go")
        if after:
            self.branch(after)
        self.start(item.label)
        code = self.phi("i32", item.exits)
        self.free(item.pointer)
        self.exit_with(code)
        self.start(after or self.label("dead"))

    def free(self, pointer: str) -> None:
        """Give heap memory back."""
        self.call("free", "void", [("ptr", pointer)])

    def finish(self, header: str, name: str) -> str:
        """The function's text: header, stack memory, blocks, and the block of all exits.

        ``name`` is that of the function in the program, for debug locations.
        """
        if not self.terminated:
            self.lines.append("  ret i32 0")
            self.terminated = True
        last = self.held[0]
        if last.label:
            self.start(last.label)
            code = self.phi("i32", last.exits)
            self.lines.append(f"  ret i32 {code}")
        lines = self.lines
        if self.context.debug is not None:
            header, lines = self.context.debug.located(name, header, lines, self._marks)
        body = "\n".join([*self.allocas, *lines])
        return f"{header} {{\nentry:\n{body}\n}}"
