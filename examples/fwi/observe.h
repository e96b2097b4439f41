/* observe.h: the data that the inversion is to explain. */
#ifndef FWI_OBSERVE_H
#define FWI_OBSERVE_H

#include "model.h"

/* Every shot's traces in the velocity as it is, plus normal noise of `noise` times their rms.
 * Freed by observe_free. */
tile_array **observe(wave_model *m, double noise, int64_t seed);
void observe_free(tile_array **observed, int64_t shots);

#endif
