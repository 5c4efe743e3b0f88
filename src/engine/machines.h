/* SPDX-License-Identifier: Apache-2.0 */
/* machines.h - what model_api.c tells the ranks of a model (machines.c). What programs call: program_files.h. */
#ifndef HN_MACHINES_H
#define HN_MACHINES_H
#include "engine/engine.h"

struct hn_machines;
hn_link *hn_machines_link(const struct hn_machines *m); /* m NULL: NULL */
/* Before the model is loaded: all ranks have it, or the error of the first that has not. After it hn_link_agree follows the load. */
hunch_status hn_machines_tell_model(struct hn_machines *m, hn_source *src, const hn_model_load *load, const hunch_model_options *o,
                                    hunch_error *err);
/* A draft model over the same ranks, by load->pool; hn_model_close ends it there too. */
hunch_status hn_machines_open_draft(struct hn_machines *m, hn_model *model, hn_source *src, hn_model_load *load, hunch_error *err);
void hn_machines_begin_model(struct hn_machines *m, const hunch_model *model);
void hn_machines_end_model(struct hn_machines *m, const hunch_model *model); /* m NULL: nothing */
#endif
