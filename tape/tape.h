/* tape.h: what a tape is made of; private to tape/.
 *
 * A tape is a list of records. For each storage it meets it has a use, which watches the storage:
 * values that a record's adjoint needs are asked for as needs (a byte range of the storage at that
 * time); when anything is about to overwrite the range, the use keeps the old bytes. So backward is
 * bound to values, never to arrays. */
#ifndef TILE_TAPE_TAPE_H
#define TILE_TAPE_TAPE_H

#include "core/array.h"
#include "core/context.h"
#include "core/kernel.h"
#include "tape/tape_api.h"

typedef struct tape_use tape_use;
typedef struct tape_record tape_record;

/* Values of a range at some time. Live: they are still in the storage. */
typedef struct tape_need {
    struct tape_need *next; /* in the free list */
    tape_use *use;
    int64_t refs;
    tile_range range;
    tile_buffer *buffer; /* kept bytes; NULL: live */
    int64_t base;        /* byte of the storage that the buffer's first byte stands for */
    bool initial;        /* for replays, not for an adjoint */
    int64_t reader;      /* number of a record that needs it, for messages */
} tape_need;

/* A storage on a tape. */
struct tape_use {
    tile_watcher watcher; /* first: the storage knows this */
    tape *record;
    tile_storage *storage;
    tape_use *next;
    tape_need **live; /* by range.low */
    int32_t live_count, live_capacity;
    int64_t longest;    /* range that was ever live */
    tape_need *initial; /* what the storage held at its first use */
    const void *home;   /* memory where replays find what they only read; NULL: not settled yet */
    bool active;        /* has a gradient, was retained, or something active was written to it */
    bool written;       /* by a record */
    bool outside;       /* by somebody else, noted as a record */
    bool between;       /* so, and the tape used it again */

    /* During a reverse sweep. */
    tile_buffer *adjoint; /* elements as in the storage, each of its wide dtype: one of these */
    tile_buffer *grad_buffer, *apart_buffer;
    bool planned;  /* as the plan of the sweep goes; false: zero, and the buffer undefined */
    bool direct;   /* the adjoint is the gradient itself */
    bool wanted;   /* some step touches it */
    bool retained; /* somebody asks for the adjoint at some time */
    const tape_record *first; /* that writes it */
    bool turned; /* the adjoint becomes the gradient itself before the records ahead of the first */
    bool apart;  /* and was wanted until then, in a buffer of its own */
};

typedef enum tape_kind { TAPE_LAUNCH, TAPE_CALL, TAPE_OUTSIDE, TAPE_RETAIN } tape_kind;

/* One array of a record. */
typedef struct tape_operand {
    tile_array *array;
    tape_use *use;
    tape_need *need; /* its values before the record (outside: after); NULL: not needed */
    bool read, written;
} tape_operand;

struct tape_record {
    tape_kind kind;
    int64_t number; /* on the tape */
    int32_t count;  /* operands: launch: one per parameter, array NULL for scalars */
    tape_operand *operand;
    bool foreign; /* a launch that was not on this tape: its results are constants */

    /* Launch. */
    tile_kernel *kernel;
    int64_t grid[TILE_GRID_RANK];
    tile_scalar *scalar;
    const tile_adjoint_plan *plan; /* as recorded, decides what is kept; NULL: nothing active */
    tile_buffer *stash;

    tape_call *call;      /* of a call */
    tile_array *retained; /* of a retain */

    /* As planned for a sweep. */
    const tile_adjoint_plan *sweep;
    uint32_t zero; /* operands whose adjoint is filled with zeros first */
    uint32_t skip; /* steps (bits) that need not run */
    uint32_t turn; /* operands whose adjoint is the gradient itself from here on */
};

enum { TAPE_CHUNK = 1 << 16 };

typedef struct tape_chunk {
    struct tape_chunk *next;
    size_t used, bytes;
} tape_chunk;

struct tape {
    tile_context *ctx;
    tape_options options;
    tape_record **record;
    int32_t count, capacity;
    tape_use *uses, *spare_uses; /* spare ones are kept for reuse, with their lists */
    tape_need *free_needs;
    tape_chunk *chunks, *spare;   /* records live in chunks; spare ones are kept for reuse */
    tile_status broken;           /* why the tape is refused until reset */
    const tape_record *failed;    /* a launch with an execution error: no backward until reset */
    tile_device_graph *graphs[2]; /* of replays, of sweeps; NULL: none yet */
    tile_buffer ***settled;       /* of a replay: buffers that it fills anew */
    int32_t settled_capacity;
    tile_buffer *ones; /* on a device: 1 in float64, then in float32; NULL: not needed yet */
    bool running;      /* a call or replay of this tape runs: its writes are no outside's */
};

/* Whether a replay starts it from what it held at its first use. Others are taken as they are. */
static inline bool tape_use_restarts(const tape_use *use) {
    return use->written || use->between;
}

/* Old bytes of what a launch writes (trial.c). */
typedef struct tape_trial {
    tile_buffer *old[TILE_PARAMS_MAX]; /* NULL: nothing is written */
    size_t bytes[TILE_PARAMS_MAX];
} tape_trial;

/* writes: bits of the arrays. Nothing is held on failure. */
tile_status tape_trial_begin(tape_trial *t, tile_context *ctx, int count, tile_array *const *array,
                             uint32_t writes) TILE_MUST_USE;
tile_status tape_trial_end(const tape_trial *t, int count, tile_array *const *array,
                           bool put_back) TILE_MUST_USE;

/* Whether what is recorded can be run again or backward. call: the public function. */
tile_status tape_check_usable(const tape *t, const char *call) TILE_MUST_USE;

/* The tape's use of a storage, made when there is none. NULL: no memory. */
tape_use *tape_use_of(tape *t, tile_storage *storage);
tape_use *tape_find_use(const tape *t, const tile_storage *storage);
void tape_spare_uses(tape *t, const tape_use *older); /* those made after; NULL: all */
void tape_free_spare_uses(tape *t);

/* A reference to the values of a range as they are now. NULL: no memory. */
tape_need *tape_need_now(tape_use *use, tile_range range, int64_t reader);
/* The same, of the caller's alone, when no adjoint needs them. */
tape_need *tape_need_for_replay(tape_use *use, tile_range range, int64_t reader);
void tape_need_release(tape_need *need);

/* Takes a need off the live ones, when it has a buffer of its own from now on. */
void tape_need_unlive(tape_need *need);

/* Where element 0 of the array was, in the bytes that the need stands for. */
const void *tape_need_address(const tape_need *need, const tile_array *array);

/* Memory that lives until the tape is reset. NULL: none. */
void *tape_take(tape *t, size_t bytes);

/* A new record with operands, not yet on the tape. */
tape_record *tape_record_new(tape *t, tape_kind kind, int32_t operands);

/* Puts it there. Room must have been made by tape_record_new. */
void tape_record_append(tape *t, tape_record *r);

/* Drops the last records, down to count. Only for records that wrote to arrays of their own. */
void tape_forget(tape *t, int32_t count);

/* Lets go of what a record holds, not of its memory. */
void tape_record_drop(tape_record *r);

/* Lets go of the values that a record holds, before it is run again. */
void tape_record_drop_values(tape_record *r);

/* Runs a prepared launch record: asks for the needs, keeps what is overwritten, runs the kernel. */
tile_status tape_launch_run(tape *t, tape_record *r) TILE_MUST_USE;

/* Describes an array at an address. */
void tape_memory(const tile_array *array, const void *read, void *write, tile_memory *memory);

tile_status tape_call_run(tape *t, tape_record *r) TILE_MUST_USE;
tile_status tape_call_backward(tape *t, tape_record *r) TILE_MUST_USE;

tile_status tape_fill_zero(tile_buffer *buffer) TILE_MUST_USE;

/* Whether two arrays are the same elements in the same order. */
bool tape_same_elements(const tile_array *a, const tile_array *b);

/* Elements of a float dtype in memory; strides in elements. */
typedef struct tape_elements {
    tile_dtype dtype;
    void *at;
    int64_t stride[TILE_RANK_MAX];
} tape_elements;

tape_elements tape_elements_of(const tile_array *array);

/* Adjoints during a sweep: laid out like the storage; where it holds 16-bit floats all is twice as
 * far apart, and theirs are float32. The bytes that a storage's takes; where an array's lie in it,
 * at NULL: there is none. */
size_t tape_adjoint_bytes(const tile_storage *storage);
tape_elements tape_adjoint_of(const tape_use *use, const tile_array *array);

/* An array over elements in a buffer that is not a storage of the user's. */
tile_status tape_stand_in(tile_context *ctx, tile_shape shape, const tape_elements *elements,
                          tile_buffer *buffer, tile_array **stand_in) TILE_MUST_USE;

/* to += from, elementwise over a shape. Of one dtype, or one is of 16 bits and the other its wide
 * dtype: added in that and rounded once. */
tile_status tape_add_elements(tile_context *ctx, tile_shape shape, tape_elements to,
                              tape_elements from) TILE_MUST_USE;

/* to = from, of one dtype; to = 0. The two do not overlap. */
tile_status tape_copy_elements(tile_context *ctx, tile_shape shape, tape_elements to,
                               tape_elements from) TILE_MUST_USE;
tile_status tape_zero_elements(tile_context *ctx, tile_shape shape, tape_elements to) TILE_MUST_USE;

/* These by kernels, where the memory is a device's (remote.c). */
tile_status tape_remote_add(tile_context *ctx, tile_shape shape, tape_elements to,
                            tape_elements from) TILE_MUST_USE;
tile_status tape_remote_copy(tile_context *ctx, tile_shape shape, tape_elements to,
                             tape_elements from) TILE_MUST_USE;
tile_status tape_remote_zero(tile_context *ctx, tile_shape shape, tape_elements to) TILE_MUST_USE;

/* The adjoint of the array's elements becomes zero. */
tile_status tape_zero_adjoint(const tape_use *use, const tile_array *array) TILE_MUST_USE;

/* What an array held at its first use, as a replay will start from it. */
tile_status tape_initial_read(tape *t, tile_array *array, void *host, size_t bytes) TILE_MUST_USE;
tile_status tape_initial_write(tape *t, tile_array *array, const void *host,
                               size_t bytes) TILE_MUST_USE;

/* Every element of a storage, as an array that holds nothing. */
tile_array tape_whole(tile_storage *storage);

/* One whole-storage array per requested gradient, of structs per float member; the caller destroys
 * them. Returns how many there
 * are, at most `most` of which are given; -1: no memory. */
int tape_grad_arrays(tape *t, tile_array **out, int most);

#endif
