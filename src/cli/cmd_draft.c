/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_draft.c - `hunch draft`: one round of a drafter after a text, drawn as a tree or as JSON, and its logits as safetensors.
 *
 * For inspection. The target reads the text and gives the root; for the drawing it then generates without drafts, which shows the part of
 * the tree that it would accept. */
#include <math.h>
#include <string.h>

#include "app/tool_commands.h"
#include "app/tool_file.h"
#include "app/tool_open.h"
#include "cli/tool_render.h"
#include "cli/tool_result.h"
#include "cli/show/tool_tree.h"

enum { DEFAULT_DEPTH = 8 };

typedef struct draft_state {
    tool_options o;
    tool_method method;
    tool_prompt prompt;
    hunch_model *model;
    hunch_engine *engine;
    hunch_model_info info;
    int depth;
    float *logits; /* [depth][vocab] with -o, else NULL */
    hunch_draft_result result;
    char *spec; /* the drafter's spec with the tree of --tree; NULL: the spec as given */
    bool *agreed; /* [result.n]: the model generates that node too; NULL: not computed */
} draft_state;

/* ---- logits -------------------------------------------------------------------------------------------------- */

static void logits_make(draft_state *l) {
    size_t n = (size_t)l->depth * (size_t)l->info.vocab;
    l->logits = tool_alloc(n, sizeof *l->logits);
    for (size_t i = 0; i < n; i++)
        l->logits[i] = -INFINITY;
}

static void logits_take(void *user, int level, const float *logits, int vocab) {
    draft_state *l = user;
    if (level >= 0 && level < l->depth && vocab == l->info.vocab)
        memcpy(l->logits + (size_t)level * (size_t)vocab, logits, (size_t)vocab * sizeof *logits);
}

/* safetensors: the length of the header, the header padded to a multiple of 8, the data. */
static int logits_write(const draft_state *l) {
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

/* A head's tree, in the order of its method. */
static int nodes_json(const hunch_draft_result *r) {
    json_t *nodes = json_array();
    for (int i = 0; i < r->n; i++) {
        const hunch_draft_node *n = &r->node[i];
        json_array_append_new(nodes, json_pack("{s:i,s:i,s:o}", "token", (int)n->token, "parent", n->parent, "logp",
                                               tool_json_real(n->logp)));
    }
    return tool_print_json(json_pack("{s:i,s:o}", "root", (int)r->root, "nodes", nodes));
}

static int result_json(const hunch_draft_result *r) {
    if (r->is_tree)
        return nodes_json(r);
    json_t *tokens = json_array(), *parents = json_array(), *q = json_array(), *drafters = json_array(),
           *estimates = json_array();
    for (int i = 0; i < r->n; i++) {
        json_array_append_new(tokens, json_integer(r->node[i].token));
        json_array_append_new(parents, json_integer(r->node[i].parent));
        json_array_append_new(q, tool_json_real(r->node[i].q));
        json_array_append_new(drafters, json_integer(r->node[i].drafter));
        json_array_append_new(estimates, tool_json_real(r->node[i].estimate));
    }
    json_t *all = json_pack("{s:i,s:o,s:o,s:o,s:o,s:o}", "root", (int)r->root, "tokens", tokens, "parents", parents,
                            "q", q, "provenance", drafters, "estimates", estimates);
    if (all && r->n > 0 && r->node[0].confidence >= 0) {
        json_t *sure = json_array();
        for (int i = 0; i < r->n; i++) json_array_append_new(sure, tool_json_real(r->node[i].confidence));
        json_object_set_new(all, "confidence", sure);
    }
    return tool_print_json(all);
}

static void legend_print(const draft_state *l, bool color) {
    const hunch_draft_result *r = &l->result;
    int kept = 0;
    for (int i = 0; l->agreed && i < r->n; i++)
        kept += l->agreed[i];
    printf("\n%s%%  the drafter's confidence in a token, given its parent\n", tool_style(color, 'd'));
    if (kept > 0)
        printf("✓  accepted by the model: %d of %d drafted tokens; its pass adds one more\n", kept, r->n);
    else if (l->agreed)
        printf("   none of %d drafted tokens is accepted by the model; its pass adds one\n", r->n);
    fputs(tool_style(color, '0'), stdout);
}

static int result_print(const draft_state *l) {
    const hunch_draft_result *r = &l->result;
    const bool color = tool_colors(l->o.color, stdout);
    const tool_tree tree = {l->model, l->engine, r->root, r->node, r->n, l->agreed};
    tool_tree_print(&tree, "the model's token after the text", "", stdout, color);
    if (r->n > 0)
        legend_print(l, color);
    else
        fprintf(stderr, "nothing was drafted\n");
    return tool_done(HUNCH_OK);
}

/* ---- the model's own text ------------------------------------------------------------------------------------ */

/* The path of the tree that is the model's own text: tokens[0] is the root. */
static void path_mark(draft_state *l, const hunch_token *tokens, size_t n) {
    const hunch_draft_result *r = &l->result;
    int at = n > 0 && tokens[0] == r->root ? -1 : r->n;
    for (size_t k = 1; k < n && at < r->n; k++) {
        int next = 0;
        while (next < r->n && !(r->node[next].parent == at && r->node[next].token == tokens[k]))
            next++;
        at = next;
        if (at < r->n)
            l->agreed[at] = true;
    }
}

/* Generates with the model alone to the depth of the tree. With --accept the tree follows tokens that the model did not generate: then
 * nothing is marked. */
static int model_follow(draft_state *l, const hunch_sampling *sampling) {
    hunch_error err = {0};
    hunch_request request;
    hunch_session *session = NULL;
    hunch_session_state st = {.finish = HUNCH_RUNNING};
    int deepest = 0, code = 0;
    for (int i = 0; i < l->result.n; i++)
        if (l->result.node[i].depth > deepest)
            deepest = l->result.node[i].depth;
    if (deepest == 0 || l->o.accept != TOOL_UNSET)
        return 0;
    hunch_request_defaults(&request, l->model);
    request.prompt = l->prompt.ids;
    request.n_prompt = l->prompt.n_ids;
    request.sampling = *sampling;
    request.max_tokens = deepest + 1;
    request.ignore_eos = true;
    l->agreed = tool_alloc((size_t)l->result.n, sizeof *l->agreed);
    if (hunch_session_open(&session, l->engine, &request, &err) != HUNCH_OK)
        return tool_failed(&err);
    tool_rounds rounds = {.engine = l->engine, .session = &session, .n = 1, .answers = 1, .most = request.max_tokens};
    tool_interrupts_catch();
    tool_rounds_begin(&rounds, "reading the text");
    while (!code && st.finish == HUNCH_RUNNING) {
        code = tool_rounds_step(&rounds);
        hunch_session_get(session, &st);
    }
    tool_rounds_end(&rounds);
    if (!code && st.finish == HUNCH_FINISH_FAILED)
        code = tool_failed(&st.error);
    if (!code)
        path_mark(l, st.tokens, st.n_tokens);
    hunch_session_close(&session);
    return code ? code : tool_interrupted ? HUNCH_CANCELLED : 0;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

/* --tree TOPK,TOTAL: EAGLE-2's tree of the one drafter, written into its spec. */
static int tree_set(draft_state *l) {
    int topk, total, end = 0;
    if (!l->o.tree)
        return 0;
    if (sscanf(l->o.tree, "%9d,%9d%n", &topk, &total, &end) != 2 || l->o.tree[end] || topk < 1 || total < 1)
        return tool_usage("draft: --tree %s: expected TOPK,TOTAL, such as 10,59", l->o.tree);
    if (l->o.drafts.n != 1 || strchr(l->o.drafts.items[0], '+'))
        return tool_usage("draft: --tree needs exactly one draft head: expected one --draft, such as --draft "
                          "eagle3:PATH");
    const size_t size = strlen(l->o.drafts.items[0]) + 64;
    l->spec = tool_alloc(size, 1);
    snprintf(l->spec, size, "%s,tree=dynamic,topk=%d,total=%d", l->o.drafts.items[0], topk, total);
    return 0;
}

static int draft_open(draft_state *l) {
    int code = tool_text_read(&l->prompt, &l->o);
    if (code || (code = tree_set(l)) || (code = tool_model_open(&l->model, &l->o, NULL)) ||
        (code = tool_prompt_ids(&l->prompt, l->model, NULL)))
        return code;
    hunch_model_get_info(l->model, &l->info);
    const char *const with_tree[] = {l->spec};
    tool_method_init(&l->method, l->spec ? with_tree : l->o.drafts.items, l->spec ? 1 : l->o.drafts.n);
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

static int draft_run(draft_state *l) {
    int code = draft_open(l);
    if (code)
        return code;
    hunch_error err = {0};
    hunch_request request;
    tool_request_init(&request, l->model, &l->o, 0);
    if (isnan(l->o.temperature))
        request.sampling.temperature = 0;
    const int depth = l->o.depth == TOOL_UNSET ? 0 : l->depth; /* a head may draft less if no --depth is given */
    if (tool_context_check(l->engine, l->model, l->prompt.n_ids, &err) != HUNCH_OK)
        return tool_failed(&err);
    if (hunch_draft(l->engine, l->prompt.ids, l->prompt.n_ids, depth, l->o.accept == TOOL_UNSET ? -1 : l->o.accept,
                    &request.sampling, l->logits ? logits_take : NULL, l, &l->result, &err) != HUNCH_OK)
        return tool_failed(&err);
    tool_drafters_note(l->engine);
    if (l->logits && (code = logits_write(l)))
        return code;
    if (l->logits && tool_is_standard(l->o.output)) /* standard output holds them alone */
        return HUNCH_OK;
    if (l->o.json)
        return result_json(&l->result);
    code = model_follow(l, &request.sampling);
    return code ? code : result_print(l);
}

int tool_draft(int argc, char **argv) {
    draft_state l = {0};
    int code = tool_options_parse(&l.o, TOOL_DRAFT, argc, argv);
    if (code >= 0)
        return code;
    code = draft_run(&l);
    hunch_free(l.result.node);
    hn_free(l.agreed);
    hn_free(l.spec);
    hn_free(l.logits);
    hunch_engine_close(&l.engine);
    hunch_model_close(&l.model);
    tool_method_fini(&l.method);
    tool_prompt_fini(&l.prompt);
    tool_options_fini(&l.o);
    return code;
}
