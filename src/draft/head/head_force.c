/* SPDX-License-Identifier: Apache-2.0 */
/* head_force.c - see head_force.h. */
#include "draft/head/head_force.h"

#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/mem.h"

/* ---- rates --------------------------------------------------------------------------------------------------------------- */

static bool read_rates(hn_forced_rates *r, const char *text) {
    double sum = 0, before = 1;
    char *end = NULL;
    for (r->n = 0; r->n < HN_FORCED_RANKS; text = end + 1) {
        const double x = strtod(text, &end);
        sum += x;
        if (end == text || !(x >= 0 && x <= before) || sum > 1 + 1e-9) return false;
        r->of_rank[r->n++] = before = x;
        if (*end != '/') return !*end;
    }
    return false;
}

hunch_status hn_forced_rates_read(hn_forced_rates *r, hn_spec *spec, hunch_error *err) {
    const char *v = hn_spec_string(spec, "force");
    *r = (hn_forced_rates){0};
    if (!v) return HUNCH_OK;
    locale_t before = hn_c_locale_begin();
    const bool good = strspn(v, "/+-.0123456789eE") == strlen(v) && read_rates(r, v);
    hn_c_locale_end(before);
    return good ? HUNCH_OK
                : hn_fail(err, HUNCH_USAGE,
                          "drafter '%s': force=%s, expected a number from 0 to 1, or one for each of up to %d ranks, A/B/C, "
                          "falling and no more than 1 together",
                          spec->text, v, HN_FORCED_RANKS);
}

bool hn_forced_rates_are_estimates(const hn_forced_rates *r) { return r->n > 0 && r->of_rank[0] > 0; }

void hn_forced_rates_estimate(const hn_forced_rates *r, float *prob, int n) {
    double left = 1;
    if (!hn_forced_rates_are_estimates(r)) return;
    for (int i = 0; i < r->n; i++) left -= r->of_rank[i];
    if (left < 0) left = 0;
    for (int i = 0; i < n; i++) {
        const double most = r->of_rank[i < r->n ? i : r->n - 1], rest = left * (double)prob[i];
        prob[i] = (float)(i < r->n || rest > most ? most : rest);
    }
}

/* ---- tokens -------------------------------------------------------------------------------------------------------------- */

void hn_head_oracle_end(hn_head_oracle *o) {
    hn_free(o->token);
    o->token = NULL;
    o->n = 0;
}

hunch_status hn_head_oracle_begin(hn_head_oracle *o, const hn_begin *b, hunch_error *err) {
    hn_head_oracle_end(o);
    if (!b->oracle || b->n_oracle < 1) return HUNCH_OK;
    const size_t bytes = (size_t)b->n_oracle * sizeof *o->token;
    o->token = hn_alloc(bytes);
    if (!o->token) return hn_fail_memory(err, "the continuation that a forced head knows", bytes);
    memcpy(o->token, b->oracle, bytes);
    o->n = b->n_oracle;
    o->key.seed = b->seed;
    return HUNCH_OK;
}

static int32_t next_of(int32_t token, int vocab) {
    return (int32_t)((token + 1) % vocab);
}

/* Which rank is right. */
static int draw_rank(hn_head_oracle *o, const hn_forced_rates *rates) {
    double left = hn_random_uniform(&o->key);
    o->key.number++;
    for (int r = 0; r < rates->n; left -= rates->of_rank[r++])
        if (left < rates->of_rank[r]) return r;
    return -1;
}

int hn_head_oracle_force(hn_head_oracle *o, const hn_propose *p, const hn_forced_rates *rates, int drafter, int vocab, int depth,
                         int32_t *token, int n) {
    const int at = p->text.n - p->text.n_prompt + depth;
    const int32_t right = at >= 0 && at < o->n ? o->token[at] : -1;
    if (depth == 0) {
        o->key.position = (uint64_t)p->text.n - 1;
        o->key.purpose = HN_PURPOSE_FORCED;
        o->key.drafter = (uint32_t)drafter;
        o->key.number = 0;
    }
    int hit = draw_rank(o, rates);
    if (right < 0 || hit >= n) hit = -1;
    for (int i = 0; i < n; i++) {
        if (i == hit) continue;
        if (i > 0 && token[i] != right) continue;
        token[i] = next_of(token[i], vocab);
        if (token[i] == right) token[i] = next_of(right, vocab);
    }
    if (hit >= 0) token[hit] = right;
    return hit;
}
