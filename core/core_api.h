/* core_api.h: the calls of core. */
#ifndef TILE_CORE_CORE_API_H
#define TILE_CORE_CORE_API_H

#include "core/args_api.h"
#include "core/array_api.h"
#include "core/kernel_api.h"
#include "core/struct_api.h"
#include "core/types_api.h"

#endif
