/* fwi_options.h: the command line. */
#ifndef FWI_OPTIONS_H
#define FWI_OPTIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fwi_options {
    int64_t shots, iterations, threads, seed;
    double spacing, frequency, duration, dt, noise, smooth, data_spacing;
    const char *optimizer, *top, *data, *out;
} fwi_options;

/* The options of a command line, defaults where it is silent. --help prints and exits with 0, a bad
 * option or value is refused. */
fwi_options options_parse(int argc, char **argv);

/* refuse: one sentence on the command line, then exit 2. */
void refuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif
#endif
