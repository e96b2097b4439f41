/* status.h: how errors begin and travel. */
#ifndef TILE_CORE_STATUS_H
#define TILE_CORE_STATUS_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stores code and message as the calling thread's last error; returns code. An argument may be
 * tile_last_error() itself. */
tile_status tile_fail(tile_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

/* Begins an error. Always on: argument checks are never compiled out. */
#define TILE_CHECK(condition, code, ...)                       \
    do {                                                       \
        if (!(condition)) return tile_fail(code, __VA_ARGS__); \
    } while (0)

/* Passes an error on. */
#define TILE_TRY(call)                          \
    do {                                        \
        const tile_status try_status_ = (call); \
        if (try_status_) return try_status_;    \
    } while (0)

#endif
