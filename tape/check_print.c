/* check_print.c: the gradient check's report as a table. */
#include <inttypes.h>
#include <math.h>

#include "core/array.h"
#include "tape/tape_api.h"

static const char *verdict_name(tape_verdict verdict) {
    if (verdict == TAPE_CHECK_OK) return "ok";
    return verdict == TAPE_CHECK_KINK ? "kink" : "WRONG";
}

static void print_row(const tape_check_row *row, int number, FILE *out) {
    char shape[TILE_SHAPE_TEXT], array[TILE_SHAPE_TEXT + 16] = "?", where[32] = "a direction";
    if (row->array)
        (void)snprintf(array, sizeof array, "%s %s", tile_dtype_name(tile_array_dtype(row->array)),
                       tile_shape_text(tile_array_shape(row->array), shape));
    if (row->element >= 0) (void)snprintf(where, sizeof where, "element %" PRId64, row->element);
    (void)fprintf(out, "%3d  %-24s %-18s %16.8e %16.8e %10.2e %10.2e  %s\n", number, array, where,
                  row->ours, row->difference, row->absolute, row->relative,
                  verdict_name(row->verdict));
}

void tape_check_print(const tape_check_report *report, FILE *out) {
    if (!report || !out) return;
    (void)fprintf(out, "gradient check: %s, seed %#" PRIx64, report->passed ? "passed" : "FAILED",
                  report->seed);
    if (!isnan(report->taylor_slope))
        (void)fprintf(out, ", Taylor slope %.3f", report->taylor_slope);
    (void)fprintf(out, "\n");
    if (report->rows)
        (void)fprintf(out, "%3s  %-24s %-18s %16s %16s %10s %10s  %s\n", "", "array", "worst at",
                      "tape", "difference", "absolute", "relative", "verdict");
    for (int k = 0; k < report->rows && k < TAPE_CHECK_ROWS; k++)
        print_row(&report->row[k], k + 1, out);
}
