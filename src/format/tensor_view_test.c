/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_view_test.c - tensors whose bytes are put together when they are read: every piece of them, of any size and from any byte on,
 * against tensors that are put together as a whole; MXFP4's parts, and pairs that do not fit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "format/bytes_for_tests.h"
#include "format/source.h"

enum { EXPERTS = 3, ROWS = 10, BLOCKS = 2, IN = 32 * BLOCKS, MOST = 1 << 16 };

static uint64_t rng = 11;

static size_t below(size_t n) {
    return (size_t)(hn_splitmix(&rng) % n);
}

/* A folder with tensors of random bytes, one after another, as a head lists them. */
static void write_folder(const char *tensors, unsigned char *data, size_t size) {
    char path[1400];
    bytes b = {0};
    for (size_t i = 0; i < size; i++) data[i] = (unsigned char)below(256);
    bytes_text(&b, tensors);
    bytes_put(&b, data, size);
    (void)mkdir(test_path("view"), 0700);
    snprintf(path, sizeof path, "%s/model.safetensors", test_path("view"));
    test_file_write(path, b.at, b.size);
    bytes_free(&b);
    snprintf(path, sizeof path, "%s/config.json", test_path("view"));
    test_file_write(path, "{\"model_type\": \"x\"}", 19);
}

static hn_source *open_folder(void) {
    hn_source *s = NULL;
    hunch_error err = {0};
    if (hn_source_open(&s, test_path("view"), &err)) fail_msg("%s", err.message);
    return s;
}

/* The number of row i of `rows` as it is stored, if they alternate. */
static size_t alternating(size_t i, size_t rows) {
    return i < rows / 2 ? 2 * i : 2 * (i - rows / 2) + 1;
}

static void check_pieces(const hn_source *s, const hn_tensor *t, const unsigned char *want, size_t size) {
    unsigned char got[MOST];
    hunch_error err = {0};
    assert_non_null(t->view);
    assert_null(t->data);
    assert_int_equal(t->bytes, size);
    for (int i = 0; i < 400; i++) {
        const size_t off = i == 0 ? 0 : below(size), n = i == 0 ? size : below(i % 2 ? 40 : size - off + 1);
        if (off + n > size) continue;
        memset(got, 0xee, sizeof got);
        if (hn_source_read(s, t, off, n, got, &err)) fail_msg("%s", err.message);
        if (memcmp(got, want + off, n)) fail_msg("%s: bytes %zu to %zu differ", t->name, off, off + n);
        assert_int_equal(got[n], 0xee);
    }
}

/* ---- floats -------------------------------------------------------------------------------------------------------- */

static void test_turned(void **state) {
    (void)state;
    enum { WIDTH = 12, HEIGHT = 7, SIZE = EXPERTS * WIDTH * HEIGHT * 2 };
    for (int way = 0; way < 3; way++) { /* turned, alternating, both */
        unsigned char data[SIZE], want[SIZE];
        const bool turn = way != 1, pairs = way > 0;
        const size_t rows = turn ? WIDTH : HEIGHT + 1, in = turn ? HEIGHT : SIZE / (2 * EXPERTS * (HEIGHT + 1));
        char head[200];
        const size_t size = 2 * EXPERTS * rows * in;
        snprintf(head, sizeof head, "{\"x\": {\"dtype\": \"BF16\", \"shape\": [%d, %zu, %zu], \"data_offsets\": [0, %zu]}}", EXPERTS,
                 turn ? in : rows, turn ? rows : in, size);
        write_folder(head, data, size);
        for (size_t e = 0; e < EXPERTS; e++)
            for (size_t r = 0; r < rows; r++)
                for (size_t k = 0; k < in; k++) {
                    const size_t row = pairs ? alternating(r, rows) : r;
                    const size_t from = turn ? (e * in + k) * rows + row : (e * rows + row) * in + k;
                    memcpy(want + 2 * ((e * rows + r) * in + k), data + 2 * from, 2);
                }
        hn_source *s = open_folder();
        hn_tensor *t = hn_source_take(s, "x");
        for (int again = 0; again < 2; again++) { /* the second time it is so already */
            if (turn) assert_int_equal(hn_source_turn(s, t, NULL), HUNCH_OK);
            if (pairs) assert_int_equal(hn_source_alternate(t, NULL), HUNCH_OK);
        }
        assert_true(t->dims[0] == in && t->dims[1] == rows && t->dims[2] == EXPERTS);
        check_pieces(s, t, want, size);
        hn_file_rows at;
        assert_int_equal(hn_tensor_rows(t, 0, &at), !turn);
        hn_source_close(&s);
    }
}

/* A matrix of several bands, read strip by strip in two threads' order: each is a step behind the other. */
static void test_bands(void **state) {
    (void)state;
    enum { LONG = 3001, COLUMNS = 801, SIZE = 2 * LONG * COLUMNS * 2, STRIP = 16 };
    unsigned char *data = malloc(SIZE), strip[STRIP * COLUMNS * 2];
    char head[200];
    snprintf(head, sizeof head, "{\"x\": {\"dtype\": \"F16\", \"shape\": [2, %d, %d], \"data_offsets\": [0, %d]}}", COLUMNS, LONG, SIZE);
    write_folder(head, data, SIZE);
    hn_source *s = open_folder();
    hn_tensor *t = hn_source_take(s, "x");
    assert_int_equal(hn_source_turn(s, t, NULL), HUNCH_OK);
    for (size_t i = 0; i < 2 * (2 * LONG / STRIP); i++) {
        const size_t row = (i / 2 + (i % 2 ? 0 : 1)) % (2 * LONG / STRIP) * STRIP;
        if (i > 20 && i % 7 > 1 && row % LONG > 2 * STRIP && row % 1248 > 2 * STRIP) continue; /* ends of bands, and some others */
        assert_int_equal(hn_source_read(s, t, row * COLUMNS * 2, sizeof strip, strip, NULL), HUNCH_OK);
        for (size_t r = row; r < row + STRIP; r++)
            for (size_t k = 0; k < COLUMNS; k++)
                assert_memory_equal(strip + ((r - row) * COLUMNS + k) * 2, data + ((r / LONG * COLUMNS + k) * LONG + r % LONG) * 2, 2);
    }
    hn_source_close(&s);
    free(data);
}

/* Values of vectors that alternate. */
static void test_vectors(void **state) {
    (void)state;
    enum { SIZE = EXPERTS * ROWS * 4 };
    unsigned char data[SIZE], want[SIZE];
    write_folder("{\"x\": {\"dtype\": \"F32\", \"shape\": [3, 10], \"data_offsets\": [0, 120]}}", data, SIZE);
    for (size_t e = 0; e < EXPERTS; e++)
        for (size_t i = 0; i < ROWS; i++) memcpy(want + 4 * (e * ROWS + i), data + 4 * (e * ROWS + alternating(i, ROWS)), 4);
    hn_source *s = open_folder();
    hn_tensor *t = hn_source_take(s, "x");
    assert_int_equal(hn_source_alternate(t, NULL), HUNCH_OK);
    check_pieces(s, t, want, SIZE);
    hn_source_close(&s);
}

/* ---- MXFP4 ---------------------------------------------------------------------------------------------------------- */

#define BLOCKS_AND_SCALES                                                                                         \
    "{\"a.x_blocks\": {\"dtype\": \"U8\", \"shape\": [3, 10, 2, 16], \"data_offsets\": [0, 960]}, "                \
    "\"b\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [1020, 1024]}, "                                 \
    "\"a.x_scales\": {\"dtype\": \"U8\", \"shape\": [3, 10, 2], \"data_offsets\": [960, 1020]}}"
enum { PARTS = EXPERTS * ROWS * BLOCKS, FILE_SIZE = PARTS * 17 + 4 };

/* Weight i of a row as safetensors have it: neighbouring codes in a byte. */
static float weight_of(const unsigned char *data, size_t row, size_t i) {
    const size_t block = row * BLOCKS + i / 32;
    const int byte = data[block * 16 + i % 32 / 2], code = i % 2 ? byte >> 4 : byte & 15;
    return hn_mxfp4_scale(data[PARTS * 16 + block]) * (float)hn_mxfp4_levels[code];
}

static void test_joined(void **state) {
    (void)state;
    unsigned char data[FILE_SIZE], whole[PARTS * 17];
    float got[IN];
    write_folder(BLOCKS_AND_SCALES, data, FILE_SIZE);
    for (int pairs = 0; pairs < 2; pairs++) {
        hn_source *s = open_folder();
        assert_int_equal(hn_source_tensor_count(s), 2);
        assert_null(hn_source_find(s, "a.x_scales"));
        assert_true(!hn_source_find(s, "a.x_blocks") && hn_source_find(s, "b"));
        hn_tensor *t = hn_source_take(s, "a.x");
        assert_true(t->known && t->dtype == HN_MXFP4 && t->n_dims == 3 && !strcmp(t->type_name, "MXFP4"));
        assert_true(t->dims[0] == IN && t->dims[1] == ROWS && t->dims[2] == EXPERTS);
        if (pairs) assert_int_equal(hn_source_alternate(t, NULL), HUNCH_OK);
        assert_int_equal(hn_source_read(s, t, 0, sizeof whole, whole, NULL), HUNCH_OK);
        for (size_t row = 0; row < EXPERTS * ROWS; row++) {
            const size_t stored = pairs ? row / ROWS * ROWS + alternating(row % ROWS, ROWS) : row;
            hn_dequantise(HN_MXFP4, whole + row * BLOCKS * 17, IN, got);
            for (size_t i = 0; i < IN; i++)
                if (got[i] != weight_of(data, stored, i)) fail_msg("row %zu, weight %zu is %g", row, i, (double)got[i]);
            hn_file_rows at;
            assert_true(hn_tensor_rows(t, row, &at));
            assert_memory_equal(at.rows, data + stored * BLOCKS * 16, BLOCKS * 16);
            assert_memory_equal(at.scales, data + PARTS * 16 + stored * BLOCKS, BLOCKS);
            const size_t apart = pairs ? 2 : 1;
            assert_true(at.row_bytes == apart * BLOCKS * 16 && at.scale_bytes == apart * BLOCKS);
        }
        check_pieces(s, t, whole, sizeof whole);
        hn_source_close(&s);
    }
}

static void refused(const char *head, const char *word) {
    unsigned char data[FILE_SIZE];
    hn_source *s = NULL;
    hunch_error err = {0};
    write_folder(head, data, FILE_SIZE);
    assert_int_equal(hn_source_open(&s, test_path("view"), &err), HUNCH_REFUSED);
    if (!strstr(err.message, word)) fail_msg("%s", err.message);
}

static void test_misfits(void **state) {
    (void)state;
    static const char *const scales[] = {"\"U8\", \"shape\": [3, 10, 1]", "\"U8\", \"shape\": [3, 10]", "\"I8\", \"shape\": [3, 10, 2]"};
    static const int sizes[] = {30, 30, 60};
    for (int i = 0; i < 3; i++) {
        char head[400];
        snprintf(head, sizeof head,
                 "{\"x_blocks\": {\"dtype\": \"U8\", \"shape\": [3, 10, 2, 16], \"data_offsets\": [0, 960]}, "
                 "\"x_scales\": {\"dtype\": %s, \"data_offsets\": [960, %d]}}", scales[i], 960 + sizes[i]);
        refused(head, "tensors x_blocks and x_scales: expected U8 [.., 16]");
    }
    refused("{\"x_blocks\": {\"dtype\": \"U8\", \"shape\": [1, 0, 2, 16], \"data_offsets\": [0, 0]}, "
            "\"x_scales\": {\"dtype\": \"U8\", \"shape\": [1, 0, 2], \"data_offsets\": [0, 0]}}", "tensors x_blocks and x_scales");
    refused("{\"x_blocks\": {\"dtype\": \"U8\", \"shape\": [1, 1, 2, 16], \"data_offsets\": [0, 32]}, "
            "\"x\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [34, 38]}, "
            "\"x_scales\": {\"dtype\": \"U8\", \"shape\": [1, 1, 2], \"data_offsets\": [32, 34]}}", "tensor x appears twice");
    /* blocks alone, and other tensors of the name, are nothing special */
    unsigned char data[FILE_SIZE];
    write_folder("{\"x_blocks\": {\"dtype\": \"U8\", \"shape\": [1, 1, 2, 16], \"data_offsets\": [0, 32]}, "
                 "\"y_blocks\": {\"dtype\": \"U8\", \"shape\": [16], \"data_offsets\": [32, 48]}, "
                 "\"y_scales\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [48, 49]}}", data, 49);
    hn_source *s = open_folder();
    assert_int_equal(hn_source_tensor_count(s), 3);
    assert_true(hn_source_find(s, "x_blocks") && hn_source_find(s, "y_scales"));
    hn_source_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_turned), cmocka_unit_test(test_bands),
                                       cmocka_unit_test(test_vectors), cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_misfits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
