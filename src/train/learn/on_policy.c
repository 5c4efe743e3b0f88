/* SPDX-License-Identifier: Apache-2.0 */
/* on_policy.c - see on_policy.h. */
#include "train/learn/on_policy.h"

#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "train/data/answers.h"
#include "train/learn/learn_private.h"

void hn_on_policy_close(hn_on_policy *p) {
    hn_features_close(&p->f); /* it borrows the texts */
    hn_train_texts_fini(&p->said);
    *p = (hn_on_policy){0};
}

/* ---- which pieces ------------------------------------------------------------------------------------------------------- */

static uint64_t random_of(const hn_learner *l, uint64_t number) {
    uint64_t x = l->o.seed * 0x9e3779b97f4a7c15u + (uint64_t)l->epoch;
    x = hn_splitmix(&x) + number;
    return hn_splitmix(&x);
}

/* How many of the first pieces of the order have its own text: of any that follow one another the share, to within one. */
static size_t own_before(const hn_learner *l, size_t place) {
    const uint64_t one = 1ull << 32, share = (uint64_t)(l->o.on_policy * (double)one + 0.5);
    return (size_t)(((uint64_t)place * share + random_of(l, 0) % one) >> 32);
}

int hn_on_policy_text(const hn_learner *l, size_t place) {
    if (!(l->o.on_policy > 0) || own_before(l, place + 1) == own_before(l, place)) return -1;
    return (int)(own_before(l, place) - own_before(l, l->spoken.from));
}

/* The text of a piece: it speaks after the first `prompt` tokens of the stored text, until that has `most`. */
typedef struct piece_text {
    const hn_feature_text *t;
    size_t place;
    int prompt, most;
} piece_text;

/* A later piece of a long text begins with a token of the text, so that it is never empty. */
static piece_text text_at(const hn_learner *l, size_t place) {
    const hn_learn_piece *p = &l->all[l->order[place]];
    const hn_feature_text *t = &l->f->text[p->text];
    const int behind = p->from + p->rows + 2;
    return (piece_text){t, place, t->own > p->from ? t->own : p->from + 1, behind < t->n ? behind : t->n};
}

/* ---- speaking ----------------------------------------------------------------------------------------------------------- */

typedef struct speaking {
    hn_learner *l;
    piece_text *piece; /* [jobs] */
    size_t jobs;
    hn_train_texts *said;
} speaking;

static hunch_status prompt_of(void *user, size_t job, const hn_answer *said HN_UNUSED, int turns, hunch_token **ids,
                              size_t *n, hunch_request *r, hunch_error *err) {
    const speaking *s = user;
    const piece_text *p = &s->piece[job];
    *ids = NULL;
    if (turns > 0) return HUNCH_OK;
    *n = (size_t)p->prompt;
    *ids = hn_alloc(*n * sizeof **ids);
    if (!*ids) return hn_fail_memory(err, "a prompt", *n * sizeof **ids);
    memcpy(*ids, p->t->ids, *n * sizeof **ids);
    r->max_tokens = p->most - p->prompt;
    r->sampling.temperature = s->l->o.policy_temperature;
    r->sampling.seed = random_of(s->l, 1 + p->place);
    return HUNCH_OK;
}

static hunch_status text_add(hn_train_texts *to, const int32_t *ids, int n, int own, hunch_error *err) {
    int32_t *copy = hn_alloc((size_t)n * sizeof *copy);
    if (!copy || !hn_grow((void **)&to->item, &to->cap, to->n + 1, sizeof *to->item)) {
        hn_free(copy);
        return hn_fail_memory(err, "a text of the draft model", (size_t)n * sizeof *copy);
    }
    memcpy(copy, ids, (size_t)n * sizeof *copy);
    to->item[to->n++] = (hn_train_text){copy, n, own};
    to->tokens += (uint64_t)n;
    to->own += (uint64_t)(n - own);
    return HUNCH_OK;
}

/* After a prompt that the student's context has no room for the stored text stays. */
static hunch_status text_said(void *user, size_t job, const hn_answer *said, int turns, hunch_error *err) {
    const speaking *s = user;
    const piece_text *p = &s->piece[job];
    return turns > 0 && said->n > said->own ? text_add(s->said, said->ids, (int)said->n, p->t->own, err)
                                            : text_add(s->said, p->t->ids, p->most, p->t->own, err);
}

/* As the target runs: its threads, its level. */
static hunch_status open_student(const hn_learner *l, hunch_model **out, hunch_error *err) {
    const hn_model *t = &l->model->target;
    hunch_model_options o;
    hunch_model_options_defaults(&o);
    o.threads = hn_pool_threads(t->pool);
    o.isa = hn_isa_name(t->isa);
    *out = NULL;
    hunch_status st = hn_learner_save_head(l, l->o.spoken_in, err);
    return st ? st : hunch_model_open(out, l->o.spoken_in, &o, err);
}

static hunch_status say(speaking *s, hunch_error *err) {
    hunch_model *student;
    hunch_model_info info;
    int longest = 0;
    for (size_t i = 0; i < s->jobs; i++)
        if (s->piece[i].most > longest) longest = s->piece[i].most;
    hunch_status st = open_student(s->l, &student, err);
    if (!st) {
        hunch_model_get_info(student, &info);
        const int room = longest + 16; /* of the longest an answer may begin */
        const hn_train_make how = {.max_tokens = longest,
                                   .context = room < info.context ? room : info.context,
                                   .parallel = s->l->o.parallel,
                                   .stop = s->l->o.stop};
        const hn_answers all = {.model = s->l->model,
                                .speaker = student,
                                .how = &how,
                                .drafts = "none",
                                .user = s,
                                .ask = prompt_of,
                                .take = text_said};
        st = hn_answers_make(&all, 0, s->jobs, err);
    }
    hunch_model_close(&student);
    return st;
}

/* The states that a draft model learns from are the last ones. */
static hunch_status open_states(hn_learner *l, hunch_error *err) {
    static const int last = HN_FEATURE_POST_NORM;
    hn_on_policy *p = &l->spoken;
    return p->said.n ? hn_features_online(&p->f, &l->model->target, 0, &p->said, &last, 1, err) : HUNCH_OK;
}

static hunch_status say_for(hn_learner *l, size_t from, size_t to, hunch_error *err) {
    const size_t n = own_before(l, to) - own_before(l, from);
    speaking s = {.l = l, .said = &l->spoken.said};
    if (n == 0) return HUNCH_OK;
    s.piece = hn_alloc(n * sizeof *s.piece);
    if (!s.piece) return hn_fail_memory(err, "texts of the draft model", n * sizeof *s.piece);
    for (size_t place = from; place < to; place++)
        if (own_before(l, place + 1) > own_before(l, place)) s.piece[s.jobs++] = text_at(l, place);
    hunch_status st = say(&s, err);
    hn_free(s.piece);
    return st ? st : open_states(l, err);
}

hunch_status hn_on_policy_speak(hn_learner *l, hunch_error *err) {
    hn_on_policy *p = &l->spoken;
    if (!(l->o.on_policy > 0) || (p->epoch == l->epoch && p->from <= l->at && l->at < p->to)) return HUNCH_OK;
    hn_on_policy_close(p);
    size_t to = l->at;
    for (int i = 0; i < l->o.refresh; i++) to += hn_learn_fitting(l, l->all, l->order + to, l->n_all - to);
    hunch_status st = say_for(l, l->at, to, err);
    if (st) {
        hn_on_policy_close(p);
        return st;
    }
    p->epoch = l->epoch;
    p->from = l->at;
    p->to = to;
    return HUNCH_OK;
}

/* ---- checkpoints -------------------------------------------------------------------------------------------------------- */

/* Before the texts, each of which is its number of tokens, and the tokens. */
typedef struct kept {
    double share, temperature;
    int64_t refresh, epoch;
    uint64_t from, to;
} kept;

static kept kept_of(const hn_learner *l) {
    const hn_on_policy *p = &l->spoken;
    return (kept){l->o.on_policy, l->o.policy_temperature, l->o.refresh, p->epoch, p->from, p->to};
}

hunch_status hn_on_policy_save(const hn_learner *l, hn_out *out, hunch_error *err) {
    const kept k = kept_of(l);
    const hn_train_texts *t = &l->spoken.said;
    if (!(l->o.on_policy > 0)) return HUNCH_OK;
    hunch_status st = hn_out_write(out, &k, sizeof k, err);
    for (size_t i = 0; !st && i < t->n; i++) {
        const int32_t n = t->item[i].n;
        st = hn_out_write(out, &n, sizeof n, err);
        if (!st) st = hn_out_write(out, t->item[i].ids, (size_t)n * sizeof *t->item[i].ids, err);
    }
    return st;
}

/* A text in place of a piece, from *data on, which goes behind it. */
static hunch_status load_text(hn_learner *l, const piece_text *p, const char **data, const char *end, const char *path,
                              hunch_error *err) {
    int32_t n, id;
    if ((size_t)(end - *data) < sizeof n) return hn_learn_damaged_checkpoint(path, err);
    memcpy(&n, *data, sizeof n);
    *data += sizeof n;
    if (n <= p->prompt || n > p->most || (size_t)(end - *data) / sizeof id < (size_t)n)
        return hn_learn_damaged_checkpoint(path, err);
    hunch_status st = text_add(&l->spoken.said, p->t->ids, n, p->t->own, err);
    for (int i = 0; !st && i < n; i++, *data += sizeof id) {
        memcpy(&id, *data, sizeof id);
        if (id < 0 || id >= l->model->target.arch.vocab || (i < p->prompt && id != p->t->ids[i]))
            return hn_learn_damaged_checkpoint(path, err);
        l->spoken.said.item[l->spoken.said.n - 1].ids[i] = id;
    }
    return st;
}

static hunch_status load(hn_learner *l, const char *data, size_t bytes, const char *path, hunch_error *err) {
    const char *end = data + bytes;
    const kept want = kept_of(l);
    kept k;
    if (bytes < sizeof k) return hn_learn_damaged_checkpoint(path, err);
    memcpy(&k, data, sizeof k);
    data += sizeof k;
    const bool same = !memcmp(&k.share, &want.share, sizeof k.share) &&
                      !memcmp(&k.temperature, &want.temperature, sizeof k.share) && k.refresh == want.refresh;
    if (!same || k.from > k.to || k.to > l->n_all || k.epoch < 0 || k.epoch > l->epoch)
        return hn_learn_damaged_checkpoint(path, err);
    hn_on_policy *p = &l->spoken;
    p->epoch = (int)k.epoch;
    p->from = (size_t)k.from;
    p->to = (size_t)k.to;
    hunch_status st = HUNCH_OK;
    if (p->epoch == l->epoch) { /* those of an earlier one are not used again */
        for (size_t place = p->from; !st && place < p->to; place++) {
            const piece_text t = text_at(l, place);
            if (hn_on_policy_text(l, place) >= 0) st = load_text(l, &t, &data, end, path, err);
        }
    }
    if (!st && data != end) st = hn_learn_damaged_checkpoint(path, err);
    return st ? st : open_states(l, err);
}

hunch_status hn_on_policy_load(hn_learner *l, const void *data, size_t bytes, const char *path, hunch_error *err) {
    hn_on_policy_close(&l->spoken);
    if (!(l->o.on_policy > 0)) return bytes == 0 ? HUNCH_OK : hn_learn_damaged_checkpoint(path, err);
    hunch_status st = load(l, data, bytes, path, err);
    if (st) hn_on_policy_close(&l->spoken);
    return st;
}
