/* SPDX-License-Identifier: Apache-2.0 */
/* tools.h - a request's tools, as the engine's files use them. */
#ifndef HN_ENGINE_TOOLS_H
#define HN_ENGINE_TOOLS_H
#include "calls/calls.h"

struct hunch_tools {
    hn_tools tools;
    const hn_call_family *family;
    hn_call_options reading;
    bool may_think; /* the template has marks around thinking */
    const hunch_model *model;
    hunch_tool_choice choice;
    const hn_tool_function *named; /* of HUNCH_TOOLS_NAMED */
};
#endif
