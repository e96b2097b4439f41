/* native.h: generated code of an executable: when it is made, and how a launch runs by it. */
#ifndef TILE_CORE_NATIVE_H
#define TILE_CORE_NATIVE_H

#include "core/native_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_NATIVE_RIMS = 32 }; /* lines that reach over one end of a row; more go another way */

typedef enum tile_native_state {
    TILE_NATIVE_WAITING, /* for the worker */
    TILE_NATIVE_READY,
    TILE_NATIVE_FAILED /* for good; the context says why */
} tile_native_state;

/* Generated code of one executable. Its plan and functions do not change once it is ready. */
struct tile_native {
    int64_t refs; /* atomic: the executable, the worker */
    int state;    /* atomic: a tile_native_state */
    bool dropped; /* atomic: the executable is gone */
    tile_native_plan plan;
    char id[40];   /* names the object in the cache */
    void *library; /* from dlopen */
    tile_native_stage stage[TILE_STAGES_MAX];
    tile_native_group *group;
    struct tile_native *next; /* in the worker's queue */
};

/* What a launch runs by now, NULL: the interpreter. Counts the launch and its work, and asks for
 * code when it is worth it. */
const tile_native *tile_native_of(tile_executable *exe, double work_ns);

/* The executable lets go of it; NULL is fine. */
void tile_native_drop(tile_native *native);

/* The function of a step of the block plan, or NULL. */
static inline tile_native_group tile_native_group_of(const tile_native *native, int32_t step) {
    const int32_t group = native->plan.group ? native->plan.group[step] : -1;
    return group < 0 ? NULL : native->group[group];
}

/* Bytes of scratch that a launch by rows needs. */
size_t tile_native_bytes(const tile_native *native, int threads);

/* Runs the launch as rows unless it cannot be: then false, and nothing has happened. */
bool tile_native_run(const tile_run_state *run, const tile_native *native, char *memory);

/* Copies (native_copy.c) */

/* Elements [low, high) of a row, padding where there are none; those of them that are there. */
void tile_native_copy_in(const tile_row_lie *l, const tile_row_window *window, int64_t low,
                         int64_t high, char *to);
void tile_native_copy_out(const tile_row_lie *l, size_t size, int64_t low, int64_t high,
                          const char *from);

/* The cache of objects (native_cache.c) */

enum { TILE_NATIVE_PATH = 1024, TILE_NATIVE_WHY = 256 };

/* Names the object of a text built by the compiler at a path. */
void tile_native_name(const char *source, const char *compiler, char id[40]);

/* The folder, made when it is not there. false: why says what is wrong. */
bool tile_native_folder(char folder[TILE_NATIVE_PATH], char why[TILE_NATIVE_WHY]);

/* Whether the object of an id is there and whole; a damaged one is removed. */
bool tile_native_have(const char *folder, const char *id);

/* The same cache for code of other kinds: ID and an ending. Gets an entry that is there and whole,
 * as memory that the caller frees; puts one. */
bool tile_native_get(const char *folder, const char *id, const char *ending, void **data);
bool tile_native_put(const char *folder, const char *id, const char *ending, const void *data,
                     size_t bytes, char why[TILE_NATIVE_WHY]);
void tile_native_remove(const char *folder, const char *id, const char *ending);

/* Takes a compiled object and its text into the cache, by renaming; drops the oldest ones. */
bool tile_native_keep(const char *folder, const char *id, const char *object, const char *text,
                      char why[TILE_NATIVE_WHY]);

/* Compiling (native_compile.c) */

/* The compiler that TILE_CC or cc names, as an absolute path. */
bool tile_native_compiler(char path[TILE_NATIVE_PATH], char why[TILE_NATIVE_WHY]);

/* Builds the object of a C file; stop: set by another thread to give up. */
bool tile_native_compile(const char *compiler, const char *text, const char *object,
                         const bool *stop, char why[TILE_NATIVE_WHY]);

/* A name in the folder for a file that is being made; unlike any other process's and thread's. */
void tile_native_temporary(const char *folder, const char *id, const char *ending,
                           char path[TILE_NATIVE_PATH]);

#ifdef __cplusplus
}
#endif

#endif
