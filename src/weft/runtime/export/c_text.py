"""Parts of C text for exported models: extents as expressions, data types, the fixed parts.

weft.runtime.export.library_source puts them together.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from weft.runtime.ndarray import storage_dtype
from weft.support.errors import UnsupportedError

DTYPES: Final = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
"""Data types by their numbers in the header."""
SCALARS: Final = {
    "bool": "_Bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t", "float32": "float", "float64": "double",
}  # fmt: skip
_ARITHMETIC: Final[dict[type, str]] = {
    ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times", ast.FloorDiv: "floor_div",
    ast.Mod: "floor_mod",
}  # fmt: skip
_COMPARISONS: Final[dict[type, str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_FUNCTIONS: Final = {"min": "least", "max": "most", "abs": "magnitude"}


def c_expression(extent: int | str) -> str:
    """An extent as a C expression over the variables ``v_<symbol>``.

    >>> c_expression("n // 2 + 1")
    'plus(floor_div(v_n, INT64_C(2)), INT64_C(1))'

    The functions are those of library_support.c, which notes what 64 bits do not hold.
    """
    return _expression(ast.parse(str(extent), mode="eval").body)


def _expression(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return f"INT64_C({int(node.value)})"  # type: ignore[arg-type]  # extents are integers
    if isinstance(node, ast.Name):
        return f"v_{node.id}"
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _expression(node.left), _expression(node.right)
        return f"{_ARITHMETIC[type(node.op)]}({left}, {right})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"minus(0, {_expression(node.operand)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return f"(!{_expression(node.operand)})"
    if isinstance(node, ast.IfExp):
        parts = [_expression(item) for item in (node.test, node.body, node.orelse)]
        return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left, right = _expression(node.left), _expression(node.comparators[0])
        return f"({left} {_COMPARISONS[type(node.ops[0])]} {right})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        function = _FUNCTIONS[node.func.id]
        text = _expression(node.args[0])
        for argument in node.args[1:]:
            text = f"{function}({text}, {_expression(argument)})"
        return text if len(node.args) > 1 else f"{function}({text})"
    raise UnsupportedError(f"export_library: the extent {ast.unparse(node)} has no form in C")


def size_text(dtype: str, shape: Sequence[int | str]) -> str:
    """The bytes of a tensor as a C expression."""
    width = storage_dtype(dtype).itemsize
    text = f"INT64_C({width})"
    for extent in shape:
        text = f"times({text}, {_size(extent)})"
    return text


def _size(extent: int | str) -> str:
    text = c_expression(extent)
    return text if isinstance(extent, int) else f"size_of({text})"


def shape_text(shape: Sequence[int | str]) -> str:
    """A shape as Python writes it."""
    return f"({', '.join([str(extent) for extent in shape])}{',' if len(shape) == 1 else ''})"


def in_string(text: str) -> str:
    """A text inside of a C string that is a format: no quote, backslash, percent or line end."""
    return "".join([c if c.isprintable() and c not in '"\\%' else "?" for c in text])


HEADER: Final = """\
/* A model that weft compiled; link with the library of the same name.

@TABLE@

   A model may be used by several threads. Functions that return int return 0, or -1 where they
   fail; @P@_error() then tells why (of the calling thread). */
#ifndef @UPPER@_WEFT_H
#define @UPPER@_WEFT_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

@DTYPES@

#define @UPPER@_INPUTS @INPUTS@
#define @UPPER@_OUTPUTS @OUTPUTS@

/* A tensor of the caller's: compact, row-major, aligned to its element, on the CPU. A tensor of no
   elements may have no data (NULL), one of no dimensions no shape. */
typedef struct {
  void *data;
  const int64_t *shape;
  int32_t ndim;
  int32_t dtype;
} @P@_tensor;

/* What the model expects: an extent of -1 may vary from call to call. */
typedef struct {
  const char *name;
  int32_t dtype;
  int32_t ndim;
  const int64_t *shape;
} @P@_info;

typedef struct @P@_model @P@_model;

@P@_model *@P@_create(void); /* NULL where there is no memory */
void @P@_destroy(@P@_model *model);

/* Threads of parallel loops, for all models of this library; default: the processors online. */
void @P@_set_threads(int count);

const @P@_info *@P@_input(int index); /* NULL for a number that there is not */
const @P@_info *@P@_output(int index);

/* The shape of an output for inputs of these shapes; of their data only numbers (0 dimensions) are
   read. */
int @P@_output_shape(const @P@_tensor *inputs, int index, int64_t *shape);

/* Runs the model: @INPUTS@ inputs, @OUTPUTS@ outputs, whose memory is the caller's; each has
   memory of its own. */
int @P@_run(@P@_model *model, const @P@_tensor *inputs, @P@_tensor *outputs);

const char *@P@_error(void);

#ifdef __cplusplus
}
#endif
#endif
"""

LIFE: Final = """\
#include <unistd.h>

@P@_model *@P@_create(void) {
  @P@_model *model = calloc(1, sizeof *model);
  if (!model) return NULL;
  pthread_mutex_init(&model->pool.lock, NULL);
  pthread_mutex_init(&model->lock, NULL);
@STATES@
  return model;
}

void @P@_destroy(@P@_model *model) {
  if (!model) return;
  free_blocks(&model->pool);
  for (int i = 0; i < @COUNT@; i++) free(model->states[i]);
  free(model);
}

void @P@_set_threads(int count) { weft_thread_count = count > 0 ? count : 1; }

__attribute__((constructor)) static void default_threads(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  weft_thread_count = count > 0 ? (int32_t)count : 1;
}

const @P@_info *@P@_input(int index) {
  return index >= 0 && index < @INPUTS@ ? &in_infos[index] : NULL;
}

const @P@_info *@P@_output(int index) {
  return index >= 0 && index < @OUTPUTS@ ? &out_infos[index] : NULL;
}

const char *@P@_error(void) { return error_text; }
"""
