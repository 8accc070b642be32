/* Runs every function of a batch on the memory in the file that the first argument names, and writes
   that memory to the second. Printed: the number and name of each function before it is called, then
   its code and the text of its fault. The rows come from "rows.h", which tests/backends/batch.py
   writes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 8
typedef int32_t function(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
typedef struct {
  function *call;
  const char *name;
  int64_t arguments[MOST]; /* places in memory, or ~number */
} row;

extern int32_t weft_thread_count, weft_team_key;
static const char *fault_text;
static int fault_kind;

int32_t weft_raise(int32_t kind, const char *text, int64_t a, int64_t b) {
  (void)a, (void)b;
  fault_kind = kind;
  fault_text = text;
  return 1;
}

int32_t weft_call_packed(const char *name, void *arguments, int32_t count, void *result) {
  (void)arguments, (void)count, (void)result;
  return weft_raise(0, name, 0, 0);
}

int32_t weft_fork_notice(void) { return 0; }

#include "rows.h"

int main(int count, char **argument) {
  if (count != 3) return 2;
  FILE *file = fopen(argument[1], "rb");
  if (!file) return 3;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *memory = aligned_alloc(64, size);
  if (!memory || fread(memory, 1, size, file) != (size_t)size) return 4;
  fclose(file);
  weft_thread_count = 2;
  for (int i = 0; i < ROWS; i++) {
    int64_t a[MOST];
    for (int k = 0; k < MOST; k++) {
      int64_t at = rows[i].arguments[k];
      a[k] = at < 0 ? ~at : (int64_t)(intptr_t)(memory + at);
    }
    printf("%d %s", i, rows[i].name);
    fflush(stdout);
    int code = rows[i].call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    if (code) printf(" fault %d %s\n", fault_kind, fault_text);
    else puts(" done");
  }
  file = fopen(argument[2], "wb");
  if (!file || fwrite(memory, 1, size, file) != (size_t)size || fclose(file)) return 5;
  return 0;
}
