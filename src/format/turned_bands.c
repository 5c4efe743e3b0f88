/* SPDX-License-Identifier: Apache-2.0 */
/* turned_bands.c - rows of matrices that are stored by columns. A row's values lie a column apart, so a band of neighbouring rows is read
 * and turned at a time, and kept for those that ask for the rows beside it: all threads, strip by strip. Two bands, because one thread is
 * still at the end of a band while another begins the next. */
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "format/source_private.h"

enum { BAND_BYTES = 4 << 20, COLUMNS = 64 /* that are turned together */, BANDS = 2 };

typedef struct band {
    const hn_tensor *t; /* NULL: none */
    size_t first, n;    /* as stored, all matrices' rows counted */
    unsigned char *rows;
    size_t room;
} band;

struct hn_turned_bands {
    pthread_mutex_t lock;
    band band[BANDS];
    int newest;
};

hunch_status hn_turned_open(hn_source *s, hunch_error *err) {
    if (s->turned) return HUNCH_OK;
    s->turned = hn_zalloc(1, sizeof *s->turned);
    if (!s->turned) return hn_fail_memory(err, "bands of rows", sizeof *s->turned);
    pthread_mutex_init(&s->turned->lock, NULL);
    return HUNCH_OK;
}

void hn_turned_trim(hn_source *s) {
    for (int i = 0; s->turned && i < BANDS; i++) {
        hn_free(s->turned->band[i].rows);
        s->turned->band[i] = (band){0};
    }
}

void hn_turned_close(hn_source *s) {
    if (!s->turned) return;
    hn_turned_trim(s);
    pthread_mutex_destroy(&s->turned->lock);
    hn_free(s->turned);
    s->turned = NULL;
}

/* Columns [n][rows] become parts of rows, `apart` bytes from one to the next. */
static void turn(const unsigned char *from, size_t n, size_t rows, size_t element, size_t apart, unsigned char *to) {
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < n; k++) {
            const unsigned char *value = from + (k * rows + i) * element;
            if (element == 2) memcpy(to + i * apart + k * 2, value, 2);
            else memcpy(to + i * apart + k * element, value, element);
        }
}

static hunch_status band_read(const hn_source *s, band *b, size_t columns, size_t element, hunch_error *err) {
    const hn_tensor_view *v = b->t->view;
    const hn_source_file *f = &s->files[v->part[0].file];
    const size_t matrix = b->first / v->rows, row = b->first % v->rows, begin = (size_t)(v->part[0].data - f->map.data);
    unsigned char *room = b->rows + b->n * v->row_bytes;
    hunch_status st = HUNCH_OK;
    for (size_t k = 0; !st && k < columns; k += COLUMNS) {
        const size_t n = columns - k < COLUMNS ? columns - k : COLUMNS;
        for (size_t i = 0; !st && i < n; i++)
            st = hn_map_read(&f->map, f->path, begin + ((matrix * columns + k + i) * v->rows + row) * element, b->n * element,
                             room + i * b->n * element, err);
        if (!st) turn(room, n, b->n, element, v->row_bytes, b->rows + k * element);
    }
    return st;
}

/* The band that has a row. */
static hunch_status band_of(const hn_source *s, const hn_tensor *t, size_t row, band **out, hunch_error *err) {
    const hn_tensor_view *v = t->view;
    const size_t columns = (size_t)t->dims[0], element = v->row_bytes / columns;
    const size_t most = v->row_bytes < BAND_BYTES ? BAND_BYTES / v->row_bytes : 1, i = row % v->rows / most * most;
    hn_turned_bands *all = s->turned;
    for (int k = 0; k < BANDS; k++) {
        *out = &all->band[k];
        if ((*out)->t == t && row >= (*out)->first && row - (*out)->first < (*out)->n) return HUNCH_OK;
    }
    band *b = *out = &all->band[all->newest = (all->newest + 1) % BANDS];
    const size_t n = v->rows - i < most ? v->rows - i : most, room = n * v->row_bytes + COLUMNS * n * element;
    b->t = NULL;
    if (room > b->room) {
        hn_free(b->rows);
        b->rows = hn_alloc(room);
        b->room = b->rows ? room : 0;
        if (!b->rows) return hn_fail_memory(err, t->name, room);
    }
    *b = (band){t, row - row % v->rows + i, n, b->rows, b->room};
    const hunch_status st = band_read(s, b, columns, element, err);
    if (st) b->t = NULL;
    return st;
}

hunch_status hn_turned_read(const hn_source *s, const hn_tensor *t, size_t first, size_t n, size_t step, unsigned char *to,
                            hunch_error *err) {
    const size_t row_bytes = t->view->row_bytes;
    hunch_status st = HUNCH_OK;
    pthread_mutex_lock(&s->turned->lock);
    for (size_t i = 0; !st && i < n; i++) {
        const size_t row = first + i * step;
        band *b;
        st = band_of(s, t, row, &b, err);
        if (!st) memcpy(to + i * row_bytes, b->rows + (row - b->first) * row_bytes, row_bytes);
    }
    pthread_mutex_unlock(&s->turned->lock);
    return st;
}
