/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_requests.c - see tool_bench.h: measures what lines of standard input request, one line of output each, so that another program
 * can run hunch and others in turns. Between requests the threads sleep. The format is that of bench/peers. */
#include <string.h>

#include "base/utf8.h"
#include "cli/tool_bench.h"
#include "app/tool_flags.h"
#include "cli/chat/tool_lines.h"

typedef hunch_status measure_fn(bench *b, int rows, int context, double *ms, hunch_error *err);

static hunch_status pass_ms(bench *b, int rows, int context, double *ms, hunch_error *err) {
    hunch_status st = hunch_measure_pass(b->engine, rows, context, 1, ms, err);
    *ms *= 1e3;
    return st;
}

static hunch_status prefill_ms(bench *b, int rows, int context, double *ms, hunch_error *err) {
    (void)context;
    hunch_status st = hunch_measure_prefill(b->engine, rows, ms, err);
    *ms *= 1e3;
    return st;
}

static hunch_status decode_ms(bench *b, int rows, int context, double *ms, hunch_error *err) {
    hunch_status st = hunch_measure_decode(b->engine, rows, context, ms, err);
    *ms *= 1e3 / rows;
    return st;
}

static void answer_info(const bench *b) {
    const bool f32 = b->o.precision == HUNCH_PRECISION_F32;
    const int type = b->o.kv != TOOL_UNSET ? b->o.kv : f32 ? HUNCH_KV_F32 : HUNCH_KV_BF16;
    printf("hunch %s isa=%s threads=%d kv=%s precision=%s chunk=%d\n", hunch_version(), b->info.isa, b->info.threads,
           tool_kv_names[type], f32 ? "f32" : "native", hunch_engine_chunk(b->engine));
}

static void answer(bench *b, const char *line) {
    static const struct {
        const char *name;
        int numbers;
        measure_fn *measure;
    } kinds[] = {{"pass", 2, pass_ms}, {"prefill", 1, prefill_ms}, {"decode", 2, decode_ms}};
    char name[16] = "", rest[2];
    int rows = 0, context = 0;
    const int got = sscanf(line, "%15s %d %d %1s", name, &rows, &context, rest);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double ms = 0;
        hunch_error err = {0};
        if (strcmp(name, kinds[k].name) != 0 || got != kinds[k].numbers + 1)
            continue;
        if (kinds[k].measure(b, rows, context, &ms, &err) == HUNCH_OK)
            printf("%.4f\n", ms);
        else
            printf("error %s\n", hn_utf8_mask(err.message, ' '));
        return;
    }
    if (strcmp(name, "info") == 0 && got == 1)
        answer_info(b);
    else
        puts("error not a request: pass N CONTEXT, prefill N, decode N CONTEXT, info, quit");
}

int bench_requests_serve(bench *b) {
    tool_lines lines = {0};
    char *line;
    size_t len;
    tool_line got;
    while ((got = tool_lines_next(&lines, &line, &len)) == TOOL_LINE && strcmp(line, "quit") != 0) {
        answer(b, line);
        if (!tool_flush())
            break;
    }
    tool_lines_fini(&lines);
    return tool_done(got == TOOL_LINE_INTERRUPTED ? HUNCH_CANCELLED : HUNCH_OK);
}
