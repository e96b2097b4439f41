/* report.h: the pictures and files of a run. */
#ifndef FWI_REPORT_H
#define FWI_REPORT_H

#include "ground.h"
#include "model.h"

/* Makes a folder and those above it. A path that cannot be written to is refused. */
void report_folder(const char *path);

/* A velocity in colours from low to high. */
void report_velocity(const char *out, const char *file, const char *title, double low, double high,
                     const ground *velocity);

/* A gradient, relative to its largest values. */
void report_gradient(const char *out, const ground *gradient);

/* A shot's traces as observed, of the start model and of the inverted one. */
void report_gather(const char *out, wave_model *m, int64_t shot, tile_array *observed,
                   const ground *start, const ground *inverted);

/* inverted.npy: float32 [depth, distance], m/s. */
void report_model(const char *out, wave_model *m, const ground *inverted);

#endif
