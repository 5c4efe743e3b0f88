/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_logits.c - `hunch logits`: logits of every position of a text as a NumPy file, float32 [T, V], little endian.
 *
 * Rows are written as they are computed; the file gets its name when it is complete. */
#include <string.h>

#include "app/tool_commands.h"
#include "app/tool_file.h"
#include "app/tool_open.h"
#include "cli/tool_render.h"

typedef struct npy {
    tool_file file;
    size_t rows;
    tool_progress bar;
} npy;

/* Format 1.0: magic, version, length of the header, and a header padded so that the data begins at a multiple of 64. */
static void header_write(tool_file *f, size_t rows, int columns) {
    char text[118], head[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)sizeof text, 0};
    int n =
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %d), }", rows, columns);
    memset(text + n, ' ', sizeof text - (size_t)n);
    text[sizeof text - 1] = '\n';
    tool_file_write(f, head, sizeof head);
    tool_file_write(f, text, sizeof text);
}

static void row_write(void *user, size_t position, const float *logits, int vocab) {
    npy *w = user;
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are written as they lie in memory");
    tool_file_write(&w->file, logits, (size_t)vocab * sizeof *logits);
    tool_progress_at(&w->bar, (double)(position + 1), (double)w->rows);
}

static int logits_write(hunch_engine *e, const tool_prompt *p, int vocab, const char *path) {
    npy w = {.rows = p->n_ids};
    hunch_error err = {0};
    int code = tool_file_begin(&w.file, path);
    if (!code) {
        header_write(&w.file, p->n_ids, vocab);
        tool_progress_begin(&w.bar, "computing logits", "tokens");
        w.bar.of_prompt = true;
        if (hunch_evaluate(e, p->ids, p->n_ids, row_write, &w, &err) != HUNCH_OK)
            code = tool_failed(&err);
        tool_progress_end(&w.bar);
    }
    return tool_file_end(&w.file, code);
}

static int logits_run(const tool_options *o, tool_prompt *p, hunch_model **m, hunch_engine **e) {
    if (!o->output)
        return tool_usage("logits: -o OUT.npy is missing");
    int code = tool_text_read(p, o);
    if (code || (code = tool_model_open(m, o, NULL)) || (code = tool_prompt_ids(p, *m, NULL)))
        return code;
    hunch_model_info info;
    hunch_model_get_info(*m, &info);
    int context = o->context != TOOL_UNSET ? o->context : info.context;
    char advice[80];
    if (p->n_ids > (size_t)context)
        return tool_usage("logits: a text of %zu tokens is longer than the context of %d: %s", p->n_ids, context,
                          tool_context_advice(*m, p->n_ids, "--context ", advice));
    if ((code = tool_engine_open(e, *m, o, NULL, o->context != TOOL_UNSET ? 0 : (int)p->n_ids, 1)) ||
        (code = logits_write(*e, p, info.vocab, o->output)))
        return code;
    if (o->json)
        return tool_print_json(json_pack("{s:o,s:I,s:i}", "output", tool_json_text(o->output, strlen(o->output)),
                                         "tokens", (json_int_t)p->n_ids, "vocab", info.vocab));
    if (!tool_quiet)
        fprintf(stderr, "wrote %s: %zu x %d\n", o->output, p->n_ids, info.vocab);
    return HUNCH_OK;
}

int tool_logits(int argc, char **argv) {
    tool_options o;
    tool_prompt p = {0};
    hunch_model *m = NULL;
    hunch_engine *e = NULL;
    int code = tool_options_parse(&o, TOOL_LOGITS, argc, argv);
    if (code >= 0)
        return code;
    code = logits_run(&o, &p, &m, &e);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    tool_prompt_fini(&p);
    tool_options_fini(&o);
    return code;
}
