/* exec_fuse_base.c: fused strips that run on any CPU. */
#include <stddef.h>
#include <stdint.h>

#include "core/exec_fuse.h"

#define FUSED_TABLE tile_fused_base
#include "core/exec_fuse_set.inc"
