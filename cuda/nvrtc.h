/* nvrtc.h: compiling generated CUDA sources with NVRTC, which is loaded at run time. */
#ifndef TILE_CUDA_NVRTC_H
#define TILE_CUDA_NVRTC_H

#include "core/core_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_cubin {
    void *data;
    size_t bytes;
} tile_cubin;

enum { TILE_NVRTC_NAME = 32 };

/* What to compile for a device of a compute capability: "sm_90"; "compute_120", code that the
 * driver finishes, for a device that is newer than NVRTC.
 *
 * errors   TILE_E_DEVICE there is no NVRTC, or the device is older than all that it knows */
tile_status tile_nvrtc_architecture(int major, int minor,
                                    char architecture[TILE_NVRTC_NAME]) TILE_MUST_USE;

/* Names all that the result depends on but the source: version, architecture, options. */
tile_status tile_nvrtc_name(const char *architecture, char name[2 * TILE_NVRTC_NAME]) TILE_MUST_USE;

/* Compiles a source for an architecture. name: of the source, for NVRTC. Contraction is an explicit
 * fma op here too. NVRTC is looked for in CUDA_HOME, else where the system's libraries and the
 * toolkit are. Needs no GPU. Any thread.
 *
 * errors   TILE_E_DEVICE there is no NVRTC, or the source does not compile: what NVRTC says first
 *          and the line of the source, which names the op; TILE_E_MEMORY */
tile_status tile_nvrtc_compile(const char *source, const char *name, const char *architecture,
                               tile_cubin *cubin) TILE_MUST_USE;
void tile_cubin_clear(tile_cubin *cubin);

/* Loads NVRTC from this file instead, or no longer; for tests. NULL: as above. Not while another
 * thread compiles. */
void tile_nvrtc_look_in(const char *path);

#ifdef __cplusplus
}
#endif

#endif
