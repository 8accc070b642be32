"""Parts of C text for exported models: extents as expressions, data types, the fixed parts.

weft.runtime.export.library_source puts them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.runtime.extent import Tree, parse
from weft.runtime.ndarray import storage_dtype

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
_FUNCTIONS: Final = {
    "+": "plus", "-": "minus", "*": "times", "//": "floor_div", "%": "floor_mod", "min": "least",
    "max": "most", "abs": "magnitude",
}  # fmt: skip


def c_expression(extent: int | str) -> str:
    """An extent as a C expression over the variables ``v_<symbol>``.

    >>> c_expression("n // 2 + 1")
    'plus(floor_div(v_n, INT64_C(2)), INT64_C(1))'

    The functions are those of library_support.c, which notes what 64 bits do not hold.
    """
    return _expression(parse(extent))


def _expression(tree: Tree) -> str:
    if isinstance(tree, int):
        return f"INT64_C({tree})" if tree >= 0 else f"minus(0, INT64_C({-tree}))"
    if isinstance(tree, str):
        return f"v_{tree}"
    first, *others = [_expression(operand) for operand in tree.operands]
    if tree.name == "if":
        return f"({first} ? {others[0]} : {others[1]})"
    if tree.name == "neg":
        return f"minus(0, {first})"
    if tree.name == "not":
        return f"(!{first})"
    function = _FUNCTIONS.get(tree.name)
    if function is None:
        return f"({first} {tree.name} {others[0]})"
    for other in others:
        first = f"{function}({first}, {other})"
    return first if others else f"{function}({first})"


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
