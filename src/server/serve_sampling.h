/* SPDX-License-Identifier: Apache-2.0 */
/* serve_sampling.h - the fields of sampling, penalties and stop strings. */
#ifndef HN_SERVE_SAMPLING_H
#define HN_SERVE_SAMPLING_H

#include "hunch/hunch.h"
#include "server/serve_fields.h"

/* Overrides the values in r by those of the body. Lists are made by hn_alloc, and belong to the call. False after an error. */
bool serve_sampling_read(hunch_request *r, const hunch_model *m, const json_t *body, serve_error *err);

#endif
