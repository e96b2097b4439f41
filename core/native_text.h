/* native_text.h: a text that grows. */
#ifndef TILE_CORE_NATIVE_TEXT_H
#define TILE_CORE_NATIVE_TEXT_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_text {
    char *data; /* ends with 0; NULL while it is empty */
    int32_t length, capacity;
    bool failed; /* memory ran out: what was added since is missing */
} tile_text;

void tile_text_add(tile_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tile_text_clear(tile_text *text);

static inline const char *tile_text_get(const tile_text *text) {
    return text->data ? text->data : "";
}

#ifdef __cplusplus
}
#endif

#endif
