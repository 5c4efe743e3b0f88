/* SPDX-License-Identifier: Apache-2.0 */
/* transposed_bands.c - rows of matrices that are stored by columns. A row's values lie a column apart, so a band of neighbouring rows is
 * read and turned at a time, and kept for those that ask for the rows beside it: all threads, strip by strip. There are two bands for each
 * kind of matrices that are read together (codes, scales and zeros of packed integers), because one thread is still at the end of a band
 * while another begins the next; of the two that which was asked for longest ago makes way. */
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "format/source_private.h"

enum { BAND_BYTES = 16 << 20, COLUMNS = 64 /* that are turned together */, BANDS = 2 * HN_COLUMN_KINDS };

typedef struct band {
    hn_by_columns of;      /* of.part.data NULL: none */
    size_t first, n;    /* as stored, all matrices' rows counted */
    unsigned char *rows;
    size_t room;
    uint64_t asked;     /* when, by the number of the question */
} band;

struct hn_transposed_bands {
    pthread_mutex_t lock;
    band band[BANDS];
    uint64_t asked;
};

hunch_status hn_transposed_open(hn_source *s, hunch_error *err) {
    if (s->transposed) return HUNCH_OK;
    s->transposed = hn_zalloc(1, sizeof *s->transposed);
    if (!s->transposed) return hn_fail_memory(err, "bands of rows", sizeof *s->transposed);
    pthread_mutex_init(&s->transposed->lock, NULL);
    return HUNCH_OK;
}

void hn_transposed_trim(hn_source *s) {
    for (int i = 0; s->transposed && i < BANDS; i++) {
        hn_free(s->transposed->band[i].rows);
        s->transposed->band[i] = (band){0};
    }
}

void hn_transposed_close(hn_source *s) {
    if (!s->transposed) return;
    hn_transposed_trim(s);
    pthread_mutex_destroy(&s->transposed->lock);
    hn_free(s->transposed);
    s->transposed = NULL;
}

/* Columns [n][rows] become parts of rows, `apart` bytes from one to the next. Some rows at a time: columns lie a power of two apart as
 * often as not, and what is read of one must be used before the next ones take its place in the cache. */
static inline __attribute__((always_inline)) void turn_elements(const unsigned char *from, size_t n, size_t rows, size_t element,
                                                                size_t apart, unsigned char *to) {
    enum { TOGETHER = 16 };
    for (size_t begin = 0; begin < rows; begin += TOGETHER) {
        const size_t end = rows - begin < TOGETHER ? rows : begin + TOGETHER;
        for (size_t k = 0; k < n; k++)
            for (size_t i = begin; i < end; i++) memcpy(to + i * apart + k * element, from + (k * rows + i) * element, element);
    }
}

static void turn(const unsigned char *from, size_t n, size_t rows, size_t element, size_t apart, unsigned char *to) {
    if (element == 2) turn_elements(from, n, rows, 2, apart, to);
    else if (element == 4) turn_elements(from, n, rows, 4, apart, to);
    else turn_elements(from, n, rows, element, apart, to);
}

static hunch_status band_read(const hn_source *s, band *b, hunch_error *err) {
    const hn_by_columns *c = &b->of;
    const hn_source_file *f = &s->files[c->part.file];
    const size_t element = c->element, row_bytes = c->columns * element;
    const size_t matrix = b->first / c->rows, row = b->first % c->rows, begin = (size_t)(c->part.data - f->map.data);
    unsigned char *room = b->rows + b->n * row_bytes;
    hunch_status st = HUNCH_OK;
    for (size_t k = 0; !st && k < c->columns; k += COLUMNS) {
        const size_t n = c->columns - k < COLUMNS ? c->columns - k : COLUMNS;
        const size_t together = b->n == c->rows ? n : 1; /* whole columns lie one after another */
        for (size_t i = 0; !st && i < n; i += together)
            st = hn_map_read(&f->map, f->path, begin + ((matrix * c->columns + k + i) * c->rows + row) * element,
                             together * b->n * element, room + i * b->n * element, err);
        if (!st) turn(room, n, b->n, element, row_bytes, b->rows + k * element);
    }
    return st;
}

/* The band that has a row. */
static hunch_status band_of(const hn_source *s, const hn_by_columns *c, size_t row, band **out, hunch_error *err) {
    const size_t row_bytes = c->columns * c->element;
    const size_t most = row_bytes < BAND_BYTES ? BAND_BYTES / row_bytes : 1, i = row % c->rows / most * most;
    hn_transposed_bands *all = s->transposed;
    band *b = &all->band[2 * c->kind];
    all->asked++;
    for (int k = 2 * c->kind; k < 2 * c->kind + 2; k++) {
        *out = &all->band[k];
        if ((*out)->asked < b->asked) b = *out;
        if ((*out)->of.part.data != c->part.data || row < (*out)->first || row - (*out)->first >= (*out)->n) continue;
        (*out)->asked = all->asked;
        return HUNCH_OK;
    }
    *out = b;
    const size_t n = c->rows - i < most ? c->rows - i : most, room = n * row_bytes + COLUMNS * n * c->element;
    b->of.part.data = NULL;
    if (room > b->room) {
        hn_free(b->rows);
        b->rows = hn_alloc(room);
        b->room = b->rows ? room : 0;
        if (!b->rows) return hn_fail_memory(err, "a band of rows", room);
    }
    *b = (band){*c, row - row % c->rows + i, n, b->rows, b->room, all->asked};
    const hunch_status st = band_read(s, b, err);
    if (st) b->of.part.data = NULL;
    return st;
}

hunch_status hn_transposed_read(const hn_source *s, const hn_by_columns *c, size_t first, size_t n, size_t step, unsigned char *to,
                            hunch_error *err) {
    const size_t row_bytes = c->columns * c->element;
    hunch_status st = HUNCH_OK;
    pthread_mutex_lock(&s->transposed->lock);
    for (size_t i = 0; !st && i < n; i++) {
        const size_t row = first + i * step;
        band *b;
        st = band_of(s, c, row, &b, err);
        if (!st) memcpy(to + i * row_bytes, b->rows + (row - b->first) * row_bytes, row_bytes);
    }
    pthread_mutex_unlock(&s->transposed->lock);
    return st;
}
