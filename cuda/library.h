/* library.h: libraries of CUDA, opened when they are first needed. */
#ifndef TILE_CUDA_LIBRARY_H
#define TILE_CUDA_LIBRARY_H

#include <stddef.h>

/* A function of a library, and where in a table its address goes. */
typedef struct tile_library_symbol {
    size_t at;
    const char *name;
} tile_library_symbol;

/* Opens a library of the CUDA Toolkit: file in CUDA_HOME/lib64, else the first of count names that
 * the system's loader finds. NULL: there is none. */
void *tile_library_open(const char *file, const char *const *names, size_t count);

/* Fills a table of functions. What the library lacks, or NULL when the table is whole. */
const char *tile_library_find(void *handle, const tile_library_symbol *symbol, size_t count,
                              void *table);

#endif
