/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_logits.c - `hunch logits`: logits of every position of a text as a NumPy file, float32 [T, V], little endian.
 *
 * Rows are written as they come, to FILE.partial, which takes the name FILE only when it is whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool_commands.h"
#include "tool_open.h"
#include "tool_prompts.h"

typedef struct npy {
    FILE *file;
    char *partial; /* its name */
    size_t rows;
    bool failed;
    int error;
    tool_progress bar;
} npy;

/* Format 1.0: magic, version, length of the header, and a header padded so that the data begins at a multiple of 64. */
static bool header_write(FILE *f, size_t rows, int columns) {
    char text[118], head[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)sizeof text, 0};
    int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %d), }", rows, columns);
    memset(text + n, ' ', sizeof text - (size_t)n);
    text[sizeof text - 1] = '\n';
    return fwrite(head, 1, sizeof head, f) == sizeof head && fwrite(text, 1, sizeof text, f) == sizeof text;
}

static void row_write(void *user, size_t position, const float *logits, int vocab) {
    npy *w = user;
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "floats are written as they lie in memory");
    if (!w->failed && fwrite(logits, sizeof *logits, (size_t)vocab, w->file) != (size_t)vocab) {
        w->failed = true;
        w->error = errno;
    }
    tool_progress_at(&w->bar, (double)(position + 1) / (double)w->rows);
}

static int write_failed(const npy *w, int error) {
    tool_message("%s: %s", w->partial, strerror(error));
    return HUNCH_FAILED;
}

static int logits_evaluate(npy *w, hunch_engine *e, const tool_prompt *p, int vocab) {
    hunch_error err = {0};
    if (!header_write(w->file, p->n_ids, vocab))
        return write_failed(w, errno);
    tool_progress_begin(&w->bar, "computing logits");
    hunch_status st = hunch_evaluate(e, p->ids, p->n_ids, row_write, w, &err);
    tool_progress_end(&w->bar);
    if (st != HUNCH_OK)
        return tool_failed(&err);
    return w->failed ? write_failed(w, w->error) : 0;
}

static int logits_write(hunch_engine *e, const tool_prompt *p, int vocab, const char *path) {
    npy w = {.partial = tool_alloc(strlen(path) + 16, 1), .rows = p->n_ids};
    sprintf(w.partial, "%s.partial", path);
    w.file = fopen(w.partial, "wb");
    int code = w.file ? logits_evaluate(&w, e, p, vocab) : write_failed(&w, errno);
    if (w.file && fclose(w.file) != 0 && !code)
        code = write_failed(&w, errno);
    if (!code && rename(w.partial, path) != 0)
        code = write_failed(&w, errno);
    if (code && w.file)
        unlink(w.partial);
    free(w.partial);
    return code;
}

static int logits_run(const tool_options *o, tool_prompt *p, hunch_model **m, hunch_engine **e) {
    if (!o->output)
        return tool_usage("logits: -o OUT.npy is missing");
    int code = tool_text_read(p, o);
    if (code || (code = tool_model_open(m, o, NULL)) || (code = tool_prompt_ids(p, *m, false)))
        return code;
    hunch_model_info info;
    hunch_model_get_info(*m, &info);
    int context = o->context != TOOL_UNSET ? o->context : info.context;
    if (p->n_ids > (size_t)context)
        return tool_usage("logits: %zu tokens are longer than the context of %d", p->n_ids, context);
    if ((code = tool_engine_open(e, *m, o, NULL, o->context != TOOL_UNSET ? 0 : (int)p->n_ids, 1)) ||
        (code = logits_write(*e, p, info.vocab, o->output)))
        return code;
    if (o->json)
        return tool_print_json(json_pack("{s:o,s:I,s:i}", "output", tool_json_text(o->output, strlen(o->output)),
                                         "tokens", (json_int_t)p->n_ids, "vocab", info.vocab));
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
