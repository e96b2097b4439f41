/* op_window.h: test problems of ops that read or write a window of an array. */
#ifndef TILE_TESTS_OP_WINDOW_H
#define TILE_TESTS_OP_WINDOW_H

#include "tests/op_problem.h"

namespace op_test {

/* Windows inside, over one edge, both and a corner, fully outside on either side, of one element;
 * blocks apart, overlapping, in one place; indices distinct, repeated, -1, past the end, the
 * largest and smallest there are; along each axis of ranks 1 to 4. */
std::vector<Problem> window_problems(const tile_op *op);
std::vector<Problem> large_window_problems(const tile_op *op);
std::vector<Problem> special_window_problems(const tile_op *op);

} // namespace op_test

#endif
