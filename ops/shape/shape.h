/* shape.h: the ops of the family, shared by its descriptors, builder functions and samples. */
#ifndef TILE_OPS_SHAPE_H
#define TILE_OPS_SHAPE_H

#include "core/op.h"

enum { FULL, IOTA, BROADCAST, RESHAPE, PERMUTE, VIEW, ASSIGN, CONCAT, SHAPE_OPS };
extern const tile_op tile_shape_ops[SHAPE_OPS];

bool tile_sample_full(int variant, tile_sample *sample);
bool tile_sample_iota(int variant, tile_sample *sample);
bool tile_sample_broadcast(int variant, tile_sample *sample);
bool tile_sample_reshape(int variant, tile_sample *sample);
bool tile_sample_permute(int variant, tile_sample *sample);
bool tile_sample_view(int variant, tile_sample *sample);
bool tile_sample_assign(int variant, tile_sample *sample);
bool tile_sample_concat(int variant, tile_sample *sample);

#endif
