/* SPDX-License-Identifier: Apache-2.0 */
/* tool_machines.c - see tool_machines.h. */
#include "app/tool_machines.h"

#include "app/tool_output.h"

static hn_machines *machines; /* MPI begins once a process, and ends with it */

hn_machines *tool_machines(void) {
    return machines;
}

int tool_machines_end(int code) {
    hn_machines_close(&machines);
    return code;
}

/* Without a message where another rank has it. */
static int failed(const hunch_error *err) {
    return err->message[0] ? tool_failed(err) : (int)err->status;
}

int tool_machines_begin(int argc, char **argv) {
    hunch_error err = {0};
    if (hn_machines_open(&machines, argc, argv, &err) != HUNCH_OK)
        return failed(&err);
    if (!machines || hn_machines_leads(machines))
        return -1;
    const hunch_status st = hn_machines_follow(machines, &err);
    if (st) {
        tool_failed(&err);
        hn_machines_abort(machines, (int)st);
    }
    return tool_machines_end(HUNCH_OK);
}

int tool_machines_refuse(int argc, char **argv) {
    const int code = tool_machines_begin(argc, argv);
    if (code >= 0 || !machines)
        return code;
    return tool_machines_end(tool_usage("%s does not run over ranks: start it without mpirun", argv[1]));
}
