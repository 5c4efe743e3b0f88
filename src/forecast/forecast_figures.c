/* SPDX-License-Identifier: Apache-2.0 */
/* forecast_figures.c - what passes of a model that is not here read and compute: of a config.json its layers' matrices, else so many
 * parameters. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "forecast/forecast.h"
#include "plan/speedup.h"

/* Bits of a weight: of most matrices (of a mix their mean), of the output matrix; the multiply-accumulates of int8 that one takes. */
typedef struct type {
    double bits, output;
    int macs;
} type;

/* Mixes of types, by the names of their files, and those by which they are called for short. */
static const struct {
    const char *name;
    double bits;
} mixes[] = {{"Q4_K_M", 4.785}, {"Q4_K_S", 4.5}, {"Q4_K", 4.785}, {"Q5_K_M", 5.67}, {"Q5_K", 5.67},
             {"Q3_K_M", 3.9},   {"Q3_K", 3.9},   {"Q2_K", 2.96}};

static hunch_status find_type(const char *name, type *out, hunch_error *err) {
    const double best = hn_dtype_bits(HN_Q6_K); /* in which files of fewer bits have their output matrix */
    if (!strcasecmp(name, "F8")) name = hn_dtype_name(HN_F8_E4M3);
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (!strcasecmp(mixes[i].name, name)) {
            *out = (type){mixes[i].bits, best, 1};
            return HUNCH_OK;
        }
    for (int t = 0; t < HN_WEIGHT_TYPES; t++)
        if (!strcasecmp(hn_types[t].name, name)) {
            const double bits = hn_dtype_bits((hn_dtype)t);
            const bool block = hn_types[t].block > 1;
            *out = (type){bits, t == HN_MXFP4 ? hn_dtype_bits(HN_Q8_0) : block ? fmax(bits, best) : bits,
                          block ? 1 : t == HN_BF16 || t == HN_F8_E4M3 ? 2 : 4};
            return HUNCH_OK;
        }
    return hn_fail(err, HUNCH_USAGE, "type %.40s: expected one of GGUF files, such as Q4_K, Q8_0 or BF16", name);
}

/* Of one row. */
typedef struct matrices {
    double weights, used, output; /* all of them; those that a row reads, without the output's */
    int operations;
} matrices;

static void add_role(const hn_arch *a, hn_role role, int layer, matrices *m) {
    uint64_t dims[2];
    if (hn_role_is_vector(role) || !hn_arch_has(a, role, layer)) return;
    hn_arch_tensor_shape(a, role, layer, dims);
    const double one = (double)dims[0] * (double)dims[1];
    const hn_expert_desc *e = &a->layer[layer].experts;
    if (role == HN_ROLE_OUTPUT || (role == HN_ROLE_EMBEDDING && a->tied)) m->output += one;
    if (role == HN_ROLE_OUTPUT || role == HN_ROLE_EMBEDDING || role == HN_ROLE_TOKEN_TABLE) {
        m->weights += one;
        return;
    }
    const hn_role_kind kind = hn_role_kind_of(role);
    const bool of_experts = kind == HN_IS_OF_EXPERTS;
    const double all = of_experts ? e->count : kind == HN_IS_OF_HEADS ? a->layer[layer].heads : 1;
    m->weights += one * all;
    m->used += one * (of_experts ? e->used : all);
}

static matrices count_matrices(const hn_arch *a) {
    enum { AROUND = 3 }; /* embedding, norm, output */
    matrices m = {.operations = HN_FORECAST_OPERATIONS * a->layers + AROUND};
    for (int role = 0; role < HN_ROLES_OF_MODELS; role++) {
        const int layers = hn_role_of_layer((hn_role)role) ? a->layers : 1;
        for (int i = 0; i < layers; i++) add_role(a, (hn_role)role, i, &m);
    }
    return m;
}

static void curve_of(hn_forecast *f, const hn_arch *a, const matrices *m, const type *t) {
    hn_forecast_curve *c = &f->curve;
    c->context = f->o->context > 0 ? f->o->context : 512;
    c->n = HN_FORECAST_WIDTHS;
    for (int i = 0; i < c->n; i++) {
        const int rows = c->rows[i] = HN_FORECAST_WIDTH[i];
        const hn_kv_work kv = a ? hn_model_kv_work(hn_layers_of(a), HN_BF16, c->context, rows) : (hn_kv_work){0};
        double bytes = f->bytes;
        for (int l = 0; a && l < a->layers; l++) { /* every row chooses its experts by itself */
            const hn_expert_desc *e = &a->layer[l].experts;
            if (!hn_layer_has_experts(&a->layer[l])) continue;
            bytes += (hn_speedup_experts(e->count, e->used, rows) - e->used) * 3 * e->width * a->hidden * t->bits / 8;
        }
        const hn_figures_work w = {bytes + kv.bytes, rows * f->macs + 2 * kv.macs, m->operations};
        c->seconds[i] = hn_figures_seconds(&f->machine, &w);
        c->limit[i] = hn_figures_limit(&f->machine, &w);
        if (i == 0) c->text_s = kv.bytes / f->machine.bandwidth;
    }
}

static void fill(hn_forecast *f, const hn_arch *a, const matrices *m, const type *t) {
    f->params = m->weights;
    f->bytes = (m->used * t->bits + m->output * t->output) / 8;
    f->macs = (m->used + m->output) * t->macs;
    f->bits = f->bytes * 8 / (m->used + m->output);
    if (a && a->layer[a->layers - 1].experts.count > 0) {
        f->experts = a->layer[a->layers - 1].experts.count;
        f->experts_used = a->layer[a->layers - 1].experts.used;
    }
    if (a) {
        uint64_t window;
        f->row_bytes = (double)hn_model_row_bytes(hn_layers_of(a), HN_BF16, &window);
        f->window_bytes = (double)window;
        f->state_bytes = (double)hn_model_group_bytes(hn_layers_of(a), HN_CACHE_STATE);
        f->input_bytes = (double)hn_model_group_bytes(hn_layers_of(a), HN_CACHE_ROWS);
    }
    curve_of(f, a, m, t);
}

hunch_status hn_forecast_from_figures(hn_forecast *f, hunch_error *err) {
    const hunch_figures *g = f->o->figures;
    type t;
    hn_source *src = NULL;
    hn_arch a = {0};
    if (!(g->bandwidth > 0) || !(g->int8_mac_s > 0) || !isfinite(g->bandwidth) || !isfinite(g->int8_mac_s))
        return hn_fail(err, HUNCH_USAGE, "bandwidth %g and peak %g of the machine: expected numbers above 0",
                       g->bandwidth, g->int8_mac_s);
    f->machine = (hn_figures_machine){g->bandwidth, g->int8_mac_s};
    hunch_status st = find_type(g->type ? g->type : "BF16", &t, err);
    if (st) return st;
    if (!g->config) {
        if (!(g->parameters >= 1e6) || !(g->parameters <= 1e14))
            return hn_fail(err, HUNCH_USAGE, "a model of %g parameters: expected 1e6 to 1e14, or a config.json",
                           g->parameters);
        /* Of layers as wide as 128 for each of them, whose matrices have 12 times the square of that. */
        const matrices m = {
            .weights = g->parameters, .used = g->parameters, .operations = 10 * (int)cbrt(g->parameters / 196608) + 3};
        fill(f, NULL, &m, &t);
        return HUNCH_OK;
    }
    st = hn_source_open_config(&src, g->config, err);
    if (!st) st = hn_arch_read(&a, src, err);
    if (!st) {
        const matrices m = count_matrices(&a);
        fill(f, &a, &m, &t);
        hn_forecast_exchanges(f, &a, t.macs == 1 ? 72.0 / 64 : t.macs);
        hn_arch_fini(&a);
    }
    hn_source_close(&src);
    return st;
}
