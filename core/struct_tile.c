/* struct_tile.c: struct tiles: an op on a struct is the op on every member. */
#include "core/struct_tile.h"

#include <stdio.h>
#include <string.h>

#include "core/array.h"
#include "core/memory.h"
#include "core/status.h"

static const tile nothing = {NULL, -1};

const tile_struct_value *tile_struct_value_of(tile t) {
    const int32_t k = t.id - TILE_STRUCT_ID;
    return tile_is_struct(t) && k < t.builder->struct_count ? &t.builder->structs[k] : NULL;
}

tile tile_struct_of_parts(tile_builder *b, tile_dtype dtype, tile_shape shape, const tile *part) {
    const tile_struct_info *info = tile_struct_of(dtype);
    if (b->status) return (tile){b, -1};
    if (tile_grow(&b->structs, &b->struct_capacity, b->struct_count + 1, sizeof *b->structs))
        return tile_builder_fail(b, TILE_E_MEMORY, "%s", tile_last_error());
    tile_struct_value *v = &b->structs[b->struct_count];
    *v = (tile_struct_value){.dtype = dtype, .shape = shape};
    for (int k = 0; k < info->count; k++) v->part[k] = part[k].id;
    return (tile){b, TILE_STRUCT_ID + b->struct_count++};
}

int tile_parts(tile t, tile part[TILE_MEMBERS_MAX]) {
    const tile_struct_value *v = tile_struct_value_of(t);
    part[0] = t;
    if (!v) return 1;
    const int count = tile_struct_of(v->dtype)->count;
    for (int k = 0; k < count; k++) part[k] = (tile){t.builder, v->part[k]};
    return count;
}

tile_param tile_struct_param(tile_builder *b, const char *name, tile_dtype dtype, int rank) {
    const tile_struct_info *info = tile_struct_of(dtype);
    const tile_param_info like = {
        .kind = TILE_PARAM_ARRAY, .dtype = dtype, .rank = rank, .value = -1};
    int most = 0;
    for (int k = 0; k < info->count; k++)
        if (info->member[k].shape.rank > most) most = info->member[k].shape.rank;
    if (rank < 0 || rank + most > TILE_RANK_MAX)
        tile_builder_fail(b, TILE_E_ARGUMENT,
                          "tile_array_param: %s has rank %d, wanted 0 to %d for %s",
                          name ? name : "", rank, TILE_RANK_MAX - most, info->name);
    const int32_t first = tile_builder_add_param(b, "tile_array_param", &like, name, info->count);
    if (first < 0) return (tile_param){b, -1};
    for (int k = 0; k < info->count; k++) {
        tile_param_info *p = &b->program.param[first + k];
        p->dtype = info->member[k].dtype;
        p->rank = rank + info->member[k].shape.rank;
        snprintf(p->name, sizeof p->name, "%s.%s", name, info->member[k].name);
    }
    return (tile_param){b, TILE_STRUCT_PARAM + b->arg_count - 1};
}

/* A shape followed by another; the ranks fit. */
static tile_shape followed_by(tile_shape a, tile_shape b) {
    for (int d = 0; d < b.rank; d++) a.extent[a.rank + d] = b.extent[d];
    a.rank += b.rank;
    return a;
}

static tile_shape of_ones(int rank) {
    tile_shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++) shape.extent[d] = 1;
    return shape;
}

tile tile_struct_zeros(tile_builder *b, tile_dtype dtype, tile_shape shape) {
    const tile_struct_info *info = tile_struct_of(dtype);
    tile part[TILE_MEMBERS_MAX];
    if (!b || b->status) return (tile){b, -1};
    for (int k = 0; k < info->count; k++) {
        const tile_struct_member *m = &info->member[k];
        if (shape.rank < 0 || shape.rank + m->shape.rank > TILE_RANK_MAX)
            return tile_builder_fail(b, TILE_E_SHAPE,
                                     "full: a tile of %s of rank %d, wanted 0 to %d", info->name,
                                     shape.rank, TILE_RANK_MAX - m->shape.rank);
        part[k] = tile_constant(b, m->dtype, followed_by(shape, m->shape), 0);
    }
    return tile_struct_of_parts(b, dtype, shape, part);
}

static tile with_shape(tile t, const char *op, tile_shape shape) {
    if (!tile_is_good(t) || tile_shape_equal(tile_shape_of_tile(t), shape)) return t;
    const tile_emission e = {
        .op = tile_op_find(op), .n_in = 1, .in = {t}, .has_shape = true, .shape = shape};
    return tile_emit(t.builder, &e);
}

/* What the members' emissions have in common. */
typedef struct struct_job {
    const tile_emission *e;
    const tile_struct_info *info;
    tile_dtype dtype;
    const tile_launch_arg *arg; /* NULL: no array of structs */
    tile_shape shape;           /* of the tiles; of a result that is asked for */
} struct_job;

/* The struct that takes part; all that do are of one type. */
static bool find_type(tile_builder *b, struct_job *job) {
    const tile_emission *e = job->e;
    job->dtype = TILE_DTYPES;
    if (tile_param_is_struct(e->array)) {
        const int32_t k = e->array.index - TILE_STRUCT_PARAM;
        if (e->array.builder != b || k >= b->arg_count) {
            tile_builder_fail(b, TILE_E_ARGUMENT, "%s: not an array parameter of this kernel",
                              e->op->name);
            return false;
        }
        job->arg = &b->arg[k];
        job->dtype = job->arg->dtype;
    }
    if (e->has_shape) job->shape = e->shape;
    for (int k = 0; k < e->n_in; k++) {
        if (!tile_is_struct(e->in[k])) continue;
        const tile_struct_value *v = e->in[k].builder == b ? tile_struct_value_of(e->in[k]) : NULL;
        if (!v || (job->dtype != TILE_DTYPES && v->dtype != job->dtype)) {
            tile_builder_fail(b, v ? TILE_E_DTYPE : TILE_E_ARGUMENT,
                              v ? "%s: operand %d is %s, expected %s"
                                : "%s: operand %d is not a tile of this kernel",
                              e->op->name, k + 1, v ? tile_dtype_name(v->dtype) : "",
                              tile_dtype_name(job->dtype));
            return false;
        }
        job->dtype = v->dtype;
        if (!e->has_shape) job->shape = v->shape;
    }
    job->info = tile_struct_of(job->dtype);
    return true;
}

static bool check_access(tile_builder *b, const struct_job *job) {
    const tile_emission *e = job->e;
    const tile_access access = e->op->access;
    const bool known =
        access == TILE_ACCESS_LOAD || access == TILE_ACCESS_STORE || access == TILE_ACCESS_ADD;
    const tile last = e->n_in ? e->in[e->n_in - 1] : nothing;
    if (!known || e->n_in > (e->op->indexed ? 2 : 1)) {
        tile_builder_fail(b, TILE_E_DTYPE, "%s: not for structs like %s", e->op->name,
                          job->info->name);
    } else if (!job->arg || (access != TILE_ACCESS_LOAD && !tile_is_struct(last))) {
        tile_builder_fail(b, TILE_E_DTYPE, "%s: of tile and array one is %s, the other is not",
                          e->op->name, job->info->name);
    } else if (e->at.rank && e->at.rank != job->arg->rank) {
        tile_builder_fail(b, TILE_E_SHAPE, "%s: the offset has %d dimensions, expected %d",
                          e->op->name, e->at.rank, job->arg->rank);
    } else if (job->shape.rank && job->shape.rank != job->arg->rank) {
        tile_builder_fail(b, TILE_E_SHAPE, "%s: the tile has rank %d, the array has rank %d",
                          e->op->name, job->shape.rank, job->arg->rank);
    } else if (e->op->indexed && (e->attrs.n[0] < 0 || e->attrs.n[0] >= job->arg->rank)) {
        tile_builder_fail(b, TILE_E_ARGUMENT, "%s: axis is %lld, the array has rank %d",
                          e->op->name, (long long)e->attrs.n[0], job->arg->rank);
    }
    return !b->status;
}

/* A window of the member's array; a rank-0 tile is one element of any array, but a member with a
 * shape of its own needs a window of full rank. */
static tile access_member(tile_builder *b, const struct_job *job, int k) {
    tile_emission e = *job->e;
    const tile_struct_member *m = &job->info->member[k];
    const bool whole = !job->shape.rank && m->shape.rank;
    const tile_shape window =
        whole ? followed_by(of_ones(job->arg->rank), m->shape) : followed_by(job->shape, m->shape);
    const tile_shape shape = followed_by(job->shape, m->shape);
    e.array = (tile_param){b, job->arg->first + k};
    for (int d = 0; e.at.rank && d < m->shape.rank; d++)
        e.at.at[e.at.rank + d] = tile_constant(b, TILE_I64, TILE_SCALAR, 0);
    if (e.at.rank) e.at.rank += m->shape.rank;
    if (e.op->access == TILE_ACCESS_LOAD) {
        e.shape = window;
        return with_shape(tile_emit(b, &e), "reshape", shape);
    }
    const tile part = {b, tile_struct_value_of(e.in[e.n_in - 1])->part[k]};
    e.in[e.n_in - 1] = with_shape(part, "reshape", window);
    if (e.op->access == TILE_ACCESS_STORE) return tile_emit(b, &e);
    if (!e.op->run[m->dtype]) { /* no addition: only what was there before */
        e.op = tile_op_find(e.op->indexed ? "load_indexed" : "load");
        e.n_in--;
        e.has_shape = true;
        e.shape = window;
    }
    return with_shape(tile_emit(b, &e), "reshape", shape);
}

/* An op that moves elements, of any kind; operands that are no structs say where to. */
static tile move_member(tile_builder *b, const struct_job *job, int k) {
    tile_emission e = *job->e;
    const tile_shape inner = job->info->member[k].shape;
    for (int i = 0; i < e.n_in; i++) {
        const tile_struct_value *v = tile_struct_value_of(e.in[i]);
        if (v)
            e.in[i] = (tile){b, v->part[k]};
        else if (e.op->kind == TILE_OP_ELEMENTWISE && tile_is_good(e.in[i]))
            e.in[i] = with_shape(e.in[i], "reshape",
                                 followed_by(tile_shape_of_tile(e.in[i]), of_ones(inner.rank)));
    }
    if (e.has_shape) e.shape = followed_by(e.shape, inner);
    return tile_emit(b, &e);
}

tile tile_emit_struct(tile_builder *b, const tile_emission *e) {
    struct_job job = {.e = e};
    tile part[TILE_MEMBERS_MAX];
    if (!find_type(b, &job)) return (tile){b, -1};
    if (e->op->access ? !check_access(b, &job) : !e->op->moves) {
        return tile_builder_fail(b, TILE_E_DTYPE, "%s: an operand is %s, wanted a member of it",
                                 e->op->name, job.info->name);
    }
    if (!e->op->access && !e->has_shape && e->op->kind == TILE_OP_COOPERATIVE &&
        e->attrs.n[0] >= job.shape.rank)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: axis is %lld, the tile has rank %d",
                                 e->op->name, (long long)e->attrs.n[0], job.shape.rank);
    for (int k = 0; k < job.info->count && !b->status; k++)
        part[k] = e->op->access ? access_member(b, &job, k) : move_member(b, &job, k);
    if (b->status || !e->op->n_out) return (tile){b, -1};
    tile_shape shape = tile_shape_of_tile(part[0]);
    shape.rank -= job.info->member[0].shape.rank;
    return tile_struct_of_parts(b, job.dtype, shape, part);
}

/* Public calls */

static const tile_struct_value *struct_operand(const char *call, tile t, const char *name,
                                               int *member) {
    tile_builder *b = t.builder;
    const tile_struct_value *v = tile_struct_value_of(t);
    if (!b || b->status || t.id < 0) return NULL;
    if (!v) {
        tile_builder_fail(b, TILE_E_DTYPE, "%s: the tile is no struct", call);
        return NULL;
    }
    const tile_struct_info *info = tile_struct_of(v->dtype);
    *member = tile_struct_find(info, name);
    if (*member >= 0) return v;
    tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s has no member %s", call, info->name,
                      name ? name : "NULL");
    return NULL;
}

tile(tile_field)(tile t, const char *name) {
    int k;
    const tile_struct_value *v = struct_operand("tile_field", t, name, &k);
    return v ? (tile){t.builder, v->part[k]} : (tile){t.builder, -1};
}

/* A member's new value, of its full shape. */
static tile member_value(tile_builder *b, const char *call, const tile_struct_member *m,
                         tile_shape shape, tile value) {
    shape = followed_by(shape, m->shape);
    if (value.builder != b || value.id < 0) {
        return tile_builder_fail(b, TILE_E_ARGUMENT, "%s: %s is not a tile of this kernel", call,
                                 m->name);
    }
    if (tile_dtype_of(value) != m->dtype)
        return tile_builder_fail(b, TILE_E_DTYPE, "%s: %s is %s, expected %s", call, m->name,
                                 tile_dtype_name(tile_dtype_of(value)), tile_dtype_name(m->dtype));
    return with_shape(value, "broadcast", shape);
}

tile(tile_with_field)(tile t, const char *name, tile value) {
    int k;
    tile part[TILE_MEMBERS_MAX];
    const tile_struct_value *v = struct_operand("tile_with_field", t, name, &k);
    if (!v) return (tile){t.builder, -1};
    const tile_dtype dtype = v->dtype;
    const tile_shape shape = v->shape;
    (void)tile_parts(t, part);
    part[k] =
        member_value(t.builder, "tile_with_field", &tile_struct_of(dtype)->member[k], shape, value);
    return tile_struct_of_parts(t.builder, dtype, shape, part);
}

tile(tile_struct)(tile_builder *b, tile_dtype dtype, tile_shape shape, tile_list values) {
    const tile_struct_info *info = tile_struct_of(dtype);
    tile part[TILE_MEMBERS_MAX];
    if (!b || b->status) return (tile){b, -1};
    if (!info)
        return tile_builder_fail(b, TILE_E_DTYPE, "tile_struct: dtype is %d, wanted a struct's",
                                 (int)dtype);
    if (values.count != info->count)
        return tile_builder_fail(b, TILE_E_ARGUMENT, "tile_struct: %d tiles, %s has %d members",
                                 values.count, info->name, info->count);
    for (int k = 0; k < info->count; k++) {
        if (shape.rank < 0 || shape.rank + info->member[k].shape.rank > TILE_RANK_MAX)
            return tile_builder_fail(b, TILE_E_SHAPE, "tile_struct: rank is %d, wanted 0 to %d",
                                     shape.rank, TILE_RANK_MAX - info->member[k].shape.rank);
        part[k] = member_value(b, "tile_struct", &info->member[k], shape, values.item[k]);
    }
    return tile_struct_of_parts(b, dtype, shape, part);
}
