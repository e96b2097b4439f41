/* native_cache.c: compiled objects on disk, by content.
 *
 * An entry is FOLDER/ID.so, an object followed by a mark, its length and its checksum, so that a
 * damaged one is seen before it is loaded; ID.c beside it is its text. ID is a hash of the text,
 * the compiler and the CPU. Entries come into being by renaming and are never written to. */
#define _POSIX_C_SOURCE 200809L /* openat, futimens */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "core/environment.h"
#include "core/memory.h"
#include "core/native.h"

static const uint64_t START = 0xcbf29ce484222325u, PRIME = 0x100000001b3u;
static const char MARK[16] = "tiletape object";

enum { ID = 32, OLD_SECONDS = 3600 };

typedef struct trailer {
    char mark[16];
    uint64_t length, sum;
} trailer;

/* FNV-1a */
static uint64_t hash(uint64_t h, const void *data, size_t n) {
    const unsigned char *byte = data;
    for (size_t i = 0; i < n; i++) h = (h ^ byte[i]) * PRIME;
    return h;
}

/* Names */

/* What -march=native may depend on. */
static uint64_t hash_cpu(uint64_t h) {
#ifdef __x86_64__
    for (unsigned leaf = 0; leaf < 8; leaf++) {
        unsigned r[4] = {0};
        if (leaf == 4 || leaf == 5 || leaf == 6 || leaf == 3) continue;
        __cpuid_count(leaf, 0, r[0], r[1], r[2], r[3]);
        if (leaf == 1) r[1] = 0; /* the number of the core that runs this */
        h = hash(h, r, sizeof r);
    }
#endif
    return h;
}

void tile_native_name(const char *source, const char *compiler, char id[40]) {
    struct stat is = {.st_size = 0};
    uint64_t h[2];
    if (stat(compiler, &is)) is.st_size = 0;
    for (int k = 0; k < 2; k++) {
        h[k] = hash(START + (uint64_t)k, source, strlen(source) + 1);
        h[k] = hash(h[k], compiler, strlen(compiler) + 1);
        h[k] = hash(h[k], &is.st_size, sizeof is.st_size);
        h[k] = hash(h[k], &is.st_mtime, sizeof is.st_mtime);
        h[k] = hash_cpu(h[k]);
        h[k] ^= h[k] >> 29; /* the two would go on alike */
        h[k] *= 0xbf58476d1ce4e5b9u + (uint64_t)k * 2;
        h[k] ^= h[k] >> 32;
    }
    (void)snprintf(id, 40, "%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

void tile_native_temporary(const char *folder, const char *id, const char *ending,
                           char path[TILE_NATIVE_PATH]) {
    static int counter;
    const int number = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    (void)snprintf(path, TILE_NATIVE_PATH, "%s/%s.%ld.%d.new%s", folder, id, (long)getpid(), number,
                   ending);
}

/* The folder */

static bool make_folder(const char *path) {
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* What others can write to is not loaded. */
static bool is_private(const char *path) {
    struct stat is;
    return stat(path, &is) == 0 && is.st_uid == geteuid() && !(is.st_mode & (S_IWGRP | S_IWOTH));
}

bool tile_native_folder(char folder[TILE_NATIVE_PATH], char why[TILE_NATIVE_WHY]) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;
    if (cache && cache[0] == '/') {
        length = snprintf(folder, TILE_NATIVE_PATH, "%s", cache);
    } else if (home && home[0] == '/') {
        length = snprintf(folder, TILE_NATIVE_PATH, "%s/.cache", home);
    } else {
        (void)snprintf(why, TILE_NATIVE_WHY, "no cache: neither XDG_CACHE_HOME nor HOME is set");
        return false;
    }
    bool made = length > 0 && length < TILE_NATIVE_PATH - 100 && make_folder(folder);
    if (made) memcpy(folder + length, "/tiletape", sizeof "/tiletape");
    made = made && make_folder(folder) && access(folder, W_OK | X_OK) == 0;
    const bool safe = made && is_private(folder);
    if (!safe) {
        const size_t all = strlen(folder), most = 180; /* the end says more */
        (void)snprintf(why, TILE_NATIVE_WHY, "no cache: the folder %s %s",
                       folder + (all > most ? all - most : 0),
                       made ? "can be written to by others" : "cannot be written to");
    }
    return safe;
}

/* Entries */

static uint64_t hash_file(int file, uint64_t length, bool *whole) {
    char piece[4096];
    uint64_t h = START;
    *whole = false;
    while (length > 0) {
        const size_t want = length < sizeof piece ? (size_t)length : sizeof piece;
        const ssize_t got = read(file, piece, want);
        if (got <= 0) return 0;
        h = hash(h, piece, (size_t)got);
        length -= (uint64_t)got;
    }
    *whole = true;
    return h;
}

static bool is_whole(int file) {
    struct stat is;
    trailer end;
    bool whole;
    if (fstat(file, &is) || is.st_size <= (off_t)sizeof end) return false;
    const off_t length = is.st_size - (off_t)sizeof end;
    if (pread(file, &end, sizeof end, length) != (ssize_t)sizeof end) return false;
    if (memcmp(end.mark, MARK, sizeof MARK) || end.length != (uint64_t)length) return false;
    return hash_file(file, (uint64_t)length, &whole) == end.sum && whole;
}

/* A whole entry, open; a damaged one is removed. -1: there is none. */
static int open_entry(const char *folder, const char *id, const char *ending) {
    char path[TILE_NATIVE_PATH];
    (void)snprintf(path, sizeof path, "%.900s/%s%s", folder, id, ending);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    if (is_whole(file)) {
        (void)futimens(file, NULL); /* the time of its last use */
        return file;
    }
    (void)unlink(path);
    close(file);
    return -1;
}

bool tile_native_have(const char *folder, const char *id) {
    const int file = open_entry(folder, id, ".so");
    if (file >= 0) close(file);
    return file >= 0;
}

bool tile_native_get(const char *folder, const char *id, const char *ending, void **data) {
    struct stat is;
    const int file = open_entry(folder, id, ending);
    if (file < 0) return false;
    const size_t bytes = fstat(file, &is) ? 0 : (size_t)is.st_size - sizeof(trailer);
    char *got = tile_alloc(bytes);
    size_t done = 0;
    while (got && done < bytes) {
        const ssize_t n = pread(file, got + done, bytes - done, (off_t)done);
        if (n <= 0) break;
        done += (size_t)n;
    }
    close(file);
    if (got && bytes && done == bytes) {
        *data = got;
        return true;
    }
    tile_free(got);
    return false;
}

void tile_native_remove(const char *folder, const char *id, const char *ending) {
    char path[TILE_NATIVE_PATH];
    (void)snprintf(path, sizeof path, "%.900s/%s%s", folder, id, ending);
    (void)unlink(path);
}

static bool write_trailer(const char *object) {
    trailer end;
    struct stat is;
    bool done = false;
    const int file = open(object, O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    if (fstat(file, &is) == 0 && is.st_size > 4) {
        memset(&end, 0, sizeof end);
        memcpy(end.mark, MARK, sizeof MARK);
        end.length = (uint64_t)is.st_size;
        end.sum = hash_file(file, end.length, &done);
        done = done && write(file, &end, sizeof end) == (ssize_t)sizeof end;
    }
    return (close(file) == 0) && done;
}

/* The size cap */

typedef struct entry {
    char name[64];
    int64_t bytes, time;
} entry;

static int by_time(const void *a, const void *b) {
    const entry *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

/* Of ours: 32 hexadecimal digits, then an ending. Left over: something that was never finished. */
static bool is_ours(const char *name, bool *left_over) {
    for (int k = 0; k < ID; k++)
        if (!strchr("0123456789abcdef", name[k]) || !name[k]) return false;
    *left_over = strstr(name + ID, ".new") != NULL;
    return *left_over || !strcmp(name + ID, ".so") || !strcmp(name + ID, ".c") ||
           !strcmp(name + ID, ".cubin");
}

static void list_entries(DIR *folder, entry **entries, int32_t *count) {
    const time_t now = time(NULL);
    const struct dirent *d;
    int32_t capacity = 0;
    while ((d = readdir(folder)) != NULL) {
        struct stat is;
        bool left_over;
        if (strlen(d->d_name) >= sizeof(*entries)->name || !is_ours(d->d_name, &left_over))
            continue;
        if (fstatat(dirfd(folder), d->d_name, &is, AT_SYMLINK_NOFOLLOW)) continue;
        if (left_over && now - is.st_mtime > OLD_SECONDS)
            (void)unlinkat(dirfd(folder), d->d_name, 0);
        if (left_over || tile_grow(entries, &capacity, *count + 1, sizeof **entries)) continue;
        entry *e = &(*entries)[(*count)++];
        memcpy(e->name, d->d_name, strlen(d->d_name) + 1);
        e->bytes = is.st_size;
        e->time = (int64_t)is.st_mtime;
    }
}

static void drop_oldest(const char *path, const char *id) {
    entry *entries = NULL;
    int32_t count = 0;
    int64_t bytes = 0;
    DIR *folder = opendir(path);
    if (!folder) return;
    list_entries(folder, &entries, &count);
    for (int32_t k = 0; k < count; k++) bytes += entries[k].bytes;
    const int64_t limit = tile_environment_cache_bytes();
    if (count) qsort(entries, (size_t)count, sizeof *entries, by_time);
    for (int32_t k = 0; k < count && bytes > limit; k++) {
        if (!strncmp(entries[k].name, id, ID)) continue;
        if (unlinkat(dirfd(folder), entries[k].name, 0) == 0) bytes -= entries[k].bytes;
    }
    closedir(folder);
    tile_free(entries);
}

bool tile_native_keep(const char *folder, const char *id, const char *object, const char *text,
                      char why[TILE_NATIVE_WHY]) {
    char path[TILE_NATIVE_PATH];
    if (!write_trailer(object)) {
        (void)snprintf(why, TILE_NATIVE_WHY, "the cache folder %.150s is full", folder);
        return false;
    }
    (void)snprintf(path, sizeof path, "%.900s/%s.c", folder, id);
    if (rename(text, path)) (void)unlink(text); /* only for reading */
    (void)snprintf(path, sizeof path, "%.900s/%s.so", folder, id);
    if (rename(object, path)) {
        (void)snprintf(why, TILE_NATIVE_WHY, "%.150s cannot be made", path);
        return false;
    }
    drop_oldest(folder, id);
    return true;
}

static bool write_file(const char *path, const void *data, size_t bytes) {
    FILE *out = fopen(path, "wbx");
    if (!out) return false;
    const bool done = fwrite(data, 1, bytes, out) == bytes;
    return fclose(out) == 0 && done;
}

bool tile_native_put(const char *folder, const char *id, const char *ending, const void *data,
                     size_t bytes, char why[TILE_NATIVE_WHY]) {
    char made[TILE_NATIVE_PATH], path[TILE_NATIVE_PATH];
    tile_native_temporary(folder, id, ending, made);
    (void)snprintf(path, sizeof path, "%.900s/%s%s", folder, id, ending);
    const bool done =
        write_file(made, data, bytes) && write_trailer(made) && rename(made, path) == 0;
    if (done)
        drop_oldest(folder, id);
    else
        (void)snprintf(why, TILE_NATIVE_WHY, "the cache folder %.150s is full", folder);
    if (!done) (void)unlink(made);
    return done;
}
