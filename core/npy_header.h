/* npy_header.h: the header of a .npy file, apart from reading and writing files. */
#ifndef TILE_CORE_NPY_HEADER_H
#define TILE_CORE_NPY_HEADER_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_npy_header {
    tile_dtype dtype;
    tile_shape shape;
    bool big_endian; /* false where an element is one byte */
    bool fortran_order;
} tile_npy_header;

enum {
    TILE_NPY_PREAMBLE = 12,      /* magic, version, length: at most */
    TILE_NPY_TEXT_MAX = 1 << 20, /* the longest header text that is read */
    TILE_NPY_HEADER_BYTES = 320  /* the longest header that is written */
};

/* Reads magic, version and the length of the text that follows from the first `have` bytes of a
 * file of `file_bytes`. path is for messages.
 *
 * errors   TILE_E_FILE */
tile_status tile_npy_read_preamble(const char *path, const unsigned char *bytes, size_t have,
                                   uint64_t file_bytes, size_t *text_at,
                                   size_t *text_bytes) TILE_MUST_USE;

/* Reads the text: a Python dictionary of descr, fortran_order and shape.
 *
 * errors   TILE_E_FILE */
tile_status tile_npy_read_text(const char *path, const char *text, size_t bytes,
                               tile_npy_header *header) TILE_MUST_USE;

/* Writes a version 1.0 header, little endian, C order; returns its bytes, a multiple of 64. */
size_t tile_npy_write_header(tile_dtype dtype, tile_shape shape,
                             unsigned char to[TILE_NPY_HEADER_BYTES]);

/* The end of a path that fits a message. */
const char *tile_npy_path_text(const char *path);

#ifdef __cplusplus
}
#endif

#endif
