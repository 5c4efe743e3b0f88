/* SPDX-License-Identifier: Apache-2.0 */
/* serve_parameters.h - the parameters of a request that every protocol has in the same way, by the table of them all
 * (base/request_parameters.h): numbers, switches, stop strings, biases. */
#ifndef HN_SERVE_PARAMETERS_H
#define HN_SERVE_PARAMETERS_H

#include <limits.h>

#include "base/request_parameters.h"
#include "hunch/hunch.h"
#include "server/protocols/serve_fields.h"

/* Entries of a list of serve_name: what every protocol has from us, by our names; parameters of sampling may be in an object, "options.".
 * An entry that stands before them gives such a field another name. */
#define SERVE_SHARED_NAMES                                                                                                              \
    {.theirs = "model", .ours = "model"}, {.theirs = "speculation", .ours = "speculation"},                                             \
        {.theirs = "prediction", .ours = "prediction"}, {.theirs = "speculation_metrics", .ours = "speculation_metrics"},               \
        {.theirs = "timings", .ours = "timings"}, {.theirs = "service_tier", .ours = "service_tier"},                                   \
        {.theirs = "chat_template_kwargs", .ours = "chat_template_kwargs"}, {.theirs = "structured_outputs", .ours = "structured_outputs"},
#define SERVE_NAME_LISTED(IN, SERVED)
#define SERVE_NAME_BODY(IN, SERVED) {.theirs = SERVED, .ours = SERVED},
#define SERVE_NAME_OPTIONS(IN, SERVED) {.theirs = IN SERVED, .ours = SERVED},
#define SERVE_ROW(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, ...) SERVE_NAME_##WHERE("", SERVED)
#define SERVE_ROW_OPTIONS(ID, MEMBER, KIND, LEAST, MOST, KEY, SET, SERVED, WHERE, ...) SERVE_NAME_##WHERE("options.", SERVED)
#define SERVE_NAMES SERVE_SHARED_NAMES HN_REQUEST_PARAMETERS(SERVE_ROW) {.theirs = NULL}
#define SERVE_NAMES_IN_OPTIONS SERVE_SHARED_NAMES HN_REQUEST_PARAMETERS(SERVE_ROW_OPTIONS) {.theirs = NULL}

/* Overrides the values in r by those of the body. Lists are made by hn_alloc, and belong to the call. False after an error. */
bool serve_parameters_read(hunch_request *r, hunch_model *m, const serve_view *v, serve_error *err);

#endif
