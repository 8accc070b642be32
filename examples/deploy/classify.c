/* Prints the class of images of clothes, with a model that weft exported; no Python is needed.

       classify image.pgm ...

   An image is a binary PGM file (P5) of 28 by 28 grey values, as examples/deploy/export_model.py
   writes them. */
#include <stdio.h>
#include <stdlib.h>

#include "fashion.h"

enum { SIZE = 28, CLASSES = 10 };

static const char *const names[CLASSES] = {
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

/* Reads an image with values in [0, 1]; 0 if the file is one. */
static int read_image(const char *path, float *pixels) {
  unsigned char bytes[SIZE * SIZE];
  int width = 0, height = 0, highest = 0;
  FILE *file = fopen(path, "rb");
  if (!file) return 1;
  int fields = fscanf(file, "P5 %d %d %d", &width, &height, &highest);
  int good = fields == 3 && width == SIZE && height == SIZE && highest == 255;
  good = good && fgetc(file) != EOF && fread(bytes, 1, sizeof bytes, file) == sizeof bytes;
  fclose(file);
  for (int i = 0; good && i < SIZE * SIZE; i++) pixels[i] = (float)bytes[i] / 255.0f;
  return !good;
}

int main(int count, char **paths) {
  static float pixels[SIZE * SIZE], scores[CLASSES];
  const int64_t input_shape[] = {1, 1, SIZE, SIZE}, output_shape[] = {1, CLASSES};
  fashion_tensor input = {pixels, input_shape, 4, FASHION_FLOAT32};
  fashion_tensor output = {scores, output_shape, 2, FASHION_FLOAT32};
  fashion_model *model = fashion_create();
  if (!model) {
    fprintf(stderr, "no memory for the model\n");
    return 1;
  }
  for (int i = 1; i < count; i++) {
    if (read_image(paths[i], pixels)) {
      fprintf(stderr, "%s: expected a PGM image of 28 by 28 grey values\n", paths[i]);
      return 2;
    }
    if (fashion_run(model, &input, &output)) {
      fprintf(stderr, "%s\n", fashion_error());
      return 1;
    }
    int best = 0;
    for (int k = 1; k < CLASSES; k++)
      if (scores[k] > scores[best]) best = k;
    printf("%s: %s (%.1f %%)\n", paths[i], names[best], 100.0 * scores[best]);
  }
  fashion_destroy(model);
  return 0;
}
