/* cuda_device.h: what the files of a CUDA device share. Not for others. */
#ifndef TILE_CUDA_CUDA_DEVICE_H
#define TILE_CUDA_CUDA_DEVICE_H

#include "core/device.h"
#include "cuda/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TILE_CUDA_NAME_SHOWN = 48, TILE_CUDA_THREADS = 128 };

/* A compiled kernel, shared by all programs with the same steps. */
typedef struct tile_cuda_module {
    struct tile_cuda_module *next;
    char name[TILE_CUDA_NAME];
    int64_t refs;
    tile_cu_handle module, function;
    int threads;          /* of a block: the most that registers allow */
    size_t fixed_shared;  /* bytes that the compiler placed */
    size_t raised_shared; /* the most that was asked for so far, beyond what needs no asking */
} tile_cuda_module;

/* One thing to do on the stream. */
typedef struct tile_cuda_command {
    enum { TILE_CUDA_LAUNCH, TILE_CUDA_COPY, TILE_CUDA_FILL } kind;
    tile_cu_handle function;
    unsigned blocks, threads, shared;
    size_t argument, bytes; /* launch: where the argument is in the list's; copy: bytes */
    tile_cu_address to, from;
    size_t size, count; /* of a fill */
    uint64_t value;
} tile_cuda_command;

/* Commands one after the other, and the arguments of their launches. */
typedef struct tile_cuda_list {
    tile_cuda_command *command;
    int32_t count, capacity;
    char *argument;
    int32_t bytes, room;
} tile_cuda_list;

typedef struct tile_cuda_device {
    tile_device device; /* first: what core holds */
    const tile_driver *driver;
    int number, major, minor, version; /* version: of the driver, 13000 for 13.0 */
    char name[96];
    size_t memory, shared_most;
    int64_t blocks_most;
    bool pools; /* memory in stream order */
    tile_cu_handle context, stream;
    tile_cuda_module *modules;
    int64_t unloaded;      /* modules so far: the name of a function may be another's by now */
    tile_cu_address arena; /* where tiles that shared memory has no room for lie */
    size_t arena_bytes;
    tile_cu_address error;   /* a tile_cuda_error */
    char *stage;             /* pinned: what small copies to the device are taken from */
    size_t staged;           /* bytes of it that a copy may not have read yet */
    tile_cu_handle timer[2]; /* events; NULL: not needed yet */
    void *generator;         /* of random numbers; NULL: not needed yet */
    int (*drop_generator)(void *generator);

    bool lost; /* the driver's context is gone: every call fails */
    char lost_why[440];
    int64_t launches, synced; /* so far; those that are known to have happened */
    char first[TILE_CUDA_NAME_SHOWN], last[TILE_CUDA_NAME_SHOWN]; /* of those not known */

    tile_device_graph *graph; /* that is taken down; NULL: none */
    bool graphs_off;          /* the driver refused one */
    int64_t compiled, reused, failed, graphs_made, graphs_run;
    char why[256]; /* why compiled code is not kept; "": it is */
} tile_cuda_device;

/* A device with a stream of its own.
 *
 * errors   those of tile_cuda_context_create */
tile_status tile_cuda_device_create(int number, tile_device **device) TILE_MUST_USE;

/* The CUDA device of a context, or NULL. */
tile_cuda_device *tile_cuda_device_of(const tile_context *ctx);

/* The driver's context is current between the two. The first fails when it is lost. */
tile_status tile_cuda_enter(tile_cuda_device *d) TILE_MUST_USE;
void tile_cuda_leave(const tile_cuda_device *d);

/* What a driver's result comes to. what: "call: argument", for the message. */
tile_status tile_cuda_check(tile_cuda_device *d, int result, const char *what) TILE_MUST_USE;

/* Waits for all that was asked for. Entered. */
tile_status tile_cuda_wait(tile_cuda_device *d) TILE_MUST_USE;

/* Puts a command on the stream. The driver's result. */
int tile_cuda_perform(const tile_cuda_device *d, const tile_cuda_command *command,
                      const char *argument);

/* Compiling (module.c) */

tile_status tile_cuda_load(tile_device *device, const tile_cuda_kernel *source, void **kernel);
void tile_cuda_unload(tile_device *device, void *kernel);

/* The CUDA device of a context; an error when it is of the CPU. whose: the argument's name. */
tile_status tile_cuda_find(const char *call, const tile_context *ctx, const char *whose,
                           tile_cuda_device **device) TILE_MUST_USE;

/* Loads cuRAND from this file instead, or no longer; for tests. */
void tile_curand_look_in(const char *path);

/* Graphs (graph.c) */

/* Takes a command down when a graph is; argument: of a launch. taken false: it is to be performed.
 */
tile_status tile_cuda_take(tile_cuda_device *d, const tile_cuda_command *command,
                           const void *argument, bool *taken) TILE_MUST_USE;

/* Has all happen that was taken down. Entered. */
tile_status tile_cuda_flush(tile_cuda_device *d) TILE_MUST_USE;

tile_status tile_cuda_graph_begin(tile_device *device, tile_device_graph **graph);
tile_status tile_cuda_graph_end(tile_device *device);
tile_status tile_cuda_graph_cut(tile_device *device);
void tile_cuda_graph_free(tile_device *device, tile_device_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
