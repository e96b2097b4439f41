/* lane_source.c: the text of the elementwise lane functions, for generated C. */
#include <stddef.h>
#include <string.h>

#include "core/dtype.h"
#include "core/op.h"

#include "ops/lane_lines.inc"

typedef struct section {
    const char *type;
    const char *const *line;
} section;

static const section sections[] = {
#define SECTION(type) {#type, lines_##type},
    lines_LIST(SECTION)
#undef SECTION
};

const char *const *tile_lane_source(tile_dtype dtype) {
    const char *type = tile_dtype_short(dtype);
    for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
        if (!strcmp(sections[k].type, type)) return sections[k].line;
    return NULL;
}
