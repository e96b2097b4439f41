/* fwi.c: full-waveform inversion, the velocity of the ground from recorded waves.
 *
 *   misfit(v) = sum over shots of |traces(v) - observed|^2,  traces by the wave equation of model.c
 *
 * The gradient by v comes from the tape, shot after shot; L-BFGS or Adam follows it. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fwi_options.h"
#include "invert.h"
#include "observe.h"
#include "report.h"

static volatile sig_atomic_t stop;

/* The first Ctrl-C ends the search after its iteration, the second one the program. */
static void on_interrupt(int number) {
    static const char text[] = "\nfwi: ends after this iteration\n";
    (void)number;
    stop = 1;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) stop = 1;
}

/* The benchmark's file: in $TILETAPE_DATA, else in the checkout that the program was built in. */
static void find_data(char *path, size_t bytes) {
    static const char name[] = "marmousi_vp_10m.npy", folder[] = "examples/fwi/data";
    const char *given = getenv("TILETAPE_DATA");
    if (given && *given) {
        snprintf(path, bytes, "%s/%s", given, name);
        return;
    }
    char program[3000];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    for (char *slash = strrchr(program, '/'); slash; slash = strrchr(program, '/')) {
        *slash = '\0';
        snprintf(path, bytes, "%s/%s/%s", program, folder, name);
        if (access(path, R_OK) == 0) return;
    }
    refuse("%s is not found; set TILETAPE_DATA to its folder, or use --data", name);
}

static ground load_truth(tile_context *ctx, const fwi_options *o) {
    char path[4096];
    tile_array *array;
    if (o->data)
        snprintf(path, sizeof path, "%s", o->data);
    else
        find_data(path, sizeof path);
    tile_status status = tile_array_load_npy(ctx, path, &array);
    if (status == TILE_E_FILE) refuse("%s", tile_last_error());
    must(status);
    tile_shape shape = tile_array_shape(array);
    tile_dtype dtype = tile_array_dtype(array);
    if (shape.rank != 2 || (dtype != TILE_F32 && dtype != TILE_F64))
        refuse("%s: wanted float32 or float64 [depth, distance], got %s of rank %d", path,
               tile_dtype_name(dtype), shape.rank);
    ground file = ground_create(shape.extent[0], shape.extent[1], o->data_spacing);
    array_read(array, file.v);
    tile_array_destroy(array);
    for (int64_t i = 0; i < file.nz * file.nx; i++) {
        if (!(file.v[i] >= 100 && file.v[i] <= 20000))
            refuse("%s: wanted velocities of 100 to 20000 m/s, got %g", path, file.v[i]);
    }
    ground truth = ground_resample(&file, o->spacing);
    ground_clear(&file);
    return truth;
}

/* Rounded down to three digits. */
static double round_down(double x) {
    double unit = pow(10, floor(log10(x)) - 2);
    return floor(x / unit) * unit;
}

static survey plan(const fwi_options *o, const ground *truth, double low, double high) {
    const double depth = 50, sponge_speed = 2000; /* m; m/s: the sponge is one such wave wide */
    survey s = {.nz = truth->nz, .nx = truth->nx, .spacing = truth->spacing};
    s.row = (int64_t)fmax(1, round(depth / s.spacing));
    s.side = (int64_t)fmax(20, ceil(sponge_speed / (o->frequency * s.spacing)));
    s.free_surface = strcmp(o->top, "free") == 0;
    s.top = s.free_surface ? 0 : s.side;
    s.shots = o->shots;
    s.frequency = o->frequency;
    s.dt = o->dt > 0 ? o->dt : round_down(0.6 * s.spacing / high);
    s.steps = (int64_t)fmin(1e9, ceil(o->duration / s.dt - 1e-9));
    if (s.nz < s.row + 3 || s.nx < 3)
        refuse("the model has only %lld x %lld samples; use a smaller --spacing", (long long)s.nz,
               (long long)s.nx);
    if (s.shots > s.nx) refuse("use at most %lld --shots, one a column", (long long)s.nx);
    char message[256];
    if (!survey_check(&s, low, high, message, sizeof message)) refuse("%s", message);
    double bytes = survey_tape_bytes(&s, sizeof(float));
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (memory > 0 && bytes > 0.9 * memory)
        refuse("the tape of a shot takes %.1f GB, this machine has %.1f; use a larger --spacing or "
               "a shorter --duration",
               bytes / 1e9, memory / 1e9);
    return s;
}

static void print_plan(const fwi_options *o, const survey *s, double low, double high,
                       int threads) {
    printf(
        "grid      %lld x %lld at %g m, %.2f km deep, %.2f km wide; sponge of %lld cells, %s top\n",
        (long long)s->nz, (long long)s->nx, s->spacing, (double)(s->nz - 1) * s->spacing / 1000,
        (double)(s->nx - 1) * s->spacing / 1000, (long long)s->side, o->top);
    printf("time      %lld steps of %.3g ms; CFL number %.3f (limit %.3f)\n", (long long)s->steps,
           s->dt * 1000, survey_cfl(s, high), SURVEY_CFL_LIMIT);
    printf("waves     Ricker %g Hz; %.1f points per shortest wavelength (limit %.0f)\n",
           s->frequency, survey_points(s, low), SURVEY_POINTS_LIMIT);
    printf("survey    %lld shots, %lld receivers, %.0f m deep; noise %g\n", (long long)s->shots,
           (long long)s->nx, (double)s->row * s->spacing, o->noise);
    printf(
        "start     true model blurred over %g m, known down to %.0f m; bounds %.0f to %.0f m/s\n",
        o->smooth, (double)s->row * s->spacing, low, high);
    printf("search    %s, %lld iterations; %d threads, about %.0f MB of tape\n", o->optimizer,
           (long long)o->iterations, threads, survey_tape_bytes(s, sizeof(float)) / 1e6);
    fflush(stdout);
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 1;
}

/* Everything between the plan and the result line. */
static void run(const fwi_options *o, tile_context *ctx, const survey *s, const ground *truth,
                double low, double high, double began) {
    ground start = ground_smooth(truth, o->smooth, s->row + 1);
    wave_model m;
    model_create(&m, ctx, TILE_F32, s);
    array_write(m.velocity, truth->v);
    tile_array **observed = observe(&m, o->noise, o->seed);

    inversion v = {.model = &m,
                   .observed = observed,
                   .truth = truth,
                   .known = s->row + 1,
                   .low = low,
                   .high = high,
                   .iterations = o->iterations,
                   .stop = &stop};
    invert_begin(&v, &start);
    if (strcmp(o->optimizer, "adam") == 0)
        invert_adam(&v);
    else
        invert_lbfgs(&v);

    report_velocity(o->out, "true.png", "True model", low, high, truth);
    report_velocity(o->out, "start.png", "Start model", low, high, &start);
    report_velocity(o->out, "inverted.png", "Inverted model", low, high, &v.best);
    report_gradient(o->out, &v.first_gradient);
    report_gather(o->out, &m, s->shots / 2, observed[s->shots / 2], &start, &v.best);
    report_model(o->out, &m, &v.best);
    printf("pictures and inverted.npy are in %s\n", o->out);
    printf("result misfit_ratio=%.4f model_error_ratio=%.4f seconds=%.1f\n",
           ratio(v.misfit, v.first_misfit),
           ratio(ground_error(&v.best, truth), ground_error(&start, truth)),
           clock_seconds() - began);
    invert_end(&v);
    observe_free(observed, s->shots);
    model_destroy(&m);
    ground_clear(&start);
}

int main(int argc, char **argv) {
    double began = clock_seconds();
    fwi_options o = options_parse(argc, argv);
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);

    tile_context *ctx;
    tile_context_options context = {.threads = (int)o.threads};
    must(tile_context_create(&context, &ctx));
    ground truth = load_truth(ctx, &o);
    double low, high;
    ground_range(&truth, &low, &high);
    survey s = plan(&o, &truth, low, high);
    report_folder(o.out);
    print_plan(&o, &s, low, high, tile_context_threads(ctx));
    run(&o, ctx, &s, &truth, low, high, began);
    ground_clear(&truth);
    tile_context_destroy(ctx);
    return 0;
}
