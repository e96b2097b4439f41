/* native_text.c: a text that grows. */
#include "core/native_text.h"

#include <stdarg.h>

#include "core/memory.h"

void tile_text_add(tile_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    const int64_t need = (int64_t)text->length + length + 1;
    text->failed = text->failed || length < 0 || need > INT32_MAX ||
                   tile_grow(&text->data, &text->capacity, (int32_t)need, 1);
    if (!text->failed) {
        const size_t room = (size_t)length + 1;
        text->failed = vsnprintf(text->data + text->length, room, format, again) != length;
        text->length += length;
    }
    va_end(again);
}

void tile_text_clear(tile_text *text) {
    tile_free(text->data);
    *text = (tile_text){.data = NULL};
}
