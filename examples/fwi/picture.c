/* picture.c: panels, axes and a colour bar, drawn by cairo. */
#include "picture.h"

#include <cairo.h>
#include <math.h>
#include <stdio.h>

/* Pixels of a unit below; sizes in units. */
static const double scale = 1.5, text_size = 15, tick_length = 5;
static const double left = 70, right = 92, top = 40, bottom = 56, gap = 24, bar_width = 18;

/* Sequential: viridis (Smith, van der Walt, matplotlib). Diverging: RdBu (Brewer), reversed. */
static const uint32_t sequential[] = {0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e,
                                      0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725};
static const uint32_t diverging[] = {0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7,
                                     0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b, 0x67001f};

typedef struct colours {
    const uint32_t *stop;
    int count;
} colours;

static colours palette_colours(palette p) {
    if (p == PALETTE_DIVERGING) return (colours){diverging, sizeof diverging / sizeof *diverging};
    return (colours){sequential, sizeof sequential / sizeof *sequential};
}

/* 0xRRGGBB at a place in 0..1, clamped. */
static uint32_t colour_at(colours c, double place) {
    if (!(place > 0)) place = 0;
    if (place > 1) place = 1;
    double position = place * (c.count - 1);
    int i = (int)position < c.count - 2 ? (int)position : c.count - 2;
    double f = position - i;
    uint32_t mixed = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        double a = (c.stop[i] >> shift) & 255, b = (c.stop[i + 1] >> shift) & 255;
        mixed |= (uint32_t)lround(a + f * (b - a)) << shift;
    }
    return mixed;
}

/* 1, 2 or 5 times a power of ten, so that a range has at most `most` steps. */
static double tick_step(double range, double most) {
    double power = pow(10, floor(log10(range / most)));
    double ratio = range / most / power;
    return power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
}

/* Text with its anchor at x, y: across 0 left, 0.5 middle, 1 right; y is the baseline. */
static void draw_text(cairo_t *cr, double x, double y, double across, const char *text) {
    cairo_text_extents_t size;
    cairo_text_extents(cr, text, &size);
    cairo_move_to(cr, x - across * size.x_advance, y);
    cairo_show_text(cr, text);
}

/* Text that runs upwards, its middle at x, y. */
static void draw_upwards(cairo_t *cr, double x, double y, const char *text) {
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, -1.5707963267948966);
    draw_text(cr, 0, 0, 0.5, text);
    cairo_restore(cr);
}

static void draw_line(cairo_t *cr, double x0, double y0, double x1, double y1) {
    cairo_move_to(cr, x0, y0);
    cairo_line_to(cr, x1, y1);
    cairo_stroke(cr);
}

static void format_tick(char *text, size_t bytes, double value, double step) {
    int digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    snprintf(text, bytes, "%.*f", digits, fabs(value) < step * 1e-6 ? 0 : value);
}

static void draw_field(cairo_t *cr, const figure *f, const double *value, double x, double y) {
    colours c = palette_colours(f->palette);
    cairo_surface_t *image =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)f->columns, (int)f->rows);
    unsigned char *data = cairo_image_surface_get_data(image);
    int stride = cairo_image_surface_get_stride(image);
    for (int64_t i = 0; data && i < f->rows; i++) {
        uint32_t *row = (uint32_t *)(void *)(data + i * stride);
        for (int64_t j = 0; j < f->columns; j++) {
            double v = value[i * f->columns + j];
            row[j] = colour_at(c, (v - f->low) / (f->high - f->low));
        }
    }
    cairo_surface_mark_dirty(image);
    cairo_save(cr);
    cairo_rectangle(cr, x, y, f->panel_width, f->panel_height);
    cairo_clip(cr);
    cairo_translate(cr, x, y);
    cairo_scale(cr, (double)f->panel_width / (double)f->columns,
                (double)f->panel_height / (double)f->rows);
    cairo_set_source_surface(cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_GOOD);
    cairo_pattern_set_extend(cairo_get_source(cr), CAIRO_EXTEND_PAD);
    cairo_paint(cr);
    cairo_restore(cr);
    cairo_surface_destroy(image);
}

static void draw_x_axis(cairo_t *cr, const figure *f, double x, double y) {
    double step = tick_step(f->width, f->panel_width / 50.0);
    char text[32];
    for (int i = 0; i * step <= f->width * (1 + 1e-9); i++) {
        double at = x + i * step / f->width * f->panel_width;
        draw_line(cr, at, y, at, y + tick_length);
        format_tick(text, sizeof text, i * step, step);
        draw_text(cr, at, y + tick_length + text_size + 1, 0.5, text);
    }
    draw_text(cr, x + f->panel_width / 2.0, y + tick_length + 2.4 * text_size, 0.5, f->x_label);
}

static void draw_y_axis(cairo_t *cr, const figure *f, double x, double y, int labels) {
    double step = tick_step(f->height, f->panel_height / 45.0);
    char text[32];
    for (int i = 0; i * step <= f->height * (1 + 1e-9); i++) {
        double at = y + i * step / f->height * f->panel_height;
        draw_line(cr, x - tick_length, at, x, at);
        format_tick(text, sizeof text, i * step, step);
        if (labels) draw_text(cr, x - tick_length - 4, at + 0.36 * text_size, 1, text);
    }
    if (labels) draw_upwards(cr, x - 46, y + f->panel_height / 2.0, f->y_label);
}

static void draw_bar(cairo_t *cr, const figure *f, double x, double y) {
    colours c = palette_colours(f->palette);
    int slices = (int)lround(f->panel_height * scale);
    double height = f->panel_height, slice = height / slices;
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_NONE);
    for (int i = 0; i < slices; i++) {
        uint32_t rgb = colour_at(c, 1 - (i + 0.5) / slices);
        cairo_set_source_rgb(cr, (rgb >> 16) / 255.0, ((rgb >> 8) & 255) / 255.0,
                             (rgb & 255) / 255.0);
        cairo_rectangle(cr, x, y + i * slice, bar_width, slice);
        cairo_fill(cr);
    }
    cairo_set_antialias(cr, CAIRO_ANTIALIAS_DEFAULT);
    cairo_set_source_rgb(cr, 0, 0, 0);
    cairo_rectangle(cr, x, y, bar_width, height);
    cairo_stroke(cr);
    double range = f->high - f->low, step = tick_step(range, height / 45.0);
    char text[32];
    int first = (int)ceil(f->low / step - 1e-9), last = (int)floor(f->high / step + 1e-9);
    for (int i = first; i <= last; i++) {
        double v = i * step;
        double at = y + height * (1 - (v - f->low) / range);
        draw_line(cr, x + bar_width, at, x + bar_width + tick_length, at);
        format_tick(text, sizeof text, v, step);
        draw_text(cr, x + bar_width + tick_length + 4, at + 0.36 * text_size, 0, text);
    }
    draw_upwards(cr, x + bar_width + 62, y + height / 2, f->bar_label);
}

static void draw_figure(cairo_t *cr, const figure *f) {
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_scale(cr, scale, scale);
    cairo_select_font_face(cr, "sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, text_size);
    cairo_set_line_width(cr, 1);
    double x = left;
    for (int i = 0; i < f->panels; i++) {
        draw_field(cr, f, f->value[i], x, top);
        cairo_set_source_rgb(cr, 0, 0, 0);
        cairo_rectangle(cr, x, top, f->panel_width, f->panel_height);
        cairo_stroke(cr);
        draw_text(cr, x + f->panel_width / 2.0, top - 12, 0.5, f->title[i]);
        draw_x_axis(cr, f, x, top + f->panel_height);
        draw_y_axis(cr, f, x, top, i == 0);
        x += f->panel_width + gap;
    }
    draw_bar(cr, f, x - gap + 16, top);
}

const char *figure_save(const figure *f, const char *path) {
    double width = left + f->panels * (f->panel_width + gap) - gap + 16 + right;
    double height = top + f->panel_height + bottom;
    cairo_surface_t *surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * scale), (int)(height * scale));
    cairo_t *cr = cairo_create(surface);
    draw_figure(cr, f);
    cairo_status_t status = cairo_status(cr);
    cairo_destroy(cr);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_write_to_png(surface, path);
    cairo_surface_destroy(surface);
    return status == CAIRO_STATUS_SUCCESS ? NULL : cairo_status_to_string(status);
}
