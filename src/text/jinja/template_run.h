/* SPDX-License-Identifier: Apache-2.0 */
/* template_run.h - what the files that run a template's tree share: scopes, loops, macros, and the calls by which statements and
 * expressions reach each other. An error is in the run (trun_fail): values are TV_ERROR then, outcomes TRUN_STOP. */
#ifndef HN_TEMPLATE_RUN_H
#define HN_TEMPLATE_RUN_H
#include "text/jinja/template_private.h"

/* ---- template_run.c: scopes and names ---- */

typedef struct tvar {
    tstr name;
    tvalue value;
    struct tvar *next;
} tvar;

typedef struct tframe {
    tvar *vars;
    struct tframe *parent;
} tframe;

/* Opens a scope, in `own` and released by tscope_end; or, if a macro is defined in it, which may outlive it, in the arena.
 * NULL: no memory. */
tframe *tscope_begin(trun *r, tframe *own, tframe *parent, bool outlives);
void tscope_end(trun *r, tframe *own);
tvalue tlook_up(trun *r, tframe *f, tstr name); /* the variable, else the caller's, else a global function, else undefined */
/* Sets a variable of this scope; or what the target of a for or set is: a name, a namespace's attribute, a tuple of targets.
 * False: an error. */
bool tassign_name(trun *r, tframe *f, tstr name, tvalue value);
bool tassign(trun *r, const tnode *target, tvalue value, tframe *f);
/* One node deeper, and a step; r->depth-- after it, whatever it returns. False: an error. */
bool trun_deeper(trun *r, const tnode *n);

/* ---- template_statements.c ---- */

/* How a statement ended: the next one follows, the loop around it ends or continues, or there was an error. */
typedef enum toutcome { TRUN_ON, TRUN_BREAK, TRUN_CONTINUE, TRUN_STOP } toutcome;
toutcome trun_statements(trun *r, const tnode *body, tframe *f);
tvalue tcapture(trun *r, const tnode *body, tframe *f); /* its output as a string */

/* ---- template_loops.c ---- */

/* A loop evaluates its condition element by element, as the body runs: it may depend on what the body did before. */
typedef struct tloop {
    tlist snapshot;      /* of the list, which the body may change */
    const tlist *items;  /* what the loop iterates over */
    size_t n_tested;     /* number of items whose condition was evaluated */
    tvalue *kept;        /* [n] items that passed the condition */
    size_t n, index;     /* index: of the current one */
    const tnode *node;   /* the for statement */
    tframe *frame;       /* scope of the condition; NULL: the loop is over or has no condition */
    tvalue changed;      /* what loop.changed was given, a tuple; TV_ERROR: it was not called */
} tloop;

toutcome trun_for(trun *r, const tnode *n, tframe *f);
tvalue tloop_attribute(trun *r, tloop *l, tstr name); /* loop.NAME */

/* ---- template_eval.c ---- */

typedef struct tmacro {
    const tnode *node;
    tframe *frame; /* where it was defined */
} tmacro;
tvalue teval(trun *r, const tnode *n, tframe *f);

/* ---- template_macros.c ---- */

tvalue tmacro_call(trun *r, const tmacro *m, const targs *args);
tvalue tmacro_attribute(trun *r, const tmacro *m, tstr name); /* MACRO.NAME */
tvalue tmacro_make(trun *r, const tnode *n, tframe *f);       /* of a TN_MACRO */
#endif
