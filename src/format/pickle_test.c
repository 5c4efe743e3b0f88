/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_test.c - pickles of checkpoints that call functions, are invalid, or try to grow without bound: each is refused quickly,
 * with an error that names the file, and nothing of it is executed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/pickle.h"
#include "format/torch_for_tests.h"

/* A checkpoint whose pickle has these opcodes. */
static void assert_steps_refused(const char *steps, size_t n, const char *says) {
    bytes b = {0};
    bytes_put(&b, steps, n);
    assert_pickle_refused(&b, says);
}
#define REFUSED(steps, says) assert_steps_refused("\x80\x02" steps, sizeof("\x80\x02" steps) - 1, says)

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* Every way to call a function: nothing is executed, and the error names the function. */
static void test_nothing_is_executed(void **state) {
    (void)state;
    static const char *const functions[][2] = {{"os", "system"},        {"posix", "system"},
                                               {"builtins", "eval"},    {"__builtin__", "exec"},
                                               {"subprocess", "Popen"}, {"torch", "load"},
                                               {"torch.hub", "load"},   {"collections", "Counter"},
                                               {"torch", "nn.Linear"},  {"torch._utils", "_rebuild_tensor"}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        for (int way = 0; way < 2; way++) {
            char says[100];
            bytes b = {0};
            pk_raw(&b, PK_START);
            pk_text(&b, "w");
            if (way == 0) {
                pk_raw(&b, "c");
                pk_raw(&b, functions[i][0]);
                pk_raw(&b, "\n");
                pk_raw(&b, functions[i][1]);
                pk_raw(&b, "\n");
            } else {
                pk_text(&b, functions[i][0]);
                pk_text(&b, functions[i][1]);
                pk_raw(&b, "\x93");
            }
            pk_raw(&b, "(");
            pk_text(&b, "touch ran");
            pk_raw(&b, "tR" PK_END);
            snprintf(says, sizeof says,
                     "names %s.%s; expected only tensors and containers of them (nothing was executed)",
                     functions[i][0], functions[i][1]);
            assert_pickle_refused(&b, says);
        }
    }
    assert_false(test_file_exists("ran"));
}

static void test_calls(void **state) {
    (void)state;
    REFUSED("ctorch\nFloatStorage\n)R.", "its pickle calls torch.FloatStorage");
    REFUSED("ccollections\nOrderedDict\n(]tR.", "its pickle calls collections.OrderedDict with arguments");
    REFUSED("ccollections\nOrderedDict\n]R.", "a call of a value that is not a function");
    REFUSED("N)R.", "a call of a value that is not a function");
    REFUSED(")R.", "an opcode needs a value, the stack is empty");
    REFUSED("]}b.", "a state for a value that is not a dictionary");
    REFUSED("}b.", "a state for a value that is not a dictionary");
    REFUSED("NQ.", "to a tensor's storage is not a tuple");
    REFUSED("X\1\0\0\0aN\x93.", "a name that is not a string");
    REFUSED("c\x1b[2J\nx\n.", "names ?[2J.x;"); /* nothing reaches a terminal */
    /* opcodes that make objects, or read from elsewhere */
    static const char steps[] = "iodPRS\x81\x82\x83\x84\x92\x97\x98IL0123glVFp\x8b\x8e\x8f\x90\x91\x96";
    for (size_t i = 0; i + 1 < sizeof steps; i++) {
        char one[4] = {(char)0x80, 2, steps[i], '.'}, says[40];
        snprintf(says, sizeof says, "has opcode 0x%02x at byte 2", (unsigned char)steps[i]);
        if (steps[i] != 'R') assert_steps_refused(one, sizeof one, says);
    }
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

static void test_machine(void **state) {
    (void)state;
    REFUSED("", "it ends before it stops");
    REFUSED(".", "it does not stop with exactly one value");
    REFUSED("NN.", "it does not stop with exactly one value");
    REFUSED("N(.", "it does not stop with exactly one value");
    REFUSED("t.", "an opcode needs a mark, the stack has none");
    REFUSED("u.", "an opcode needs a mark, the stack has none");
    REFUSED("N(\x85.", "an opcode needs a value, the stack is empty"); /* nothing below the mark is used */
    REFUSED("N\x86.", "an opcode needs a value, the stack is empty");
    REFUSED("}(Nu.", "a key without a value");
    REFUSED("}N(u.", "items are added to a value that is not a dictionary");
    REFUSED("](NNu.", "items are added to a value that is not a dictionary");
    REFUSED("}(Ne.", "items are added to a value that is not a list");
    REFUSED("(NNu.", "items are added to a value that is not a dictionary");
    REFUSED("Na.", "items are added to a value that is not a list");
    REFUSED("Ns.", "an opcode needs a value, the stack is empty");
    REFUSED("h\0.", "a memo entry that was not set");
    REFUSED("Nq\1h\0.", "a memo entry that was not set");
    REFUSED("Nq\1h\2.", "a memo entry that was not set");
    REFUSED("j\xff\xff\xff\xff.", "a memo entry that was not set");
    REFUSED("q\0.", "an opcode needs a value, the stack is empty");
    REFUSED("Nr\xff\xff\xff\xff.", "a memo index that is too large");
    REFUSED("Nr\0\0\x40\0.", "a memo index that is too large");
    REFUSED("\x80\x06.", "a pickle of protocol 6");
    REFUSED("\x95\xff\xff\xff\xff\xff\xff\xff\xff.", "a frame longer than the pickle");
    REFUSED("\x8a\x09.........", "an integer of more than 64 bits");
    REFUSED("\x8a\x08.", "it ends within a step");
    REFUSED("J\1\2.", "it ends within a step");
    REFUSED("X\xff\xff\xff\xffx.", "it ends within a text");
    REFUSED("U\2x", "it ends within a text");
    REFUSED("cos", "it ends within a name");
    REFUSED("cos\nsystem", "it ends within a name");
}

/* Values that contain themselves, deep nesting, and sizes that double with every opcode. */
static void test_growth(void **state) {
    (void)state;
    enum { MANY = 1000000 };
    REFUSED("]q\0h\0a.", "not a dictionary");
    REFUSED("}q\0X\1\0\0\0ah\0s.", "holds no tensors");
    REFUSED("}q\0X\5\0\0\0modelh\0s.", "holds no tensors"); /* the inner dictionary is the same one */
    bytes tower = {0}, lists = {0}, doubling = {0}, marks = {0}, values = {0}, named = {0};
    pk_raw(&tower, "N");
    for (int i = 0; i < MANY; i++) {
        pk_raw(&tower, "\x85");
        pk_raw(&lists, "](");
        pk_raw(&marks, "(");
    }
    pk_raw(&tower, ".");
    assert_pickle_refused(&tower, "not a dictionary");
    for (int i = 0; i < MANY; i++) pk_raw(&lists, "e");
    pk_raw(&lists, ".");
    assert_pickle_refused(&lists, "not a dictionary");
    pk_raw(&marks, ".");
    assert_pickle_refused(&marks, "it does not stop with exactly one value");
    pk_raw(&doubling, ")");
    for (int i = 0; i < 100; i++) bytes_put(&doubling, "q\0h\0\x86", 5);
    pk_raw(&doubling, ".");
    assert_pickle_refused(&doubling, "not a dictionary");
    pk_raw(&values, "(");
    for (int i = 0; i <= HN_PICKLE_VALUES; i++) pk_raw(&values, "N");
    assert_pickle_refused(&values, "makes more than 4194304 values");
    bytes_put(&named, "Nq\0", 3);
    for (int i = 0; i <= HN_PICKLE_VALUES; i++) bytes_put(&named, "h\0", 2);
    assert_pickle_refused(&named, "makes more than 4194304 values");
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static void assert_tensor_refused(pk_tensor t, const char *says) {
    bytes b = pickle_of("w", &t);
    assert_pickle_refused(&b, says);
}

static void test_tensors_that_lie(void **state) {
    (void)state;
    const int64_t most = INT64_MAX, half = (int64_t)1 << 32;
    bytes good = pickle_of("w", &GOOD);
    zip_builder z = archive_of(&good);
    assert_bytes_open(&z.b);
    bytes_free(&z.b);
    bytes_free(&good);
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 7, 0, 1, {6}, {1}},
                          "has 24 bytes; expected 7 elements of 4 bytes");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 5, 0, 1, {5}, {1}}, "has 24 bytes; expected 5 elements");
    assert_tensor_refused((pk_tensor){"DoubleStorage", "0", 6, 0, 1, {6}, {1}}, "expected 6 elements of 8 bytes");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", most, 0, 1, {6}, {1}},
                          "expected 9223372036854775807 elements");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", -6, 0, 1, {6}, {1}},
                          "a storage in an unknown form");
    assert_tensor_refused((pk_tensor){"FloatStorage", "", 6, 0, 1, {6}, {1}}, "a storage in an unknown form");
    assert_tensor_refused((pk_tensor){"FloatStorage", "1", 6, 0, 1, {6}, {1}}, "storage 1, which is missing");
    assert_tensor_refused((pk_tensor){"FloatStorage", "../data.pkl", 6, 0, 1, {6}, {1}},
                          "storage ../data.pkl, which is missing");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 1, 1, {6}, {1}},
                          "has 6 elements from 1 on; its storage has 24 bytes");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 7, 1, {0}, {1}}, "0 elements from 7 on");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, -1, 1, {6}, {1}}, "in an unknown form");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, most, 1, {6}, {1}}, "from 9223372036854775807 on");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 2, {3, 3}, {3, 1}}, "has 9 elements");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 2, {half, half}, {half, 1}},
                          "a shape that is too large");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 3, {0, half, half}, {0, 0, 1}},
                          "has a shape that is too large");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 1, {most}, {1}}, "has 9223372036854775807 elements");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 1, {-6}, {1}}, "in an unknown form");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 1, {6}, {-1}}, "in an unknown form");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 2, {3, 2}, {1, 3}},
                          "tensor w is a view whose rows do not follow");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 2, {2, 3}, {0, 1}},
                          "tensor w is a view whose rows do not follow");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 1, {3}, {2}},
                          "tensor w is a view whose rows do not follow");
    assert_tensor_refused((pk_tensor){"FloatStorage", "0", 6, 0, 9, {1, 1, 1, 1, 1, 1, 1, 1, 6}, {0}},
                          "in an unknown form");
    assert_tensor_refused((pk_tensor){"NoStorage", "0", 6, 0, 1, {6}, {1}}, "names torch.NoStorage");
}

/* Tensors of many dimensions are listed, and so are those of none. */
static void test_shapes(void **state) {
    (void)state;
    static const pk_tensor shapes[] = {
        {"FloatStorage", "0", 6, 0, 5, {1, 2, 1, 3, 1}, {9, 3, 9, 1, 9}},
        {"FloatStorage", "0", 6, 5, 0, {0}, {0}},
        {"FloatStorage", "0", 6, 6, 2, {0, 4}, {7, 7}},
        {"FloatStorage", "0", 6, 0, 3, {(int64_t)1 << 32, (int64_t)1 << 32, 0}, {0, 0, 1}},
        {"ByteStorage", "0", 24, 3, 8, {1, 1, 1, 1, 1, 1, 1, 21}, {0, 0, 0, 0, 0, 0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        bytes b = pickle_of("w", &shapes[i]);
        zip_builder z = archive_of(&b);
        assert_bytes_open(&z.b);
        bytes_free(&z.b);
        bytes_free(&b);
    }
}

static void test_calls_of_wrong_arguments(void **state) {
    (void)state;
#define STORAGE                                                                                                        \
    "(U\7storagectorch\nFloatStorage\nU\1"                                                                             \
    "0U\3cpuK\6tQ"
#define TENSOR(arguments) "}U\1wctorch._utils\n_rebuild_tensor_v2\n(" arguments "tRs."
    static const char form[] = "tensor w is described in an unknown form",
                      storage[] = "names a storage in an unknown form";
    REFUSED(TENSOR(""), form);
    REFUSED(TENSOR(STORAGE), form);
    REFUSED(TENSOR(STORAGE "K\0K\6\x85K\1\x85\x89"), form);     /* too few */
    REFUSED(TENSOR(STORAGE "K\0K\6\x85K\1\x85\x89}NNN"), form); /* too many */
    REFUSED(TENSOR("N"
                   "K\0K\6\x85K\1\x85\x89}"),
            form);
    REFUSED(TENSOR("U\7storage"
                   "K\0K\6\x85K\1\x85\x89}"),
            form);
    REFUSED(TENSOR(STORAGE "NK\6\x85K\1\x85\x89}"), form);
    REFUSED(TENSOR(STORAGE "K\0K\6K\1\x85\x89}"), form);        /* the shape is not a tuple */
    REFUSED(TENSOR(STORAGE "K\0K\6\x85K\1K\1\x86\x89}"), form); /* strides of another rank */
    REFUSED(TENSOR(STORAGE "K\0N\x85K\1\x85\x89}"), form);
    REFUSED(TENSOR(STORAGE "K\0\x88\x85K\1\x85\x89}"), form); /* True as a size */
    REFUSED(TENSOR(STORAGE "K\0\x8a\1\xff\x85K\1\x85\x89}"), form); /* -1 */
    REFUSED(TENSOR(STORAGE "K\0J\xff\xff\xff\xff\x85K\1\x85\x89}"), form);
    REFUSED(TENSOR("(tQK\0K\6\x85K\1\x85\x89}"), storage);
    REFUSED(TENSOR("(U\6modulectorch\nFloatStorage\nU\1"
                   "0U\3cpuK\6tQK\0K\6\x85K\1\x85\x89}"),
            storage);
    REFUSED(TENSOR("(U\7storageU\1fU\1"
                   "0U\3cpuK\6tQK\0K\6\x85K\1\x85\x89}"),
            storage);
    REFUSED(TENSOR("(U\7storageccollections\nOrderedDict\nU\1"
                   "0U\3cpuK\6tQK\0K\6\x85K\1\x85\x89}"),
            storage);
    REFUSED(TENSOR("(U\7storagectorch\nFloatStorage\nK\0U\3cpuK\6tQK\0K\6\x85K\1\x85\x89}"), storage);
    REFUSED(TENSOR("(U\7storagectorch\nFloatStorage\nU\1"
                   "0U\3cpuK\6\x88tQK\0K\6\x85K\1\x85\x89}"),
            storage); /* a view */
    /* a type of its own */
    REFUSED("}U\1wctorch._utils\n_rebuild_tensor_v3\n(" STORAGE "K\0K\6\x85K\1\x85\x89}tRs.", form);
    REFUSED("}U\1wctorch._utils\n_rebuild_tensor_v3\n(" STORAGE "K\0K\6\x85K\1\x85\x89}NtRs.", form);
    REFUSED("}U\1wctorch._utils\n_rebuild_tensor_v3\n(" STORAGE "K\0K\7\x85K\1\x85\x89}ctorch\nfloat32\ntRs.",
            "has 7 elements");
    /* a parameter of nothing, and of a parameter */
    REFUSED("}U\1wctorch._utils\n_rebuild_parameter\n)Rs.", "holds no tensors");
    REFUSED("}U\1wctorch._utils\n_rebuild_parameter\n(ctorch._utils\n_rebuild_parameter\n)Rt"
            "Rs.",
            "holds no tensors");
}

static void test_dictionaries(void **state) {
    (void)state;
    static const char *const keys[] = {"K\1", "N", "U\0", "U\1\n", "U\1\xff", ")"};
    REFUSED("N.", "is not a dictionary; expected a dictionary of tensors");
    REFUSED("ctorch\nFloatStorage\n.", "is not a dictionary");
    REFUSED("}.", "its dictionary holds no tensors");
    REFUSED("}U\5modelNs.", "its dictionary holds no tensors");
    REFUSED("}U\5model}s.", "its dictionary holds no tensors");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bytes b = {0};
        pk_raw(&b, PK_START);
        bytes_put(&b, keys[i], i == 2 ? 2 : strlen(keys[i]));
        pk_put_tensor(&b, &GOOD);
        pk_raw(&b, PK_END);
        assert_pickle_refused(&b, i == 0 || i == 1 || i == 5 ? "a key that is not a string" : "the name of tensor 0");
    }
    bytes twice = {0};
    pk_raw(&twice, PK_START);
    for (int i = 0; i < 2; i++) {
        pk_text(&twice, "w");
        pk_put_tensor(&twice, &GOOD);
    }
    pk_raw(&twice, PK_END);
    assert_pickle_refused(&twice, "tensor w appears twice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_executed),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_tensors_that_lie),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_calls_of_wrong_arguments),
        cmocka_unit_test(test_dictionaries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
