/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_api.c - hunch_plan: the machine, passes and methods in turn, then what follows from them. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "forecast/forecast.h"
#include "base/json_load.h"

void hunch_plan_options_defaults(hunch_plan_options *o) {
    if (o) *o = (hunch_plan_options){0};
}

/* ---- options ----------------------------------------------------------------------------------------------------------- */

static const char *const no_drafts[] = {"none"}, *const by_itself[] = {"auto"}, *const ngram[] = {"ngram"},
                         *const suffix[] = {"suffix"};
static const hunch_method usual[] = {{"auto", by_itself, 1}, {"ngram", ngram, 1}, {"suffix", suffix, 1}};
/* Of figures alone there is no drafter to open. */
static const hunch_method kinds[] = {{"ngram", ngram, 1}, {"head", NULL, 0}, {"mtp", NULL, 0}, {"model", NULL, 0}};

static hunch_status take_batches(hn_forecast *f, const hunch_plan_options *o, hunch_error *err) {
    static const int batches[] = {1, 4, 16};
    const int *from = o->n_batch > 0 ? o->batch : batches, n = o->n_batch > 0 ? o->n_batch : 3;
    if (n > HN_FORECAST_BATCHES)
        return hn_fail(err, HUNCH_USAGE, "%d batches: expected at most %d", n, HN_FORECAST_BATCHES);
    for (int i = 0; i < n; i++) {
        if (from[i] < 1 || from[i] > HUNCH_MOST_PARALLEL)
            return hn_fail(err, HUNCH_USAGE, "a batch of %d: expected 1 to %d", from[i], HUNCH_MOST_PARALLEL);
        f->batch[f->n_batch++] = from[i];
    }
    return HUNCH_OK;
}

static hunch_status take_methods(hn_forecast *f, const hunch_method **from, hunch_error *err) {
    const hunch_plan_options *o = f->o;
    *from = o->n_methods > 0 ? o->methods : o->figures ? kinds : usual;
    f->n = 1 + (o->n_methods > 0 ? o->n_methods : o->figures ? 4 : 3);
    f->method = hn_zalloc((size_t)f->n, sizeof *f->method);
    if (!f->method) return hn_fail_memory(err, "methods", (size_t)f->n * sizeof *f->method);
    f->method[0].name = "none";
    for (int k = 0; k < HN_FORECAST_DEPTHS && o->n_requests == 0; k++) f->method[0].rows[k][1] = 1;
    for (int i = 1; i < f->n; i++) {
        f->method[i].name = (*from)[i - 1].name;
        f->method[i].absent = (*from)[i - 1].n_drafts == 0;
        f->method[i].head = f->method[i].absent && strcmp(f->method[i].name, "model");
    }
    return HUNCH_OK;
}

/* ---- measuring --------------------------------------------------------------------------------------------------------- */

static hunch_status measure_machine(hn_forecast *f, hunch_error *err) {
    enum { READINGS = 4 };
    hunch_meter *t = NULL;
    double gb_s[READINGS];
    hunch_status st = hunch_meter_open(&t, f->model, NULL, err);
    if (!st) st = hunch_meter_machine(t, &f->here, err);
    if (!st && f->here.threads > 1) {
        st = hunch_meter_read(t, (size_t)1 << 30, f->here.threads / 2, true, READINGS, gb_s, err);
        for (int i = 0; !st && i < READINGS; i++) f->few_gb_s = fmax(f->few_gb_s, gb_s[i]);
    }
    hunch_meter_close(&t);
    f->machine = (hn_figures_machine){1e9 * f->here.read_gb_s, 1e9 * f->here.int8_gmac_s};
    return st;
}

static void describe_model(hn_forecast *f, const hunch_engine *plain) {
    hunch_model_info i;
    hunch_work w;
    hunch_model_get_info(f->model, &i);
    hunch_engine_work(plain, 1, 1, 0, &w);
    f->params = (double)i.parameters;
    f->bytes = (double)i.weight_bytes;
    f->macs = w.macs_int8 + 2 * w.macs_bf16 + 4 * w.macs_f32;
    f->bits = i.macs_per_row > 0 ? 8 * f->bytes / i.macs_per_row : 0;
    const int forms = f->model->target.layer[0].o_forms | f->model->target.layer[0].down_forms;
    hn_forecast_exchanges(f, &f->model->target.arch, forms & HN_ACT_F32 ? 4 : forms & HN_ACT_BF16 ? 2 : 72.0 / 64);
    f->experts = i.experts;
    f->experts_used = i.experts_used;
    uint64_t window;
    f->row_bytes = (double)hunch_model_row_bytes(f->model, f->o->engine ? f->o->engine->kv : HUNCH_KV_DEFAULT, &window);
    f->window_bytes = (double)window;
    f->state_bytes = (double)i.state_bytes;
    f->input_bytes = (double)i.input_bytes;
}

/* Rows of the longest request, those that a draft looks beyond it, and of the passes that are timed. */
static int room_of(const hn_forecast *f) {
    const int most = f->model->target.arch.context;
    size_t need = (size_t)(f->o->context > 0 ? f->o->context : 512) + HN_TREE_ROWS;
    for (int i = 0; i < f->o->n_requests; i++) {
        const hunch_request *r = &f->o->requests[i];
        const size_t rows = r->n_prompt + (r->max_tokens > 0 ? (size_t)r->max_tokens : 512) + 2 * HN_TREE_ROWS;
        if (rows > need) need = rows;
    }
    return need < (size_t)most ? (int)need : most;
}

static int middle_of(const hn_forecast *f, int room) {
    double sum = 0;
    for (int i = 0; i < f->o->n_requests; i++)
        sum += (double)f->o->requests[i].n_prompt +
               0.5 * (f->o->requests[i].max_tokens > 0 ? f->o->requests[i].max_tokens : 512);
    const int context = f->o->context > 0 ? f->o->context : f->o->n_requests > 0 ? (int)(sum / f->o->n_requests) : 512;
    return context + HN_TREE_ROWS <= room ? context : room > HN_TREE_ROWS ? room - HN_TREE_ROWS : 0;
}

static hunch_status open_engine(hn_forecast *f, hunch_engine **e, const hunch_method *m, hunch_error *err) {
    hunch_engine_options o;
    hunch_engine_options_defaults(&o);
    if (f->o->engine) o = *f->o->engine;
    o.drafts = m ? m->drafts : no_drafts;
    o.n_drafts = m ? m->n_drafts : 1;
    o.parallel = 1;
    if (!m) {
        o.verify = HUNCH_VERIFY_DEFAULT;
        o.lossy = (hunch_lossy){0};
    }
    if (o.context <= 0) o.context = room_of(f);
    return hunch_engine_open(e, f->model, &o, err);
}

static hunch_status open_engines(hn_forecast *f, const hunch_method *from, hunch_error *err) {
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < f->n; i++) {
        hn_forecast_method *m = &f->method[i];
        st = open_engine(f, &f->engine[i], i > 0 ? &from[i - 1] : NULL, err);
        if (st) return st;
        m->controlled = f->engine[i]->controller != NULL;
        for (int d = 0; d < f->engine[i]->n_drafters; d++) m->head |= f->engine[i]->drafter[d].ops->feed != NULL;
    }
    return st;
}

/* All methods answer a request before the next one, in turns and with passes timed in between, so that a machine whose speed changes
 * changes it for all of them. */
static hunch_status measure_methods(hn_forecast *f, hunch_error *err) {
    const int n = f->o->n_requests, most = HN_FORECAST_TURNS / 2, every = n > most ? (n + most - 1) / most : 1;
    hunch_status st = HUNCH_OK;
    bool enough = false; /* for a method: all have answered the same requests */
    for (int r = 0; !st && r < n && !enough; r++) {
        for (int k = 0; !st && k < f->n; k++) {
            const int i = (k + r) % f->n;
            st = hn_forecast_answer(f, &f->method[i], f->engine[i], r, &enough, err);
        }
        if (!st && r % every == 0) st = hn_forecast_turn(f, f->engine[0], err);
        if (f->o->progress) f->o->progress(f->o->progress_user, (uint64_t)r + 1, (uint64_t)n);
    }
    for (int i = 0; n > 0 && i < f->n; i++) hn_forecast_means(&f->method[i]);
    return st;
}

static hunch_status measure(hn_forecast *f, const hunch_method *from, hunch_error *err) {
    enum { FIRST = 3, LAST = 3 }; /* turns before and after the methods */
    f->engine = hn_zalloc((size_t)f->n, sizeof *f->engine);
    if (!f->engine) return hn_fail_memory(err, "engines", (size_t)f->n * sizeof *f->engine);
    hunch_status st = measure_machine(f, err);
    if (!st) st = open_engines(f, from, err);
    if (st) return st;
    describe_model(f, f->engine[0]);
    f->curve.context = middle_of(f, f->engine[0]->context);
    for (int i = 0; !st && i < FIRST; i++) st = hn_forecast_turn(f, f->engine[0], err);
    if (!st) st = measure_methods(f, err);
    for (int i = 0; !st && i < LAST; i++) st = hn_forecast_turn(f, f->engine[0], err);
    if (!st) hn_forecast_settle(f, f->engine[0]);
    return st;
}

/* ---- the call ---------------------------------------------------------------------------------------------------------- */

static hunch_status forecast(hn_forecast *f, hunch_error *err) {
    const hunch_method *from;
    hunch_status st = take_batches(f, f->o, err);
    if (!st) st = take_methods(f, &from, err);
    if (!st) st = f->o->figures ? hn_forecast_from_figures(f, err) : measure(f, from, err);
    for (int i = 1; !st && i < f->n; i++)
        if (f->o->figures || f->o->n_requests == 0)
            hn_forecast_assume(f, &f->method[i], from[i - 1].n_drafts > 0 ? from[i - 1].drafts[0] : from[i - 1].name);
    return st;
}

hunch_status hunch_plan(hunch_model *m, const hunch_plan_options *o, char **json, hunch_error *err) {
    hunch_plan_options usual_options = {0};
    if (json) *json = NULL;
    if (!o) o = &usual_options;
    const hn_argument needed[] = {{"m", m || o->figures}, {"json", json}, {0}};
    hunch_status st = hn_check_arguments(__func__, needed, err);
    if (!st && o->machines > 1 && (o->machines > HN_MOST_RANKS || !(o->link_latency > 0) || !(o->link_bytes_s > 0)))
        st = hn_fail(err, HUNCH_USAGE, "%d machines by links of %g s and %g bytes a second: expected up to %d, and numbers above 0",
                     o->machines, o->link_latency, o->link_bytes_s, HN_MOST_RANKS);
    if (st) return st;
    if (m && !o->figures && m->text_only)
        return hn_fail(err, HUNCH_USAGE, "this model was opened for its text alone: expected one with weights");
    hn_forecast *f = hn_zalloc(1, sizeof *f);
    if (!f) return hn_fail_memory(err, "a plan", sizeof *f);
    f->model = o->figures ? NULL : m;
    f->o = o;
    st = forecast(f, err);
    if (!st && o->machines > 1 && f->exchange.n == 0)
        st = hn_fail(err, HUNCH_USAGE, "more machines: expected a config.json or a model, of which it is known what they exchange");
    json_t *report = st ? NULL : hn_forecast_report(f);
    *json = st ? NULL : hn_json_dump(report, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    if (!st && !*json) st = hn_fail_memory(err, "the report of a plan", 0);
    json_decref(report);
    for (int i = 0; f->engine && i < f->n; i++) hunch_engine_close(&f->engine[i]);
    hn_free(f->engine);
    hn_free(f->method);
    hn_free(f);
    return st;
}
