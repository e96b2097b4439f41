/* environment.c: numbers that the environment gives. */
#include "core/environment.h"

#include <errno.h>
#include <stdlib.h>

#include "core/status.h"

static const double SECONDS = 60, SECONDS_MAX = 86400;
static const int64_t BYTES = (int64_t)256 << 20;

/* NULL: not set. */
static const char *text_of(const char *name) {
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

tile_status tile_environment_whole(const char *call, const char *name, int64_t low, int64_t high,
                                   int64_t *value) {
    const char *text = text_of(name);
    char *end;
    if (!text) return TILE_OK;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    TILE_CHECK(*end == '\0' && errno == 0 && number >= low && number <= high, TILE_E_ARGUMENT,
               "%s: %s is \"%.40s\", wanted %lld to %lld", call, name, text, (long long)low,
               (long long)high);
    *value = number;
    return TILE_OK;
}

static tile_status seconds(const char *call, double *value) {
    const char *text = text_of("TILE_CC_SECONDS");
    char *end;
    *value = SECONDS;
    if (!text) return TILE_OK;
    const double number = strtod(text, &end);
    TILE_CHECK(*end == '\0' && number > 0 && number <= SECONDS_MAX, TILE_E_ARGUMENT,
               "%s: TILE_CC_SECONDS is \"%.40s\", wanted more than 0, to %g", call, text,
               SECONDS_MAX);
    *value = number;
    return TILE_OK;
}

static tile_status bytes(const char *call, int64_t *value) {
    *value = BYTES;
    return tile_environment_whole(call, "TILE_CACHE_BYTES", 0, INT64_MAX, value);
}

double tile_environment_cc_seconds(void) {
    double value;
    return seconds("", &value) ? SECONDS : value;
}

int64_t tile_environment_cache_bytes(void) {
    int64_t value;
    return bytes("", &value) ? BYTES : value;
}

tile_status tile_environment_check(const char *call) {
    double limit;
    int64_t room;
    TILE_TRY(seconds(call, &limit));
    return bytes(call, &room);
}
