/* op.h: what an op is. One constant tile_op per op; the registry lists them all.
 *
 * Two classes of op, and nothing else but the structure of the program itself (parameters, loops):
 * elementwise ops are table rows whose derivatives are formulas in the ops themselves; cooperative
 * ops have a lane function and an adjoint rule that emits ops. */
#ifndef TILE_CORE_OP_H
#define TILE_CORE_OP_H

#include "core/core_api.h"
#include "core/dtype.h"
#include "core/lane.h"

typedef struct tile_op tile_op;
typedef struct tile_adjoint tile_adjoint; /* core/adjoint.h */

typedef enum tile_op_class {
    TILE_OP_ELEMENTWISE,
    TILE_OP_COOPERATIVE,
    TILE_OP_STRUCTURE /* core's own: parameters, block index, loops, kept values */
} tile_op_class;

/* What an op does with its array parameter. */
typedef enum tile_access {
    TILE_ACCESS_NONE,
    TILE_ACCESS_LOAD,  /* reads */
    TILE_ACCESS_STORE, /* overwrites */
    TILE_ACCESS_TAKE,  /* reads and clears: the adjoint of a store */
    TILE_ACCESS_ADD,   /* reads and adds; result: the previous values */
    TILE_ACCESS_UPDATE /* reads and changes in another way, or only some places; result: none, or
                          the previous values */
} tile_access;

/* Per tile input: may a gradient pass? A zeroed descriptor means ABSENT. */
typedef enum tile_grad {
    TILE_GRAD_ABSENT, /* asking is an error */
    TILE_GRAD_ZERO,   /* truly zero almost everywhere, or by definition */
    TILE_GRAD_FULL
} tile_grad;

enum { TILE_OP_IN = 4 }; /* tile inputs; window offsets and bounds follow them */

/* Shape rule: fills shape and dtype of the results from the inputs. */
typedef struct tile_infer {
    const tile_op *op;
    int n_in; /* tile inputs */
    tile_shape in_shape[TILE_OP_IN];
    tile_dtype in_dtype[TILE_OP_IN];
    tile_attrs *attrs; /* may be completed */
    int array_rank;    /* ops with an access */
    tile_dtype array_dtype;
    tile_shape want_shape; /* rank -1: none asked for */
    tile_dtype want_dtype; /* TILE_DTYPES: none asked for */
    int n_out;             /* to fill */
    tile_shape out_shape[TILE_CALL_OUT];
    tile_dtype out_dtype[TILE_CALL_OUT];
} tile_infer;

/* One strip of an elementwise op: n elements, operands contiguous; y may be an operand. */
typedef void (*tile_strip)(const void *const *in, void *y, int64_t n);

/* Which of the types decides on the kernel: run[] and strip[] are indexed by it. */
typedef enum tile_key { TILE_KEY_IN0, TILE_KEY_IN1, TILE_KEY_OUT0 } tile_key;

/* Inputs for the generated tests of a cooperative op without an access. */
typedef struct tile_sample {
    int n_in;
    tile_shape shape[TILE_OP_IN];
    double low[TILE_OP_IN], high[TILE_OP_IN]; /* drawn from here, distinct values, smooth inside */
    bool integer[TILE_OP_IN];                 /* int64 in low..high, no gradient */
    /* Emits the op on the inputs (dtype as drawn) and returns its result. */
    tile (*build)(tile_builder *b, const struct tile_sample *sample, const tile *in);
    int64_t n[TILE_DIMS]; /* free for build */
} tile_sample;

struct tile_op {
    const char *name;
    tile_op_class kind;
    tile_access access;
    bool moves;          /* elements go elsewhere as they are, whatever they are: also structs */
    const char *element; /* lane function of one element, in CUDA code: as load_element and the
                            others in ops/memory, or full_element in ops/shape, whose operands
                            are one element; NULL: there is none */
    bool indexed;        /* a 1-d int64 tile of indices is the first tile input; attrs.n[0]: axis */
    int n_in;            /* tile inputs: elementwise 1..4; access ops: indices, the tile, a mask */
    int n_out;           /* 0 for stores */
    tile_key key;
    tile_grad grad[TILE_OP_IN];
    const char *math;         /* "y = a * b": for documentation; elementwise: the C expression */
    const char *adjoint_math; /* cooperative: "dx += ..." for documentation */
    const char *special;      /* edges, ties, kinks, for documentation; NULL: nothing to say */
    tile_status (*infer)(
        tile_infer *in); /* shape rule; elementwise operands have one shape by now */

    /* Elementwise. */
    const char *derivative[TILE_OP_IN]; /* formulas over a, b, c, d, y, dy; NULL where not FULL */
    /* The strip for operand types and result type, the best this machine runs; NULL: none. */
    tile_strip (*strip)(const tile_op *op, const tile_dtype *in, tile_dtype out);
    double low[TILE_OP_IN], high[TILE_OP_IN]; /* test domain of each operand, smooth inside */
    double kink;                              /* operand a stays away from it; NAN: none */

    /* Cooperative. */
    tile_run run[TILE_DTYPES];                        /* NULL: no kernel for the dtype */
    void (*adjoint)(tile_adjoint *adjoint);           /* NULL: none */
    bool (*sample)(int variant, tile_sample *sample); /* false past the last variant */
};

/* One folder under ops/. */
typedef struct tile_family {
    const char *name;
    int count;
    const tile_op *ops;
} tile_family;

/* The i-th op of the library, or NULL past the end; the op of a name, or NULL. */
const tile_op *tile_op_at(int i);
const tile_op *tile_op_find(const char *name);

/* The number of an op's family, below 64; -1: the op is none of the registry's. */
int tile_op_family(const tile_op *op);

/* The CUDA C text of the lane functions of a family, by lines; of family -1 what all of them need.
 * NULL: there is none. Ends with NULL. */
const char *const *tile_cuda_lines(int family);

/* The C text of the elementwise lane functions of an element type, <op>_<dtype>, by lines; a line
 * that begins and ends a function holds it whole. Casts: cast_<to>_<from>, of the type they cast
 * from. NULL: there is none. Ends with NULL. */
const char *const *tile_lane_source(tile_dtype dtype);

#endif
