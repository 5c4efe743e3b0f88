/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_draft.c - `hunch draft`: one round of a drafter behind a text, as a tree, as JSON, and its logits as safetensors.
 *
 * For looking inside: nothing is verified. The target reads the text and gives the root. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool_commands.h"
#include "tool_file.h"
#include "tool_open.h"
#include "tool_render.h"

enum { DEFAULT_DEPTH = 8 };

typedef struct look {
    tool_options o;
    tool_method method;
    tool_prompt prompt;
    hunch_model *model;
    hunch_engine *engine;
    hunch_model_info info;
    int depth;
    float *logits; /* [depth][vocab] with -o, else NULL */
    hunch_draft_result result;
} look;

/* ---- logits -------------------------------------------------------------------------------------------------- */

static void logits_make(look *l) {
    size_t n = (size_t)l->depth * (size_t)l->info.vocab;
    l->logits = tool_alloc(n, sizeof *l->logits);
    for (size_t i = 0; i < n; i++)
        l->logits[i] = -INFINITY;
}

static void logits_take(void *user, int level, const float *logits, int vocab) {
    look *l = user;
    if (level >= 0 && level < l->depth && vocab == l->info.vocab)
        memcpy(l->logits + (size_t)level * (size_t)vocab, logits, (size_t)vocab * sizeof *logits);
}

/* safetensors: the length of the header, the header padded to a multiple of 8, the data. */
static int logits_write(const look *l) {
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");
    size_t size = (size_t)l->depth * (size_t)l->info.vocab * sizeof *l->logits;
    char header[160];
    int n =
        snprintf(header, sizeof header, "{\"logits\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]}}",
                 l->depth, l->info.vocab, size);
    uint64_t padded = ((uint64_t)n + 7) / 8 * 8;
    memset(header + n, ' ', padded - (uint64_t)n);
    tool_file f;
    int code = tool_file_begin(&f, l->o.output);
    if (!code) {
        tool_file_write(&f, &padded, sizeof padded);
        tool_file_write(&f, header, padded);
        tool_file_write(&f, l->logits, size);
    }
    return tool_file_end(&f, code);
}

/* ---- output -------------------------------------------------------------------------------------------------- */

static int result_json(const hunch_draft_result *r) {
    json_t *tokens = json_array(), *parents = json_array(), *q = json_array(), *drafters = json_array(),
           *estimates = json_array();
    for (int i = 0; i < r->n; i++) {
        json_array_append_new(tokens, json_integer(r->node[i].token));
        json_array_append_new(parents, json_integer(r->node[i].parent));
        json_array_append_new(q, tool_json_real(r->node[i].q));
        json_array_append_new(drafters, json_integer(r->node[i].drafter));
        json_array_append_new(estimates, tool_json_real(r->node[i].estimate));
    }
    return tool_print_json(json_pack("{s:i,s:o,s:o,s:o,s:o,s:o}", "root", (int)r->root, "tokens", tokens, "parents",
                                     parents, "q", q, "provenance", drafters, "estimates", estimates));
}

/* The piece of a token as quoted text, its id where there is no tokenizer. */
static void piece_print(const look *l, hunch_token id) {
    const char *bytes;
    size_t len;
    json_t *piece = NULL;
    if (l->info.has_tokenizer && hunch_token_piece(l->model, id, &bytes, &len, NULL, NULL) == HUNCH_OK)
        piece = tool_json_piece(bytes, len);
    char *quoted = piece ? json_dumps(piece, JSON_ENCODE_ANY) : NULL;
    printf("%s%s%d", quoted ? quoted : "", quoted ? "  " : "", (int)id);
    free(quoted);
    json_decref(piece);
}

static bool has_later_sibling(const hunch_draft_result *r, int node) {
    for (int i = node + 1; i < r->n; i++)
        if (r->node[i].parent == r->node[node].parent)
            return true;
    return false;
}

/* The lines left of a node at `parent`'s level, from the root on. */
static void rails_print(const hunch_draft_result *r, int parent) {
    if (parent < 0)
        return;
    rails_print(r, r->node[parent].parent);
    fputs(has_later_sibling(r, parent) ? "│  " : "   ", stdout);
}

static void node_print(const look *l, int node, bool color) {
    const hunch_draft_result *r = &l->result;
    const hunch_draft_node *n = &r->node[node];
    rails_print(r, n->parent);
    fputs(has_later_sibling(r, node) ? "├─ " : "└─ ", stdout);
    fputs(tool_color(color, n->drafter), stdout);
    piece_print(l, n->token);
    printf("%s  %s%s, q %.3g, estimate %.2f%s\n", tool_style(color, '0'), tool_style(color, 'd'),
           hunch_engine_drafter_name(l->engine, n->drafter), n->q, n->estimate, tool_style(color, '0'));
    for (int i = node + 1; i < r->n; i++)
        if (r->node[i].parent == node)
            node_print(l, i, color);
}

static int result_print(const look *l) {
    bool color = tool_colors(l->o.color, stdout);
    fputs(tool_style(color, 'b'), stdout);
    piece_print(l, l->result.root);
    printf("%s  the target's\n", tool_style(color, '0'));
    for (int i = 0; i < l->result.n; i++)
        if (l->result.node[i].parent < 0)
            node_print(l, i, color);
    if (l->result.n == 0)
        fprintf(stderr, "nothing was drafted\n");
    return tool_done(HUNCH_OK);
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int look_open(look *l) {
    int code = tool_text_read(&l->prompt, &l->o);
    if (code || (code = tool_model_open(&l->model, &l->o, NULL)) ||
        (code = tool_prompt_ids(&l->prompt, l->model, NULL)))
        return code;
    hunch_model_get_info(l->model, &l->info);
    tool_method_init(&l->method, l->o.drafts.items, l->o.drafts.n);
    if ((code = tool_engine_open(&l->engine, l->model, &l->o, &l->method, 0, 1)))
        return code;
    if (l->o.output && hunch_engine_drafters(l->engine) != 1)
        return tool_usage("draft: -o writes the logits of one drafter: %s opens %d", l->method.text,
                          hunch_engine_drafters(l->engine));
    l->depth = l->o.depth == TOOL_UNSET ? DEFAULT_DEPTH : l->o.depth;
    if (l->o.output)
        logits_make(l);
    return 0;
}

static int look_run(look *l) {
    int code = look_open(l);
    if (code)
        return code;
    hunch_error err = {0};
    hunch_request request;
    hunch_request_defaults(&request, l->model);
    request.sampling.temperature = 0;
    tool_sampling_set(&request.sampling, &l->o);
    if (hunch_draft(l->engine, l->prompt.ids, l->prompt.n_ids, l->depth, l->o.accept == TOOL_UNSET ? 0 : l->o.accept,
                    &request.sampling, l->logits ? logits_take : NULL, l, &l->result, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (l->logits && (code = logits_write(l)))
        return code;
    if (l->logits && tool_is_standard(l->o.output)) /* they alone */
        return HUNCH_OK;
    return l->o.json ? result_json(&l->result) : result_print(l);
}

int tool_draft(int argc, char **argv) {
    look l = {0};
    int code = tool_options_parse(&l.o, TOOL_DRAFT, argc, argv);
    if (code >= 0)
        return code;
    code = look_run(&l);
    hunch_free(l.result.node);
    free(l.logits);
    hunch_engine_close(&l.engine);
    hunch_model_close(&l.model);
    tool_method_fini(&l.method);
    tool_prompt_fini(&l.prompt);
    tool_options_fini(&l.o);
    return code;
}
