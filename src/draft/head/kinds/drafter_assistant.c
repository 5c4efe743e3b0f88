/* SPDX-License-Identifier: Apache-2.0 */
/* drafter_assistant.c - the assistants of Gemma 4, Google's "MTP drafters": a few layers of queries alone, over keys and values that the
 * target stored.
 *
 *   assistant:PATH[,position=root|last|step][,output=centroids|full], options: head_drafter.h
 *
 *   position   of the queries of level k, after n committed rows: n, n - 1, n + k                            root
 *   output     full: all logits, although the file has centroids                                             centroids if it has them
 *
 * A row of token t reads h, the target's state after its final norm at the row before, or the output of the row before it:
 *
 *   x = pre_projection(E[t] sqrt(H) | h)   the target's embedding, scaled as the target scales it
 *   layers as Gemma's, without keys and values: those with a window read the rows of the target's last layer with one that has its own,
 *   the others those of the last one without; attention scale 1, a factor of each layer's output
 *   y = norm(x)
 *   h' = post_projection y                 what the next row reads
 *   logits = embed_tokens y                a matrix of its own, no cap; with centroids those of the nearest clusters (head_clusters.c)
 *
 * Rows see the text's committed rows and no drafts, so a tree's level is rows of one pass (head_borrowed.c). It has no rows of its own: a
 * prefix that another text left costs nothing, and a preempted text drafts from its second round on. Folders, and GGUF files of llama.cpp
 * and ik_llama.cpp: model/head/head_assistant.c.
 */
#include "draft/head/open/head_help.h"
#include "draft/head/open/head_kind.h"
#include "draft/head/open/head_reading.h"

static const hn_head_form folder_form = {
    .part = {[HN_HEAD_FC] = "!pre_projection.weight", [HN_HEAD_CARRY] = "!post_projection.weight", [HN_HEAD_OUTPUT_NORM] = "norm.weight",
             [HN_HEAD_OUTPUT] = "embed_tokens.weight", [HN_HEAD_CENTROIDS] = "!masked_embedding.centroids.weight",
             [HN_HEAD_ORDER] = "!masked_embedding.token_ordering"},
    .read = hn_head_read_assistant,
    .mark = {{"model.", "!pre_projection.weight"}},
};
/* llama.cpp's, which hunch writes too, and ik_llama.cpp's. */
static const hn_head_form gguf_form = {
    .part = {[HN_HEAD_FC] = "nextn.pre_projection.weight", [HN_HEAD_CARRY] = "nextn.post_projection.weight",
             [HN_HEAD_OUTPUT_NORM] = "output_norm.weight", [HN_HEAD_OUTPUT] = "token_embd.weight",
             [HN_HEAD_CENTROIDS] = "masked_embd_centroids.weight", [HN_HEAD_ORDER] = "masked_embd_ordering"},
    .read = hn_head_read_assistant,
};
static const hn_head_form gguf_mtp_form = {
    .base = &gguf_form,
    .part = {[HN_HEAD_FC] = "mtp_pre_proj.weight", [HN_HEAD_CARRY] = "mtp_post_proj.weight", [HN_HEAD_CENTROIDS] = "mtp_centroids.weight",
             [HN_HEAD_ORDER] = "mtp_token_ordering.weight"},
    .read = hn_head_read_assistant,
};

/* Without its centroids: their tensors are not read. */
static void drop_centroids(hn_arch *a, hn_source *src, const hn_head_names *names) {
    static const hn_role parts[] = {HN_HEAD_CENTROIDS, HN_HEAD_ORDER};
    char name[128];
    for (int i = 0; i < 2; i++) hn_source_take(src, hn_head_name(names, parts[i], 0, name));
    a->draft_head.output.kind = HN_OUTPUT_ALL;
}

static hunch_status describe(hn_arch *a, hn_source *src, const hn_head_names *names, hn_spec *spec, const hn_target_info *target HN_UNUSED,
                             hn_head_taps *taps, hunch_error *err) {
    static const char *const positions[] = {"root", "last", "step", NULL}, *const outputs[] = {"centroids", "full", NULL};
    hn_head_desc *d = &a->draft_head;
    int position = HN_POSITION_ROOT, output = d->output.kind != HN_OUTPUT_CLUSTERS;
    const bool clusters = !output;
    hunch_status st = hn_source_get_kind(src) == HN_SOURCE_GGUF ? hn_head_check_kind(src, "assistant", err) : HUNCH_OK;
    if (!st) st = hn_spec_choice(spec, "position", positions, position, &position, err);
    if (!st) st = hn_spec_choice(spec, "output", outputs, output, &output, err);
    if (st) return st;
    if (!output && !clusters)
        return hn_fail(err, HUNCH_USAGE, "drafter '%s': output=centroids: this file has no centroids, expected full", spec->text);
    d->rows.borrowed.position = (hn_borrowed_position)position;
    *taps = (hn_head_taps){1, {HN_FEATURE_POST_NORM}};
    if (output && clusters) drop_centroids(a, src, names);
    return HUNCH_OK;
}

static const hn_head_facts facts = {
    .describe = describe,
    .form = {&folder_form},
    .gguf_form = {&gguf_form, &gguf_mtp_form},
    .only = {"pre_projection.", "post_projection."},
    .architecture = {"gemma4-assistant", "gemma4_mtp"},
};
static const hn_drafter_help help = {
    ":HEAD", "an assistant of Gemma 4: its layers read the keys and values of the model's own",
    {{"position", "root|last|step", "of its queries: the root's (default), the last row's, or one more at each level"},
     {"output", "centroids|full", "full: all logits although the file has centroids; default centroids"},
     HN_HELP_HEAD}};
const hn_drafter_kind hn_drafter_assistant = {.name = "assistant", .help = &help, .head = &facts, HN_HEAD_KIND};
