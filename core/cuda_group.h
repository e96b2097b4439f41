/* cuda_group.h: what the files that write a group's CUDA C share. */
#ifndef TILE_CORE_CUDA_GROUP_H
#define TILE_CORE_CUDA_GROUP_H

#include "core/cuda_writer.h"

enum { TILE_CUDA_ACCESSES = 64, TILE_CUDA_PACKS = 4, TILE_CUDA_WIDTH = 8 };

/* A window of the group. Windows that lie in one array in one way share the index of an element;
 * loads that are shifts of each other along the last dimension share what they read at a time. */
typedef struct tile_cuda_access {
    const tile_node *node;
    int dimension[TILE_RANK_MAX]; /* of the array, by the nest's */
    int index;                    /* the access whose index it shares: itself, or one before */
    int family;                   /* likewise, whose reads */
    int64_t along;                /* where it begins, against an aligned place of the family */
    int64_t low, high;            /* of a family: the least and the greatest of them */
} tile_cuda_access;

typedef struct tile_cuda_group {
    tile_cuda_writer *w;
    const tile_step *step;
    const tile_strip_step *strip; /* of the step */
    int32_t first;                /* its first node, the group's name */
    int64_t count;
    int rank; /* of the nest */
    int64_t extent[TILE_RANK_MAX];
    tile_cuda_access access[TILE_CUDA_ACCESSES];
    int accesses;
    int width; /* elements that a thread takes at a time; 1: no more */
    bool wide; /* of the loop that is written: so many at a time */
    bool rim;  /* of the loop that is written: places may be outside */
} tile_cuda_group;

static inline int32_t tile_cuda_number(const tile_cuda_group *g, const tile_node *n) {
    return (int32_t)(n - g->w->p->node);
}

tile_cuda_access *tile_cuda_access_of(tile_cuda_group *g, const tile_node *n);

/* Whether the group makes what a value is read from. */
bool tile_cuda_makes(const tile_cuda_group *g, int32_t value);

/* Strides of a value's elements in the arena, by the nest's dimensions. */
void tile_cuda_strides(const tile_cuda_group *g, const tile_node *n, int operand,
                       int64_t stride[TILE_RANK_MAX]);
bool tile_cuda_in_order(const tile_cuda_group *g, const tile_node *n, int operand);

/* The members of the group, one after the other, for one element. */
void tile_cuda_write_members(tile_cuda_group *g);
/* Coordinates of element i, and what the windows' indices are. */
void tile_cuda_write_coordinates(tile_cuda_group *g);

/* Several elements at a time (cuda_wide.c): whether and how many; when it is right; the loop; an
 * operand in it. */
void tile_cuda_find_width(tile_cuda_group *g);
void tile_cuda_write_wide_test(tile_cuda_group *g);
void tile_cuda_write_wide(tile_cuda_group *g);
/* How the arena is read several elements at a time: from so many before the operand's first. -1:
 * one by one. */
int tile_cuda_arena_pack(const tile_cuda_group *g, const tile_node *n, int operand, int *packs);

#endif
