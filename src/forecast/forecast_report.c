/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_report.c - the forecast as JSON (docs/formats.md). */
#include <math.h>
#include <string.h>

#include "forecast/forecast.h"
#include "format/json_build.h"
#include "plan/speedup.h"

static json_t *real(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *text_of(const char *text) {
    return text ? hn_json_from_bytes(text, strlen(text)) : json_null();
}

static json_t *machine_of(const hn_forecast *f) {
    json_t *o = json_object();
    hn_json_put(&o, "measured", json_boolean(f->model != NULL));
    hn_json_put(&o, "bandwidth", real(f->machine.bandwidth));
    hn_json_put(&o, "int8_mac_s", real(f->machine.peak));
    hn_json_put(&o, "cpu", f->model ? text_of(f->here.cpu) : json_null());
    hn_json_put(&o, "isa", f->model ? text_of(f->here.isa) : json_null());
    hn_json_put(&o, "threads", f->model ? json_integer(f->here.threads) : json_null());
    return o;
}

static json_t *model_of(const hn_forecast *f) {
    json_t *o = json_object();
    hn_json_put(&o, "path", text_of(f->model ? f->model->path : f->o->figures->config));
    hn_json_put(&o, "parameters", real(f->params));
    hn_json_put(&o, "bits", real(f->bits));
    hn_json_put(&o, "bytes", real(f->bytes));
    hn_json_put(&o, "macs", real(f->macs));
    hn_json_put(&o, "experts", json_integer(f->experts));
    hn_json_put(&o, "experts_used", json_integer(f->experts_used));
    hn_json_put(&o, "cache_row_bytes", real(f->row_bytes));
    hn_json_put(&o, "cache_window_row_bytes", real(f->window_bytes));
    hn_json_put(&o, "state_bytes", real(f->state_bytes));
    hn_json_put(&o, "input_bytes", real(f->input_bytes));
    return o;
}

static json_t *curve_of(const hn_forecast *f) {
    json_t *list = json_array();
    for (int i = 0; i < f->curve.n; i++) {
        json_t *o = json_object();
        hn_json_put(&o, "rows", json_integer(f->curve.rows[i]));
        hn_json_put(&o, "ms", real(1e3 * f->curve.seconds[i]));
        hn_json_put(&o, "limit_ms", real(1e3 * f->curve.limit[i]));
        hn_json_put(&o, "experts",
                    f->experts > 0 ? real(hn_speedup_experts(f->experts, f->experts_used, f->curve.rows[i]))
                                   : json_null());
        hn_json_add(&list, o);
    }
    return list;
}

static json_t *plain_of(const hn_forecast *f) {
    json_t *o = json_object(), *list = json_array();
    for (int b = 0; b < f->n_batch; b++) {
        json_t *one = json_object();
        hn_json_put(&one, "batch", json_integer(f->batch[b]));
        hn_json_put(&one, "predicted_tok_s", real(hn_forecast_plain(f, f->batch[b])));
        hn_json_add(&list, one);
    }
    hn_json_put(&o, "predicted_tok_s", real(hn_forecast_plain(f, f->batch[0])));
    hn_json_put(&o, "ran_tok_s", f->method[0].ran_s > 0 ? real(1 / f->method[0].ran_s) : json_null());
    hn_json_put(&o, "batches", list);
    return o;
}

/* Speeds of every depth and batch; the last depth of a method that was measured is that of its own choice, null. */
static json_t *table_of(const hn_forecast *f, const hn_forecast_method *m) {
    json_t *list = json_array();
    for (int b = 0; b < f->n_batch; b++)
        for (int k = 0; k < HN_FORECAST_DEPTHS; k++) {
            if (k < HN_FORECAST_UNCUT ? HN_FORECAST_DEPTH[k] >= m->deepest && !(k == 0 && m->deepest == 1)
                                      : !m->measured)
                continue;
            json_t *o = json_object();
            hn_json_put(&o, "batch", json_integer(f->batch[b]));
            hn_json_put(&o, "depth", k == HN_FORECAST_UNCUT ? json_null() : json_integer(HN_FORECAST_DEPTH[k]));
            hn_json_put(&o, "predicted_tok_s", real(hn_forecast_speed(f, m, k, f->batch[b])));
            hn_json_add(&list, o);
        }
    return list;
}

static json_t *acceptance_of(const hn_forecast_method *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->deepest; i++) {
        const double reached = i > 0 ? m->accepted[i - 1] : 1,
                     tried = m->drafted[i] < reached ? m->drafted[i] : reached;
        hn_json_add(&list, tried > 0 ? real(fmin(m->accepted[i] / tried, 1)) : json_null());
    }
    return list;
}

/* Leviathan's numbers of a round that drafts, at the depth that is best, or as deep as the method drafts on average. */
static json_t *theory_of(const hn_forecast *f, const hn_forecast_method *m, int cut) {
    json_t *o = json_object();
    const int k = (int)fmax(round(hn_forecast_levels(m, cut)), 1);
    const double a = hn_forecast_rate(m, cut), c = hn_forecast_cost(f, m, cut),
                 v = hn_forecast_pass(f, k + 1, 1) / hn_forecast_pass(f, 1, 1);
    hn_json_put(&o, "a", real(a));
    hn_json_put(&o, "depth", json_integer(k));
    hn_json_put(&o, "share", real(fmin(m->drafted[0], 1)));
    hn_json_put(&o, "c", real(c));
    hn_json_put(&o, "v", real(v));
    hn_json_put(&o, "factor", real(hn_speedup_factor(a, k, c, 1)));
    hn_json_put(&o, "factor_with_v", real(hn_speedup_factor(a, k, c, v)));
    hn_json_put(&o, "operations", real(hn_speedup_operations(a, k, c)));
    hn_json_put(&o, "best_depth", json_integer(hn_speedup_depth(a, c, HUNCH_MAX_DEPTH)));
    hn_json_put(&o, "r", real(hn_forecast_accepted(m, cut)));
    hn_json_put(&o, "whole_c", real(hn_forecast_whole_cost(f, m, cut)));
    return o;
}

static json_t *method_of(const hn_forecast *f, const hn_forecast_method *m) {
    json_t *o = json_object();
    int cut;
    double tokens = 1;
    const double best = hn_forecast_best(f, m, f->batch[0], &cut);
    for (int i = 0; i < hn_forecast_depth(m, cut); i++) tokens += m->accepted[i];
    hn_json_put(&o, "draft", text_of(m->name));
    hn_json_put(&o, "predicted_tok_s", real(best));
    hn_json_put(&o, "depth", m->measured ? json_null() : json_integer(hn_forecast_depth(m, cut)));
    hn_json_put(&o, "measured", json_boolean(m->measured));
    hn_json_put(&o, "typical", text_of(m->from));
    hn_json_put(&o, "tokens_a_round", real(tokens));
    hn_json_put(&o, "ran_tok_s", m->ran_s > 0 ? real(m->tokens / m->rounds / m->ran_s) : json_null());
    hn_json_put(&o, "acceptance", acceptance_of(m));
    hn_json_put(&o, "leviathan", m->deepest > 0 ? theory_of(f, m, cut) : json_null());
    hn_json_put(&o, "table", table_of(f, m));
    return o;
}

static json_t *advice_of(const hn_forecast *f, int texts) {
    hn_forecast_advice a;
    json_t *o = json_object();
    hn_forecast_advise(f, texts, &a);
    hn_json_put(&o, "batch", json_integer(texts));
    hn_json_put(&o, "recommend", text_of(a.flags));
    hn_json_put(&o, "predicted_tok_s", real(a.speed));
    hn_json_put(&o, "why", text_of(a.why));
    hn_json_put(&o, "help", text_of(a.help));
    return o;
}

/* Over 1, 2, 4, ... machines: plain decoding, and the method that is best there. */
static json_t *machines_of(const hn_forecast *f) {
    json_t *list = json_array();
    hn_forecast over = *f;
    const int texts = f->batch[0];
    for (over.machines = 1; over.machines <= f->o->machines; over.machines *= 2) {
        json_t *o = json_object();
        const hn_forecast_method *best = &f->method[0];
        const double plain = hn_forecast_plain(&over, texts), pass = hn_forecast_pass(&over, texts, texts);
        const hn_figures_links links = {f->o->link_latency, f->o->link_bytes_s};
        const double link = over.machines > 1 ? hn_figures_links_seconds(&links, &f->exchange, over.machines, texts) : 0;
        double speed = plain;
        int at = HN_FORECAST_UNCUT, cut;
        for (int i = 1; i < f->n; i++) {
            const double s = hn_forecast_best(&over, &f->method[i], texts, &cut);
            if (f->method[i].absent || s <= speed) continue;
            speed = s;
            best = &f->method[i];
            at = cut;
        }
        hn_json_put(&o, "machines", json_integer(over.machines));
        hn_json_put(&o, "pass_ms", real(1e3 * pass));
        hn_json_put(&o, "links_ms", real(1e3 * link));
        hn_json_put(&o, "plain_tok_s", real(plain));
        hn_json_put(&o, "draft", text_of(best->name));
        hn_json_put(&o, "depth", best == f->method || best->measured ? json_null() : json_integer(hn_forecast_depth(best, at)));
        hn_json_put(&o, "predicted_tok_s", real(speed));
        hn_json_put(&o, "gain", real(speed / plain));
        hn_json_add(&list, o);
    }
    return list;
}

json_t *hn_forecast_report(const hn_forecast *f) {
    hn_forecast_advice a;
    json_t *o = json_object(), *methods = json_array(), *advice = json_array();
    hn_forecast_advise(f, f->batch[0], &a);
    for (int i = 1; i < f->n; i++) hn_json_add(&methods, method_of(f, &f->method[i]));
    for (int b = 0; b < f->n_batch; b++) hn_json_add(&advice, advice_of(f, f->batch[b]));
    hn_json_put(&o, "recommend", text_of(a.flags));
    hn_json_put(&o, "predicted_tok_s", real(a.speed));
    hn_json_put(&o, "why", text_of(a.why));
    hn_json_put(&o, "help", text_of(a.help));
    hn_json_put(&o, "predicted", json_boolean(f->model == NULL));
    hn_json_put(&o, "machine", machine_of(f));
    hn_json_put(&o, "model", model_of(f));
    hn_json_put(&o, "context", json_integer(f->curve.context));
    hn_json_put(&o, "curve", curve_of(f));
    hn_json_put(&o, "plain", plain_of(f));
    hn_json_put(&o, "methods", methods);
    hn_json_put(&o, "batches", advice);
    hn_json_put(&o, "machines", machines_of(f));
    return o;
}
