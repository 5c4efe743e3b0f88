/* SPDX-License-Identifier: Apache-2.0 */
/* command_bench_test.c - `hunch bench` as a black box: consistency of its figures, the files that it writes, the requests that it answers.
 * No figure is compared with a clock. */
#include "command.h"

#define QUICK "--quick", "--threads", "2"

/* A copy of the file whose name needs escapes in XML, CSV and JSON. */
static const char *model_with_a_name(void) {
    const char *path = path_of("a<b>\"&\".gguf");
    unlink(path);
    assert_int_equal(symlink(STORIES, path), 0);
    return path;
}

static const json_t *pass_of(const json_t *j, size_t i) {
    const json_t *p = json_array_get(get(j, "pass"), i);
    assert_non_null(p);
    return p;
}

static void test_passes(void **state) {
    (void)state;
    json_t *j = json_of("bench", "-m", STORIES, "--rows", "1,4", "--contexts", "16,64,4096", QUICK);
    assert_true(strlen(text_of(j, "cpu")) > 0 && strlen(text_of(j, "isa")) > 0 && strlen(text_of(j, "version")) > 0);
    assert_int_equal(int_of(j, "threads"), 2);
    static const char *const positive[] = {"read_gb_s", "int8_gmac_s", "bf16_gmac_s", "f32_gmac_s", "barrier_us",
                                           "load_s"};
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        assert_true(real_of(j, positive[i]) > 0);
    const json_t *spread = get(j, "read_spread"), *plain = get(j, "plain");
    assert_true(json_number_value(json_array_get(spread, 0)) <= real_of(j, "read_gb_s") &&
                json_number_value(json_array_get(spread, 1)) >= real_of(j, "read_gb_s"));
    assert_string_equal(text_of(j, "model"), STORIES);
    static const char *const of_plain[] = {"prefill_tok_s", "prefill_limit_tok_s", "prefill_fraction", "decode_tok_s",
                                           "decode_limit_tok_s", "decode_fraction", "of_bandwidth"};
    for (size_t i = 0; i < sizeof of_plain / sizeof *of_plain; i++)
        assert_true(real_of(plain, of_plain[i]) > 0);
    /* 5 layers, K and V of 4 heads of 8, two bytes each */
    assert_int_equal(int_of(plain, "kv_bytes"), (int_of(plain, "context") + 1) * 5 * 2 * 4 * 8 * 2);
    assert_int_equal(json_array_size(get(j, "pass")), 4); /* the model has no context of 4,096 */
    for (size_t i = 0; i < 4; i++) {
        const json_t *p = pass_of(j, i), *one = pass_of(j, i & ~(size_t)1),
                     *low = json_array_get(get(p, "ms_spread"), 0);
        const long long rows = int_of(p, "rows"), context = int_of(p, "context");
        assert_int_equal(rows, i % 2 ? 4 : 1);
        assert_int_equal(context, i < 2 ? 16 : 64);
        assert_true(real_of(p, "ms") > 0 && real_of(p, "ms") >= json_number_value(low) && real_of(p, "ms_mad") >= 0);
        assert_true(real_of(p, "fraction") > 0 && real_of(p, "of_bandwidth") > 0);
        near(real_of(p, "flatness"), real_of(p, "ms") / real_of(one, "ms"), 1e-6);
        near(real_of(p, "limit"), real_of(p, "limit_ms") / real_of(one, "ms"), 1e-6);
        near(real_of(p, "kv_bytes"), (double)(rows + context) * 5 * 2 * 4 * 8 * 2, 1e-9);
        const double all = (double)int_of(plain, "weight_bytes") + real_of(p, "kv_bytes");
        assert_true(real_of(p, "limit_ms") * 1e-3 * json_number_value(json_array_get(spread, 1)) * 1e9 >= all * 0.999);
    }
    size_t i;
    const json_t *p;
    json_array_foreach(get(j, "commit"), i, p) {
        assert_int_equal(int_of(p, "commit"), i % 2 ? 2 : 1);
        assert_true(real_of(p, "ms") >= 0);
    }
    assert_int_equal(i, 4);
    json_array_foreach(get(j, "rollback"), i, p) { /* a rollback has two passes, so it takes longer than one */
        static const int commits[] = {1, 3, 8, 1, 6, 16};
        assert_int_equal(int_of(p, "rows"), i < 3 ? 8 : 16);
        assert_int_equal(int_of(p, "commit"), commits[i]);
        assert_int_equal(int_of(p, "context"), 16);
        assert_true(real_of(p, "ms") > 0);
    }
    assert_int_equal(i, 6);
    assert_int_equal(int_of(j, "state_bytes") + int_of(j, "input_bytes"), 0);
    json_decref(j);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* Columns of a line, quoted ones with commas inside; the line must end where they do. */
static int csv_columns(const char **at) {
    int n = 1;
    const char *s = *at;
    for (bool quoted = false; *s && (quoted || *s != '\n'); s++) {
        if (*s == '"')
            quoted = !quoted;
        n += *s == ',' && !quoted;
    }
    assert_int_equal(*s, '\n');
    *at = s + 1;
    return n;
}

static const char *skip_name(const char *s) {
    assert_true((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'));
    return s + strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
}

/* After a tag's name: attributes up to its ">"; *closed: it ends in "/>". */
static const char *skip_attributes(const char *s, bool *closed) {
    for (;;) {
        s += strspn(s, " \n");
        *closed = *s == '/';
        if (*s == '/' || *s == '>')
            return s + 1 + *closed;
        s = skip_name(s);
        assert_true(s[0] == '=' && s[1] == '"');
        s += 2 + strcspn(s + 2, "\"<&");
        assert_int_equal(*s++, '"');
    }
}

static const char *skip_entity(const char *s) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(s, known[i], strlen(known[i])) == 0)
            return s + strlen(known[i]);
    fail_msg("a bare & in \"%.20s\"", s);
    return NULL;
}

/* Fails unless s is one element of XML (no comments, no declarations). Counts elements of a name. */
static int xml_check(const char *s, const char *counted) {
    const char *open[8];
    int depth = 0, n = 0, roots = 0;
    while (*s) {
        if (*s == '&')
            s = skip_entity(s);
        else if (*s != '<') {
            assert_true(depth > 0 || *s == '\n');
            s++;
        } else if (s[1] == '/') {
            const char *name = s + 2, *end = skip_name(name);
            assert_true(depth > 0 && *end == '>');
            assert_int_equal(strncmp(open[--depth], name, (size_t)(end - name)), 0);
            s = end + 1;
        } else {
            const char *name = s + 1, *end = skip_name(name);
            bool closed;
            n += strlen(counted) == (size_t)(end - name) && strncmp(name, counted, strlen(counted)) == 0;
            roots += depth == 0;
            s = skip_attributes(end, &closed);
            assert_true(depth < 8);
            if (!closed)
                open[depth++] = name;
        }
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
    return n;
}

static void test_files(void **state) {
    (void)state;
    const char *model = model_with_a_name();
    char json[320], csv[320];
    snprintf(json, sizeof json, "--json=%s", path_of("b.json"));
    snprintf(csv, sizeof csv, "--csv=%s", path_of("b.csv"));
    result r =
        command("bench", model, "--rows", "1,2,8", "--contexts", "0,40", QUICK, json, csv, "--svg", path_of("b.svg"));
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "limit/t1"));
    assert_null(strchr(r.out, 27));
    json_error_t je;
    json_t *j = json_load_file(path_of("b.json"), 0, &je);
    assert_non_null(j);
    assert_string_equal(text_of(j, "model"), model);
    assert_int_equal(json_array_size(get(j, "pass")), 6);
    char *text = file_read(path_of("b.csv"), NULL);
    int lines = 0, passes = 0;
    for (const char *at = text; *at; lines++) {
        passes += strstr(at, ",pass_ms,") && strstr(at, ",pass_ms,") < strchr(at, '\n');
        assert_int_equal(csv_columns(&at), 19);
    }
    assert_int_equal(passes, 6);
    assert_true(lines > 10);
    assert_non_null(strstr(text, "a<b>\"\"&\"\".gguf\""));
    free(text);
    text = file_read(path_of("b.svg"), NULL);
    assert_int_equal(xml_check(text, "polyline"), 4); /* times and limits of two contexts */
    assert_int_equal(xml_check(text, "circle"), 6);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf\""));
    assert_non_null(strstr(text, "a&lt;b&gt;&quot;&amp;&quot;.gguf"));
    free(text);
    json_decref(j);
    result_free(&r);
    assert_int_equal(access(path_of("b.svg.partial"), F_OK), -1);
    r = command("bench", STORIES, "--rows", "1", "--contexts", "4", QUICK, "--svg", "/nowhere/b.svg");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "/nowhere/b.svg"));
    result_free(&r);
}

/* ---- modes ------------------------------------------------------------------------------------------------------ */

static void test_machine(void **state) {
    (void)state;
    char file[320];
    snprintf(file, sizeof file, "--json=%s", path_of("m.json"));
    result t = command("bench", "--machine", QUICK, "--isa", "ref", file);
    assert_int_equal(t.code, 0);
    assert_non_null(strstr(t.out, "4 KiB pages"));
    result_free(&t);
    json_t *j = json_load_file(path_of("m.json"), 0, NULL);
    assert_non_null(j);
    assert_string_equal(text_of(j, "isa"), "ref");
    assert_null(json_object_get(j, "model"));
    assert_true(json_is_null(get(j, "int8_dot_gmac_s")));
    const json_t *r;
    size_t i;
    int of[3] = {0};
    json_array_foreach(get(j, "read"), i, r) {
        assert_true(real_of(r, "gb_s") > 0);
        assert_true(int_of(r, "page_bytes") == 4096 || int_of(r, "page_bytes") == 2 << 20);
        of[int_of(r, "threads")]++;
    }
    assert_int_equal(of[1], 10); /* five sizes, two kinds of pages */
    assert_int_equal(of[2], 10);
    json_decref(j);
}

static void test_profile(void **state) {
    (void)state;
    json_t *j = json_of("bench", "-m", STORIES, "--profile", "--rows", "1,8", "--contexts", "30", QUICK);
    const json_t *p, *h;
    size_t i, k;
    json_array_foreach(get(j, "profile"), i, p) {
        double sum = 0, read = 0;
        assert_int_equal(int_of(p, "rows"), i ? 8 : 1);
        json_array_foreach(get(p, "phases"), k, h) {
            sum += real_of(h, "us");
            read += real_of(h, "bytes");
            if (strcmp(text_of(h, "name"), "attention") == 0)
                assert_int_equal(int_of(h, "calls"), 5);
        }
        assert_int_equal(k, 11);
        assert_true(sum > 0 && real_of(p, "us") > 0 && read > 260000);
    }
    assert_int_equal(i, 2);
    json_decref(j);
    result t = command("bench", STORIES, "--profile", QUICK);
    assert_int_equal(t.code, 0);
    assert_non_null(strstr(t.out, "8 rows after 256"));
    assert_non_null(strstr(t.out, "gate up"));
    result_free(&t);
}

static void test_requests(void **state) {
    (void)state;
    static const char *const expected[] = {"hunch", "#", "#", "error not a request", "error 65 rows", "#", "#",
                                           "error 2000 rows", "error", "error", "#", "error"};
    result r =
        command_input("info\npass 1 20\npass 64 20\npas 1 20\npass 65 1\nprefill 100\ndecode 5 60\nprefill 2000\n"
                      "pass 1\npass 1 2 3\npass 3 10\n\nquit\npass 1 20\n",
                      "bench", STORIES, "--requests", "--threads", "2");
    assert_int_equal(r.code, 0);
    char *line = r.out;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *end = strchr(line, '\n'), *number_end;
        assert_non_null(end);
        *end = 0;
        if (expected[i][0] == '#') {
            assert_true(strtod(line, &number_end) > 0);
            assert_int_equal(*number_end, 0);
        } else if (strncmp(line, expected[i], strlen(expected[i])) != 0)
            fail_msg("line %zu: expected \"%s\", got \"%s\"", i, expected[i], line);
        line = end + 1;
    }
    assert_int_equal(*line, 0); /* nothing after quit is answered */
    result_free(&r);
    r = command_input("pass 2 0", "bench", STORIES, "--requests"); /* the end of input is an end too */
    assert_int_equal(r.code, 0);
    assert_true(strtod(r.out, NULL) > 0);
    result_free(&r);
}

static void test_refused(void **state) {
    (void)state;
    refused(2, "one of --json, --csv and --svg", "bench", "-m", STORIES, "--json", "--csv");
    refused(2, "no pass", "bench", "-m", STORIES, "--contexts", "5000");
    refused(2, "give one", "bench", "-m", STORIES, "--profile", "--requests");
    refused(2, "leave it out", "bench", "-m", "it", "--machine");
    refused(2, "unexpected argument", "bench", "one", "-m", "two");
    refused(2, "--svg", "bench", "--machine", "--svg", "x.svg");
    refused(2, "lines of its own", "bench", STORIES, "--requests", "--json");
    refused(2, "MODEL is missing", "bench");
    refused(2, "--machine takes no value", "bench", "--machine=all");
    refused(2, "warp9", "bench", "--machine", "--isa", "warp9");
    /* A file that cannot be written is reported before the model is opened. */
    const char *const flags[] = {"--json=%s", "--csv=%s", "--svg=%s"};
    for (int i = 0; i < 3; i++) {
        char flag[400];
        snprintf(flag, sizeof flag, flags[i], folder);
        refused(1, "is a folder", "bench", "/no/such/model.gguf", flag);
        snprintf(flag, sizeof flag, flags[i], "/no/such/folder/file");
        refused(1, "/no/such/folder/file", "bench", "/no/such/model.gguf", flag);
    }
    refused(3, "/no/such/model.gguf", "bench", "/no/such/model.gguf", "--svg", path_of("kept.svg"));
    assert_false(test_file_exists(path_of("kept.svg")) || test_file_exists(path_of("kept.svg.partial")));
}

/* Number of experts that a pass uses: those of one row; with more rows at least as many, at most all, and at most those of each row
 * together. */
static void test_experts(void **state) {
    (void)state;
    json_t *j =
        json_of("bench", "-m", HUNCH_TEST_DATA "/goldens/qwen3_moe-fine", "--rows", "1,2,16", "--contexts", "8", QUICK);
    const json_t *p;
    size_t i;
    double before = 0;
    json_array_foreach(get(j, "pass"), i, p) {
        const double n = real_of(p, "experts");
        assert_true(i == 0 ? n == 8 : n > before && n <= fmin(32, 8 * (double)int_of(p, "rows")));
        before = n;
    }
    assert_int_equal(i, 3);
    json_decref(j);
    result t = command("bench", HUNCH_TEST_DATA "/goldens/qwen3_moe-fine", "--rows", "1,2", "--contexts", "8", QUICK);
    assert_non_null(strstr(t.out, "1 row after 8: 8.0 of 32 experts a layer"));
    result_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts), cmocka_unit_test(test_passes),  cmocka_unit_test(test_files),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_profile), cmocka_unit_test(test_requests), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
