/* SPDX-License-Identifier: Apache-2.0 */
/* torch_hostile_test.c - checkpoints that are truncated, or whose archive or stream is invalid: each is refused with an error that
 * names the file. Reads and allocations that fail are errors. Pickles: pickle_test.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fault.h"
#include "format/torch_for_tests.h"

#define CHECKPOINTS HUNCH_TEST_DATA "/checkpoints"

static zip_builder good_archive(void) {
    bytes pickle = pickle_of("w", &GOOD);
    zip_builder z = archive_of(&pickle);
    bytes_free(&pickle);
    assert_bytes_open(&z.b);
    return z;
}

/* ---- whole files ------------------------------------------------------------------------------------------------ */

static void test_truncated_at_every_byte(void **state) {
    (void)state;
    static const char *const files[] = {"small.pt", "stream.pt", "typed.pt"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[600];
        snprintf(path, sizeof path, CHECKPOINTS "/%s", files[i]);
        bytes b = test_file_read(path);
        assert_bytes_open(&b);
        for (size_t n = b.size; n-- > 0;) {
            b.size = n;
            assert_bytes_refused(&b, "");
        }
        bytes_free(&b);
    }
}

/* A file with a byte changed, if it opens, can be read to its last byte. */
static void test_every_byte_changed(void **state) {
    (void)state;
    static const char *const files[] = {CHECKPOINTS "/typed.pt", CHECKPOINTS "/stream.pt"};
    static const unsigned char values[] = {0x00, 0x01, '(', 0x7f, 0xff};
    for (size_t k = 0; k < 2; k++) {
        bytes b = test_file_read(files[k]);
        for (size_t i = 0; i < b.size; i++) {
            const unsigned char old = b.at[i];
            for (size_t j = 0; j < sizeof values; j++) {
                hunch_error err = {0};
                b.at[i] = values[j];
                hunch_status status = open_bytes(&b, &err);
                assert_true(status == HUNCH_OK || (status == HUNCH_REFUSED && err.message[0] != '\0'));
            }
            b.at[i] = old;
        }
        bytes_free(&b);
    }
}

static void test_other_files(void **state) {
    (void)state;
    static const char *const texts[] = {
        "", "P", "PK\3\4", "GGUF", "\x80\x02}.", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bytes b = {0};
        pk_raw(&b, texts[i]);
        assert_bytes_refused(&b, i == 2 ? "no end record" : "no checkpoint of PyTorch");
        bytes_free(&b);
    }
}

/* ---- archives --------------------------------------------------------------------------------------------------- */

/* One number of a good archive changed. */
typedef struct poke {
    enum { OF_END, OF_LISTED, OF_HEADER } of;
    size_t at;
    uint64_t value;
    size_t n;
    const char *says;
} poke;

static void test_archives_that_lie(void **state) {
    (void)state;
    static const poke cases[] = {
        {OF_END, 4, 1, 2, "of several disks"},
        {OF_END, 10, 3, 2, "the place of its list"},
        {OF_END, 10, 1, 2, "its list is longer than its entries"},
        {OF_END, 10, 0xFFFF, 2, "the place of its list"},
        {OF_END, 12, 0xFFFFFFFF, 4, "the place of its list"},
        {OF_END, 16, 0, 4, "the place of its list"},
        {OF_END, 20, 1, 2, "no end record"},
        {OF_LISTED, 0, 0, 4, "an entry of its list is invalid"},
        {OF_LISTED, 8, 1, 2, "a/data/0 is compressed or encrypted"},
        {OF_LISTED, 10, 8, 2, "a/data/0 is compressed or encrypted"},
        {OF_LISTED, 20, 23, 4, "a/data/0 is compressed or encrypted"},
        {OF_LISTED, 24, 23, 4, "storage 0 of tensor w has 23 bytes"},
        {OF_LISTED, 24, 0xFFFFFFFF, 4, "lacks its 64-bit numbers"},
        {OF_LISTED, 24, 0xFFFFFFFE, 4, "reaches into the list of entries"},
        {OF_LISTED, 28, 9, 2, "longer than the list"},
        {OF_LISTED, 28, 7, 2, "its list is longer than its entries"},
        {OF_LISTED, 30, 1, 2, "longer than the list"},
        {OF_LISTED, 32, 1, 2, "longer than the list"},
        {OF_LISTED, 42, 0, 4, "reaches into"},
        {OF_LISTED, 42, 0xFFFFFFF0, 4, "reaches into"},
        {OF_LISTED, 42, 100, 4, "reaches into"},
        {OF_LISTED, 46, 7, 1, "not printable"},
        {OF_LISTED, 46, 'b', 1, "storage 0, which is missing"},
        {OF_HEADER, 0, 0, 4, "header of entry a/data/0 is not where"},
        {OF_HEADER, 26, 7, 2, "header of entry a/data/0 is not where"},
        {OF_HEADER, 28, 6, 2, "entry a/data/0 has 24 bytes, its place 23"},
        {OF_HEADER, 28, 0xFFFF, 2, "its place 0"},
        {OF_HEADER, 30, 'b', 1, "header of entry a/data/0 is not where"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zip_builder z = good_archive();
        const poke *c = &cases[i];
        const size_t from = c->of == OF_END ? z.end : c->of == OF_LISTED ? z.listed[1] : z.headers[1];
        zip_poke(&z, from + c->at, c->value, c->n);
        assert_bytes_refused(&z.b, c->says);
        bytes_free(&z.b);
    }
}

static void test_archives_of_wrong_entries(void **state) {
    (void)state;
    static const struct {
        const char *name, *data, *says;
    } extra[] = {
        {"a/data/0", "x", "two entries are called a/data/0"},
        {"b/data.pkl", "x", "two entries called data.pkl"},
        {"a/byteorder", "big", "not little-endian"},
        {"a/byteorder", "little?", "not little-endian"},
        {"a/byteorder", "little", NULL},
        {"b/byteorder", "big", NULL}, /* of something else */
        {"a/b/data.pkl", "x", NULL},
        {"/data.pkl", "x", "two entries called data.pkl"},
    };
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
        zip_builder z = {0};
        bytes pickle = pickle_of("w", &GOOD);
        zip_add(&z, "a/data.pkl", pickle.at, pickle.size);
        zip_add(&z, "a/data/0", (float[6]){0}, 24);
        zip_add(&z, extra[i].name, extra[i].data, strlen(extra[i].data));
        zip_finish(&z);
        if (extra[i].says != NULL)
            assert_bytes_refused(&z.b, extra[i].says);
        else
            assert_bytes_open(&z.b);
        bytes_free(&z.b);
        bytes_free(&pickle);
    }
    zip_builder none = {0};
    zip_add(&none, "data.pkl", "x", 1);
    zip_finish(&none);
    assert_bytes_refused(&none.b, "a zip archive without NAME/data.pkl");
    bytes_free(&none.b);
}

/* Two entries of the list at one offset of the file, and one inside the other. */
static void test_overlapping_entries(void **state) {
    (void)state;
    for (size_t inside = 0; inside < 2; inside++) {
        bytes pickle = pickle_of("w", &GOOD), hidden = {0};
        zip_builder z = {0};
        bytes_number(&hidden, 0x04034b50, 4);
        bytes_zeros(&hidden, 22);
        bytes_number(&hidden, 8, 2);
        bytes_zeros(&hidden, 2);
        pk_raw(&hidden, "a/data/1");
        zip_add(&z, "a/data.pkl", pickle.at, pickle.size);
        zip_add(&z, "a/data/0", hidden.at, hidden.size); /* bytes that look like a header */
        zip_add(&z, "a/data/1", "", 0);
        zip_finish(&z);
        zip_poke(&z, z.listed[2] + 42, z.headers[1] + (inside ? 30 + 8 + 5 : 0), 4);
        assert_bytes_refused(&z.b, "reaches into");
        bytes_free(&z.b);
        bytes_free(&pickle);
        bytes_free(&hidden);
    }
}

/* The 64-bit form with small numbers, and with wrong numbers. */
static void test_zip64(void **state) {
    (void)state;
    enum { PLACE_OFFSET = 1 << 20 }; /* replaced by the offset of the place record */
    static const struct {
        size_t at; /* in the zip64 end record, or 100: in the place record, 200: in the extra field */
        uint64_t value;
        const char *says;
    } cases[] = {
        {0, 0, NULL},
        {32, UINT64_MAX, "the place of its list"},
        {40, UINT64_MAX, "the place of its list"},
        {40, 47, "the place of its list"},
        {48, UINT64_MAX, "the place of its list"},
        {100 + 8, UINT64_MAX, "lies behind its end"},
        {100 + 8, PLACE_OFFSET, "lies behind its end"},
        {100 + 8, 0, "no readable zip64 end record"},
        {200 + 4, UINT64_MAX, "reaches into"},
        {200 + 4, 23, "storage 0 of tensor w has 23 bytes"},
        {200 + 12, 23, "compressed or encrypted"},
        {200 + 20, UINT64_MAX - 40, "reaches into"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        zip_builder z = good_archive();
        const size_t header = z.headers[1];
        z.b.size = z.end;
        bytes_number(&z.b, 1, 2); /* the last entry gets an extra field */
        bytes_number(&z.b, 24, 2);
        bytes_number(&z.b, 24, 8);
        bytes_number(&z.b, 24, 8);
        bytes_number(&z.b, header, 8);
        zip_poke(&z, z.listed[1] + 20, 0xFFFFFFFFFFFFFFFF, 8);
        zip_poke(&z, z.listed[1] + 30, 28, 2);
        zip_poke(&z, z.listed[1] + 42, 0xFFFFFFFF, 4);
        const size_t extra = z.end, end = z.b.size;
        bytes_number(&z.b, 0x06064b50, 4);
        bytes_number(&z.b, 44, 8);
        bytes_zeros(&z.b, 12);
        bytes_number(&z.b, 2, 8);
        bytes_number(&z.b, 2, 8);
        bytes_number(&z.b, end - z.list, 8);
        bytes_number(&z.b, z.list, 8);
        const size_t place = z.b.size;
        bytes_number(&z.b, 0x07064b50, 4);
        bytes_zeros(&z.b, 4);
        bytes_number(&z.b, end, 8);
        bytes_number(&z.b, 1, 4);
        bytes_number(&z.b, 0x06054b50, 4);
        bytes_zeros(&z.b, 4);
        bytes_number(&z.b, 0xFFFFFFFFFFFFFFFF, 8);
        bytes_number(&z.b, 0xFFFFFFFF, 4);
        bytes_number(&z.b, 3, 2);
        pk_raw(&z.b, "hi!"); /* a comment */
        if (cases[i].says == NULL) {
            assert_bytes_open(&z.b);
        } else {
            const size_t at = cases[i].at;
            zip_poke(&z,
                     at >= 200   ? extra + at - 200
                     : at >= 100 ? place + at - 100
                                 : end + at,
                     cases[i].value == PLACE_OFFSET ? place : cases[i].value, 8);
            assert_bytes_refused(&z.b, cases[i].says);
        }
        bytes_free(&z.b);
    }
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

#define MAGIC "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."

typedef struct stream {
    const char *version, *machine, *keys;
    int64_t elements;
    size_t n_data;
} stream;

static bytes stream_of(const stream *s) {
    bytes b = {0}, pickle = pickle_of("w", &GOOD);
    bytes_put(&b, MAGIC, sizeof MAGIC - 1);
    pk_raw(&b, s->version);
    pk_raw(&b, s->machine);
    bytes_put(&b, pickle.at, pickle.size);
    pk_raw(&b, s->keys);
    bytes_number(&b, (uint64_t)s->elements, 8);
    bytes_zeros(&b, s->n_data);
    bytes_free(&pickle);
    return b;
}

static void test_streams_that_lie(void **state) {
    (void)state;
#define LITTLE "}U\x0dlittle_endian\x88s."
#define VERSION "M\xe9\x03."
    static const struct {
        stream s;
        const char *says;
    } cases[] = {
        {{VERSION, LITTLE,
          "](U\x01"
          "0e.",
          6, 24},
         NULL},
        {{VERSION, LITTLE,
          "](U\x01"
          "0e.",
          6, 30},
         NULL}, /* with trailing data */
        {{"M\xe8\x03.", LITTLE,
          "](U\x01"
          "0e.",
          6, 24},
         "unknown version"},
        {{"N.", LITTLE,
          "](U\x01"
          "0e.",
          6, 24},
         "unknown version"},
        {{VERSION, "}U\x0dlittle_endian\x89s.",
          "](U\x01"
          "0e.",
          6, 24},
         "not little-endian"},
        {{VERSION, "}.",
          "](U\x01"
          "0e.",
          6, 24},
         "not little-endian"},
        {{VERSION, "].",
          "](U\x01"
          "0e.",
          6, 24},
         "not little-endian"},
        {{VERSION, LITTLE,
          "](U\x01"
          "0e.",
          6, 23},
         "expected 6 within the file"},
        {{VERSION, LITTLE,
          "](U\x01"
          "0e.",
          7, 28},
         "has 7 elements"},
        {{VERSION, LITTLE,
          "](U\x01"
          "0e.",
          -1, 24},
         "expected 6 within the file"},
        {{VERSION, LITTLE,
          "](U\x01"
          "0U\x01"
          "0e.",
          6, 100},
         "comes twice"},
        {{VERSION, LITTLE,
          "](U\x01"
          "1e.",
          6, 24},
         "key 0 of its storages is none of the dictionary's"},
        {{VERSION, LITTLE, "](Ne.", 6, 24}, "key 0 of its storages is none of the dictionary's"},
        {{VERSION, LITTLE, "].", 6, 24}, "storage 0, which is missing"},
        {{VERSION, LITTLE, "}.", 6, 24}, "are no list"},
        {{VERSION, LITTLE,
          "](U\x01"
          "0",
          6, 24},
         "its pickle has opcode 0x06"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = stream_of(&cases[i].s);
        if (cases[i].says != NULL)
            assert_bytes_refused(&b, cases[i].says);
        else
            assert_bytes_open(&b);
        bytes_free(&b);
    }
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

/* Each call of one kind fails in turn: the status of that kind, until no call is left to fail. */
static void check_failures(const char *path, enum hn_fault_kind kind, bool sticky, hunch_status want, int least) {
    hunch_status status = want;
    int failures = 0;
    for (int64_t after = 0; status != HUNCH_OK; after++) {
        hn_source *s = NULL;
        hunch_error err = {0};
        int64_t to[4];
        hn_fault_arm(kind, after, sticky);
        status = hn_source_open_head(&s, path, &err);
        if (status == HUNCH_OK && hn_source_find(s, "d2t") != NULL)
            status = hn_source_read_integers(s, hn_source_find(s, "d2t"), 4, -2, INT64_MAX, to, &err);
        hn_fault_arm(kind, -1, false);
        hn_source_close(&s);
        if (status != HUNCH_OK) {
            if (status != want || err.message[0] == '\0')
                fail_msg("%s: call %d failed: %d \"%s\"", path, (int)after, status, err.message);
            failures++;
        }
    }
    assert_true(failures >= least);
}

static void test_failures(void **state) {
    (void)state;
    static const char *const files[] = {CHECKPOINTS "/small.pt", CHECKPOINTS "/stream.pt",
                                        HUNCH_TEST_DATA "/goldens-heads/eagle1-bias-bin/head"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        for (int sticky = 0; sticky < 2; sticky++) {
            check_failures(files[i], HN_FAULT_ALLOC, sticky, HUNCH_NO_MEMORY, 25);
            check_failures(files[i], HN_FAULT_READ, sticky, HUNCH_FAILED, 8);
        }
        check_failures(files[i], HN_FAULT_SHORT, true, HUNCH_OK, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_at_every_byte),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_archives_that_lie),
        cmocka_unit_test(test_archives_of_wrong_entries),
        cmocka_unit_test(test_overlapping_entries),
        cmocka_unit_test(test_zip64),
        cmocka_unit_test(test_streams_that_lie),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
