/* arguments.c: what a launch is given, checked against the kernel's parameters. */
#include "core/status.h"
#include "tape/launch.h"

static const char *kind_name(int kind) {
    static const char *const names[] = {"an array", "an integer", "a real"};
    return names[kind];
}

static tile_status check_array(const tape_launch *l, const tile_launch_arg *p,
                               const tile_array *a) {
    const char *kernel = l->program->name;
    TILE_CHECK(a, TILE_E_ARGUMENT, "tile_launch: %s: array %s is NULL", kernel, p->name);
    TILE_CHECK(a->storage->ctx == l->kernel->ctx, TILE_E_ARGUMENT,
               "tile_launch: %s: array %s is of another context", kernel, p->name);
    TILE_CHECK(a->dtype == p->dtype, TILE_E_DTYPE, "tile_launch: %s: array %s is %s, expected %s",
               kernel, p->name, tile_dtype_name(a->dtype), tile_dtype_name(p->dtype));
    TILE_CHECK(a->shape.rank == p->rank, TILE_E_SHAPE,
               "tile_launch: %s: array %s has rank %d, expected %d", kernel, p->name, a->shape.rank,
               p->rank);
    TILE_CHECK(!p->injective || !a->folded, TILE_E_ARGUMENT,
               "tile_launch: %s: array %s overlaps itself (stride 0, or too small), expected one "
               "whose places are apart: a partition view writes it",
               kernel, p->name);
    return TILE_OK;
}

/* An array of structs is an array for each member. */
static tile_status take_array(tape_launch *l, const tile_launch_arg *p, tile_array *a) {
    const tile_struct_info *info = tile_struct_of(p->dtype);
    TILE_TRY(check_array(l, p, a));
    l->array[p->first] = a;
    for (int k = 0; info && k < info->count; k++)
        TILE_TRY(tile_array_member(a, k, &l->array[p->first + k]));
    if (!a->storage->grad_of) return TILE_OK;
    bool reads = false;
    for (int k = 0; k < (info ? info->count : 1); k++)
        reads |= l->kernel->reads >> (p->first + k) & 1u;
    return reads ? tile_array_check_readable(a, "tile_launch") : TILE_OK;
}

tile_status tape_take_arguments(tape_launch *l, tile_args args) {
    const char *kernel = l->program->name;
    TILE_CHECK(args.count == l->kernel->arg_count, TILE_E_ARGUMENT,
               "tile_launch: %s: %d arguments, expected %d", kernel, args.count,
               (int)l->kernel->arg_count);
    TILE_CHECK(args.arg || !args.count, TILE_E_ARGUMENT, "tile_launch: %s: args.arg is NULL",
               kernel);
    for (int k = 0; k < l->count; k++) {
        l->array[k] = NULL;
        l->fresh[k] = NULL;
    }
    for (int k = 0; k < args.count; k++) {
        const tile_launch_arg *p = &l->kernel->arg[k];
        const tile_arg *arg = &args.arg[k];
        const tile_param_kind kind = l->program->param[p->first].kind;
        TILE_CHECK((int)arg->kind == (int)kind, TILE_E_ARGUMENT,
                   "tile_launch: %s: argument %s is %s, expected %s", kernel, p->name,
                   (int)arg->kind <= 2 ? kind_name((int)arg->kind) : "of no kind",
                   kind_name((int)kind));
        if (arg->kind == TILE_ARG_ARRAY) {
            TILE_TRY(take_array(l, p, arg->as.array));
        } else if (arg->kind == TILE_ARG_INT) {
            l->scalar[p->first].integer = arg->as.integer;
        } else {
            l->scalar[p->first].real = arg->as.real;
        }
    }
    return TILE_OK;
}
