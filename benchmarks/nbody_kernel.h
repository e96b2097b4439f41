/* nbody_kernel.h: the energy of particles that attract each other as a tile kernel.
 *
 *   E = -1/2 sum_i m_i sum_j m_j / sqrt(|r_j - r_i|^2 + eps^2) */
#ifndef TILE_BENCHMARKS_NBODY_KERNEL_H
#define TILE_BENCHMARKS_NBODY_KERNEL_H

#include <tiletape.h>

/* Particles of a block, and of a turn of its loop. */
enum { NBODY_AXES = 3, NBODY_ROWS = 8, NBODY_COLUMNS = 512 };

#define NBODY_EPS2 1e-3f

/* Adds E to energy. n: a multiple of NBODY_COLUMNS; grid n / NBODY_ROWS. Parameters: x, y, z, m,
 * energy. */
tile_status nbody_kernel_build(tile_context *ctx, int64_t n, tile_kernel **kernel);

#endif
