/* burgers_hand.c: the hand-written Burgers step for both float types. */
#include "benchmarks/burgers_hand.h"

#define T float
#define NAME(f) f##_f32
#include "benchmarks/burgers_hand.inc"
#undef T
#undef NAME

#define T double
#define NAME(f) f##_f64
#include "benchmarks/burgers_hand.inc"
#undef T
#undef NAME
