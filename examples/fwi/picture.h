/* picture.h: fields as PNG pictures, by cairo. */
#ifndef FWI_PICTURE_H
#define FWI_PICTURE_H

#include <stdint.h>

typedef enum palette { PALETTE_SEQUENTIAL, PALETTE_DIVERGING } palette;

/* Panels side by side with one colour bar. All have one size and share their axes' ranges, which
 * begin at 0; y points down. */
typedef struct figure {
    int64_t rows, columns;
    double height, width; /* of the axes, in their units */
    const char *y_label, *x_label, *bar_label;
    palette palette;
    double low, high;              /* of the colour bar */
    int panel_height, panel_width; /* in pixels, before scaling */
    int panels;
    const char *title[3];
    const double *value[3]; /* [rows, columns] */
} figure;

/* Writes a figure. Returns NULL, or why it could not be written. */
const char *figure_save(const figure *f, const char *path);

#endif
