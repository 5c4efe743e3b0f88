/* SPDX-License-Identifier: Apache-2.0 */
/* head_reading.h - how a draft head is read: what was found in its files, whether it fits or not, and the keys of a SPEC that
 * change how it is read. */
#ifndef HN_HEAD_READING_H
#define HN_HEAD_READING_H
#include "draft/head/head_drafter.h"

/* Filled while a head is opened, for a caller who puts one into hn_target_info. Zeroed before, freed with hn_head_report_fini. */
struct hn_head_report {
    bool read;         /* its files could be opened: errors from there on are of the head */
    bool described;    /* its shape is known, and all below except the tensors */
    int layers, hidden, drafts, embeddings;
    hn_layer_input reads; /* of the first layer */
    hn_head_desc desc; /* pointers into the source are not to be followed */
    hn_head_taps taps; /* n 0: not known */
    bool planned;      /* its tensors were searched for */
    int n_used;
    hn_name_list unused, missing;
};
void hn_head_report_fini(struct hn_head_report *r);
/* Records a description; records which of the source's tensors were used. own: only of those of the blocks in a model's own file; NULL:
 * of all. */
void hn_head_report_arch(struct hn_head_report *r, const hn_arch *a, const hn_head_taps *taps);
hunch_status hn_head_report_tensors(struct hn_head_report *r, hn_source *src, const hn_head_names *own, hunch_error *err);

/* Key last: normed, the state after the final norm, or raw, the one before it. */
hunch_status hn_head_read_last(hn_spec *spec, const hn_target_info *target, hn_head_taps *taps, hunch_error *err);
/* HUNCH_REFUSED: fc does not read these states of the target. A missing one is no error here if there is a report, which has it. */
hunch_status hn_head_check_fc(const hn_source *src, const hn_head_names *names, const hn_head_taps *taps, const hn_target_info *target,
                              hunch_error *err);
/* Keys residual and output (normed, plain), fc_norms (off: without existing ones; on), which override the files of a head whose first
 * layer reads a pair. */
hunch_status hn_head_read_norms(hn_spec *spec, hn_arch *a, hunch_error *err);
/* The token of rows that are not known yet, one of the embedding's `tokens`. HUNCH_REFUSED: the file does not specify it. */
hunch_status hn_head_read_mask_token(const hn_source *src, int tokens, int *out, hunch_error *err);
#endif
