/* fwi_options.c: the command line as a table. */
#include "fwi_options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { WHOLE, REAL, CHOICE, PATH } kind;

typedef struct option {
    const char *name;
    kind kind;
    size_t at;           /* in fwi_options */
    double low, high;    /* of WHOLE and REAL */
    const char *choices; /* of CHOICE: words apart by | */
    const char *help;
} option;

#define AT(field) offsetof(fwi_options, field)
static const option table[] = {
    {"shots", WHOLE, AT(shots), 1, 10000, NULL, "sources, spread evenly; default 8"},
    {"iterations", WHOLE, AT(iterations), 0, 100000, NULL, "steps of the optimizer; default 12"},
    {"optimizer", CHOICE, AT(optimizer), 0, 0, "lbfgs|adam", "default lbfgs"},
    {"spacing", REAL, AT(spacing), 0.1, 10000, NULL, "grid spacing in m; default 25"},
    {"frequency", REAL, AT(frequency), 0.01, 10000, NULL, "of the Ricker's peak, in Hz; default 4"},
    {"duration", REAL, AT(duration), 0.001, 1000, NULL, "of a shot in s; default 3"},
    {"dt", REAL, AT(dt), 1e-6, 1, NULL, "time step in s; default: CFL number 0.6"},
    {"top", CHOICE, AT(top), 0, 0, "absorbing|free", "the ground's surface; default absorbing"},
    {"smooth", REAL, AT(smooth), 1, 10000, NULL,
     "start model: Gaussian blur of the true one, in m; default 250"},
    {"noise", REAL, AT(noise), 0, 100, NULL,
     "random noise on the observed data, rms relative to theirs; default 0"},
    {"seed", WHOLE, AT(seed), 0, 4294967295.0, NULL, "of the noise; default 1"},
    {"data", PATH, AT(data), 0, 0, NULL,
     "true model, .npy [depth, distance] in m/s; default Marmousi"},
    {"data-spacing", REAL, AT(data_spacing), 0.01, 10000, NULL,
     "of the samples in the file, in m; default 10"},
    {"out", PATH, AT(out), 0, 0, NULL, "folder for pictures and models; default fwi-out"},
    {"threads", WHOLE, AT(threads), 0, 1024, NULL, "0, the default: TILE_THREADS, else all cores"},
};
enum { OPTIONS = sizeof table / sizeof *table };

static const fwi_options defaults = {
    .shots = 8,
    .iterations = 12,
    .seed = 1,
    .spacing = 25,
    .frequency = 4,
    .duration = 3,
    .smooth = 250,
    .data_spacing = 10,
    .top = "absorbing",
    .optimizer = "lbfgs",
    .out = "fwi-out",
};

void refuse(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("fwi: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(2);
}

static void print_help(void) {
    static const char *const argument[] = {"N", "X", NULL, "PATH"};
    puts("fwi: finds the velocity of the ground from recorded waves (full-waveform inversion).\n"
         "\n"
         "Waves of a true model are computed as observed data; a smoothed model is then changed\n"
         "until its waves match them. Writes PNGs and the inverted model.\n");
    for (int i = 0; i < OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s %s", table[i].name,
                 table[i].kind == CHOICE ? table[i].choices : argument[table[i].kind]);
        printf("  %-28s %s\n", left, table[i].help);
    }
    printf("  %-28s this text\n", "--help");
}

static const option *find_option(const char *word, size_t length) {
    for (int i = 0; i < OPTIONS; i++) {
        if (strlen(table[i].name) == length && strncmp(table[i].name, word, length) == 0)
            return &table[i];
    }
    return NULL;
}

static double parse_number(const option *o, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || errno || !(value >= o->low && value <= o->high) ||
        (o->kind == WHOLE && value != floor(value)))
        refuse("--%s takes a %s from %.10g to %.10g, not '%s'", o->name,
               o->kind == WHOLE ? "whole number" : "number", o->low, o->high, text);
    return value;
}

static const char *parse_choice(const option *o, const char *text) {
    const char *second = strchr(o->choices, '|') + 1;
    size_t first = (size_t)(second - 1 - o->choices);
    bool known = strcmp(text, second) == 0 ||
                 (strlen(text) == first && strncmp(text, o->choices, first) == 0);
    if (!known)
        refuse("--%s takes %.*s or %s, not '%s'", o->name, (int)first, o->choices, second, text);
    return text;
}

static void set_option(fwi_options *options, const option *o, const char *text) {
    void *field = (char *)options + o->at;
    switch (o->kind) {
    case WHOLE: *(int64_t *)field = (int64_t)parse_number(o, text); break;
    case REAL: *(double *)field = parse_number(o, text); break;
    case CHOICE: *(const char **)field = parse_choice(o, text); break;
    case PATH:
        if (!*text) refuse("--%s needs a path", o->name);
        *(const char **)field = text;
        break;
    }
}

fwi_options options_parse(int argc, char **argv) {
    fwi_options options = defaults;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0) {
            print_help();
            exit(0);
        }
        size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
        const option *o = find_option(word + (length ? 2 : 0), length);
        if (!o) refuse("there is no option '%s'; --help lists them", word);
        const char *text = word[2 + length] == '=' ? word + 2 + length + 1 : argv[++i];
        if (!text) refuse("--%s needs a value", o->name);
        set_option(&options, o, text);
    }
    return options;
}
