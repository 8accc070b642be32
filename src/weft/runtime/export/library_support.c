/* What every exported model has: errors, dtypes, memory, placement of tensors whose sizes vary.
   weft.runtime.export.library_source writes the model's own part after it. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define TEXT 512
#define FAULTS 64

extern int32_t weft_thread_count, weft_fork_state, weft_team_key;
extern void weft_stop_workers(void);

static _Thread_local char error_text[TEXT];
static char fault_texts[FAULTS][TEXT];
static atomic_uint fault_count;

static int fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error_text, TEXT, format, arguments);
  va_end(arguments);
  return -1;
}

/* Compiled code failed, perhaps on another thread: keep the text under a code, for the caller. */
int32_t weft_raise(int32_t kind, const char *text, int64_t a, int64_t b) {
  unsigned number = atomic_fetch_add(&fault_count, 1) % 0x40000000u;
  char *out = fault_texts[number % FAULTS], *end = out + TEXT - 1;
  (void)kind;
  for (text = text ? text : "failed"; *text && out < end; text++) {
    int is_a = strncmp(text, "{a}", 3) == 0, is_b = strncmp(text, "{b}", 3) == 0;
    if (is_a || is_b) {
      int written = snprintf(out, (size_t)(end - out), "%lld", (long long)(is_a ? a : b));
      out = written < end - out ? out + written : end;
      text += 2;
    } else {
      *out++ = *text;
    }
  }
  *out = 0;
  return (int32_t)number + 1;
}

int32_t weft_call_packed(const char *name, void *arguments, int32_t count, void *result) {
  char text[TEXT];
  (void)arguments, (void)count, (void)result;
  snprintf(text, TEXT, "the model calls %s, which only Python has", name);
  return weft_raise(0, text, 0, 0);
}

int32_t weft_fork_notice(void) { return 0; }

static int faulted(int32_t code) {
  return fail("%s", fault_texts[((unsigned)code - 1) % FAULTS]);
}

/* A forked process has no workers: its loops run on the thread that calls. */
static void after_fork(void) { weft_fork_state = 1; }

__attribute__((constructor)) static void prepare_threads(void) {
  pthread_key_t key;
  if (!pthread_key_create(&key, NULL)) weft_team_key = (int32_t)key;
  pthread_atfork(NULL, NULL, after_fork);
}

__attribute__((destructor)) static void end_threads(void) {
  if (!weft_fork_state) weft_stop_workers();
  if (weft_team_key >= 0) pthread_key_delete((pthread_key_t)weft_team_key);
}

/* Arithmetic of extents is exact: a size that is negative, or that 64 bits do not hold, is noted
   here, and so is a division by 0; the call then fails. */
#define DIVIDES_BY_0 2
static _Thread_local int misfit;
static inline int64_t plus(int64_t a, int64_t b) {
  int64_t sum;
  misfit |= __builtin_add_overflow(a, b, &sum);
  return sum;
}
static inline int64_t minus(int64_t a, int64_t b) {
  int64_t difference;
  misfit |= __builtin_sub_overflow(a, b, &difference);
  return difference;
}
static inline int64_t times(int64_t a, int64_t b) {
  int64_t product;
  misfit |= __builtin_mul_overflow(a, b, &product);
  return product;
}
static inline int64_t size_of(int64_t size) {
  misfit |= size < 0;
  return size;
}
static inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) {
    misfit |= DIVIDES_BY_0;
    return 0;
  }
  if (b == -1) return minus(0, a);
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}
static inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) {
    misfit |= DIVIDES_BY_0;
    return 0;
  }
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t magnitude(int64_t a) { return a < 0 ? minus(0, a) : a; }

static int fail_misfit(void) {
  if (misfit & DIVIDES_BY_0)
    return fail("a size that follows from the inputs divides by 0; pass other inputs");
  return fail("a size that follows from the extents of the inputs is negative or does not fit in "
              "64 bits; pass smaller inputs");
}

__attribute__((unused)) static int64_t padded(int64_t size) {
  return plus(size_of(size), ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Working memory: one block a call at a time; blocks are kept for the next call. */
typedef struct block { struct block *next; int64_t size; char *data; } block;
typedef struct { pthread_mutex_t lock; block *free; } block_pool;

/* The C library returns free memory at the top of its heap to the system, and each call would have
   to ask for what its kernels need again, and wait until it is cleared. It keeps up to twice the
   size of the largest block that was freed; this is the largest that counts, and untouched. */
static void keep_freed_memory(void) {
  void *volatile untouched = malloc((32 << 20) - (8 << 10));
  free(untouched);
}

static block *take_block(block_pool *pool, int64_t size) {
  pthread_mutex_lock(&pool->lock);
  block *taken = pool->free;
  if (taken) pool->free = taken->next;
  pthread_mutex_unlock(&pool->lock);
  if (taken && taken->size >= size) return taken;
  if (!taken) keep_freed_memory();
  if (!taken && !(taken = calloc(1, sizeof *taken))) return NULL;
  free(taken->data);
  taken->size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  taken->data = aligned_alloc(ALIGNMENT, (size_t)(taken->size ? taken->size : ALIGNMENT));
  if (!taken->data) { free(taken); return NULL; }
  return taken;
}

static void give_block(block_pool *pool, block *given) {
  pthread_mutex_lock(&pool->lock);
  given->next = pool->free;
  pool->free = given;
  pthread_mutex_unlock(&pool->lock);
}

static void free_blocks(block_pool *pool) {
  while (pool->free) {
    block *next = pool->free->next;
    free(pool->free->data);
    free(pool->free);
    pool->free = next;
  }
}

/* Offsets of tensors by their lives: each at the lowest place that no tensor alive with it has.
   Returns the size of the whole. */
__attribute__((unused)) static int64_t place(
    int count, int64_t *sizes, const int32_t (*lives)[2], int64_t *offsets) {
  int64_t total = 0;
  for (int i = 0; i < count; i++) {
    sizes[i] = most(padded(sizes[i]), ALIGNMENT);
    int64_t at = 0;
    for (int moved = 1; moved;) {
      moved = 0;
      if (misfit) return 0;
      for (int j = 0; j < i; j++) {
        int together = lives[j][0] <= lives[i][1] && lives[i][0] <= lives[j][1];
        if (together && offsets[j] < plus(at, sizes[i]) && at < plus(offsets[j], sizes[j])) {
          at = plus(offsets[j], sizes[j]);
          moved = 1;
        }
      }
    }
    offsets[i] = at;
    total = most(total, plus(at, sizes[i]));
  }
  return total;
}
