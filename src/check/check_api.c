/* SPDX-License-Identifier: Apache-2.0 */
/* check_api.c - hunch_check_head: opens a draft head as a drafter would and reports what was found; then the smoke test and the search
 * for a cause. A head that does not fit is a result, not an error. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "draft/head/open/head_kind.h"
#include "check/head_check.h"
#include "format/json_build.h"
#include "base/json_load.h"
#include "engine/drafting.h"

typedef struct check {
    hunch_model *model;
    const char *given;
    hn_spec spec;
    struct hn_head_report report;
    char *about;
    char kind[32];      /* "": unknown */
    hn_check_progress progress;
    const hunch_token *tokens; /* [n_tokens] the caller's text */
    size_t n_tokens;
    bool fits, no_smoke, smoked, tried;
    hunch_error reason; /* why it does not fit */
    const char *skipped;
    hn_smoke smoke;
    hn_causes causes;
} check;

void hunch_check_options_defaults(hunch_check_options *o) {
    if (!o) return;
    memset(o, 0, sizeof *o);
    o->smoke = true;
}

/* ---- whether it fits ---------------------------------------------------------------------------------------------------- */

static bool is_head(const hn_drafter_kind *kind) {
    return kind && kind->head;
}

/* Reads the kind of the files into c->kind; if it has no drafter, the reason into c->reason. */
static hunch_status check_files(check *c, hunch_error *err) {
    hn_source *src = NULL;
    const hunch_status st = hn_source_open_head(&src, c->spec.path, err);
    if (st) return st;
    const char *kind; /* may be the source's */
    if (!hn_head_kind(src, &kind, &c->reason)) {
        snprintf(c->kind, sizeof c->kind, "%s", kind ? kind : "");
        c->reason.status = HUNCH_REFUSED;
        snprintf(c->reason.message, sizeof c->reason.message, "%.500s: %s%s", hn_source_path(src),
                 kind ? "a head of a kind that has no drafter here yet: " : "neither a draft head that is known nor a model", c->kind);
    }
    hn_source_close(&src);
    return HUNCH_OK;
}

/* Finds the kind. *known: it has a drafter; else c->reason says why not. */
static hunch_status find_kind(check *c, bool *known, hunch_error *err) {
    const char *named = c->spec.kind;
    const hn_drafter_kind *kind = named ? hn_drafter_named(named) : NULL;
    *known = is_head(kind) && (c->spec.path || kind->head->in_model); /* without a path: the model's own block */
    if (*known) {
        snprintf(c->kind, sizeof c->kind, "%s", named);
        return HUNCH_OK;
    }
    if (named && (kind || !c->spec.path))
        return hn_fail(err, HUNCH_USAGE, "'%s': expected a draft head: its folder or file, or KIND:PATH such as eagle3:PATH", c->given);
    const hunch_status st = check_files(c, err);
    if (st) return st;
    if (named && strcmp(named, c->kind) != 0)
        return hn_fail(err, HUNCH_USAGE, "'%s': unknown kind '%s'%s%s", c->given, named,
                       *c->kind ? ", by its files it is one of kind " : "", c->kind);
    if (!strcmp(c->kind, "model"))
        return hn_fail(err, HUNCH_USAGE,
                       "'%s': a language model, expected a draft head (hunch compare MODEL --draft model:PATH measures it)", c->given);
    kind = hn_drafter_named(c->kind);
    *known = is_head(kind) && !named;
    if (*known) c->spec.kind = kind->name;
    return HUNCH_OK;
}

/* Removes "drafter 'SPEC': " before a message: with one head it is redundant. */
static void drop_prefix(char *message, const char *spec) {
    const size_t n = strlen("drafter '") + strlen(spec) + strlen("': ");
    if (!strncmp(message, "drafter '", 9) && strlen(message) > n && !strncmp(message + 9, spec, strlen(spec)))
        memmove(message, message + n, strlen(message + n) + 1);
}

/* Only contents of the head's own files can make it a head that does not fit. */
static hunch_status try_open(check *c, hunch_error *err) {
    const hunch_model *m = c->model;
    const hn_dtype kv = m->precision == HUNCH_PRECISION_F32 ? HN_F32 : HN_BF16;
    hn_target_info info = hn_engine_target(m, m->target.arch.context, kv, 0);
    hn_drafter d;
    char *text = NULL;
    info.report = &c->report;
    hunch_status st = hn_check_spec(&text, &c->spec, NULL, NULL, err);
    if (st) return st;
    st = hn_drafter_open(&d, text, 0, 1, &info, &c->reason);
    if (st == HUNCH_REFUSED) drop_prefix(c->reason.message, text);
    hn_free(text);
    c->fits = !st;
    if (!st) {
        c->about = hn_strdup(d.about ? d.about : "");
        hn_drafter_close(&d);
        return c->about ? HUNCH_OK : hn_fail_memory(err, "the description of a draft head", 1);
    }
    return st == HUNCH_REFUSED && c->report.read ? HUNCH_OK : hn_fail(err, st, "%s", c->reason.message);
}

static hunch_status check_fit(check *c, hunch_error *err) {
    bool known = false;
    hunch_status st = hn_spec_parse(&c->spec, c->given, err);
    if (!st) st = find_kind(c, &known, err);
    for (int i = 0; !st && i < c->spec.n; i++)
        if (!strcmp(c->spec.key[i], "force"))
            st = hn_fail(err, HUNCH_USAGE, "'%s': force replaces the head's tokens: expected a spec without it", c->given);
    return st || !known ? st : try_open(c, err);
}

/* ---- whether it drafts well ------------------------------------------------------------------------------------------------ */

static hunch_status check_smoke(check *c, hunch_error *err) {
    enum { LONG = 20, SHORT = 5 };
    char *text = NULL;
    const bool texts = c->model->tokenizer || c->n_tokens;
    c->skipped = !c->fits ? "it does not fit" : c->no_smoke ? "not asked for" : !texts ? "no tokenizer" : NULL;
    if (c->skipped) return HUNCH_OK;
    hunch_status st = hn_check_spec(&text, &c->spec, NULL, NULL, err);
    if (!st) st = hn_smoke_run(&c->smoke, c->model, text, c->tokens, c->n_tokens, c->progress, err);
    hn_free(text);
    if (st) return st;
    if (c->smoke.n == 0) c->skipped = "the tokenizer reads none of the texts";
    c->smoked = c->smoke.n > 0;
    const hn_smoke_verdict verdict = hn_smoke_judge(&c->smoke);
    if (!c->smoked || verdict == HN_SMOKE_UNKNOWN) return HUNCH_OK;
    c->tried = true;
    /* a head that is often right is hardly read in a wrong way */
    const bool often = verdict == HN_SMOKE_GOOD && c->smoke.accepted[0] > 0.6 * c->smoke.drafted[0];
    return hn_causes_find(&c->causes, c->model, &c->spec, &c->report, &c->smoke, often ? SHORT : LONG, c->progress, err);
}

static double share_of(const hn_reading *r) {
    return r->n ? (double)r->hits / r->n : 0;
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------------- */

static json_t *text_of(const char *text) {
    return text ? hn_json_from_bytes(text, strlen(text)) : json_null();
}

/* less 0: states that enter a layer; 1: the layers whose outputs they are. */
static json_t *taps_of(const hn_head_taps *t, int less) {
    json_t *list = json_array();
    for (int i = 0; i < t->n; i++)
        hn_json_add(&list, t->boundary[i] == HN_FEATURE_POST_NORM ? json_string("post_norm")
                   : t->boundary[i] < less                ? json_null()
                                                          : json_integer(t->boundary[i] - less));
    return list;
}

static json_t *names_of(const hn_name_list *names) {
    json_t *list = json_array();
    for (size_t i = 0; i < names->n; i++) hn_json_add(&list, text_of(names->name[i]));
    return list;
}

static json_t *vocabulary_of(const check *c) {
    const struct hn_head_report *r = &c->report;
    const int target = c->model->target.arch.vocab, tokens = c->model->tokenizer ? hn_tokenizer_vocab(c->model->tokenizer) : 0;
    json_t *v = json_object();
    hn_json_put(&v, "target", json_integer(target));
    hn_json_put(&v, "tokenizer", tokens ? json_integer(tokens) : json_null());
    hn_json_put(&v, "padding", tokens ? json_integer(target - tokens) : json_null());
    hn_json_put(&v, "drafts", r->described ? json_integer(r->drafts) : json_null());
    hn_json_put(&v, "embeddings", r->described ? json_integer(r->embeddings) : json_null());
    const hn_head_embedding embedding = hn_head_embedding_of(&r->desc);
    const bool clusters = r->desc.output.kind == HN_OUTPUT_CLUSTERS;
    hn_json_put(&v, "own_embedding",
        r->described && embedding != HN_EMBEDDING_NONE ? json_boolean(embedding == HN_EMBEDDING_OWN) : json_null());
    hn_json_put(&v, "own_output", r->described ? json_boolean(r->desc.output.own) : json_null());
    hn_json_put(&v, "clusters", r->described ? json_integer(clusters ? r->desc.output.clusters.n : 0) : json_null());
    hn_json_put(&v, "clusters_used", r->described ? json_integer(clusters ? r->desc.output.clusters.used : 0) : json_null());
    return v;
}

static json_t *tensors_of(const struct hn_head_report *r) {
    json_t *t = json_object();
    hn_json_put(&t, "used", json_integer(r->n_used));
    hn_json_put(&t, "unused", names_of(&r->unused));
    hn_json_put(&t, "missing", names_of(&r->missing));
    return t;
}

static json_t *tried_of(const hn_causes *causes) {
    json_t *list = json_array();
    for (int i = 0; i < causes->n; i++) {
        const hn_reading *r = &causes->reading[i];
        char option[120];
        snprintf(option, sizeof option, "%s=%s", r->key, r->value);
        json_t *one = json_object();
        hn_json_put(&one, "reading", json_string(r->what));
        hn_json_put(&one, "option", *r->key ? json_string(option) : json_null());
        hn_json_put(&one, "positions", json_integer(r->n));
        hn_json_put(&one, "acceptance", r->n ? json_real(share_of(r)) : json_null());
        hn_json_add(&list, one);
    }
    return list;
}

static json_t *cause_of(const check *c, json_t **repair) {
    char text[400], option[120] = "";
    *repair = json_null();
    if (c->causes.best < 0 && (!c->tried || hn_smoke_judge(&c->smoke) != HN_SMOKE_BAD)) return json_null();
    if (c->causes.best < 0 && c->causes.n == 1) return json_string("trained for another model, or not trained");
    if (c->causes.best < 0) {
        snprintf(text, sizeof text,
                 "trained for another model or on other pairs of state and token, or not trained: of %d other ways to read it "
                 "(alignment%s) none is clearly better%s",
                 c->causes.n - 1,
                 hn_head_is_whole(&c->report.desc) ? "" : hn_head_reads_tokens(&c->report.desc) ? ", norms" : ", norms, taps",
                 c->causes.cut ? "; there was no time for all" : "");
        return json_string(text);
    }
    const hn_reading *best = &c->causes.reading[c->causes.best];
    if (*best->key) {
        snprintf(option, sizeof option, "%s=%s", best->key, best->value);
        *repair = json_string(option);
    }
    snprintf(text, sizeof text, "%s: %s accepts %.2f where the file's own reading accepts %.2f%s", best->what, *option ? option : "it",
             share_of(best), share_of(&c->causes.reading[0]),
             *option ? "" : "; no option repairs it, the head was trained on other pairs, or not trained");
    return json_string(text);
}

/* Whether nothing is wrong with the head, as far as it was measured. */
static bool passes(const check *c) {
    return c->fits && !(c->smoked && hn_smoke_judge(&c->smoke) == HN_SMOKE_BAD) && !(c->tried && c->causes.best >= 0);
}

static json_t *smoke_of(const check *c) {
    static const char *const words[] = {[HN_SMOKE_GOOD] = "better", [HN_SMOKE_BAD] = "not better", [HN_SMOKE_UNKNOWN] = "unknown"};
    const hn_smoke *s = &c->smoke;
    json_t *o = json_object(), *acceptance = json_array(), *drafted = json_array(), *repair;
    if (!c->smoked) {
        json_decref(o), json_decref(acceptance), json_decref(drafted);
        return json_null();
    }
    for (int i = 0; i < HUNCH_MAX_DEPTH && s->drafted[i]; i++) {
        hn_json_add(&acceptance, json_real((double)s->accepted[i] / s->drafted[i]));
        hn_json_add(&drafted, json_integer(s->drafted[i]));
    }
    hn_json_put(&o, "positions", json_integer(s->drafted[0]));
    hn_json_put(&o, "acceptance", acceptance);
    hn_json_put(&o, "drafted", drafted);
    hn_json_put(&o, "error",
                s->drafted[0] ? json_real(hn_smoke_error((double)s->accepted[0] / s->drafted[0], s->drafted[0])) : json_null());
    hn_json_put(&o, "constant", json_real(s->constant));
    hn_json_put(&o, "verdict", json_string(words[hn_smoke_judge(s)]));
    json_t *cause = cause_of(c, &repair);
    hn_json_put(&o, "cause", cause);
    hn_json_put(&o, "repair", repair);
    hn_json_put(&o, "tried", c->tried ? tried_of(&c->causes) : json_array());
    hn_json_put(&o, "complete", json_boolean(!s->cut && !c->causes.cut));
    hn_json_put(&o, "seconds", json_real(s->seconds + c->causes.seconds));
    return o;
}

static json_t *report_of(const check *c) {
    const struct hn_head_report *r = &c->report;
    json_t *o = json_object();
    hn_json_put(&o, "model", text_of(c->model->path));
    hn_json_put(&o, "draft", text_of(c->given));
    hn_json_put(&o, "passes", json_boolean(passes(c)));
    hn_json_put(&o, "fits", json_boolean(c->fits));
    hn_json_put(&o, "reason", c->fits ? json_null() : text_of(c->reason.message));
    hn_json_put(&o, "kind", *c->kind ? text_of(c->kind) : json_null());
    hn_json_put(&o, "about", text_of(c->about));
    hn_json_put(&o, "taps", taps_of(&r->taps, 0));
    hn_json_put(&o, "outputs", taps_of(&r->taps, 1));
    hn_json_put(&o, "target_layers", json_integer(c->model->target.arch.layers));
    hn_json_put(&o, "layers", r->described ? json_integer(r->layers) : json_null());
    hn_json_put(&o, "hidden", r->described ? json_integer(r->hidden) : json_null());
    hn_json_put(&o, "target_hidden", json_integer(c->model->target.arch.hidden));
    hn_json_put(&o, "vocabulary", vocabulary_of(c));
    hn_json_put(&o, "tensors", tensors_of(r));
    hn_json_put(&o, "smoke", smoke_of(c));
    hn_json_put(&o, "skipped", text_of(c->skipped));
    return o;
}

static hunch_status take_tokens(check *c, const hunch_check_options *o, hunch_error *err) {
    const int vocab = c->model->target.arch.vocab;
    if (!o || !o->tokens) return HUNCH_OK;
    for (size_t i = 0; i < o->n_tokens; i++)
        if (o->tokens[i] < 0 || o->tokens[i] >= vocab)
            return hn_fail(err, HUNCH_USAGE, "token %zu of the text is %d, expected one of the model's, 0 to %d", i, (int)o->tokens[i],
                           vocab - 1);
    c->tokens = o->tokens;
    c->n_tokens = o->n_tokens;
    return HUNCH_OK;
}

hunch_status hunch_check_head(hunch_model *m, const char *spec, const hunch_check_options *o, char **json, hunch_error *err) {
    const hn_argument needed[] = {{"m", m}, {"spec", spec}, {"json", json}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (st) return st;
    check c = {.model = m, .given = spec, .no_smoke = o && !o->smoke, .causes.best = -1};
    *json = NULL;
    if (o) c.progress = (hn_check_progress){o->progress, o->progress_user};
    if (m->text_only) return hn_fail(err, HUNCH_USAGE, "this model was opened for its text alone: expected one with weights");
    st = take_tokens(&c, o, err);
    if (!st) st = check_fit(&c, err);
    if (!st) st = check_smoke(&c, err);
    json_t *report = st ? NULL : report_of(&c);
    *json = st ? NULL : hn_json_dump(report, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    if (!st && !*json) st = hn_fail_memory(err, "the report of a check", 0);
    json_decref(report);
    hn_smoke_fini(&c.smoke);
    hn_head_report_fini(&c.report);
    hn_free(c.about);
    hn_spec_fini(&c.spec);
    return st;
}
