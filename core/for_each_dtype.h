/* for_each_dtype.h: includes TILE_KERNEL_FILE once per element type, the rows of TILE_DTYPE_LIST.
 *
 * In the file:
 *   T          the stored type               A   the type sums are kept in
 *   P          partial results of a block: float64 for floats, else T
 *   ADD, MUL   on T; integers wrap           NAME(f) is f_<dtype>
 *   TILE_T_FLOAT  1 for floats, else 0
 * No include guard: it is meant to be included again. */
#ifndef TILE_RUNS
/* The kernels of an op by dtype, for tile_op.run: all types, numbers, floats. A dtype that is in
 * the list and not below does not compile. */
#define TILE_RUNS(f) TILE_RUNS_NUMBER(f), [TILE_BOOL] = f##_b8
#define TILE_RUNS_NUMBER(f)                                                             \
    TILE_RUNS_FLOAT(f), [TILE_I32] = f##_i32, [TILE_I64] = f##_i64, [TILE_U8] = f##_u8, \
                        [TILE_U32] = f##_u32, [TILE_U64] = f##_u64
#define TILE_RUNS_FLOAT(f) [TILE_F32] = f##_f32, [TILE_F64] = f##_f64
#define TILE_NAME_(f, d) TILE_NAME2_(f, d)
#define TILE_NAME2_(f, d) f##_##d
#if defined(TILE_CORE_DTYPE_H) && !defined(__cplusplus)
_Static_assert(TILE_DTYPES == 8, "a dtype of TILE_DTYPE_LIST has no block in for_each_dtype.h");
#endif
#endif

#define NAME(f) TILE_NAME_(f, DTYPE)
#define ADD(x, y) ((T)((U)(x) + (U)(y)))
#define MUL(x, y) ((T)((U)(x) * (U)(y)))

#define T float
#define A float
#define P double
#define U float
#define DTYPE f32
#define TILE_T_FLOAT 1
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE

#define T double
#define A double
#define P double
#define U double
#define DTYPE f64
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE
#undef TILE_T_FLOAT

#define TILE_T_FLOAT 0
#define T int32_t
#define A int32_t
#define P int32_t
#define U uint32_t
#define DTYPE i32
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE

#define T int64_t
#define A int64_t
#define P int64_t
#define U uint64_t
#define DTYPE i64
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE

#define T uint8_t
#define A uint8_t
#define P uint8_t
#define U uint32_t
#define DTYPE u8
#include TILE_KERNEL_FILE
#undef DTYPE

#define DTYPE b8
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE

#define T uint32_t
#define A uint32_t
#define P uint32_t
#define U uint32_t
#define DTYPE u32
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE

#define T uint64_t
#define A uint64_t
#define P uint64_t
#define U uint64_t
#define DTYPE u64
#include TILE_KERNEL_FILE
#undef T
#undef A
#undef P
#undef U
#undef DTYPE
#undef TILE_T_FLOAT

#undef NAME
#undef ADD
#undef MUL
#undef TILE_KERNEL_FILE
