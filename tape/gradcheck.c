/* gradcheck.c: the gradient check: what is tried, what is saved and put back, the report. */
#include "tape/gradcheck.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "core/move.h"
#include "core/status.h"

enum { RANDOM_DIRECTIONS = 2, ELEMENTS_MAX = 8 };

static const uint64_t SEED = 0x7469746170650001;

/* A right gradient has slope 2 or more, a wrong one 1. */
static const double LEAST_SLOPE = 1.75;

/* splitmix64.
 *
 * source   Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014 */
double tape_check_random(tape_check *c) {
    uint64_t z = c->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ldexp((double)((z ^ (z >> 31)) >> 11), -53);
}

/* Whether an array begins at the member of a struct that another one begins at. */
static bool same_member(const tile_array *a, const tile_array *b) {
    const int64_t period = (int64_t)tile_dtype_size(a->dtype);
    const int64_t x = a->offset * (int64_t)tile_dtype_size(a->dtype);
    const int64_t y = b->offset * (int64_t)tile_dtype_size(b->dtype);
    return a->storage == b->storage && a->dtype == b->dtype && x % period == y % period;
}

/* The array by which the program uses what a subject has all of: a whole one rather than a part,
 * then the one of most dimensions. The tape holds it. */
static const tile_array *shown_array(const tape *t, const tile_array *all) {
    const tile_array *best = NULL;
    for (int32_t i = 0; i < t->count; i++)
        for (int32_t k = 0; k < t->record[i]->count; k++) {
            const tile_array *a = t->record[i]->operand[k].array;
            if (!a || !same_member(a, all)) continue;
            const int gain = best ? tile_array_is_whole(a) - tile_array_is_whole(best) : 1;
            if (gain > 0 || (gain == 0 && a->shape.rank > best->shape.rank)) best = a;
        }
    return best;
}

static double root_mean_square(const tape_subject *s) {
    const tile_dtype dtype = s->array->dtype;
    double sum = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const double x =
            tile_dtype_get(dtype, (const char *)s->at + (size_t)i * tile_dtype_size(dtype));
        sum += x * x;
    }
    sum = sqrt(sum / (double)(s->count ? s->count : 1));
    return isfinite(sum) && sum > 0 ? sum : 1;
}

static tile_status make_subject(tape_check *c, tape_subject *s) {
    const tile_dtype dtype = s->array->dtype;
    s->shown = shown_array(c->record, s->array);
    s->count = tile_array_count(s->array);
    s->bytes = (size_t)s->count * tile_dtype_size(dtype);
    s->at = tile_alloc(s->bytes + 1);
    s->tried = tile_alloc(s->bytes + 1);
    s->grad_before = tile_alloc(s->bytes + 1);
    s->grad = tile_alloc((size_t)s->count * sizeof(double) + 1);
    s->direction = tile_alloc((size_t)s->count * sizeof(double) + 1);
    if (!s->at || !s->tried || !s->grad_before || !s->grad || !s->direction) return TILE_E_MEMORY;
    TILE_TRY(tile_array_read(tile_array_grad(s->array), s->grad_before, s->bytes));
    TILE_TRY(tape_initial_read(c->record, s->array, s->at, s->bytes));
    s->size = root_mean_square(s);
    if (dtype == TILE_F32) c->eps = FLT_EPSILON;
    return TILE_OK;
}

static tile_status make_subjects(tape_check *c) {
    const int count = tape_grad_arrays(c->record, NULL, 0);
    tile_array **array = tile_alloc((size_t)(count + 1) * sizeof *array);
    c->subject = tile_alloc((size_t)(count + 1) * sizeof *c->subject);
    const bool made = array && c->subject && tape_grad_arrays(c->record, array, count) == count;
    /* Uses are listed last first. */
    for (int k = 0; made && k < count; k++) c->subject[k].array = array[count - 1 - k];
    tile_free(array);
    if (!made) return TILE_E_MEMORY;
    c->count = count;
    for (int k = 0; k < count; k++) TILE_TRY(make_subject(c, &c->subject[k]));
    return TILE_OK;
}

static void free_subjects(tape_check *c) {
    for (int k = 0; k < c->count; k++) {
        tape_subject *s = &c->subject[k];
        tile_array_destroy(s->array);
        tile_free(s->at);
        tile_free(s->tried);
        tile_free(s->grad_before);
        tile_free(s->grad);
        tile_free(s->direction);
    }
    tile_free(c->subject);
}

static tile_status save_written(tape_check *c) {
    int count = 0;
    for (const tape_use *u = c->record->uses; u; u = u->next) count += tape_use_restarts(u);
    c->saved = tile_alloc((size_t)(count + 1) * sizeof *c->saved);
    if (!c->saved) return TILE_E_MEMORY;
    for (const tape_use *u = c->record->uses; u; u = u->next) {
        if (!tape_use_restarts(u)) continue;
        tape_saved *s = &c->saved[c->saved_count];
        TILE_TRY(tile_buffer_create(c->record->ctx, u->storage->bytes, &s->values));
        s->storage = u->storage;
        c->saved_count++;
        TILE_TRY(tile_move_copy(c->record->ctx, s->values->data, u->storage->buffer->data,
                                u->storage->bytes));
    }
    return TILE_OK;
}

/* The last replay left what the recording did, unless something changed between the two. */
static tile_status put_back_written(const tape_check *c) {
    tile_context *ctx = c->record->ctx;
    bool same;
    for (int k = 0; k < c->saved_count; k++) {
        tile_storage *s = c->saved[k].storage;
        const void *values = c->saved[k].values->data;
        TILE_TRY(tile_move_equal(ctx, s->buffer->data, values, s->bytes, &same));
        if (same) continue;
        TILE_TRY(tile_storage_will_write(s, (tile_range){0, (int64_t)s->bytes}));
        TILE_TRY(tile_move_copy(ctx, s->buffer->data, values, s->bytes));
    }
    return TILE_OK;
}

static tile_status put_back(const tape_check *c) {
    tile_status first = TILE_OK;
    for (int k = 0; k < c->count; k++) {
        const tape_subject *s = &c->subject[k];
        const tile_status grad =
            tile_array_write(tile_array_grad(s->array), s->grad_before, s->bytes);
        const tile_status at = tape_initial_write(c->record, s->array, s->at, s->bytes);
        if (!first) first = grad ? grad : at;
    }
    if (!first && !c->record->broken) first = tape_replay(c->record);
    return first ? first : put_back_written(c);
}

static void free_saved(tape_check *c) {
    for (int k = 0; k < c->saved_count; k++) tile_buffer_release(c->saved[k].values);
    tile_free(c->saved);
}

/* Sizes at random; signs at random or as the gradient's, so that nothing cancels. */
static void point(tape_check *c, tape_subject *s, bool uphill) {
    s->moves = true;
    for (int64_t i = 0; i < s->count; i++) {
        const double r = tape_check_random(c) - 0.5;
        const bool up = uphill && s->grad[i] != 0 ? s->grad[i] > 0 : r >= 0;
        const double size = (0.5 + fabs(r)) * tape_check_size(s, i);
        s->direction[i] = up ? size : -size;
    }
}

/* A row, and how far it is off in units of the tolerance. */
typedef struct ranked {
    tape_check_row row;
    double off;
} ranked;

static int gravity(tape_verdict verdict) {
    return verdict == TAPE_CHECK_WRONG ? 2 : verdict == TAPE_CHECK_KINK;
}

static bool is_worse(const ranked *a, const ranked *b) {
    const int more = gravity(a->row.verdict) - gravity(b->row.verdict);
    return more > 0 || (more == 0 && a->off > b->off);
}

/* Compares along the direction that is set, unit long in the row's terms; keeps the worst. */
static tile_status compare(tape_check *c, int64_t element, double unit, ranked *worst) {
    tape_difference d;
    TILE_TRY(tape_check_compare(c, &d));
    const double absolute = fabs(d.ours - d.difference);
    const double larger = fmax(fabs(d.ours), fabs(d.difference));
    ranked r = {.row = worst->row, .off = INFINITY};
    if (d.tolerance > 0 && absolute >= 0) r.off = absolute / d.tolerance;
    if (absolute <= 0) r.off = 0;
    r.row.element = element;
    r.row.ours = d.ours / unit;
    r.row.difference = d.difference / unit;
    r.row.absolute = absolute / unit;
    r.row.relative = larger > 0 ? absolute / larger : absolute;
    r.row.verdict = d.verdict;
    if (worst->off < 0 || is_worse(&r, worst)) *worst = r;
    return TILE_OK;
}

static tile_status check_directions(tape_check *c, tape_subject *s, ranked *worst) {
    for (int k = 0; k <= RANDOM_DIRECTIONS; k++) {
        point(c, s, k == 0);
        TILE_TRY(compare(c, -1, 1, worst));
    }
    return TILE_OK;
}

static int64_t steepest(const tape_subject *s) {
    int64_t best = 0;
    for (int64_t i = 1; i < s->count; i++)
        if (fabs(s->grad[i]) > fabs(s->grad[best])) best = i;
    return best;
}

/* All elements of a small array; else the steepest, both ends and some at random. */
static tile_status check_elements(tape_check *c, tape_subject *s, ranked *worst) {
    const int64_t ends[] = {steepest(s), 0, s->count - 1};
    const int tries = s->count < ELEMENTS_MAX ? (int)s->count : ELEMENTS_MAX;
    memset(s->direction, 0, (size_t)s->count * sizeof(double));
    s->moves = true;
    for (int k = 0; k < tries; k++) {
        int64_t i = k;
        if (s->count > ELEMENTS_MAX)
            i = k < 3 ? ends[k] : (int64_t)(tape_check_random(c) * (double)s->count);
        s->direction[i] = tape_check_size(s, i);
        TILE_TRY(compare(c, i, s->direction[i], worst));
        s->direction[i] = 0;
    }
    return TILE_OK;
}

/* Rows in the order of arrays; when there are more than the report has, the worst. */
static void add_row(tape_check_report *report, const ranked *r, double *off) {
    int at = report->rows;
    if (at == TAPE_CHECK_ROWS) {
        at = 0;
        for (int k = 1; k < TAPE_CHECK_ROWS; k++) {
            const ranked a = {report->row[k], off[k]}, b = {report->row[at], off[at]};
            if (is_worse(&b, &a)) at = k;
        }
        const ranked least = {report->row[at], off[at]};
        if (!is_worse(r, &least)) return;
    } else {
        report->rows++;
    }
    report->row[at] = r->row;
    off[at] = r->off;
}

static tile_status check_subject(tape_check *c, tape_subject *s, unsigned what, ranked *worst) {
    *worst = (ranked){.row = {.array = s->shown, .element = -1}, .off = -1};
    if (s->count == 0) return TILE_OK;
    if (what & TAPE_CHECK_DIRECTIONS) TILE_TRY(check_directions(c, s, worst));
    if (what & TAPE_CHECK_ELEMENTS) TILE_TRY(check_elements(c, s, worst));
    s->moves = false;
    return tape_initial_write(c->record, s->array, s->at, s->bytes);
}

/* The gradients of a run at the values that are there, and the noise of its loss. */
static tile_status differentiate(tape_check *c) {
    double moved;
    TILE_TRY(tape_check_try(c, 0, &c->value, &moved));
    TILE_TRY(tape_zero(c->record));
    TILE_TRY(tape_backward(c->record, c->loss));
    for (int k = 0; k < c->count; k++) {
        tape_subject *s = &c->subject[k];
        const tile_dtype dtype = s->array->dtype;
        TILE_TRY(tile_array_read(tile_array_grad(s->array), s->tried, s->bytes));
        for (int64_t i = 0; i < s->count; i++)
            s->grad[i] =
                tile_dtype_get(dtype, (const char *)s->tried + (size_t)i * tile_dtype_size(dtype));
    }
    for (int k = 0; k < c->count; k++) point(c, &c->subject[k], false);
    return tape_check_noise(c);
}

static tile_status check_all(tape_check *c, unsigned what, tape_check_report *report) {
    double off[TAPE_CHECK_ROWS];
    TILE_TRY(differentiate(c));
    if (what & TAPE_CHECK_TAYLOR) TILE_TRY(tape_check_taylor(c, &report->taylor_slope));
    bool kink = false;
    for (int k = 0; k < c->count; k++) {
        c->subject[k].moves = false;
        TILE_TRY(tape_initial_write(c->record, c->subject[k].array, c->subject[k].at,
                                    c->subject[k].bytes));
    }
    for (int k = 0; k < c->count && what & ~(unsigned)TAPE_CHECK_TAYLOR; k++) {
        ranked worst;
        TILE_TRY(check_subject(c, &c->subject[k], what, &worst));
        add_row(report, &worst, off);
        if (worst.row.verdict == TAPE_CHECK_WRONG) report->passed = false;
        if (worst.row.verdict == TAPE_CHECK_KINK) kink = true;
    }
    if (!kink && report->taylor_slope < LEAST_SLOPE) report->passed = false;
    return TILE_OK;
}

/* Whether the program rounds to 16 bits by itself. */
static bool rounds_to_half(const tile_program *p) {
    for (int32_t k = 0; k < p->node_count; k++) {
        const tile_node *n = &p->node[k];
        if (n->op->kind != TILE_OP_ELEMENTWISE || n->n_out != 1) continue;
        if (tile_is_half(p->value[n->out].dtype)) return true;
    }
    return false;
}

/* The steps between 16-bit numbers are larger than any difference that would tell. */
static tile_status check_record(const tape_record *r) {
    const tile_program *p = r->kernel ? tile_executable_program(r->kernel->forward) : NULL;
    for (int32_t k = 0; k < r->count; k++) {
        const tape_operand *o = &r->operand[k];
        if (!o->array || !o->use->active || !tile_is_half(o->array->dtype)) continue;
        const char *dtype = tile_dtype_name(o->array->dtype);
        TILE_CHECK(!p, TILE_E_DTYPE,
                   "tape_gradcheck: array %s of record %lld (%s) is %s, wanted float32 or float64",
                   p->param[k].name, (long long)r->number, p->name, dtype);
        return tile_fail(TILE_E_DTYPE,
                         "tape_gradcheck: array %d of record %lld is %s, wanted float32 or float64",
                         (int)k, (long long)r->number, dtype);
    }
    TILE_CHECK(!p || !r->plan || !rounds_to_half(p), TILE_E_DTYPE,
               "tape_gradcheck: kernel %s of record %lld rounds to 16 bits, wanted float32 or "
               "float64 throughout",
               p->name, (long long)r->number);
    return TILE_OK;
}

static tile_status check_halves(const tape *t) {
    for (int32_t i = 0; i < t->count; i++) TILE_TRY(check_record(t->record[i]));
    return TILE_OK;
}

static tile_status run(tape_check *c, unsigned what, tape_check_report *report) {
    tile_status status = make_subjects(c);
    if (!status) status = save_written(c);
    if (!status) {
        status = check_all(c, what, report);
        const tile_status back = put_back(c);
        if (!status) status = back;
    }
    free_saved(c);
    free_subjects(c);
    return status;
}

tile_status tape_gradcheck(tape *record, tile_array *loss, unsigned what,
                           tape_check_report *report) {
    TILE_CHECK(record && loss && report, TILE_E_ARGUMENT, "tape_gradcheck: %s is NULL",
               !record ? "record"
               : !loss ? "loss"
                       : "report");
    TILE_CHECK(what && !(what & ~(unsigned)TAPE_CHECK_ALL), TILE_E_ARGUMENT,
               "tape_gradcheck: what is %u, wanted TAPE_CHECK_... bits", what);
    TILE_CHECK(tile_array_count(loss) == 1, TILE_E_SHAPE,
               "tape_gradcheck: loss has %lld elements, wanted 1",
               (long long)tile_array_count(loss));
    TILE_CHECK(record->count > 0, TILE_E_STATE, "tape_gradcheck: the tape is empty");
    TILE_TRY(check_halves(record));
    tape_check_report made = {.taylor_slope = NAN, .seed = SEED, .passed = true};
    tape_check c = {.record = record, .loss = loss, .random = SEED, .eps = DBL_EPSILON};
    if (loss->dtype == TILE_F32) c.eps = FLT_EPSILON;
    /* Other values are tried where an adjoint needs those there: the tape keeps them meanwhile. */
    const tape_options options = record->options;
    record->options.overwrite = TAPE_OVERWRITE_KEEP;
    const tile_status status = run(&c, what, &made);
    record->options = options;
    if (!status) *report = made;
    return status;
}
