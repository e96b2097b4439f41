/* index.h: the ops of the family, shared by its descriptors, builder functions and samples. */
#ifndef TILE_OPS_INDEX_H
#define TILE_OPS_INDEX_H

#include "core/op.h"

enum { GATHER, GATHER_LAST, SCATTER, SCATTER_ADD, CUMSUM, INDEX_OPS };
extern const tile_op tile_index_ops[INDEX_OPS];

bool tile_sample_gather(int variant, tile_sample *sample);
bool tile_sample_gather_last(int variant, tile_sample *sample);
bool tile_sample_scatter(int variant, tile_sample *sample);
bool tile_sample_scatter_add(int variant, tile_sample *sample);
bool tile_sample_cumsum(int variant, tile_sample *sample);

#endif
