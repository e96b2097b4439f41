/* registry.c: all ops, from the list that the build makes of the folders in ops/. */
#include <stdatomic.h>
#include <string.h>

#include "core/op.h"

#define TILE_FAMILY(f) extern const tile_family tile_ops_##f;
#include "ops/families.inc"
#undef TILE_FAMILY

static const tile_family *const families[] = {
#define TILE_FAMILY(f) &tile_ops_##f,
#include "ops/families.inc"
#undef TILE_FAMILY
};

enum { FAMILIES = sizeof families / sizeof *families };

const tile_op *tile_op_at(int i) {
    if (i < 0) return NULL;
    for (int f = 0; f < FAMILIES; i -= families[f++]->count)
        if (i < families[f]->count) return &families[f]->ops[i];
    return NULL;
}

int tile_op_family(const tile_op *op) {
    for (int f = 0; f < FAMILIES; f++)
        for (int k = 0; k < families[f]->count; k++)
            if (&families[f]->ops[k] == op) return f;
    return -1;
}

/* An open table of the op numbers plus 1, filled by whoever looks a name up. A slot goes once from
 * 0 to its number, so threads need no lock: who finds an empty slot searches the list and tries to
 * put the number there; when another thread was first there, the number goes into the next free
 * slot. */
enum { SLOTS = 1024 };
static _Atomic(int) slot[SLOTS];

static unsigned hash_name(const char *name) {
    unsigned h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static int search_list(const char *name) {
    const tile_op *op;
    for (int i = 0; (op = tile_op_at(i)); i++)
        if (!strcmp(op->name, name)) return i;
    return -1;
}

/* Names that are no op are searched for in the list each time; they come from wrong formulas. */
const tile_op *tile_op_find(const char *name) {
    const unsigned first = hash_name(name) % SLOTS;
    int found = -1;
    for (unsigned k = 0; k < SLOTS; k++) {
        _Atomic(int) *at = &slot[(first + k) % SLOTS];
        int held = *at;
        if (!held) {
            if (found < 0) found = search_list(name);
            if (found < 0) return NULL;
            if (atomic_compare_exchange_strong(at, &held, found + 1)) return tile_op_at(found);
        }
        const tile_op *op = tile_op_at(held - 1);
        if (!strcmp(op->name, name)) return op;
    }
    return tile_op_at(search_list(name));
}
