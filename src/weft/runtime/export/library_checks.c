/* Checks of the tensors that a caller gives, before compiled code reads them: data type, dimensions,
   extents, memory. weft.runtime.export.library_source fills in the names between @ and writes the model's
   own part after it. */
static const char *const dtype_names[] = {@DTYPE_NAMES@};
static const int dtype_sizes[] = {@DTYPE_SIZES@};
#define DTYPES ((int)(sizeof dtype_sizes / sizeof dtype_sizes[0]))

static int check_dtype(const char *kind, int index, const @P@_tensor *tensor, const @P@_info *info) {
  const char *wanted = dtype_names[info->dtype];
  if (tensor->dtype == info->dtype) return 0;
  if (tensor->dtype >= 0 && tensor->dtype < DTYPES)
    return fail("%s %d (%s): expected dtype %s, got %s", kind, index, info->name, wanted,
                dtype_names[tensor->dtype]);
  return fail("%s %d (%s): expected dtype %s (number %d), got the number %d, which no dtype has",
              kind, index, info->name, wanted, (int)info->dtype, (int)tensor->dtype);
}

/* The bytes of a tensor in *bytes. */
static int check_shape(const char *kind, int index, const @P@_tensor *tensor, const @P@_info *info,
                       int64_t *bytes) {
  if (tensor->ndim != info->ndim)
    return fail("%s %d (%s): expected %d dimensions, got %d", kind, index, info->name,
                (int)info->ndim, (int)tensor->ndim);
  if (tensor->ndim && !tensor->shape)
    return fail("%s %d (%s): expected a shape of %d extents, got NULL", kind, index, info->name,
                (int)info->ndim);
  *bytes = dtype_sizes[info->dtype];
  for (int axis = 0; axis < tensor->ndim; axis++)
    if (tensor->shape[axis] == 0) *bytes = 0;
  for (int axis = 0; axis < tensor->ndim; axis++) {
    int64_t extent = tensor->shape[axis];
    if (extent < 0)
      return fail("%s %d (%s): expected an extent of 0 or more at axis %d, got %lld", kind, index,
                  info->name, axis, (long long)extent);
    if (__builtin_mul_overflow(*bytes, extent, bytes))
      return fail("%s %d (%s): expected a tensor that memory can hold, got extents of more than "
                  "2^63 bytes", kind, index, info->name);
  }
  return 0;
}

static int check_memory(const char *kind, int index, const @P@_tensor *tensor,
                        const @P@_info *info, int64_t bytes) {
  int size = dtype_sizes[info->dtype];
  if (!bytes) return 0;
  if (!tensor->data)
    return fail("%s %d (%s): expected data, got NULL; only a tensor without elements may have none",
                kind, index, info->name);
  if ((uintptr_t)tensor->data % (uintptr_t)size)
    return fail("%s %d (%s): expected memory aligned to %d bytes, the size of %s, got address %p; "
                "pass a copy", kind, index, info->name, size, dtype_names[info->dtype],
                tensor->data);
  return 0;
}

/* `runs`: whether compiled code will read the data; else only the shape and numbers are read. */
static int check_tensors(const char *kind, int count, const @P@_tensor *tensors,
                         const @P@_info *infos, int runs) {
  int64_t bytes;
  if (count && !tensors) return fail("expected an array of %d %ss, got NULL", count, kind);
  for (int i = 0; i < count; i++) {
    const @P@_tensor *tensor = &tensors[i];
    if (check_dtype(kind, i, tensor, &infos[i])) return -1;
    if (check_shape(kind, i, tensor, &infos[i], &bytes)) return -1;
    if ((runs || !tensor->ndim) && check_memory(kind, i, tensor, &infos[i], bytes)) return -1;
  }
  return 0;
}

static int check_extent(const char *kind, int index, const @P@_tensor *tensor,
                        const @P@_info *info, int axis, int64_t wanted, const char *text) {
  if (misfit & DIVIDES_BY_0)
    return fail("%s %d (%s): its extent%s at axis %d divides by 0 for these inputs", kind, index,
                info->name, text, axis);
  if (tensor->shape[axis] == wanted) return 0;
  return fail("%s %d (%s): expected an extent of %lld%s at axis %d, got %lld", kind, index,
              info->name, (long long)wanted, text, axis, (long long)tensor->shape[axis]);
}

static int64_t bytes_of(const @P@_tensor *tensor) {
  int64_t bytes = dtype_sizes[tensor->dtype];
  for (int axis = 0; axis < tensor->ndim; axis++) bytes *= tensor->shape[axis];
  return bytes;
}

static int check_overlap(const char *kind, int index, const @P@_tensor *tensor, int output,
                         const @P@_tensor *written) {
  uintptr_t begin = (uintptr_t)tensor->data, start = (uintptr_t)written->data;
  uintptr_t size = (uintptr_t)bytes_of(tensor), length = (uintptr_t)bytes_of(written);
  if (!size || !length || begin + size <= start || start + length <= begin) return 0;
  return fail("output %d (%s): expected memory of its own, got memory that %s %d (%s) has, too",
              output, out_infos[output].name, kind, index,
              (kind[0] == 'i' ? in_infos : out_infos)[index].name);
}

/* No output shares memory with an input or with another output. */
static int check_overlaps(int inputs, const @P@_tensor *in, int outputs, const @P@_tensor *out) {
  for (int i = 0; i < outputs; i++) {
    for (int k = 0; k < inputs; k++)
      if (check_overlap("input", k, &in[k], i, &out[i])) return -1;
    for (int k = 0; k < i; k++)
      if (check_overlap("output", k, &out[k], i, &out[i])) return -1;
  }
  return 0;
}
