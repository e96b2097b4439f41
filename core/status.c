/* status.c: status texts and each thread's last error. */
#include "core/status.h"

#include <stdarg.h>
#include <string.h>

enum { MESSAGE_BYTES = 512 };

static _Thread_local char last_error[MESSAGE_BYTES];

#define STATUS_TEXT(name, text) text,
static const char *const status_text[] = {TILE_STATUS_LIST(STATUS_TEXT)};
#undef STATUS_TEXT

const char *tile_status_text(tile_status status) {
    const bool known = (int)status >= 0 && (int)status < (int)TILE_STATUS_COUNT;
    return known ? status_text[status] : "unknown status";
}

const char *tile_last_error(void) {
    return last_error;
}

tile_status tile_fail(tile_status code, const char *format, ...) {
    char message[MESSAGE_BYTES]; /* apart, since an argument may be last_error */
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (length < 0) message[0] = '\0';
    memcpy(last_error, message, sizeof last_error);
    return code;
}
