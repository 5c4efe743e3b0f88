/* SPDX-License-Identifier: Apache-2.0 */
/* curves.c - keeps the controller's measured costs between processes: one small file for each (CPU, build, threads, model, cache
 * type) in the user's cache folder. Without a file a few passes are measured at start; everything else is learned while running
 * (contract C5). A file that cannot be read or written has no other effect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "engine/pass_costs.h"
#include "model/kv_groups.h"
#include "ops/pack.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define BUILD "debug"
#else
#define BUILD "release"
#endif

/* $HUNCH_CACHE, $XDG_CACHE_HOME/hunch or ~/.cache/hunch, created if missing; "" if there is no home, or its path is too long. */
static void cache_folder(char *out, size_t size) {
    const char *own = getenv("HUNCH_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    out[0] = '\0';
    if (own && *own && strlen(own) < size) {
        snprintf(out, size, "%s", own);
        (void)mkdir(out, 0700);
        return;
    }
    const bool own_cache = cache && *cache;
    const char *base = own_cache ? cache : home, *below = own_cache ? "" : "/.cache";
    if (!base || !*base || strlen(base) + strlen(below) + sizeof "/hunch" > size) return; /* a truncated path would be another path */
    strcat(strcpy(out, base), below);
    (void)mkdir(out, 0700); /* may exist; if it cannot be created neither can the file */
    strcat(out, "/hunch");
    (void)mkdir(out, 0700);
}

static uint64_t hash_text(const char *s) {
    uint64_t h = 0xCBF29CE484222325u; /* FNV-1a */
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001B3u;
    return h;
}

static void name_curves(hunch_engine *e) {
    char cpu[128], folder[400], key[600], path[500];
    const hn_arch *a = &e->model->target.arch;
    cache_folder(folder, sizeof folder);
    if (!folder[0]) return;
    hn_cpu_name(cpu, sizeof cpu);
    snprintf(key, sizeof key, "%s|%s|%s %s|%d threads|%s %s, %llu parameters, %llu bytes%s|precision %d|kv %d", cpu,
             e->model->level, HUNCH_VERSION, BUILD, e->model->threads, a->architecture, a->name,
             (unsigned long long)e->model->target.parameters, (unsigned long long)e->model->target.weight_bytes,
             e->model->target.bytes.stored > 0 ? " mapped" : "", (int)e->model->precision, (int)e->kv);
    snprintf(path, sizeof path, "%s/curve-%016llx.json", folder, (unsigned long long)hash_text(key));
    e->curve_key = hn_strdup(key);
    e->curve_path = hn_strdup(path);
}

double hn_reads(const hunch_engine *e, int committed) {
    const hn_model *m = &e->model->target;
    return hn_model_kv_work(m->run, e->kv, committed, 1).bytes / (double)m->weight_bytes;
}

static double output_part(const hn_model *m) {
    return (double)hn_packed_bytes(m, &m->output) / (double)m->weight_bytes;
}

/* Passes of 1, 8 and 4 rows, in two turns so that a change of speed is not taken for the cost of rows, the first time after a warm-up
 * pass, until the given seconds have passed. */
static hunch_status measure(hunch_engine *e, double seconds, hunch_error *err) {
    static const int widths[] = {1, 8, 4};
    hn_cost *c = hn_controller_cost(e->controller);
    const double start = hn_now(), reads = hn_reads(e, 0);
    hunch_status st = HUNCH_OK;
    for (int i = 0; !st && i < 6 && (i == 0 || hn_now() - start < seconds); i++) {
        const int rows = widths[i % 3], reps = i < 3 ? 2 : 1;
        double t[2];
        if (rows > e->context) break;
        st = hunch_measure_pass(e, rows, 0, reps, t, err);
        const hn_cost_work w = {.rows = rows, .reads = reads, .again = (rows - 1) * reads, .distinct = hn_experts_used(e)};
        if (!st) hn_cost_pass(c, &w, t[reps - 1]);
    }
    hn_internal_end(e);
    return st;
}

/* The kept costs, as far as there are any, prepared for the model. */
static void read_kept(hunch_engine *e) {
    hn_cost *c = &e->kept.cost;
    hunch_error ignored;
    name_curves(e);
    hn_cost_init(c);
    hn_cost_set_output(c, output_part(&e->model->target));
    hunch_model_info info;
    hunch_model_get_info(e->model, &info);
    if (info.experts > 0)
        hn_cost_set_experts(c, info.experts, info.experts_used,
                             (double)info.experts_used * (double)info.expert_bytes / (double)info.weight_bytes);
    if (e->curve_path && e->curve_key) (void)hn_cost_load(c, e->curve_path, e->curve_key, &e->kept.found, &ignored);
    e->kept.read = true;
}

const hn_cost *hn_curves_kept(hunch_engine *e) {
    if (!e->kept.read) read_kept(e);
    return e->kept.found ? &e->kept.cost : NULL;
}

hunch_status hn_curves_open(hunch_engine *e, hunch_error *err) {
    const bool found = hn_curves_kept(e) != NULL;
    *hn_controller_cost(e->controller) = e->kept.cost;
    return found ? HUNCH_OK : measure(e, 0.05 * e->model->load_seconds, err);
}

void hn_curves_close(hunch_engine *e) {
    hunch_error ignored;
    if (e->controller && e->curve_path && e->curve_key)
        (void)hn_cost_save(hn_controller_cost(e->controller), e->curve_path, e->curve_key, &ignored);
    hn_free(e->curve_path);
    hn_free(e->curve_key);
    e->curve_path = e->curve_key = NULL;
}
