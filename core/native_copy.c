/* native_copy.c: pieces of rows that do not lie side by side in an array, or not inside. */
#include <string.h>

#include "core/native.h"

static void copy(char *to, int64_t to_step, const char *from, int64_t from_step, size_t size,
                 int64_t n) {
    if (to_step == (int64_t)size && from_step == (int64_t)size)
        memcpy(to, from, (size_t)n * size);
    else
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size);
}

void tile_native_copy_in(const tile_row_lie *l, const tile_row_window *window, int64_t low,
                         int64_t high, char *to) {
    const int64_t size = (int64_t)window->size;
    int64_t first = high, last = high;
    if (l->at) {
        first = tile_between(l->x_low, low, high);
        last = tile_between(l->x_high, first, high);
    }
    tile_fill_elements(to, &window->pad, window->size, first - low);
    if (last > first)
        copy(to + (first - low) * size, size, l->at + first * l->step, l->step, window->size,
             last - first);
    tile_fill_elements(to + (last - low) * size, &window->pad, window->size, high - last);
}

void tile_native_copy_out(const tile_row_lie *l, size_t size, int64_t low, int64_t high,
                          const char *from) {
    if (!l->at) return;
    const int64_t first = tile_between(l->x_low, low, high),
                  last = tile_between(l->x_high, first, high);
    if (last > first)
        copy(l->at + first * l->step, l->step, from + (first - low) * (int64_t)size, (int64_t)size,
             size, last - first);
}
