/* SPDX-License-Identifier: Apache-2.0 */
/* machines.c - a model over the processes that mpirun has started (docs/machines.md). The leader runs the program; the others are told
 * which model to open, then every pass, until it ends. What is told: base/link.h lists the kinds; by whom: cache_told.c, pass_told.c. */
#include "engine/machines.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/program_files.h"
#include "model/pass_told.h"

enum { MOST_OPEN = 32, ISA_BYTES = 32 };

struct hn_machines {
    hn_link *link;
    const hunch_model *model; /* of a leader: the one that is open; NULL: none is */
};

/* ---- the same program ---------------------------------------------------------------------------------------------------------- */

/* HN_TOLD_ARGUMENTS; then the arguments, each with its end. */
typedef struct told_arguments {
    hn_told told;
    uint64_t program; /* a hash of its file */
    char version[32];
    int32_t n;
} told_arguments;

static hunch_status hash_program(uint64_t *hash, hunch_error *err) {
    hn_map map = {0};
    hunch_status st = hn_map_open(&map, "/proc/self/exe", err);
    *hash = st ? 0 : hn_bytes_hash(map.data, map.size, 0);
    hn_map_close(&map);
    return st;
}

static hunch_status compare_program(const told_arguments *m, uint64_t program, hunch_error *err) {
    if (m->program == program) return HUNCH_OK;
    const bool other = strncmp(m->version, HUNCH_VERSION, sizeof m->version - 1) != 0;
    return hn_fail(err, HUNCH_REFUSED, "another build of hunch (%s%.31s): expected the leader's",
                   other ? HUNCH_VERSION ", not " : "of ", m->version);
}

/* A rank with another model or precision has been started with other arguments. */
static hunch_status compare_arguments(const char *at, size_t left, int n, int argc, char **argv, hunch_error *err) {
    for (int i = 1; i < n || i < argc; i++) {
        const size_t bytes = i < n ? strnlen(at, left) : 0;
        const char *theirs = i < n && bytes < left ? at : NULL, *own = i < argc ? argv[i] : NULL;
        if (!theirs || !own || strcmp(theirs, own) != 0)
            return hn_fail(err, HUNCH_REFUSED,
                           "started with %s%.100s where the leader has %.100s: expected the same model, precision and flags",
                           own ? "" : "no ", own ? own : "argument", theirs ? theirs : "none");
        at += bytes + 1;
        left -= bytes + 1;
    }
    return HUNCH_OK;
}

static hunch_status tell_arguments(hn_link *l, uint64_t program, int argc, char **argv, hunch_error *err) {
    told_arguments m = {.told = {HN_TOLD_ARGUMENTS, 0}, .program = program, .version = HUNCH_VERSION, .n = argc};
    size_t bytes = sizeof m;
    for (int i = 1; i < argc; i++) bytes += strlen(argv[i]) + 1;
    unsigned char *all = hn_alloc(bytes), *at = all;
    if (!all) return hn_fail_memory(err, "a message to ranks", bytes);
    memcpy(at, &m, sizeof m);
    at += sizeof m;
    for (int i = 1; i < argc; i++) {
        memcpy(at, argv[i], strlen(argv[i]) + 1);
        at += strlen(argv[i]) + 1;
    }
    l->send(l, all, bytes);
    hn_free(all);
    return HUNCH_OK;
}

static hunch_status hear_arguments(hn_link *l, uint64_t program, int argc, char **argv, hunch_error *err) {
    const void *message;
    const size_t bytes = l->receive(l, &message);
    told_arguments m;
    if (bytes < sizeof m) return hn_fail(err, HUNCH_REFUSED, "another build of hunch");
    memcpy(&m, message, sizeof m);
    if (m.told.kind != HN_TOLD_ARGUMENTS) return hn_fail(err, HUNCH_REFUSED, "another build of hunch");
    const hunch_status st = compare_program(&m, program, err);
    return st ? st : compare_arguments((const char *)message + sizeof m, bytes - sizeof m, m.n, argc, argv, err);
}

hunch_status hn_machines_open(hn_machines **out, int argc, char **argv, hunch_error *err) {
    hn_link *l;
    uint64_t program;
    *out = NULL;
    hunch_status st = hn_link_open(&l, err);
    if (st || !l) return st;
    hn_machines *m = hn_zalloc(1, sizeof *m);
    if (!m) l->abort(l, HUNCH_NO_MEMORY);
    m->link = l;
    hunch_error why = {0};
    const hunch_status hashed = hash_program(&program, &why);
    st = l->rank == 0 ? tell_arguments(l, program, argc, argv, &why) : hear_arguments(l, program, argc, argv, &why);
    if (st && l->rank == 0) l->abort(l, HUNCH_NO_MEMORY);
    st = hn_link_agree(l, hashed ? hashed : st, &why);
    if (st) {
        const bool leads = l->rank == 0;
        l->close(l);
        hn_free(m);
        return leads ? hn_fail(err, st, "%s", why.message) : hn_fail(err, st, "%s", "");
    }
    *out = m;
    return HUNCH_OK;
}

bool hn_machines_leads(const hn_machines *m) { return hn_link_leads(m->link); }

void hn_machines_close(hn_machines **mp) {
    hn_machines *m = *mp;
    *mp = NULL;
    if (!m) return;
    const hn_told end = {HN_TOLD_END, 0};
    if (hn_link_leads(m->link)) m->link->send(m->link, &end, sizeof end);
    m->link->close(m->link);
    hn_free(m);
}

/* ---- the same model ------------------------------------------------------------------------------------------------------------- */

/* HN_TOLD_MODEL; then its path, with its end. */
typedef struct told_model {
    hn_told told;
    uint64_t hash;
    int32_t threads, precision;
    uint8_t mapped, mapped_experts;
    char isa[ISA_BYTES];
} told_model;

/* Of names, shapes and types of its tensors, of some of their numbers, and of the beginning of its file, which has its keys. */
static hunch_status hash_model(hn_source *src, uint64_t *hash, hunch_error *err) {
    enum { SAMPLE = 64, HEAD = 1 << 16 };
    const char *path = hn_source_path(src);
    uint64_t h = 0;
    unsigned char sample[SAMPLE];
    for (size_t i = 0; i < hn_source_tensor_count(src); i++) {
        const hn_tensor *t = hn_source_tensor(src, i);
        h = hn_bytes_hash(t->name, strlen(t->name), h);
        for (int k = 0; k < t->n_dims; k++) h = hn_hash_word(h, t->dims[k]);
        h = hn_hash_word(h, (uint64_t)t->dtype);
        if (t->view || t->bytes < SAMPLE) continue;
        const hunch_status st = hn_source_read(src, t, t->bytes / 2 / SAMPLE * SAMPLE, SAMPLE, sample, err);
        if (st) return st;
        h = hn_bytes_hash(sample, SAMPLE, h);
    }
    hn_map map = {0};
    if (hn_is_file(path) && !hn_map_open(&map, path, err)) h = hn_bytes_hash(map.data, map.size < HEAD ? map.size : HEAD, h);
    hn_map_close(&map);
    *hash = h;
    return HUNCH_OK;
}

/* t: but for hash and level. */
static hunch_status tell_model(hn_link *l, hn_source *src, const hn_model_load *load, told_model *t, hunch_error *err) {
    const char *path = hn_source_path(src);
    hunch_status st = hash_model(src, &t->hash, err);
    snprintf(t->isa, sizeof t->isa, "%s", hn_isa_name(load->isa));
    const size_t bytes = sizeof *t + strlen(path) + 1;
    unsigned char *all = st ? NULL : hn_alloc(bytes);
    if (!st && !all) st = hn_fail_memory(err, "a message to ranks", bytes);
    if (st) return st;
    memcpy(all, t, sizeof *t);
    memcpy(all + sizeof *t, path, strlen(path) + 1);
    l->send(l, all, bytes);
    hn_free(all);
    return hn_link_agree(l, HUNCH_OK, err);
}

hunch_status hn_machines_tell_model(hn_machines *m, hn_source *src, const hn_model_load *load, const hunch_model_options *o,
                                    hunch_error *err) {
    told_model t = {.told = {HN_TOLD_MODEL, 0}, .threads = o->threads, .precision = (int32_t)o->precision, .mapped = load->mapped,
                    .mapped_experts = load->mapped_experts};
    if (m->model) return hn_fail(err, HUNCH_USAGE, "%s: over ranks one model is open at a time", hn_source_path(src));
    return tell_model(m->link, src, load, &t, err);
}

hunch_status hn_machines_open_draft(hn_machines *m, hn_model *model, hn_source *src, hn_model_load *load, hunch_error *err) {
    const uint32_t id = ++m->link->next_id;
    told_model t = {.told = {HN_TOLD_MODEL, id}, .precision = load->f32 ? HUNCH_PRECISION_F32 : HUNCH_PRECISION_NATIVE};
    const hunch_status st = tell_model(m->link, src, load, &t, err);
    if (st) return st;
    load->account = load->like ? load->like->account : NULL;
    load->link = m->link;
    load->told_id = id;
    const hunch_status own = hn_model_open(model, src, load, err), all = hn_link_agree(m->link, own, err);
    if (all && !own) hn_model_close(model);
    return all;
}

hn_link *hn_machines_link(const hn_machines *m) { return m ? m->link : NULL; }
void hn_machines_begin_model(hn_machines *m, const hunch_model *model) { m->model = model; }

void hn_machines_end_model(hn_machines *m, const hunch_model *model) {
    const hn_told end = {HN_TOLD_MODEL_END, 0};
    if (!m || m->model != model || !model) return;
    m->link->send(m->link, &end, sizeof end);
    m->model = NULL;
}

/* ---- of the others ---------------------------------------------------------------------------------------------------------------- */

/* What is open, by the leader's numbers; 0: nothing. */
typedef struct opened {
    hn_link *link;
    struct {
        hn_source *src;
        hn_model model;
        bool open;
    } model[MOST_OPEN]; /* the target, then draft models */
    uint32_t model_id[MOST_OPEN];
    hn_cache *cache[MOST_OPEN];
    hn_runner *runner[MOST_OPEN];
    uint32_t cache_id[MOST_OPEN], runner_id[MOST_OPEN], runner_cache[MOST_OPEN];
} opened;

static hunch_status other_form(hunch_error *err) { return hn_fail(err, HUNCH_FAILED, "a message of another form"); }

static int place_of(const uint32_t *ids, uint32_t id) {
    int i = 0;
    while (i < MOST_OPEN && ids[i] != id) i++;
    return i < MOST_OPEN ? i : -1;
}

static void end_model(opened *o, int at) {
    if (o->model[at].open) hn_model_close(&o->model[at].model);
    o->model[at].open = false;
    o->model_id[at] = 0;
    hn_source_close(&o->model[at].src);
}

/* The target, id 0, is the first. -1: there is none. */
static int model_of(const opened *o, uint32_t id) {
    const int at = id ? place_of(o->model_id, id) : 0;
    return at >= 0 && o->model[at].open ? at : -1;
}

/* Before anything is loaded: whether this is the leader's model, and this CPU has its level. */
static hunch_status open_source(hn_source **src, const told_model *t, const char *path, hn_isa *isa, hunch_error *err) {
    uint64_t hash = 0;
    hunch_status st = hn_isa_parse(t->isa, isa, err);
    if (st) hn_error_prefix(err, "the leader's level");
    if (!st) st = hn_source_open(src, path, err);
    if (!st) st = hash_model(*src, &hash, err);
    if (!st && hash != t->hash) st = hn_fail(err, HUNCH_REFUSED, "%s: another model than the leader's", path);
    return st;
}

/* A free place for a draft model, behind the target's. */
static int place_of_draft(const opened *o) {
    int i = 1;
    while (i < MOST_OPEN && o->model_id[i]) i++;
    return i < MOST_OPEN ? i : -1;
}

static hunch_status open_model(opened *o, const void *message, size_t bytes, hunch_error *err) {
    told_model t;
    char path[4096];
    hn_isa isa = 0;
    if (bytes <= sizeof t || bytes - sizeof t > sizeof path || ((const char *)message)[bytes - 1]) return other_form(err);
    memcpy(&t, message, sizeof t);
    memcpy(path, (const char *)message + sizeof t, bytes - sizeof t);
    t.isa[ISA_BYTES - 1] = 0;
    const uint32_t id = t.told.id;
    const int at = id ? place_of_draft(o) : 0;
    if (at == 0) end_model(o, 0);
    hunch_status st = at < 0 || (id && !o->model[0].open) ? hn_fail(err, HUNCH_FAILED, "more models than %d", MOST_OPEN)
                                                           : open_source(&o->model[at].src, &t, path, &isa, err);
    st = hn_link_agree(o->link, st, err);
    if (st) {
        if (at >= 0) end_model(o, at);
        return st;
    }
    const hn_model_load load = {.threads = t.threads ? t.threads : hn_cores(), .pool = id ? o->model[0].model.pool : NULL,
                                .f32 = t.precision == HUNCH_PRECISION_F32, .link = o->link, .isa = isa, .told_id = id,
                                .mapped = t.mapped, .mapped_experts = t.mapped_experts};
    st = hn_model_open(&o->model[at].model, o->model[at].src, &load, err);
    o->model[at].open = !st;
    o->model_id[at] = st ? 0 : id;
    if (!st && o->model[at].model.files)
        hn_source_trim(o->model[at].src);
    else
        hn_source_close(&o->model[at].src);
    return hn_link_agree(o->link, st, err);
}

static int groups_of(void *user, uint32_t id, hn_cache_group own[]) {
    opened *o = user;
    const int at = model_of(o, id);
    return at < 0 ? 0 : hn_kv_groups(o->model[at].model.run, HN_F32, own, NULL);
}

static hunch_status open_cache(opened *o, const hn_told *told, const void *message, size_t bytes, hunch_error *err) {
    const int at = place_of(o->cache_id, 0);
    hunch_status st = at < 0 || !o->model[0].open ? hn_fail(err, HUNCH_FAILED, "more engines than %d", MOST_OPEN) : HUNCH_OK;
    if (!st) st = hn_cache_open_told(&o->cache[at], o->model[0].model.backend, groups_of, o, message, bytes, err);
    if (!st) o->cache_id[at] = told->id;
    return hn_link_agree(o->link, st, err);
}

static hunch_status open_runner(opened *o, const hn_told *told, const void *message, size_t bytes, hunch_error *err) {
    uint32_t cache = 0, id = 0;
    const int at = place_of(o->runner_id, 0);
    hunch_status st = at < 0 ? hn_fail(err, HUNCH_FAILED, "more engines than %d", MOST_OPEN)
                             : hn_runner_cache_told(message, bytes, &cache, &id, err);
    const int in = st || cache == 0 ? -1 : place_of(o->cache_id, cache);
    if (!st && in < 0) st = hn_fail(err, HUNCH_FAILED, "no cache %u", cache);
    const int of = st ? -1 : model_of(o, id);
    if (!st && of < 0) st = hn_fail(err, HUNCH_FAILED, "no model %u", id);
    if (!st) st = hn_runner_open_told(&o->runner[at], &o->model[of].model, o->cache[in], message, err);
    if (!st) o->runner_id[at] = told->id;
    return hn_link_agree(o->link, st, err);
}

static hunch_status run_pass(opened *o, const hn_told *told, const void *message, size_t bytes, hunch_error *err) {
    const int at = told->id ? place_of(o->runner_id, told->id) : -1;
    return at < 0 ? hn_fail(err, HUNCH_FAILED, "no runner %u", told->id) : hn_pass_follow(o->runner[at], message, bytes, err);
}

static hunch_status move_rows(opened *o, const hn_told *told, size_t bytes, hunch_error *err) {
    const int at = told->id ? place_of(o->cache_id, told->id) : -1;
    if (at < 0 || !hn_cache_take_moves(o->cache[at], told + 1, bytes - sizeof *told)) return other_form(err);
    hn_cache_flush_taken(o->cache[at]);
    return HUNCH_OK;
}

static void close_model(opened *o, uint32_t id) {
    const int at = model_of(o, id);
    if (at >= 0) end_model(o, at);
}

static void close_cache(opened *o, uint32_t id) {
    const int at = place_of(o->cache_id, id);
    if (id == 0 || at < 0) return;
    hn_cache_close(&o->cache[at]);
    o->cache_id[at] = 0;
}

static void close_runner(opened *o, uint32_t id) {
    const int at = place_of(o->runner_id, id);
    if (id == 0 || at < 0) return;
    hn_runner_close(&o->runner[at]);
    o->runner_id[at] = 0;
}

/* What has been refused by agreement is the leader's to report, and it goes on or ends: `fatal` is what it does not know of. */
static hunch_status obey(opened *o, const void *message, size_t bytes, bool *fatal, hunch_error *err) {
    const hn_told *told = message;
    *fatal = false;
    switch ((hn_told_kind)told->kind) {
    case HN_TOLD_MODEL: return open_model(o, message, bytes, err);
    case HN_TOLD_CACHE: return open_cache(o, told, message, bytes, err);
    case HN_TOLD_RUNNER: return open_runner(o, told, message, bytes, err);
    case HN_TOLD_MODEL_END: close_model(o, told->id); return HUNCH_OK;
    case HN_TOLD_CACHE_END: close_cache(o, told->id); return HUNCH_OK;
    case HN_TOLD_RUNNER_END: close_runner(o, told->id); return HUNCH_OK;
    case HN_TOLD_PASS: *fatal = true; return run_pass(o, told, message, bytes, err);
    case HN_TOLD_MOVES: *fatal = true; return move_rows(o, told, bytes, err);
    case HN_TOLD_ARGUMENTS: case HN_TOLD_VERDICT: case HN_TOLD_END: break;
    }
    *fatal = true;
    return other_form(err);
}

hunch_status hn_machines_follow(hn_machines *m, hunch_error *err) {
    opened *o = hn_zalloc(1, sizeof *o);
    hunch_status st = o ? HUNCH_OK : hn_fail_memory(err, "what ranks open", sizeof *o);
    bool fatal = st;
    if (o) o->link = m->link;
    while (!fatal) {
        const void *message;
        const size_t bytes = m->link->receive(m->link, &message);
        if (bytes >= sizeof(hn_told) && ((const hn_told *)message)->kind == HN_TOLD_END) break;
        st = bytes < sizeof(hn_told) ? other_form(err) : obey(o, message, bytes, &fatal, err);
        fatal = st && (fatal || bytes < sizeof(hn_told));
    }
    for (int i = 0; o && i < MOST_OPEN; i++) hn_runner_close(&o->runner[i]);
    for (int i = 0; o && i < MOST_OPEN; i++) hn_cache_close(&o->cache[i]);
    for (int i = MOST_OPEN - 1; o && i >= 0; i--) end_model(o, i); /* the target has the others' pool */
    hn_free(o);
    return fatal ? st : HUNCH_OK;
}

void hn_machines_abort(hn_machines *m, int code) { m->link->abort(m->link, code); }
