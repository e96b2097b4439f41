/* native_source.c: the C text of a program: types, the lane functions that it uses, its loops. */
#include <string.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "core/native_order.h"
#include "core/status.h"

static const char *const abi_lines[] = {
#include "core/abi_lines.inc"
    NULL};
static const char *const half_lines[] = {
#include "core/half_lines.inc"
    NULL};

/* Element types that generated code computes with; others it only moves, and calls their ops. */
typedef struct element {
    const char *name, *type;
} element;

static const element elements[] = {{"f32", "float"},    {"f64", "double"},  {"i32", "int32_t"},
                                   {"i64", "int64_t"},  {"u8", "uint8_t"},  {"u32", "uint32_t"},
                                   {"u64", "uint64_t"}, {"b8", "uint8_t"},  {"i8", "int8_t"},
                                   {"i16", "int16_t"},  {"u16", "uint16_t"}};

static const char *computed_type(tile_dtype dtype) {
    const char *name = tile_dtype_short(dtype);
    for (size_t k = 0; k < sizeof elements / sizeof *elements; k++)
        if (!strcmp(elements[k].name, name)) return elements[k].type;
    return NULL;
}

const char *tile_native_type(tile_dtype dtype) {
    const char *type = computed_type(dtype);
    if (type) return type;
    const size_t size = tile_dtype_size(dtype);
    return size == 1 ? "uint8_t" : size == 2 ? "uint16_t" : size == 4 ? "uint32_t" : "uint64_t";
}

/* Lane functions */

/* The name of the function that a line of source begins, when it does: "static inline T NAME(". */
static bool begins(const char *line, const char **name, size_t *length) {
    static const char HEAD[] = "static inline ";
    if (strncmp(line, HEAD, sizeof HEAD - 1)) return false;
    const char *end = strchr(line, '(');
    if (!end) return false;
    const char *at = end;
    while (at > line && at[-1] != ' ') at--;
    *name = at;
    *length = (size_t)(end - at);
    return true;
}

static bool is_whole(const char *line) {
    const size_t length = strlen(line);
    return length && line[length - 1] == '}';
}

static bool is_defined(tile_dtype dtype, const char *name) {
    const char *const *lines = tile_lane_source(dtype);
    const char *found;
    size_t length;
    for (int k = 0; lines && lines[k]; k++)
        if (begins(lines[k], &found, &length) && length == strlen(name) &&
            !memcmp(found, name, length))
            return true;
    return false;
}

static void note_use(tile_native_writer *w, const char *name) {
    char spaced[72];
    (void)snprintf(spaced, sizeof spaced, " %s ", name);
    if (!strstr(tile_text_get(&w->uses), spaced)) tile_text_add(&w->uses, "%s", spaced);
}

bool tile_native_function(tile_native_writer *w, const tile_op *op, const tile_dtype *in,
                          tile_dtype out, char name[64]) {
    const tile_dtype home = op->key == TILE_KEY_IN1 ? in[1] : in[0];
    for (int i = 0; i < op->n_in; i++)
        if (!computed_type(in[i])) return false;
    if (!computed_type(out)) return false;
    int length;
    if (op->key == TILE_KEY_OUT0)
        length =
            snprintf(name, 64, "%s_%s_%s", op->name, tile_dtype_short(out), tile_dtype_short(home));
    else
        length = snprintf(name, 64, "%s_%s", op->name, tile_dtype_short(home));
    if (length < 0 || length >= 64 || !is_defined(home, name)) return false;
    if (w) note_use(w, name);
    return true;
}

tile_status tile_native_strip_of(tile_native_plan *plan, const tile_op *op, const tile_dtype *in,
                                 tile_dtype out, int32_t *number) {
    const tile_strip strip = op->strip ? op->strip(op, in, out) : NULL;
    TILE_CHECK(strip, TILE_E_DTYPE, "%s: no kernel for %s", op->name, tile_dtype_name(in[0]));
    for (*number = 0; *number < plan->strip_count; ++*number)
        if (plan->strip[*number] == strip) return TILE_OK;
    TILE_TRY(
        tile_grow(&plan->strip, &plan->strip_capacity, plan->strip_count + 1, sizeof *plan->strip));
    plan->strip[plan->strip_count++] = strip;
    return TILE_OK;
}

/* The functions of one type that are used, and the longer ones that those may call. */
static void write_functions(const tile_native_writer *w, tile_dtype dtype, tile_text *out) {
    const char *const *lines = tile_lane_source(dtype);
    char type[16];
    (void)snprintf(type, sizeof type, "_%.10s ", tile_dtype_short(dtype));
    if (!lines || !strstr(tile_text_get(&w->uses), type)) return;
    for (int k = 0; lines[k]; k++) {
        const char *name;
        size_t length;
        char spaced[72];
        if (begins(lines[k], &name, &length) && is_whole(lines[k])) {
            (void)snprintf(spaced, sizeof spaced, " %.*s ", (int)(length < 64 ? length : 64), name);
            if (!strstr(tile_text_get(&w->uses), spaced)) continue;
        }
        tile_text_add(out, "%s\n", lines[k]);
    }
}

/* The text */

static void write_head(const tile_program *p, tile_text *out) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s", p->name);
    for (char *c = name; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '*' || *c == '\\') *c = '_';
    tile_text_add(out,
                  "/* The kernel %.63s as C, generated by tiletape.\n"
                  " * %%n is a value of the program's text form. Built with",
                  name);
    for (int k = 0; tile_native_flags[k]; k++) tile_text_add(out, " %s", tile_native_flags[k]);
    tile_text_add(out, ". */\n"
                       "typedef __INT8_TYPE__ int8_t;\ntypedef __INT16_TYPE__ int16_t;\n"
                       "typedef __INT32_TYPE__ int32_t;\ntypedef __INT64_TYPE__ int64_t;\n"
                       "typedef __UINT8_TYPE__ uint8_t;\ntypedef __UINT16_TYPE__ uint16_t;\n"
                       "typedef __UINT32_TYPE__ uint32_t;\ntypedef __UINT64_TYPE__ uint64_t;\n\n");
    for (int k = 0; abi_lines[k]; k++) tile_text_add(out, "%s\n", abi_lines[k]);
    tile_text_add(out, "\n#define TILE_LANE_FN static inline\n#define bool _Bool\n"
                       "#define memcpy __builtin_memcpy\n");
    for (int k = 0; half_lines[k]; k++) tile_text_add(out, "%s\n", half_lines[k]);
    tile_text_add(
        out, "\nenum { TILE_BLOCK = 256 }; /* elements of a piece between calls */\n"
             "enum { TILE_SAVED = 1024 }; /* elements that are tried at a time */\n"
             "#if defined(__clang__)\n"
             "#define TILE_INDEPENDENT "
             "_Pragma(\"clang loop vectorize(assume_safety)\")\n"
             "#else\n"
             "/* Joining the conditions of guarded products makes vector code slow, and a call\n"
             " * that copies a few elements is. */\n"
             "#pragma GCC optimize(\"no-thread-jumps\", "
             "\"no-tree-loop-distribute-patterns\")\n"
             "/* Two vectors a turn: pointers that have no register are fetched once. */\n"
             "#define TILE_INDEPENDENT _Pragma(\"GCC ivdep\") _Pragma(\"GCC unroll 2\")\n"
             "#endif\n\n");
}

static tile_status write_source(tile_native_writer *w) {
    tile_native_plan *plan = w->plan;
    if (plan->rows) {
        TILE_TRY(tile_native_plan_stages(plan));
        if (plan->rows) TILE_TRY(tile_native_write_stages(w));
    }
    if (!plan->rows) {
        TILE_TRY(tile_native_plan_order(plan));
        TILE_TRY(tile_native_write_groups(w));
    }
    write_head(&plan->exe->program, &plan->source);
    for (int t = 0; t < TILE_DTYPES; t++) write_functions(w, (tile_dtype)t, &plan->source);
    tile_native_write_tries(w, &plan->source);
    tile_text_add(&plan->source, "%s", tile_text_get(&w->body));
    const bool failed = plan->source.failed || w->body.failed || w->uses.failed;
    return failed ? TILE_E_MEMORY : TILE_OK;
}

tile_status tile_native_plan_make(const tile_executable *exe, tile_native_plan *plan) {
    *plan = (tile_native_plan){.exe = exe};
    tile_native_writer w = {.plan = plan};
    tile_status status = TILE_OK;
    if (exe->rows && !exe->by_blocks) status = tile_rows_plan_ops(exe, false, &plan->rows);
    if (!status) status = write_source(&w);
    tile_text_clear(&w.body);
    tile_text_clear(&w.uses);
    if (status) tile_native_plan_clear(plan);
    return status;
}
