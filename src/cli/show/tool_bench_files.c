/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_files.c - see tool_bench.h: the figures as JSON and as CSV, for files that are kept and joined. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool_bench.h"

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

/* Adds every value of `from` to `to`, and frees `from`. */
static void add_all(json_t *to, json_t *from) {
    json_object_update(to, from);
    json_decref(from);
}

static json_t *spread_json(tool_spread s) {
    return json_pack("[o,o]", tool_json_real(s.low), tool_json_real(s.high));
}

static json_t *machine_json(const bench *b) {
    const hunch_machine *m = &b->machine;
    const tool_spread s = tool_spread_of(b->read_gb_s, b->n_read);
    return json_pack("{s:s,s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "version", hunch_version(), "cpu", m->cpu,
                     "isa", m->isa, "threads", m->threads, "read_gb_s",
                     tool_json_real(b->n_read ? s.median : m->read_gb_s), "read_spread",
                     b->n_read ? spread_json(s) : json_null(), "int8_gmac_s", tool_json_real(m->int8_gmac_s),
                     "bf16_gmac_s", tool_json_real(m->bf16_gmac_s), "f32_gmac_s", tool_json_real(m->f32_gmac_s),
                     "int8_dot_gmac_s", m->int8_dot_gmac_s > 0 ? tool_json_real(m->int8_dot_gmac_s) : json_null(),
                     "bf16_dot_gmac_s", m->bf16_dot_gmac_s > 0 ? tool_json_real(m->bf16_dot_gmac_s) : json_null(),
                     "barrier_us", tool_json_real(m->barrier_us), "busy", tool_json_real(b->busy));
}

static json_t *reads_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_reads; i++) {
        const bench_read *r = &b->reads[i];
        json_array_append_new(list, json_pack("{s:i,s:i,s:I,s:o,s:o}", "threads", r->threads, "page_bytes",
                                              r->huge ? 2 << 20 : 4096, "bytes", (json_int_t)r->bytes, "gb_s",
                                              tool_json_real(r->gb_s.median), "spread", spread_json(r->gb_s)));
    }
    return list;
}

static json_t *passes_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_passes; i++) {
        const bench_pass *p = &b->passes[i];
        json_t *o = json_pack("{s:i,s:i,s:o,s:[f,f],s:o,s:o,s:o,s:o}", "rows", p->rows, "context", p->context, "ms",
                              tool_json_real(p->s.median * 1e3), "ms_spread", p->s.low * 1e3, p->s.high * 1e3, "ms_mad",
                              tool_json_real(p->s.mad * 1e3), "flatness", tool_json_real(p->s.median / p->one_row_s),
                              "of_bandwidth", tool_json_real(p->of_bandwidth), "limit",
                              tool_json_real(p->limit_s / p->one_row_s));
        add_all(o, json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "limit_ms", tool_json_real(p->limit_s * 1e3), "fraction",
                             tool_json_real(p->fraction), "kv_bytes", tool_json_real(p->work.kv_bytes), "macs_int8",
                             tool_json_real(p->work.macs_int8), "macs_bf16", tool_json_real(p->work.macs_bf16),
                             "macs_f32", tool_json_real(p->work.macs_f32)));
        if (p->experts > 0)
            json_object_set_new(o, "experts", tool_json_real(p->experts));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *rollbacks_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_rollbacks; i++) {
        const bench_rollback *p = &b->rollback[i];
        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:o}", "rows", p->rows, "commit", p->commit, "context",
                                              p->context, "ms", tool_json_real(p->seconds * 1e3)));
    }
    return list;
}

static json_t *commits_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_passes; i++) {
        const bench_pass *p = &b->passes[i];
        json_array_append_new(list, json_pack("{s:i,s:i,s:i,s:o}", "rows", p->rows, "commit", p->commit, "context",
                                              p->context, "ms", tool_json_real(p->commit_s * 1e3)));
    }
    return list;
}

static json_t *plain_json(const bench *b) {
    const bench_plain *p = &b->plain;
    json_t *o = json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:i}", "prefill_tok_s", tool_json_real(p->prefill.median),
                          "prefill_spread", spread_json(p->prefill), "decode_tok_s", tool_json_real(p->decode.median),
                          "decode_spread", spread_json(p->decode), "of_bandwidth", tool_json_real(p->of_bandwidth),
                          "weight_bytes", (json_int_t)p->work.weight_bytes, "kv_bytes", (json_int_t)p->work.kv_bytes,
                          "context", p->context);
    add_all(o, json_pack("{s:i,s:o,s:o,s:o,s:o}", "prompt", p->prompt, "prefill_limit_tok_s",
                         tool_json_real(p->prefill_limit_tok_s), "prefill_fraction",
                         tool_json_real(p->prefill_fraction), "decode_limit_tok_s",
                         tool_json_real(p->decode_limit_tok_s), "decode_fraction", tool_json_real(p->decode_fraction)));
    return o;
}

static json_t *profiles_json(const bench *b) {
    json_t *list = json_array();
    for (int i = 0; i < b->n_profiles; i++) {
        const bench_profile *p = &b->profiles[i];
        json_t *phases = json_array();
        for (int k = 0; k < HUNCH_PHASES; k++) {
            const hunch_phase *h = &p->phase[k];
            json_array_append_new(phases, json_pack("{s:s,s:i,s:f,s:f,s:f,s:f}", "name", h->name, "calls", h->calls,
                                                    "us", h->seconds * 1e6, "waited_us", h->waited * 1e6, "bytes",
                                                    h->bytes, "macs", h->macs));
        }
        json_array_append_new(list, json_pack("{s:i,s:i,s:f,s:o}", "rows", p->rows, "context", p->context, "us",
                                              p->pass_s * 1e6, "phases", phases));
    }
    return list;
}

static json_t *bench_json(const bench *b) {
    json_t *o = machine_json(b);
    if (b->model)
        add_all(o, json_pack("{s:o,s:o,s:i,s:s}", "model", tool_json_text(b->name, strlen(b->name)), "load_s",
                             tool_json_real(b->load_s), "parallel", b->parallel, "precision",
                             b->o.precision == HUNCH_PRECISION_F32 ? "f32" : "native"));
    if (b->n_reads)
        json_object_set_new(o, "read", reads_json(b));
    if (b->n_profiles)
        json_object_set_new(o, "profile", profiles_json(b));
    if (b->model && !b->n_profiles)
        add_all(o, json_pack("{s:o,s:o,s:o,s:o,s:I,s:I}", "plain", plain_json(b), "pass", passes_json(b), "commit",
                             commits_json(b), "rollback", rollbacks_json(b), "state_bytes",
                             (json_int_t)b->info.state_bytes, "input_bytes", (json_int_t)b->info.input_bytes));
    return o;
}

/* ---- CSV ------------------------------------------------------------------------------------------------------- */

/* A text as one field. */
static void csv_text(FILE *f, const char *s) {
    putc('"', f);
    for (; *s; s++)
        fprintf(f, *s == '"' ? "\"\"" : "%c", *s);
    fputs("\",", f);
}

enum { FIGURES = 9 }; /* median, low, high, flatness, of_bandwidth, limit, mad, limit_value, fraction */

/* One line per figure, with the machine on each, so that files of several machines can be joined. */
static void csv_line(const bench *b, FILE *f, const char *what, int rows, int context, const double figures[FIGURES]) {
    const double read = b->n_read ? tool_median(b->read_gb_s, b->n_read) : b->machine.read_gb_s;
    csv_text(f, b->machine.cpu);
    fprintf(f, "%s,%d,%.2f,%.1f,", b->machine.isa, b->machine.threads, read, b->machine.int8_gmac_s);
    csv_text(f, b->name ? b->name : "");
    fprintf(f, "%s,%d,%d", what, rows, context);
    for (int i = 0; i < FIGURES; i++)
        if (isfinite(figures[i]))
            fprintf(f, ",%.6g", figures[i]);
        else
            putc(',', f);
    fprintf(f, ",%s\n", hunch_version());
}

static void csv_spread(const bench *b, FILE *f, const char *what, int rows, int context, tool_spread s) {
    csv_line(b, f, what, rows, context,
             (const double[FIGURES]){s.median, s.low, s.high, NAN, NAN, NAN, s.mad, NAN, NAN});
}

static void csv_machine(const bench *b, FILE *f) {
    const hunch_machine *m = &b->machine;
    const struct {
        const char *what;
        double value;
    } all[] = {{"int8_gmac_s", m->int8_gmac_s}, {"bf16_gmac_s", m->bf16_gmac_s}, {"f32_gmac_s", m->f32_gmac_s},
               {"int8_dot_gmac_s", m->int8_dot_gmac_s}, {"bf16_dot_gmac_s", m->bf16_dot_gmac_s},
               {"barrier_us", m->barrier_us}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value > 0)
            csv_spread(b, f, all[i].what, m->threads, 0, (tool_spread){all[i].value, NAN, NAN, NAN});
    for (int i = 0; i < b->n_reads; i++)
        csv_spread(b, f, b->reads[i].huge ? "read_2m_gb_s" : "read_4k_gb_s", b->reads[i].threads,
                   (int)(b->reads[i].bytes >> 20), b->reads[i].gb_s);
    if (b->n_read)
        csv_spread(b, f, "read_gb_s", m->threads, 1024, tool_spread_of(b->read_gb_s, b->n_read));
}

static void csv_model(const bench *b, FILE *f) {
    const bench_plain *p = &b->plain;
    const tool_spread s = p->prefill, d = p->decode;
    const double prefill[FIGURES] = {s.median, s.low, s.high, NAN, NAN, NAN, s.mad, p->prefill_limit_tok_s,
                                     p->prefill_fraction};
    const double decode[FIGURES] = {d.median, d.low, d.high, NAN, p->of_bandwidth, NAN, d.mad, p->decode_limit_tok_s,
                                    p->decode_fraction};
    csv_line(b, f, "prefill_tok_s", hunch_engine_chunk(b->engine), p->prompt, prefill);
    csv_line(b, f, "decode_tok_s", b->parallel, p->context, decode);
    for (int i = 0; i < b->n_passes; i++) {
        const bench_pass *q = &b->passes[i];
        const double t1 = q->one_row_s;
        csv_line(b, f, "pass_ms", q->rows, q->context,
                 (const double[FIGURES]){q->s.median * 1e3, q->s.low * 1e3, q->s.high * 1e3, q->s.median / t1,
                                         q->of_bandwidth, q->limit_s / t1, q->s.mad * 1e3, q->limit_s * 1e3,
                                         q->fraction});
    }
}

static void csv_profiles(const bench *b, FILE *f) {
    for (int i = 0; i < b->n_profiles; i++)
        for (int k = 0; k < HUNCH_PHASES; k++) {
            const bench_profile *p = &b->profiles[i];
            char what[40];
            snprintf(what, sizeof what, "%s_us", p->phase[k].name);
            csv_spread(b, f, what, p->rows, p->context, (tool_spread){p->phase[k].seconds * 1e6, NAN, NAN, NAN});
        }
}

static void bench_csv(const bench *b, FILE *f) {
    fputs(
        "cpu,isa,threads,read_gb_s,int8_gmac_s,model,what,rows,context,median,low,high,flatness,of_bandwidth,limit,mad,"
        "limit_value,fraction,version\n",
        f);
    csv_machine(b, f);
    csv_profiles(b, f);
    if (b->model && !b->n_profiles)
        csv_model(b, f);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static bool is_stdout(const char *to) {
    return to && tool_is_standard(to);
}

static int no_memory(void) {
    tool_message("out of memory while writing the figures");
    return HUNCH_NO_MEMORY;
}

static int json_file(const bench *b, const char *path) {
    tool_file f;
    json_t *o = bench_json(b);
    char *text = o ? json_dumps(o, JSON_REAL_PRECISION(10) | JSON_INDENT(1)) : NULL;
    json_decref(o);
    if (!text)
        return no_memory();
    int code = tool_file_begin(&f, path);
    if (!code) {
        tool_file_write(&f, text, strlen(text));
        tool_file_write(&f, "\n", 1);
    }
    free(text);
    return tool_file_end(&f, code);
}

static int csv_file(const bench *b, const char *path) {
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    if (memory)
        bench_csv(b, memory);
    if (!memory || fclose(memory) != 0)
        return no_memory();
    tool_file f;
    const int code = tool_file_begin(&f, path);
    if (!code)
        tool_file_write(&f, text, len);
    free(text);
    return tool_file_end(&f, code);
}

int bench_files_check(const bench *b) {
    const char *const to[] = {b->o.json_to, b->o.csv_to, b->o.svg};
    int code = 0;
    for (int i = 0; i < 3 && !code; i++)
        if (to[i] && !is_stdout(to[i]))
            code = tool_file_check(to[i]);
    return code;
}

int bench_files(const bench *b) {
    int code = 0;
    if (b->o.json_to && !is_stdout(b->o.json_to))
        code = json_file(b, b->o.json_to);
    if (!code && b->o.csv_to && !is_stdout(b->o.csv_to))
        code = csv_file(b, b->o.csv_to);
    if (!code && b->o.svg)
        code = bench_plot(b, b->o.svg);
    if (code || is_stdout(b->o.json_to))
        return code ? code : tool_print_json(bench_json(b));
    if (is_stdout(b->o.csv_to))
        bench_csv(b, stdout);
    else if (!is_stdout(b->o.svg))
        return bench_table(b);
    return tool_done(HUNCH_OK);
}
