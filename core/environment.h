/* environment.h: numbers that the environment gives. */
#ifndef TILE_CORE_ENVIRONMENT_H
#define TILE_CORE_ENVIRONMENT_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds that the C compiler may take for a kernel, and bytes that the folder of objects may hold.
 * The default where the variable is empty or wrong; tile_context_create refuses wrong ones. */
double tile_environment_cc_seconds(void);
int64_t tile_environment_cache_bytes(void);

/* value changes only where the variable is set.
 *
 * errors   TILE_E_ARGUMENT what was set is no number of the range, or no whole one */
tile_status tile_environment_whole(const char *call, const char *name, int64_t low, int64_t high,
                                   int64_t *value) TILE_MUST_USE;

/* errors   TILE_E_ARGUMENT a variable of the two above is wrong */
tile_status tile_environment_check(const char *call) TILE_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
