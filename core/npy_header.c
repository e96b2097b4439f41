/* npy_header.c: parsing and writing the header of a .npy file.
 *
 *   \x93NUMPY major minor length {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 * Source: numpy.lib.format, "The .npy format". */
#include "core/npy_header.h"

#include <string.h>

#include "core/array.h"
#include "core/dtype.h"
#include "core/status.h"

enum { PATH_SHOWN = 160, MAGIC_BYTES = 6, ALIGNMENT = 64 };

static const char magic[] = "\x93NUMPY";

const char *tile_npy_path_text(const char *path) {
    const size_t length = strlen(path);
    return length > PATH_SHOWN ? path + length - PATH_SHOWN : path;
}

static uint32_t little_endian(const unsigned char *bytes, int count) {
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

tile_status tile_npy_read_preamble(const char *path, const unsigned char *bytes, size_t have,
                                   uint64_t file_bytes, size_t *text_at, size_t *text_bytes) {
    const char *name = tile_npy_path_text(path);
    TILE_CHECK(have >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0, TILE_E_FILE,
               "tile_array_load_npy: %s does not begin like a .npy file", name);
    TILE_CHECK(have >= MAGIC_BYTES + 2, TILE_E_FILE,
               "tile_array_load_npy: %s is truncated in its version", name);
    const int major = bytes[6], minor = bytes[7];
    TILE_CHECK(major >= 1 && major <= 3 && minor == 0, TILE_E_FILE,
               "tile_array_load_npy: %s is of version %d.%d, wanted 1.0, 2.0 or 3.0", name, major,
               minor);
    const int width = major == 1 ? 2 : 4;
    *text_at = MAGIC_BYTES + 2 + (size_t)width;
    TILE_CHECK(have >= *text_at, TILE_E_FILE,
               "tile_array_load_npy: %s is truncated in its header length", name);
    *text_bytes = little_endian(bytes + MAGIC_BYTES + 2, width);
    TILE_CHECK(*text_at <= file_bytes && *text_bytes <= file_bytes - *text_at, TILE_E_FILE,
               "tile_array_load_npy: %s is truncated in its header of %zu bytes", name,
               *text_bytes);
    TILE_CHECK(*text_bytes <= TILE_NPY_TEXT_MAX, TILE_E_FILE,
               "tile_array_load_npy: %s has a header of %zu bytes, at most %d are read", name,
               *text_bytes, (int)TILE_NPY_TEXT_MAX);
    return TILE_OK;
}

/* What is left of the text. No function reads at or beyond end. */
typedef struct cursor {
    const char *at, *end;
    const char *path;
} cursor;

static void skip_space(cursor *c) {
    while (c->at < c->end && strchr(" \t\n\r\f", *c->at) && *c->at) c->at++;
}

/* Takes a character after white space, if it is next. */
static bool take(cursor *c, char wanted) {
    skip_space(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    const size_t length = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

/* Takes a quoted string without escapes; text gets at most room - 1 characters of it. */
static bool take_string(cursor *c, char *text, size_t room) {
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    const char quote = *c->at++;
    const char *first = c->at;
    while (c->at < c->end && *c->at != quote && *c->at != '\\') c->at++;
    if (c->at == c->end || *c->at != quote) return false;
    const size_t length = (size_t)(c->at++ - first);
    const size_t kept = length < room ? length : room - 1;
    for (size_t i = 0; i < kept; i++) {
        const bool plain = first[i] >= ' ' && first[i] <= '~';
        memcpy(text + i, plain ? first + i : "?", 1);
    }
    text[kept] = '\0';
    return true;
}

static tile_status malformed(const cursor *c, const char *what) {
    return tile_fail(TILE_E_FILE, "tile_array_load_npy: %s has a header whose %s",
                     tile_npy_path_text(c->path), what);
}

/* An extent, not negative; Python 2 wrote 3L. */
static tile_status take_extent(cursor *c, int64_t *extent) {
    int64_t value = 0;
    skip_space(c);
    const char *first = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c->at - '0', &value))
            return malformed(c, "shape has an extent beyond 2^63");
    if (c->at == first) return malformed(c, "shape is not a tuple of integers from 0");
    if (c->at < c->end && *c->at == 'L') c->at++;
    *extent = value;
    return TILE_OK;
}

static tile_status take_shape(cursor *c, tile_npy_header *header) {
    tile_shape shape = {0};
    if (!take(c, '(')) return malformed(c, "shape is not a tuple of integers from 0");
    while (!take(c, ')')) {
        if (shape.rank == TILE_RANK_MAX) return malformed(c, "shape has more than 6 dimensions");
        TILE_TRY(take_extent(c, &shape.extent[shape.rank++]));
        skip_space(c);
        const bool comma = take(c, ',');
        const bool closed = c->at < c->end && *c->at == ')';
        if (!comma && !(closed && shape.rank > 1))
            return malformed(c, "shape is not a tuple of integers from 0");
    }
    header->shape = shape;
    return TILE_OK;
}

static tile_status take_fortran_order(cursor *c, tile_npy_header *header) {
    header->fortran_order = take_word(c, "True");
    if (!header->fortran_order && !take_word(c, "False"))
        return malformed(c, "fortran_order is neither True nor False");
    return TILE_OK;
}

static bool host_is_big_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* descr is a byte order and a code: "<f4". "|" where an element is one byte. */
static tile_status take_descr(cursor *c, tile_npy_header *header) {
    char descr[24];
    if (!take_string(c, descr, sizeof descr)) return malformed(c, "descr is not a plain type");
    const bool ordered = *descr && strchr("<>=|", *descr);
    const char *code = strcmp(descr, "?") == 0 ? "b1" : descr + (ordered ? 1 : 0);
    for (int i = 0; i < (int)TILE_DTYPES; i++) {
        const tile_dtype dtype = (tile_dtype)i;
        const bool one_byte = tile_dtype_size(dtype) == 1;
        if (dtype == TILE_BF16 || strcmp(code, tile_dtype_numpy(dtype)) != 0) continue;
        if (!one_byte && (!ordered || *descr == '|')) break;
        header->dtype = dtype;
        header->big_endian =
            !one_byte && (*descr == '>' || (*descr == '=' && host_is_big_endian()));
        return TILE_OK;
    }
    return tile_fail(TILE_E_FILE, "tile_array_load_npy: %s is of type \"%s\", which has no dtype",
                     tile_npy_path_text(c->path), descr);
}

typedef struct field {
    const char *key;
    tile_status (*take)(cursor *c, tile_npy_header *header);
} field;

static const field fields[] = {
    {"descr", take_descr},
    {"fortran_order", take_fortran_order},
    {"shape", take_shape},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static tile_status take_field(cursor *c, tile_npy_header *header, unsigned *seen) {
    char key[24];
    if (!take_string(c, key, sizeof key) || !take(c, ':'))
        return malformed(c, "text is not a dictionary");
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(key, fields[i].key) != 0) continue;
        if (*seen & 1u << i) return malformed(c, "dictionary has a key twice");
        *seen |= 1u << i;
        return fields[i].take(c, header);
    }
    return malformed(c, "dictionary has a key beyond descr, fortran_order, shape");
}

tile_status tile_npy_read_text(const char *path, const char *text, size_t bytes,
                               tile_npy_header *header) {
    cursor c = {text, text + bytes, path};
    tile_npy_header read = {0};
    unsigned seen = 0;
    if (!take(&c, '{')) return malformed(&c, "text is not a dictionary");
    while (!take(&c, '}')) {
        TILE_TRY(take_field(&c, &read, &seen));
        skip_space(&c);
        const bool comma = take(&c, ','), closed = c.at < c.end && *c.at == '}';
        if (!comma && !closed) return malformed(&c, "text is not a dictionary");
    }
    skip_space(&c);
    if (c.at != c.end) return malformed(&c, "text goes on after the dictionary");
    if (seen != (1u << FIELDS) - 1)
        return malformed(&c, "dictionary lacks descr, fortran_order or shape");
    const int64_t count = tile_shape_count(read.shape);
    if (count < 0 || count > ((int64_t)1 << 62) / (int64_t)tile_dtype_size(read.dtype))
        return malformed(&c, "shape is beyond 2^62 bytes");
    *header = read;
    return TILE_OK;
}

size_t tile_npy_write_header(tile_dtype dtype, tile_shape shape,
                             unsigned char to[TILE_NPY_HEADER_BYTES]) {
    char text[TILE_NPY_HEADER_BYTES];
    const char order = tile_dtype_size(dtype) == 1 ? '|' : '<';
    int used = snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                        order, tile_dtype_numpy(dtype));
    for (int d = 0; d < shape.rank; d++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld%s", d ? " " : "",
                         (long long)shape.extent[d], d + 1 < shape.rank || d == 0 ? "," : "");
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    const size_t start = MAGIC_BYTES + 4, end = start + (size_t)used + 1;
    const size_t total = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, length = total - start;
    memset(to, ' ', total);
    memcpy(to, magic, MAGIC_BYTES);
    to[6] = 1;
    to[7] = 0;
    to[8] = (unsigned char)(length & 255);
    to[9] = (unsigned char)(length >> 8);
    memcpy(to + start, text, (size_t)used);
    to[total - 1] = '\n';
    return total;
}
