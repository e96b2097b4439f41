/* args_api.h: macros that make arguments.
 *
 * TILE_SHAPE(8, 256)          extents                      TILE_SCALAR   rank 0
 * TILE_GRID(4, 2)             blocks along each axis
 * TILE_LIST(a, b)             tiles                        TILE_NONE     no tile
 * TILE_AT(y, x)               rank-0 integer tiles         TILE_AT_ZERO  the origin
 * TILE_SHIFT(at, -1, 0)       an offset moved by constants
 * TILE_ARGS(array, 3, 0.5)    launch arguments; C99 writes TILE_ARGS(tile_arg_array(a), ...)
 */
#ifndef TILE_CORE_ARGS_API_H
#define TILE_CORE_ARGS_API_H

#include "core/kernel_api.h"

/* tile_arg_array: an array as an argument of a launch. */
static inline tile_arg tile_arg_array(tile_array *array) {
    tile_arg arg;
    arg.kind = TILE_ARG_ARRAY;
    arg.as.array = array;
    return arg;
}

/* tile_arg_int: an integer as an argument of a launch. */
static inline tile_arg tile_arg_int(int64_t integer) {
    tile_arg arg;
    arg.kind = TILE_ARG_INT;
    arg.as.integer = integer;
    return arg;
}

/* tile_arg_real: a real as an argument of a launch. */
static inline tile_arg tile_arg_real(double real) {
    tile_arg arg;
    arg.kind = TILE_ARG_REAL;
    arg.as.real = real;
    return arg;
}

/* The empty shape, list, offset; the macros that the head of this file lists. */
#define TILE_SCALAR TILE_EMPTY_(tile_shape)
#define TILE_NONE TILE_EMPTY_(tile_list)
#define TILE_AT_ZERO TILE_EMPTY_(tile_offset)
#define TILE_SHIFT(at, ...) tile_offset_shift(at, TILE_SHAPE(__VA_ARGS__))

#ifdef __cplusplus
#define TILE_EMPTY_(type) type()

template <typename... N> inline tile_shape tile_shape_of_(N... n) {
    return tile_shape{static_cast<int>(sizeof...(N)), {static_cast<int64_t>(n)...}};
}

template <typename... N> inline tile_grid tile_grid_of_(N... n) {
    static_assert(sizeof...(N) <= TILE_GRID_RANK, "a grid has at most three axes");
    const int64_t all[] = {static_cast<int64_t>(n)..., 1, 1};
    return tile_grid{{all[0], all[1], all[2]}};
}

template <typename... T> inline tile_list tile_list_of_(T... t) {
    return tile_list{static_cast<int>(sizeof...(T)), {t...}};
}

template <typename... T> inline tile_offset tile_offset_of_(T... t) {
    return tile_offset{static_cast<int>(sizeof...(T)), {t...}, {0, 0, 0, 0, 0, 0}};
}

inline tile_arg tile_arg_of_(tile_array *a) {
    return tile_arg_array(a);
}
inline tile_arg tile_arg_of_(double x) {
    return tile_arg_real(x);
}
inline tile_arg tile_arg_of_(float x) {
    return tile_arg_real(static_cast<double>(x));
}
inline tile_arg tile_arg_of_(int64_t n) {
    return tile_arg_int(n);
}
inline tile_arg tile_arg_of_(int n) {
    return tile_arg_int(n);
}
inline tile_arg tile_arg_of_(unsigned n) {
    return tile_arg_int(static_cast<int64_t>(n));
}
inline tile_arg tile_arg_of_(size_t n) {
    return tile_arg_int(static_cast<int64_t>(n));
}
inline tile_arg tile_arg_of_(tile_arg arg) {
    return arg;
}

/* Holds the arguments until the end of the launch's expression. */
template <int n> struct tile_arg_pack_ {
    tile_arg arg[n];
    operator tile_args() const {
        return tile_args{n, arg};
    }
};

template <typename... A> inline tile_arg_pack_<sizeof...(A)> tile_args_of_(A... a) {
    return tile_arg_pack_<sizeof...(A)>{{tile_arg_of_(a)...}};
}

/* Each makes what its name says of its arguments. */
#define TILE_SHAPE(...) tile_shape_of_(__VA_ARGS__)
#define TILE_GRID(...) tile_grid_of_(__VA_ARGS__)
#define TILE_LIST(...) tile_list_of_(__VA_ARGS__)
#define TILE_AT(...) tile_offset_of_(__VA_ARGS__)
#define TILE_ARGS(...) tile_args_of_(__VA_ARGS__)
#define tile_expr(formula, ...) \
    (tile_here(__FILE__, __LINE__), tile_formula(formula, #__VA_ARGS__, TILE_LIST(__VA_ARGS__)))
#else
#define TILE_EMPTY_(type) ((type){0})
#define TILE_COUNT_(type, ...) ((int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type)))

static inline tile_grid tile_grid_of_(const int64_t *blocks, int rank) {
    tile_grid grid = {{1, 1, 1}};
    for (int d = 0; d < rank && d < TILE_GRID_RANK; d++) grid.blocks[d] = blocks[d];
    return grid;
}

/* Each makes what its name says of its arguments. */
#define TILE_SHAPE(...) ((tile_shape){TILE_COUNT_(int64_t, __VA_ARGS__), {__VA_ARGS__}})
#define TILE_GRID(...) tile_grid_of_((int64_t[]){__VA_ARGS__}, TILE_COUNT_(int64_t, __VA_ARGS__))
#define TILE_LIST(...) ((tile_list){TILE_COUNT_(tile, __VA_ARGS__), {__VA_ARGS__}})
#define TILE_AT(...) ((tile_offset){TILE_COUNT_(tile, __VA_ARGS__), {__VA_ARGS__}, {0}})
#define tile_expr(formula, ...) \
    (tile_here(__FILE__, __LINE__), tile_formula(formula, #__VA_ARGS__, TILE_LIST(__VA_ARGS__)))

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
static inline tile_arg tile_arg_same_(tile_arg arg) {
    return arg;
}
/* One argument, by its type. */
#define TILE_ARG(x)                     \
    _Generic((x), tile_array *          \
             : tile_arg_array, tile_arg \
             : tile_arg_same_, float    \
             : tile_arg_real, double    \
             : tile_arg_real, default   \
             : tile_arg_int)(x)
#else
#define TILE_ARG(x) (x)
#endif
#define TILE_ARGS(...) \
    ((tile_args){TILE_N_(__VA_ARGS__), (const tile_arg[]){TILE_MAP_(__VA_ARGS__)}})
#define TILE_N_(...)                                                                               \
    TILE_N33_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, \
              14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TILE_N33_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, \
                  a1, b1, c1, d1, e1, f1, count, ...)                                           \
    count
#define TILE_JOIN_(a, b) TILE_JOIN2_(a, b)
#define TILE_JOIN2_(a, b) a##b##_
#define TILE_MAP_(...) TILE_JOIN_(TILE_MAP, TILE_N_(__VA_ARGS__))(__VA_ARGS__)
#define TILE_MAP1_(x) TILE_ARG(x)
#define TILE_MAP2_(x, ...) TILE_ARG(x), TILE_MAP1_(__VA_ARGS__)
#define TILE_MAP3_(x, ...) TILE_ARG(x), TILE_MAP2_(__VA_ARGS__)
#define TILE_MAP4_(x, ...) TILE_ARG(x), TILE_MAP3_(__VA_ARGS__)
#define TILE_MAP5_(x, ...) TILE_ARG(x), TILE_MAP4_(__VA_ARGS__)
#define TILE_MAP6_(x, ...) TILE_ARG(x), TILE_MAP5_(__VA_ARGS__)
#define TILE_MAP7_(x, ...) TILE_ARG(x), TILE_MAP6_(__VA_ARGS__)
#define TILE_MAP8_(x, ...) TILE_ARG(x), TILE_MAP7_(__VA_ARGS__)
#define TILE_MAP9_(x, ...) TILE_ARG(x), TILE_MAP8_(__VA_ARGS__)
#define TILE_MAP10_(x, ...) TILE_ARG(x), TILE_MAP9_(__VA_ARGS__)
#define TILE_MAP11_(x, ...) TILE_ARG(x), TILE_MAP10_(__VA_ARGS__)
#define TILE_MAP12_(x, ...) TILE_ARG(x), TILE_MAP11_(__VA_ARGS__)
#define TILE_MAP13_(x, ...) TILE_ARG(x), TILE_MAP12_(__VA_ARGS__)
#define TILE_MAP14_(x, ...) TILE_ARG(x), TILE_MAP13_(__VA_ARGS__)
#define TILE_MAP15_(x, ...) TILE_ARG(x), TILE_MAP14_(__VA_ARGS__)
#define TILE_MAP16_(x, ...) TILE_ARG(x), TILE_MAP15_(__VA_ARGS__)
#define TILE_MAP17_(x, ...) TILE_ARG(x), TILE_MAP16_(__VA_ARGS__)
#define TILE_MAP18_(x, ...) TILE_ARG(x), TILE_MAP17_(__VA_ARGS__)
#define TILE_MAP19_(x, ...) TILE_ARG(x), TILE_MAP18_(__VA_ARGS__)
#define TILE_MAP20_(x, ...) TILE_ARG(x), TILE_MAP19_(__VA_ARGS__)
#define TILE_MAP21_(x, ...) TILE_ARG(x), TILE_MAP20_(__VA_ARGS__)
#define TILE_MAP22_(x, ...) TILE_ARG(x), TILE_MAP21_(__VA_ARGS__)
#define TILE_MAP23_(x, ...) TILE_ARG(x), TILE_MAP22_(__VA_ARGS__)
#define TILE_MAP24_(x, ...) TILE_ARG(x), TILE_MAP23_(__VA_ARGS__)
#define TILE_MAP25_(x, ...) TILE_ARG(x), TILE_MAP24_(__VA_ARGS__)
#define TILE_MAP26_(x, ...) TILE_ARG(x), TILE_MAP25_(__VA_ARGS__)
#define TILE_MAP27_(x, ...) TILE_ARG(x), TILE_MAP26_(__VA_ARGS__)
#define TILE_MAP28_(x, ...) TILE_ARG(x), TILE_MAP27_(__VA_ARGS__)
#define TILE_MAP29_(x, ...) TILE_ARG(x), TILE_MAP28_(__VA_ARGS__)
#define TILE_MAP30_(x, ...) TILE_ARG(x), TILE_MAP29_(__VA_ARGS__)
#define TILE_MAP31_(x, ...) TILE_ARG(x), TILE_MAP30_(__VA_ARGS__)
#define TILE_MAP32_(x, ...) TILE_ARG(x), TILE_MAP31_(__VA_ARGS__)
#endif

/* Builder calls note their place in the program's source. */
#define tile_kernel_end(...) (tile_here(__FILE__, __LINE__), tile_kernel_end(__VA_ARGS__))
#define tile_array_param(...) (tile_here(__FILE__, __LINE__), tile_array_param(__VA_ARGS__))
#define tile_int_param(...) (tile_here(__FILE__, __LINE__), tile_int_param(__VA_ARGS__))
#define tile_real_param(...) (tile_here(__FILE__, __LINE__), tile_real_param(__VA_ARGS__))
#define tile_block_index(...) (tile_here(__FILE__, __LINE__), tile_block_index(__VA_ARGS__))
#define tile_block_start(...) (tile_here(__FILE__, __LINE__), tile_block_start(__VA_ARGS__))
#define tile_grid_size(...) (tile_here(__FILE__, __LINE__), tile_grid_size(__VA_ARGS__))
#define tile_extent(...) (tile_here(__FILE__, __LINE__), tile_extent(__VA_ARGS__))
#define tile_require(...) (tile_here(__FILE__, __LINE__), tile_require(__VA_ARGS__))
#define tile_int(...) (tile_here(__FILE__, __LINE__), tile_int(__VA_ARGS__))
#define tile_real(...) (tile_here(__FILE__, __LINE__), tile_real(__VA_ARGS__))
#define tile_set_space(...) (tile_here(__FILE__, __LINE__), tile_set_space(__VA_ARGS__))
#define tile_loop_begin(...) (tile_here(__FILE__, __LINE__), tile_loop_begin(__VA_ARGS__))
#define tile_loop_end(...) (tile_here(__FILE__, __LINE__), tile_loop_end(__VA_ARGS__))
#define tile_while_begin(...) (tile_here(__FILE__, __LINE__), tile_while_begin(__VA_ARGS__))
#define tile_while_end(...) (tile_here(__FILE__, __LINE__), tile_while_end(__VA_ARGS__))
#endif
