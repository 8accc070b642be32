"""Exported libraries: their threads end with them, and are not asked for in a forked process."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.runtime.export import library

ROWS, COLUMNS = 300, 700
MAIN = """
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "net.h"
static float in_data[ROWS * COLUMNS], out_data[ROWS * COLUMNS];
static int threads(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}
/* How many elements are wrong after some runs. */
static int run(void *library) {
  net_model *(*create)(void) = (net_model *(*)(void))dlsym(library, "net_create");
  void (*destroy)(net_model *) = (void (*)(net_model *))dlsym(library, "net_destroy");
  int (*call)(net_model *, const net_tensor *, const net_tensor *) =
      (int (*)(net_model *, const net_tensor *, const net_tensor *))dlsym(library, "net_run");
  int64_t shape[2] = {ROWS, COLUMNS};
  int wrong = 0;
  net_tensor in = {in_data, shape, 2, NET_FLOAT32}, out = {out_data, shape, 2, NET_FLOAT32};
  net_model *model = create();
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < ROWS * COLUMNS; i++) in_data[i] = i % 1000 - round;
    if (call(model, &in, &out)) return -1;
    for (int i = 0; i < ROWS * COLUMNS; i++) wrong += out_data[i] != in_data[i] * 4;
  }
  destroy(model);
  return wrong;
}
int main(void) {
  for (int round = 0; round < 5; round++) {
    void *library = dlopen("./net.so", RTLD_NOW);
    if (!library) return puts(dlerror());
    ((void (*)(int))dlsym(library, "net_set_threads"))(3);
    printf("wrong %d", run(library));
    printf(", threads %d", threads());
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
      int wrong = run(library);
      _exit(wrong || threads() != 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf(", in a fork %d", status);
    dlclose(library);
    printf(", after all %d\\n", threads());
  }
  return 0;
}
"""


def calls_twice():
    """A module whose ``main`` doubles a matrix twice, each time in a parallel loop."""
    x = te.placeholder((ROWS, COLUMNS), name="x")
    double = te.create_prim_func(
        [x, te.compute((ROWS, COLUMNS), lambda i, j: x[i, j] * 2.0, name="y")]
    )
    sch = tir.Schedule(double)
    sch.parallel(sch.get_loops(sch.get_block("y"))[0])
    builder = weft.relax.BlockBuilder()
    kernel = builder.add_func(sch.mod["main"], "double")
    info = weft.relax.TensorStructInfo((ROWS, COLUMNS), "float32")
    value = weft.relax.Var("x", info)
    with builder.function("main", [value]):
        for _ in range(2):
            value = builder.emit(weft.relax.call_tir(kernel, [value], out_sinfo=info))
        builder.emit_func_output(value)
    return builder.get()


@pytest.mark.skipif(library.find_compiler() is None, reason="there is no C compiler")
def test_threads_end_with_the_library_and_forked_processes_have_none(tmp_path):
    model = weft.compile(calls_twice(), target="llvm -num-cores=3")
    x = np.ones((ROWS, COLUMNS), np.float32)
    np.testing.assert_array_equal(model(x), 4 * x)
    model.export_library(tmp_path / "net.so")
    text = MAIN.replace("ROWS", str(ROWS)).replace("COLUMNS", str(COLUMNS))
    (tmp_path / "main.c").write_text(text, encoding="utf-8")
    command = ["cc", "-Wall", "-Werror", "main.c", "-o", "main", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=600)
    done = subprocess.run(
        ["./main"], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=True
    )
    line = "wrong 0, threads 3, in a fork 0, after all 1\n"
    assert done.stdout == 5 * line
