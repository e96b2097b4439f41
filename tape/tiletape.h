/* tiletape.h: everything a program needs.
 *
 * A context is a device; an array is strided memory on it; a tile is a value of fixed shape inside
 * a kernel; an op makes tiles from tiles; a kernel is a sequence of ops, built once and launched
 * on a grid of blocks; a tape records launches and runs them backward. */
#ifndef TILETAPE_H
#define TILETAPE_H

#include "core/core_api.h"
#include "cuda/cuda_api.h"
#include "ops/all_ops.h"
#include "tape/tape_api.h"

#endif
