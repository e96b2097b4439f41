/* npy.c: arrays from and to NumPy's .npy files. */
#define _POSIX_C_SOURCE 200809L /* open, fstat, fsync, strerror_r that returns int */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/array.h"
#include "core/context.h"
#include "core/dtype.h"
#include "core/move.h"
#include "core/npy_header.h"
#include "core/status.h"

enum { TEMPORARY_TRIES = 1000, SYSTEM_TEXT = 80 };
static const size_t bytes_per_call = (size_t)1 << 30;

static bool host_is_little_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static void swap_bytes(char *data, int64_t count, size_t size) {
    for (int64_t i = 0; i < count; i++, data += size)
        for (size_t low = 0, high = size - 1; low < high; low++, high--) {
            const char byte = data[low];
            data[low] = data[high];
            data[high] = byte;
        }
}

/* The system's words on an error number. */
static tile_status file_failed(const char *call, const char *what, const char *path, int error) {
    char text[SYSTEM_TEXT];
    if (strerror_r(error, text, sizeof text) != 0)
        (void)snprintf(text, sizeof text, "error %d", error);
    return tile_fail(TILE_E_FILE, "%s: %s %s: %s", call, tile_npy_path_text(path), what, text);
}

typedef struct source {
    const char *path;
    int file;
    uint64_t bytes; /* of the file */
} source;

/* Reads up to `bytes`; fewer at the end of the file. */
static tile_status read_some(const source *from, void *to, size_t bytes, size_t *got) {
    *got = 0;
    while (*got < bytes) {
        const size_t left = bytes - *got;
        const ssize_t n =
            read(from->file, (char *)to + *got, left < bytes_per_call ? left : bytes_per_call);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_failed("tile_array_load_npy", "cannot be read", from->path, errno);
        if (n == 0) break;
        *got += (size_t)n;
    }
    return TILE_OK;
}

static tile_status read_all(const source *from, void *to, size_t bytes) {
    size_t got = 0;
    TILE_TRY(read_some(from, to, bytes, &got));
    TILE_CHECK(got == bytes, TILE_E_FILE,
               "tile_array_load_npy: %s became shorter while it was read",
               tile_npy_path_text(from->path));
    return TILE_OK;
}

static tile_status read_text(const source *from, size_t bytes, tile_npy_header *header) {
    char *text = tile_alloc(bytes);
    if (!text) return TILE_E_MEMORY;
    tile_status status = read_all(from, text, bytes);
    if (!status) status = tile_npy_read_text(from->path, text, bytes, header);
    tile_free(text);
    return status;
}

/* Reads the header and checks that the data are as long as it says, before memory is taken. */
static tile_status read_header(const source *from, tile_npy_header *header) {
    unsigned char preamble[TILE_NPY_PREAMBLE];
    size_t have = 0, text_at = 0, text_bytes = 0;
    TILE_TRY(read_some(from, preamble, sizeof preamble, &have));
    TILE_TRY(
        tile_npy_read_preamble(from->path, preamble, have, from->bytes, &text_at, &text_bytes));
    if (lseek(from->file, (off_t)text_at, SEEK_SET) < 0)
        return file_failed("tile_array_load_npy", "cannot be read", from->path, errno);
    TILE_TRY(read_text(from, text_bytes, header));
    const uint64_t have_data = from->bytes - text_at - text_bytes;
    const uint64_t wanted =
        (uint64_t)tile_shape_count(header->shape) * tile_dtype_size(header->dtype);
    TILE_CHECK(have_data == wanted, TILE_E_FILE,
               "tile_array_load_npy: %s has %llu bytes of data, its shape wants %llu",
               tile_npy_path_text(from->path), (unsigned long long)have_data,
               (unsigned long long)wanted);
    return TILE_OK;
}

static tile_status check_bools(const source *from, const tile_npy_header *header, const char *data,
                               int64_t count) {
    if (tile_dtype_kind(header->dtype) != TILE_KIND_BOOL) return TILE_OK;
    for (int64_t i = 0; i < count; i++)
        TILE_CHECK(data[i] == 0 || data[i] == 1, TILE_E_FILE,
                   "tile_array_load_npy: %s holds a bool that is %d, wanted 0 or 1",
                   tile_npy_path_text(from->path), (int)(unsigned char)data[i]);
    return TILE_OK;
}

/* Reads the elements in the order of the file. */
static tile_status read_elements(const source *from, const tile_npy_header *header, void *to) {
    const int64_t count = tile_shape_count(header->shape);
    const size_t size = tile_dtype_size(header->dtype);
    TILE_TRY(read_all(from, to, (size_t)count * size));
    if (size > 1 && header->big_endian == host_is_little_endian()) swap_bytes(to, count, size);
    return check_bools(from, header, to, count);
}

/* By memory of the host's. Fortran order: the first dimension is the fastest. */
static tile_status read_staged(tile_context *ctx, const source *from, const tile_npy_header *header,
                               void *to) {
    tile_buffer *buffer;
    const size_t bytes = (size_t)tile_shape_count(header->shape) * tile_dtype_size(header->dtype);
    TILE_TRY(tile_buffer_create_host(ctx, bytes, &buffer));
    tile_status status = read_elements(from, header, buffer->data);
    int64_t stride[TILE_RANK_MAX], next = 1;
    for (int d = 0; d < header->shape.rank; d++) {
        stride[d] = next;
        next *= header->shape.extent[d];
    }
    if (!status)
        status = tile_move_in(ctx, header->dtype, header->shape, to, NULL, buffer->data,
                              header->fortran_order ? stride : NULL);
    tile_buffer_release(buffer);
    return status;
}

static tile_status load_from(tile_context *ctx, const source *from, tile_array **array) {
    tile_npy_header header = {0};
    TILE_TRY(read_header(from, &header));
    tile_array *made = NULL;
    TILE_TRY(tile_array_create(ctx, header.dtype, header.shape, &made));
    const bool staged = (header.fortran_order || tile_is_remote(ctx)) && tile_array_count(made) > 0;
    void *to = tile_array_address(made);
    const tile_status status =
        staged ? read_staged(ctx, from, &header, to) : read_elements(from, &header, to);
    if (status) {
        tile_array_destroy(made);
        return status;
    }
    *array = made;
    return TILE_OK;
}

tile_status tile_array_load_npy(tile_context *ctx, const char *path, tile_array **array) {
    TILE_CHECK(ctx && path && array, TILE_E_ARGUMENT, "tile_array_load_npy: %s is NULL",
               !ctx    ? "ctx"
               : !path ? "path"
                       : "array");
    /* Not blocking: opening a pipe would wait for a writer. */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return file_failed("tile_array_load_npy", "cannot be opened", path, errno);
    struct stat info;
    tile_status status;
    if (fstat(file, &info) != 0)
        status = file_failed("tile_array_load_npy", "cannot be read", path, errno);
    else if (!S_ISREG(info.st_mode))
        status = tile_fail(TILE_E_FILE, "tile_array_load_npy: %s is not a regular file",
                           tile_npy_path_text(path));
    else {
        const source from = {path, file, (uint64_t)info.st_size};
        status = load_from(ctx, &from, array);
    }
    close(file);
    return status;
}

/* Creates a file with a new name in the folder of path; its name into temporary. */
static int open_temporary(const char *path, char *temporary, size_t room) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        (void)snprintf(temporary, room, "%.*s.tile-%ld-%d.npy", folder, path, (long)getpid(), i);
        const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

/* 0 or the error number. */
static int write_all(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const size_t left = bytes - done;
        const ssize_t n =
            write(file, (const char *)from + done, left < bytes_per_call ? left : bytes_per_call);
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) done += (size_t)n;
    }
    return 0;
}

/* data: the elements in C order, little endian. 0 or the error number. */
static int write_file(int file, const tile_array *array, const void *data) {
    unsigned char header[TILE_NPY_HEADER_BYTES];
    const size_t header_bytes = tile_npy_write_header(array->dtype, array->shape, header);
    const size_t bytes = (size_t)tile_array_count(array) * tile_dtype_size(array->dtype);
    int error = write_all(file, header, header_bytes);
    if (!error) error = write_all(file, data, bytes);
    if (!error && fsync(file) != 0) error = errno;
    return error;
}

static tile_status save_data(const tile_array *array, const void *data, const char *path) {
    const size_t room = strlen(path) + 64;
    char *temporary = tile_alloc(room);
    if (!temporary) return TILE_E_MEMORY;
    const int file = open_temporary(path, temporary, room);
    int error = file < 0 ? errno : write_file(file, array, data);
    if (file >= 0) {
        if (close(file) != 0 && !error) error = errno;
        if (!error && rename(temporary, path) != 0) error = errno;
        if (error) unlink(temporary);
    }
    tile_free(temporary);
    return error ? file_failed("tile_array_save_npy", "cannot be written", path, error) : TILE_OK;
}

/* Copies the elements to C order and little endian, and saves them. */
static tile_status save_copy(const tile_array *array, const char *path) {
    const tile_dtype dtype = array->dtype;
    const int64_t count = tile_array_count(array);
    const size_t size = tile_dtype_size(dtype);
    tile_buffer *buffer;
    tile_context *ctx = array->storage->ctx;
    TILE_TRY(tile_buffer_create_host(ctx, (size_t)count * size, &buffer));
    tile_status status = tile_move_out(ctx, dtype, array->shape, buffer->data,
                                       tile_array_address(array), array->stride);
    if (!status && !host_is_little_endian()) swap_bytes(buffer->data, count, size);
    if (!status) status = save_data(array, buffer->data, path);
    tile_buffer_release(buffer);
    return status;
}

tile_status tile_array_save_npy(tile_array *array, const char *path) {
    TILE_CHECK(array && path, TILE_E_ARGUMENT, "tile_array_save_npy: %s is NULL",
               array ? "path" : "array");
    TILE_CHECK(tile_dtype_valid(array->dtype), TILE_E_DTYPE,
               "tile_array_save_npy: array is %s: save its members, see tile_array_field",
               tile_dtype_name(array->dtype));
    TILE_TRY(tile_array_check_readable(array, "tile_array_save_npy"));
    struct stat info;
    TILE_CHECK(stat(path, &info) != 0 || S_ISREG(info.st_mode), TILE_E_FILE,
               "tile_array_save_npy: %s exists and is not a regular file",
               tile_npy_path_text(path));
    if (!tile_is_remote(array->storage->ctx) && tile_array_is_contiguous(array) &&
        host_is_little_endian())
        return save_data(array, tile_array_address(array), path);
    return save_copy(array, path);
}
