/* reduce_samples.h: inputs for the generated tests of the family. */
#ifndef TILE_OPS_REDUCE_SAMPLES_H
#define TILE_OPS_REDUCE_SAMPLES_H

#include "core/op.h"

bool tile_sample_sum(int variant, tile_sample *sample);
bool tile_sample_prod(int variant, tile_sample *sample);
bool tile_sample_reduce_min(int variant, tile_sample *sample);
bool tile_sample_reduce_max(int variant, tile_sample *sample);
bool tile_sample_argmin(int variant, tile_sample *sample);
bool tile_sample_argmax(int variant, tile_sample *sample);
bool tile_sample_prod_others(int variant, tile_sample *sample);
bool tile_sample_prod_others_along(int variant, tile_sample *sample);

#endif
