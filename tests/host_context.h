/* host_context.h: a context of the CPU, also where tests run on a device: what it tests is the
 * host's memory. */
#ifndef TILE_TESTS_HOST_CONTEXT_H
#define TILE_TESTS_HOST_CONTEXT_H

#include <gtest/gtest.h>

#include "core/core_api.h"

/* threads 0: as the environment says. */
inline tile_context *host_context(int threads) {
    tile_context_options options = {};
    tile_context *ctx = nullptr;
    options.threads = threads;
    options.executor = TILE_EXECUTOR_INTERPRETER;
    EXPECT_EQ(TILE_OK, tile_context_create(&options, &ctx)) << tile_last_error();
    return ctx;
}

/* Instead of the context of a fixture. */
inline void change_to_host(tile_context **ctx) {
    tile_context_destroy(*ctx);
    *ctx = host_context(1);
}

#endif
