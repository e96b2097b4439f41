/* report.c: the pictures and files of a run. */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fwi_options.h"
#include "picture.h"

enum { PATH_BYTES = 4096 };

void report_folder(const char *path) {
    char part[PATH_BYTES];
    size_t length = strlen(path);
    if (length > PATH_BYTES - 64) refuse("--out: the path is too long");
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            refuse("--out: folder %s cannot be made: %s", part, strerror(errno));
    }
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) refuse("--out: %s is no folder", path);
    if (access(path, W_OK | X_OK) != 0) refuse("--out: %s: %s", path, strerror(errno));
}

static void save(const figure *f, const char *out, const char *file) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", out, file);
    const char *error = figure_save(f, path);
    if (!error) return;
    fflush(stdout);
    fprintf(stderr, "fwi: %s cannot be written: %s\n", path, error);
    exit(1);
}

/* A figure of the ground, true to scale where that is not too flat or tall. */
static figure ground_figure(const ground *g) {
    figure f = {.rows = g->nz, .columns = g->nx, .panels = 1, .panel_width = 900};
    f.height = (double)(g->nz - 1) * g->spacing / 1000;
    f.width = (double)(g->nx - 1) * g->spacing / 1000;
    f.panel_height = (int)fmin(900, fmax(240, f.panel_width * f.height / f.width));
    f.y_label = "depth (km)";
    f.x_label = "distance (km)";
    return f;
}

void report_velocity(const char *out, const char *file, const char *title, double low, double high,
                     const ground *velocity) {
    ground km = ground_like(velocity);
    for (int64_t i = 0; i < km.nz * km.nx; i++) km.v[i] = velocity->v[i] / 1000;
    figure f = ground_figure(velocity);
    f.low = low / 1000;
    f.high = high > low ? high / 1000 : low / 1000 + 1;
    f.palette = PALETTE_SEQUENTIAL;
    f.bar_label = "P velocity (km/s)";
    f.title[0] = title;
    f.value[0] = km.v;
    save(&f, out, file);
    ground_clear(&km);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The magnitude that a fraction of the values stays below; 1 when that is 0. */
static double quantile(const double *value, int64_t count, double fraction) {
    ground sorted = ground_create(1, count, 1);
    for (int64_t i = 0; i < count; i++) sorted.v[i] = fabs(value[i]);
    qsort(sorted.v, (size_t)count, sizeof(double), compare_doubles);
    double q = sorted.v[(int64_t)(fraction * (double)(count - 1))];
    ground_clear(&sorted);
    return q > 0 ? q : 1;
}

void report_gradient(const char *out, const ground *gradient) {
    int64_t count = gradient->nz * gradient->nx;
    double full = quantile(gradient->v, count, 0.99);
    ground relative = ground_like(gradient);
    for (int64_t i = 0; i < count; i++) relative.v[i] = gradient->v[i] / full;
    figure f = ground_figure(gradient);
    f.low = -1;
    f.high = 1;
    f.palette = PALETTE_DIVERGING;
    char label[64];
    snprintf(label, sizeof label, "d misfit / d velocity  (1 = %.1e s/m)", full);
    f.bar_label = label;
    f.title[0] = "First gradient: blue asks for a higher velocity, red for a lower one";
    f.value[0] = relative.v;
    save(&f, out, "gradient.png");
    ground_clear(&relative);
}

/* Traces of a shot in a velocity; without one, the traces given. */
static ground gather(wave_model *m, int64_t shot, const ground *velocity, tile_array *traces) {
    if (velocity) {
        array_write(m->velocity, velocity->v);
        model_shot(m, shot, m->traces);
        traces = m->traces;
    }
    ground g = ground_create(m->survey->steps, m->survey->nx, 1);
    array_read(traces, g.v);
    return g;
}

void report_gather(const char *out, wave_model *m, int64_t shot, tile_array *observed,
                   const ground *start, const ground *inverted) {
    const survey *s = m->survey;
    ground panel[] = {gather(m, shot, NULL, observed), gather(m, shot, start, NULL),
                      gather(m, shot, inverted, NULL)};
    int64_t count = s->steps * s->nx;
    double largest = quantile(panel[0].v, count, 1);
    figure f = {.rows = s->steps, .columns = s->nx, .panels = 3};
    f.height = (double)s->steps * s->dt;
    f.width = (double)(s->nx - 1) * s->spacing / 1000;
    f.y_label = "time (s)";
    f.x_label = "receiver (km)";
    f.bar_label = "pressure (% of the largest observed)";
    f.palette = PALETTE_DIVERGING;
    f.high = 100 * quantile(panel[0].v, count, 0.97) / largest;
    f.low = -f.high;
    f.panel_width = 330;
    f.panel_height = 480;
    static const char *const titles[] = {"observed", "start model", "inverted model"};
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < count; j++) panel[i].v[j] *= 100 / largest;
        f.title[i] = titles[i];
        f.value[i] = panel[i].v;
    }
    save(&f, out, "gather.png");
    for (int i = 0; i < 3; i++) ground_clear(&panel[i]);
}

void report_model(const char *out, wave_model *m, const ground *inverted) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/inverted.npy", out);
    array_write(m->velocity, inverted->v);
    must(tile_array_save_npy(m->velocity, path));
}
