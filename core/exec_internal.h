/* exec_internal.h: what the files of the CPU interpreter share. Not for others. */
#ifndef TILE_CORE_EXEC_INTERNAL_H
#define TILE_CORE_EXEC_INTERNAL_H

#include "core/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TILE_CHUNK = 1024, /* elements that run through a group of elementwise ops at a time */
    TILE_LINE = 64     /* alignment of tiles in the arena */
};

static inline size_t tile_align(size_t bytes) {
    return (bytes + TILE_LINE - 1) / TILE_LINE * TILE_LINE;
}

static inline bool tile_has_bit(uint64_t bits, int k) {
    return k >= 0 && (bits >> k & 1u);
}

/* Plans: nodes as steps on an arena (exec_plan.c)
 *
 * A plan is a list of steps; a loop is followed by the steps of its body. Every value has a
 * place, an offset in the arena of the thread that runs the steps. Two plans are made of a
 * program: the block plan, with all nodes on whole tiles, and the flat plan: flat values, one
 * element each, run once per launch. */

typedef enum tile_step_kind {
    TILE_STEP_STRIPS, /* a run of elementwise ops with one element count */
    TILE_STEP_CALL,   /* a cooperative op */
    TILE_STEP_SCALAR, /* parameters, block index and the like */
    TILE_STEP_LOOP,
    TILE_STEP_KEEP,
    TILE_STEP_KEPT,
    TILE_STEP_WITHIN /* numbers: value, low, high */
} tile_step_kind;

/* One elementwise op. An operand's place moves by step bytes per element of a chunk that starts
 * further on in the tile; 0: it lives within the group, a chunk at a time. */
typedef struct tile_strip_step {
    const tile_node *node;
    tile_strip run;
    int n_in;
    size_t in[TILE_OP_IN], in_step[TILE_OP_IN];
    size_t out, out_step;
} tile_strip_step;

typedef struct tile_call_step {
    const tile_node *node;
    tile_run run;
    tile_call call; /* dims and attrs are filled */
    int n_in;
    size_t in[TILE_CALL_IN], in_bytes[TILE_CALL_IN];
    size_t out[TILE_CALL_OUT];
    bool wanted[TILE_CALL_OUT];
    size_t copied; /* a plain load of the array's rank: bytes of an element; else 0 */
    int offsets, bounds;
    size_t offset[TILE_DIMS], bound[2 * TILE_DIMS]; /* places of int64 values */
} tile_call_step;

/* A loop's copies: initial to argument, yield to argument. */
typedef struct tile_carry {
    size_t initial, argument, yield, bytes;
    size_t stage; /* a yield that is another argument goes by here */
    bool staged;
} tile_carry;

typedef struct tile_step {
    tile_step_kind kind;
    const tile_node *node;
    int32_t first, count; /* strips; calls; carries; iteration numbers (in plan.number) */
    int32_t body;         /* loop: how many steps follow that are its body */
    int64_t elements;
    size_t place; /* of the result; loop: of the index; keep: of the tile */
    size_t bytes;
} tile_step;

typedef struct tile_plan {
    tile_step *step;
    int32_t step_count, step_capacity;
    tile_strip_step *strip;
    int32_t strip_count, strip_capacity;
    tile_call_step *call;
    int32_t call_count, call_capacity;
    tile_carry *carry;
    int32_t carry_count, carry_capacity;
    size_t *number; /* places of iteration numbers; of a loop: its count */
    int32_t number_count, number_capacity;
    size_t *place; /* per value */
    size_t bytes;  /* of the arena */
} tile_plan;

#define TILE_NO_PLACE ((size_t)-1)

tile_status tile_plan_blocks(const tile_program *program, tile_plan *plan) TILE_MUST_USE;
tile_status tile_plan_flat(const tile_program *program, const tile_analysis *analysis,
                           tile_plan *plan) TILE_MUST_USE;

/* The block plan of a program whose regions stand in the order of steps; a node that is in none
 * makes no step. group: per node, the first node of its group. alias: per value, the value whose
 * place it has (itself mostly). A group may also hold reductions of what it makes: only generated
 * code runs such groups. For CUDA code, member: per node, whether it is part of a group; unplaced:
 * per value, whether it needs no place. NULL: elementwise ops are, as the plan finds. */
tile_status tile_plan_ordered(const tile_program *ordered, int32_t *group, const int32_t *alias,
                              const bool *member, const bool *unplaced,
                              tile_plan *plan) TILE_MUST_USE;
void tile_plan_clear(tile_plan *plan);

/* Appends a step (exec_plan.c, for exec_place.c). place: per value. */
tile_status tile_plan_strip(tile_plan *plan, const tile_program *program, const tile_node *node,
                            const bool *local) TILE_MUST_USE;
tile_status tile_plan_node(tile_plan *plan, const tile_program *program, const bool *used,
                           const tile_node *node, bool flat) TILE_MUST_USE;

/* Gives every value of the block plan its place. group: per node, the first node of its group of
 * elementwise ops (itself otherwise); local: per value, whether it lives within its group. */
tile_status tile_place_values(const tile_program *program, const int32_t *group, const bool *local,
                              const int32_t *alias /* NULL: each has its own place */,
                              bool registers /* local values have no place */, tile_plan *plan,
                              size_t *stage /* per value: yields by stage */) TILE_MUST_USE;

/* One launch */

typedef struct tile_rows tile_rows;     /* the row plan: exec_rows.c */
typedef struct tile_native tile_native; /* generated code: native.h */

/* A within whose value is affine in the block indices, between ends that a launch fixes. */
typedef struct tile_check {
    tile_affine value;
    size_t uniform, low,
        high; /* places of flat values; uniform: TILE_NO_PLACE when there is none */
} tile_check;

/* A program as a kernel of ctx->device, for launches whose parameters are these arrays; the first:
 * for any. */
enum { TILE_DEVICE_KERNELS = 4 };
typedef struct tile_device_kernel {
    void *kernel; /* NULL: not loaded yet */
    size_t arena_bytes;
    int threads;
    int8_t same[TILE_PROGRAM_PARAMS]; /* per parameter: the first that is the same array */
} tile_device_kernel;

struct tile_executable {
    tile_context *ctx;
    tile_program program;
    tile_analysis analysis;
    tile_plan blocks, flat;
    tile_rows *rows; /* NULL: not in field form */
    tile_check *check;
    int32_t check_count, check_capacity;
    bool unproven;   /* some step can fail that no check tells of before */
    double block_ns; /* estimate for one block, loops counted once */
    bool by_blocks;
    int64_t runs_by_rows; /* launches that ran as rows; for tests */
    tile_native *native;  /* NULL: not asked for yet */
    tile_device_kernel device_kernel[TILE_DEVICE_KERNELS];
    char *argument; /* of a launch by the device */
    double work_ns; /* estimate of what was launched so far */
    int64_t launches;
};

/* Where a slot of the stash lies. */
typedef struct tile_slot_place {
    size_t base, bytes; /* bytes of one tile */
    int64_t entries;
    int64_t trips[TILE_RANK_MAX];
} tile_slot_place;

typedef struct tile_commit_log tile_commit_log;

/* The execution error of the first block that failed, in the order of effects. */
typedef struct tile_run_error {
    bool set;
    int64_t order; /* of the block */
    char message[400];
} tile_run_error;

typedef struct tile_run_state {
    const tile_executable *exe;
    const tile_plan *plan; /* of the blocks: the interpreter's, or that of generated code */
    const tile_bound *bound;
    char *flat; /* arena of the flat plan */
    tile_slot_place *slot;
    int64_t blocks;
    bool may_fail;             /* some step may end in an execution error */
    tile_run_error *error;     /* of the launch; any thread, under ctx->lock */
    const tile_native *native; /* NULL: the interpreter runs all of it */
    bool serial;               /* blocks run one after the other on the calling thread */
    uint64_t logged;           /* array parameters whose writes are committed in block order */
    uint64_t summed; /* array parameters whose additions are summed over all blocks first */
} tile_run_state;

/* One thread's part of it. */
typedef struct tile_runner {
    const tile_run_state *run;
    char *arena;
    int64_t block[TILE_GRID_RANK];
    int64_t linear;       /* row-major number of the block */
    tile_commit_log *log; /* of the chunk that is computed; NULL: nothing is logged */
    bool no_memory;       /* arrays may not be there yet: nothing is loaded */
    bool failed;          /* the block has an execution error and runs no further */
} tile_runner;

/* Runs steps [first, first + count) of a plan. */
void tile_run_steps(tile_runner *r, const tile_plan *plan, int32_t first, int32_t count);

/* Runs blocks [first, end), counted in the order of effects. */
void tile_run_blocks(tile_runner *r, int64_t first, int64_t end);

/* Execution errors (exec_fail.c) */

/* Notes an execution error of the block at hand, which stops; other blocks go on. So a launch that
 * fails leaves the same memory and the same sentence for any number of threads. The sentence is
 * "kernel K, FILE:LINE of the node, block (i, j, k): " and the format's text. */
void tile_run_fail(tile_runner *r, const tile_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void tile_run_within(tile_runner *r, const tile_plan *plan, const tile_step *step);

/* What a within and a while say. */
void tile_run_fail_within(tile_runner *r, const tile_node *node, int64_t value, int64_t low,
                          int64_t high);
void tile_run_fail_while(tile_runner *r, const tile_node *node, int64_t most);

/* Sets the block of a number, counted in the order of effects (exec_blocks.c). */
void tile_run_set_block(tile_runner *r, int64_t number);

/* Fills check and unproven. */
tile_status tile_find_checks(tile_executable *exe) TILE_MUST_USE;

/* Whether some step of a launch may fail: false when the checks hold at the corners of the grid.
 * Flat values are there. */
bool tile_run_may_fail(const tile_run_state *run);

/* Policy (exec_policy.c) */

/* Arrays that share memory at this launch. */
typedef struct tile_aliases {
    uint64_t meets[TILE_PROGRAM_PARAMS]; /* of a written parameter: others whose elements it may
                                            write */
    uint64_t same[TILE_PROGRAM_PARAMS];  /* of these: exactly the same elements */
    uint64_t folded;                     /* written arrays in which two places can be one element */
} tile_aliases;

void tile_find_aliases(const tile_run_state *run, tile_aliases *aliases);

/* Fills serial, logged, summed. */
void tile_choose_policy(tile_run_state *run);

/* Ordered commit (exec_commit.c) */

/* What the blocks of a chunk do to shared arrays: operands of the calls one after the other, and
 * one sum per summed call. */
struct tile_commit_log {
    char *entries;
    size_t used;
    double *sum;
    struct tile_commit_entry *window; /* per summed call: where its sum goes */
};

/* Sizes of the commit: fixed by program, shapes and loop counts; round also by the threads. */
typedef struct tile_commit_size {
    size_t block_bytes;    /* log of one block; SIZE_MAX: without bound */
    int64_t chunk, chunks; /* blocks of a chunk; how many chunks */
    int64_t round;         /* chunks computed before they are committed */
    size_t log_bytes;      /* log of a chunk */
    int64_t sums;          /* doubles of the sums of a chunk */
    int32_t summed;        /* calls that are summed */
    int levels;            /* of the tree of sums */
    size_t bytes;          /* of all */
} tile_commit_size;

/* Where a block logs too much, sets serial instead. */
tile_commit_size tile_commit_measure(tile_run_state *run);
void tile_commit_run(const tile_run_state *run, const tile_commit_size *size, char *memory,
                     char *arenas, size_t arena_bytes);

/* Takes the call instead of running it. false: it is not one that is logged. */
bool tile_commit_take(tile_runner *r, const tile_call_step *step, const tile_call *call);

/* Devices (exec_device.c) */

/* Has the context's device ready for the launch. */
tile_status tile_device_load(tile_executable *exe, const tile_run_state *run) TILE_MUST_USE;

/* Runs the launch by the context's device. */
tile_status tile_device_run(tile_executable *exe, const tile_run_state *run) TILE_MUST_USE;

void tile_device_drop(tile_executable *exe);

/* Rows (exec_rows.c) */

tile_status tile_rows_plan(const tile_executable *exe, tile_rows **rows) TILE_MUST_USE;
void tile_rows_destroy(tile_rows *rows);

/* Bytes per thread, and for all. */
size_t tile_rows_thread_bytes(const tile_rows *rows);
size_t tile_rows_shared_bytes(const tile_rows *rows);

/* Runs the launch as rows, unless arrays overlap in a way that needs blocks: then false, and
 * nothing has happened. */
bool tile_rows_run(const tile_run_state *run, char *shared, char *arenas, size_t arena_bytes);

#ifdef __cplusplus
}
#endif

#endif
