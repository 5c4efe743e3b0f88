/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_learn.c - see cmd_learn.h. */
#include "train/cmd_learn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/folder_lock.h"
#include "base/mem.h"
#include "format/find_caches.h"
#include "convert/convert.h"
#include "train/cmd_data.h"
#include "train/data/identity.h"
#include "train/learn/measure.h"
#include "train/data/online.h"
#include "train/outputs.h"
#include "train/progress_line.h"
#include "train/data/shared_features.h"

enum { MEASURED_TOKENS = 64, MEASURED_TEXTS = 16, PATIENCE = 6, TIMED_STEPS = 3 };

typedef struct training {
    hunch_model *model;
    const hn_train_options *o;
    const hn_learn_kind *kind;
    const volatile int *stop;
    char folder[3000], checkpoint[3100], last[3100]; /* HEAD.training, and in it */
    int lock;  /* of that folder; -1: none */
    uint64_t identity; /* of the model */
    bool gguf; /* HEAD is one file, converted from a folder as by `hunch convert` */
    int taps[HN_TRAIN_MOST_STATES], n_taps;
    hn_train_texts texts;
    hn_features_read features;
    bool online;    /* features are computed when needed, not stored */
    const char *shared; /* the folder of features that other trainings read, too; NULL: they are in HEAD.training */
    uint64_t bytes; /* size of the features */
    hn_learn_options how;
    hn_learner *learner;
    bool wrote;     /* a head, since this run began */
    double seconds; /* time of steps so far */
    uint64_t tokens;
} training;

static hunch_status make_folder(const char *path, hunch_error *err) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return HUNCH_OK;
    return hn_fail(err, HUNCH_FAILED, "%s: cannot be created: %s", path, strerror(errno));
}

/* ---- training data ------------------------------------------------------------------------------------------------ */

static hunch_status read_taps(training *t, hunch_error *err) {
    const int layers = t->model->target.arch.layers;
    const char *at = t->o->taps;
    if (t->kind->reads_trunk && !at) {
        t->n_taps = 1;
        t->taps[0] = layers - 1;
        return layers > 1 ? HUNCH_OK
                          : hn_fail(err, HUNCH_REFUSED,
                                    "a model of one layer has no trunk, which a head of kind %s reads", t->kind->name);
    }
    if (!t->kind->reads_layers || t->kind->reads_trunk)
        return at ? hn_fail(err, HUNCH_USAGE,
                            "--taps %s: a head of kind %s reads %s alone: expected no --taps", at,
                            t->kind->name, t->kind->reads_trunk ? "what enters the last layer" : "the last state")
                  : HUNCH_OK;
    t->n_taps = 3;
    const int usual[] = {layers > 6 ? 2 : 1, layers / 2, layers > 6 ? layers - 3 : layers - 1};
    for (int i = 0; i < 3; i++) t->taps[i] = usual[i];
    for (int n = 0; at; n++) {
        char *end;
        const long layer = strtol(at, &end, 10);
        if (end == at || (*end && *end != ':') || layer < 1 || layer > layers || n + 1 == HN_TRAIN_MOST_STATES ||
            (n && layer <= t->taps[n - 1]))
            return hn_fail(err, HUNCH_USAGE, "--taps %s: expected rising layers of 1 to %d, such as 2:16:29",
                           t->o->taps, layers);
        t->taps[n] = (int)layer;
        t->n_taps = n + 1;
        at = *end ? end + 1 : NULL;
    }
    for (int i = 1; i < t->n_taps; i++)
        if (t->taps[i] <= t->taps[i - 1])
            return hn_fail(err, HUNCH_USAGE,
                           "a model of %d layers: expected --taps with layers of which each is above the one before",
                           layers);
    return HUNCH_OK;
}

static hunch_status read_folder(training *t, const char *folder, hunch_error *err) {
    char *path = hn_path_join(folder, "texts.jsonl");
    /* a draft model learns from any texts, for which the model then gives the distribution */
    const bool any = t->kind->whole_model || t->o->force;
    hunch_status st = any ? HUNCH_OK : hn_train_data_check_model(folder, t->o->model, t->identity, err);
    if (!st) st = path ? hn_train_texts_read(&t->texts, path, t->model->target.arch.vocab, err)
                       : hn_fail_memory(err, "a path", 0);
    hn_free(path);
    return st;
}

/* Reads folders of `data`, or files, from which texts are generated first. */
static hunch_status read_texts(training *t, hunch_error *err) {
    const hn_train_options *o = t->o;
    int made = 0;
    for (int i = 0; i < o->files.n; i++) made += hn_is_folder(o->files.items[i]);
    if (o->files.n == 0 && o->self <= 0)
        return hn_fail(err, HUNCH_USAGE,
                       "nothing to learn from: expected -f with a folder of `hunch train data`, or files");
    if (made > 0 && made < o->files.n)
        return hn_fail(err, HUNCH_USAGE, "-f with folders and files: expected folders of `hunch train data`, or files");
    hunch_status st = made ? HUNCH_OK : hn_train_data_make(t->model, o, t->folder, t->stop, err);
    for (int i = 0; !st && i < (made ? made : 1); i++) st = read_folder(t, made ? o->files.items[i] : t->folder, err);
    return st;
}

/* Every second text is held out at most. */
static hunch_status check_held_out(const training *t, hunch_error *err) {
    const size_t wanted = t->o->held_out > 0 ? (size_t)t->o->held_out : 0, n = t->texts.n;
    if (2 * wanted <= n) return HUNCH_OK;
    return hn_fail(err, HUNCH_USAGE, "--held-out %zu needs at least %zu texts, and there are %zu: expected --held-out %zu or less, or "
                                     "more texts", wanted, 2 * wanted, n, n / 2);
}

static void show_features(void *user, uint64_t done, uint64_t of) {
    const training *t = user;
    if (!t->o->quiet) hn_progress_line(done == of, "features of %.1f of %.1f thousand tokens", (double)done / 1e3, (double)of / 1e3);
}

/* As --features specifies. By default they are stored if they are read more than once and the disk has room, or some are stored already. */
static hunch_status choose_place(training *t, const hn_shard_header *h, hunch_error *err) {
    const char *wanted = t->o->features;
    const int batch = t->o->batch > 0 ? t->o->batch : hn_learn_usual(t->kind, &t->model->target.arch, 0).rows;
    bool fits = true;
    if (wanted && strcmp(wanted, "stored") != 0 && strcmp(wanted, "online") != 0) {
        if (!strchr(wanted, '/') && !hn_is_folder(wanted))
            return hn_fail(err, HUNCH_USAGE,
                           "--features %s: expected stored or online, or a folder, with a / where it is to be made", wanted);
        t->shared = wanted;
    }
    t->bytes = hn_features_bytes(h, &t->texts);
    hunch_status st = wanted ? HUNCH_OK : hn_features_fit(t->folder, t->bytes, &fits, err);
    const bool once = t->o->steps >= 0 && (double)t->o->steps * batch <= (double)t->texts.tokens;
    t->online = wanted ? !strcmp(wanted, "online") : once || !fits;
    return st || !t->shared ? st : make_folder(t->shared, err);
}

static hunch_status take_features(training *t, hunch_error *err) {
    const hn_model *m = &t->model->target;
    int states[HN_TRAIN_MOST_STATES];
    const uint64_t identity = t->identity;
    memcpy(states, t->taps, sizeof states);
    states[t->n_taps] = HN_FEATURE_POST_NORM;
    const hn_shard_header header = hn_features_header(m, identity, &t->texts, states, t->n_taps + 1);
    hunch_status st = choose_place(t, &header, err);
    if (st) return st;
    if (t->online) return hn_features_online(&t->features, m, identity, &t->texts, states, t->n_taps + 1, err);
    if (t->shared)
        return hn_features_share(&t->features, m, identity, &t->texts, states, t->n_taps + 1, t->shared, show_features, t, t->stop, err);
    st = hn_features_make(m, identity, &t->texts, states, t->n_taps + 1, t->folder, show_features, t, t->stop, err);
    return st ? st : hn_features_open(&t->features, t->folder, err);
}

/* ---- settings ---------------------------------------------------------------------------------------------------------------- */

static void set(int *to, int given) {
    if (given >= 0) *to = given;
}

static void plan_steps(training *t, int steps) {
    t->how.steps = steps;
    t->how.every = steps / 12 > 50 ? steps / 12 : 50;
}

/* --centroids C[:K] */
static hunch_status read_clusters(const hn_train_options *o, hn_learn_options *how, hunch_error *err) {
    char end;
    const int n = o->centroids ? sscanf(o->centroids, "%d:%d%c", &how->clusters, &how->clusters_used, &end) : 0;
    if (o->centroids && (n < 1 || n > 2 || how->clusters < 2 || (n == 1 && strspn(o->centroids, "0123456789") != strlen(o->centroids)) ||
                         (n == 2 && how->clusters_used < 1)))
        return hn_fail(err, HUNCH_USAGE, "--centroids %s: expected C or C:K, such as 256:32", o->centroids);
    if (!o->centroid_start) return HUNCH_OK;
    if (!o->centroids) return hn_fail(err, HUNCH_USAGE, "--centroid-start %s: expected it with --centroids", o->centroid_start);
    (void)hn_cluster_start_named(o->centroid_start, &how->cluster_start); /* it is one of the flag's words */
    return HUNCH_OK;
}

static void choose_options(training *t) {
    const hn_train_options *o = t->o;
    t->how = hn_learn_usual(t->kind, &t->model->target.arch, t->features.tokens);
    if (o->batch > 0) t->how.steps = (int)((double)t->how.steps * t->how.rows / o->batch);
    set(&t->how.steps, o->steps);
    set(&t->how.rows, o->batch);
    set(&t->how.longest, o->length);
    set(&t->how.unroll, o->unroll);
    set(&t->how.vocab, o->vocab);
    set(&t->how.ffn, o->width);
    set(&t->how.layers, o->layers);
    if (o->init) snprintf(t->how.init, sizeof t->how.init, "%s", o->init);
    if (o->divergence) (void)hn_divergence_named(o->divergence, &t->how.divergence); /* it is one of the flag's words */
    if (t->texts.n / 4 < (size_t)t->how.held_out) t->how.held_out = (int)(t->texts.n / 4);
    set(&t->how.held_out, o->held_out);
    if (o->rate >= 0) t->how.rate = o->rate;
    if (o->token_share >= 0) t->how.token_share = o->token_share;
    t->how.cell = o->cell;
    t->how.shift_label = o->shift_label;
    set(&t->how.plain, o->pure_prefix);
    t->how.verifier = o->verifier;
    if (o->on_policy >= 0) t->how.on_policy = o->on_policy;
    if (o->policy_temperature >= 0) t->how.policy_temperature = o->policy_temperature;
    set(&t->how.refresh, o->refresh);
    set(&t->how.parallel, o->parallel);
    t->how.spoken_in = t->last;
    t->how.stop = t->stop;
    if (o->state_share >= 0) t->how.state_share = o->state_share;
    (void)read_clusters(o, &t->how, NULL); /* it was checked before */
    t->how.seed = o->seed > 0 ? (uint64_t)o->seed : 0;
    plan_steps(t, t->how.steps);
}

static hunch_status open_learner(training *t, hunch_error *err) {
    const hunch_status st = hn_learner_open(&t->learner, t->model, t->o->model, &t->features, &t->how, err);
    return st ? st : hn_train_record_write(t->folder, t->kind->name, t->identity, t->o->model, err);
}

/* The number of steps that fit into a time: some steps are timed and discarded. What the first took longer is what speaking for as
 * many as --refresh took, if it speaks. */
static hunch_status time_steps(training *t, hunch_error *err) {
    double losses[HN_MOST_STEPS];
    int tokens;
    hunch_status st = open_learner(t, err);
    const double begin = hn_now();
    if (!st) st = hn_learner_step(t->learner, losses, &tokens, err);
    const double start = hn_now();
    for (int i = 0; !st && i < TIMED_STEPS; i++) st = hn_learner_step(t->learner, losses, &tokens, err);
    double each = (hn_now() - start) / TIMED_STEPS;
    const double longer = start - begin - each, epoch = (double)t->features.tokens / t->how.rows + 1;
    if (t->how.on_policy > 0 && longer > 0) each += longer / (t->how.refresh < epoch ? t->how.refresh : epoch);
    hn_learner_close(&t->learner);
    if (!st) plan_steps(t, t->o->seconds > each ? (int)(t->o->seconds / each) : 1);
    return st;
}

static void show_plan(const training *t) {
    if (t->o->quiet) return;
    fprintf(stderr,
            "%.0f thousand tokens in %zu texts, %.0f thousand of them in answers; a head of %.1f million weights, %d "
            "tokens that cover %.1f %%; %d steps of %d rows, %.1f epochs; features %s %.2f GB\n",
            (double)t->features.tokens / 1e3, t->features.n, (double)t->texts.own / 1e3,
            hn_learner_parameters(t->learner) / 1e6, t->how.vocab, 100 * hn_learner_coverage(t->learner), t->how.steps,
            t->how.rows, (double)t->how.steps * t->how.rows / (double)t->features.tokens,
            t->online ? "online, instead of" : "stored,", (double)t->bytes / 1e9);
}

/* ---- checks ------------------------------------------------------------------------------------------------------------- */

static hunch_status save_best(const training *t, hunch_error *err) {
    hunch_convert_options how;
    hunch_convert_options_defaults(&how);
    how.target = t->o->model;
    how.type = t->o->head_type ? t->o->head_type : "q8_0";
    if (t->gguf) return hunch_convert(t->last, t->o->output, &how, err);
    return t->o->format ? hn_learner_save_head_for_others(t->learner, t->o->output, err)
                        : hn_learner_save_head(t->learner, t->o->output, err);
}

/* HEAD.svg. A head is packed as Q8_0, and a step reads all of it. */
static hunch_status draw(const training *t, const hn_learn_note *note, hunch_error *err) {
    char path[3100];
    const char *slash = strrchr(t->o->output, '/');
    const double bytes = hn_learner_draft_reads(t->learner) * hn_dtype_block_bytes(HN_Q8_0) / hn_dtype_block(HN_Q8_0);
    const hn_picture_about about = {.head = slash && slash[1] ? slash + 1 : t->o->output,
                                    .drafts = t->how.unroll,
                                    .steps = t->how.steps,
                                    .best = note->best,
                                    .step_cost = bytes / (double)t->model->target.weight_bytes};
    snprintf(path, sizeof path, "%.2900s.svg", t->o->output);
    return hn_picture_write(&note->past, &about, path, err);
}

typedef char text[HN_MOST_STEPS * 16];

/* "1: 2.345, 2: 2.678": a value of each draft in a row. */
static void by_draft(text out, const double *values, int n) {
    size_t at = 0;
    out[0] = 0;
    for (int k = 0; k < n && at < sizeof(text); k++)
        at += (size_t)snprintf(out + at, sizeof(text) - at, "%s%d: %.3f", k ? ", " : "", k + 1, values[k]);
}

static void show_check(const training *t, const double *losses, const hn_train_acceptance *a, bool best) {
    const double speed = a->round_s > 0 ? a->tau * a->plain_s / a->round_s : 0;
    text lost, right;
    if (t->o->quiet) return;
    by_draft(lost, losses, t->how.unroll);
    by_draft(right, a->position, t->how.unroll < HN_TRAIN_MOST_DEPTH ? t->how.unroll : HN_TRAIN_MOST_DEPTH);
    hn_progress_line_wipe();
    fprintf(stderr, "step %d of %d, held-out texts: loss of draft %s; accepted %s; %.2f tokens a round, %.2f x plain%s\n",
            hn_learner_step_number(t->learner), t->how.steps, lost, right, a->tau, speed, best ? ", the best so far" : "");
}

/* Whether it is the best so far, by tokens per round, which unlike speed do not depend on the machine's load. */
static hunch_status check(training *t, bool end, hunch_error *err) {
    double losses[HN_MOST_STEPS];
    size_t n;
    hn_train_acceptance a;
    char spec[3300];
    const hn_train_text *held = hn_learner_held_out(t->learner, &n);
    snprintf(spec, sizeof spec, "%s:%s,depth=%d", t->kind->name, t->last, t->how.unroll);
    hn_learn_note *note = hn_learner_note(t->learner);
    hunch_status st = hn_learner_save_head(t->learner, t->last, err);
    if (!st)
        st = hn_train_measure(t->model, spec, held, n < MEASURED_TEXTS ? n : MEASURED_TEXTS, MEASURED_TOKENS, &a, err);
    if (st) return st;
    st = hn_learner_held_out_losses(t->learner, losses, err);
    if (st) return st;
    const bool best = a.tau > note->best;
    show_check(t, losses, &a, best);
    note->worse = best ? 0 : note->worse + 1;
    if (best || (end && note->best == 0)) {
        st = save_best(t, err);
        t->wrote = true;
    }
    if (best) note->best = a.tau;
    hn_run_history_add_check(&note->past, losses, a.position, t->how.unroll, a.tau);
    if (!st) st = draw(t, note, err);
    return st ? st : hn_learner_save(t->learner, t->checkpoint, err); /* last: a checkpoint means that the check is complete */
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------- */

static void show_step(const training *t, const double *losses) {
    const int step = hn_learner_step_number(t->learner);
    const double rate = (double)t->tokens / t->seconds, left = (double)(t->how.steps - step) * t->how.rows / rate;
    text line;
    if (t->o->quiet || step == t->how.steps) return;
    by_draft(line, losses, t->how.unroll);
    hn_progress_line(false, "step %d of %d: loss of draft %s; %.0f tokens/s, %.0f s left", step, t->how.steps, line, rate, left);
}

/* Whether the last check was after this step, and there is a head. If no texts are held out only the check at the end writes one. */
static bool is_checked(const training *t) {
    const hn_learn_note *note = hn_learner_note(t->learner);
    const hn_run_history *past = &note->past;
    return note->best > 0 && past->n_checks > 0 && (int)past->check[(int)past->n_checks - 1].step == hn_learner_step_number(t->learner);
}

static hunch_status stopped(training *t, hunch_error *err) {
    const hunch_status st = hn_learner_save(t->learner, t->checkpoint, err);
    return st ? st
              : hn_fail(err, HUNCH_CANCELLED, "interrupted at step %d of %d: the same command continues",
                        hn_learner_step_number(t->learner), t->how.steps);
}

static hunch_status run_steps(training *t, hunch_error *err) {
    double losses[HN_MOST_STEPS];
    hunch_status st = HUNCH_OK;
    int tokens;
    while (!st && hn_learner_step_number(t->learner) < t->how.steps && hn_learner_note(t->learner)->worse < PATIENCE) {
        const double start = hn_now();
        st = hn_learner_step(t->learner, losses, &tokens, err);
        if (st == HUNCH_CANCELLED) return stopped(t, err);
        if (st) break;
        t->seconds += hn_now() - start;
        t->tokens += (uint64_t)tokens;
        hn_run_history_step(&hn_learner_note(t->learner)->past, losses, t->how.unroll, tokens);
        show_step(t, losses);
        const int step = hn_learner_step_number(t->learner);
        if (step % t->how.every == 0 && step < t->how.steps) st = check(t, false, err);
        if (!st && t->stop && *t->stop) st = stopped(t, err);
    }
    /* a finished run is not checked again: its checkpoint does not change */
    return st || is_checked(t) ? st : check(t, true, err);
}

/* begun: steps that were done before. */
static void show_end(const training *t, int begun) {
    const int step = hn_learner_step_number(t->learner);
    const char *name = t->kind->name, *try = t->kind->whole_model ? "compare" : "check";
    if (t->o->quiet) return;
    hn_progress_line_wipe();
    if (step < t->how.steps) fprintf(stderr, "ended at step %d of %d: no better head in %d checks\n", step, t->how.steps, PATIENCE);
    if (begun && begun == step)
        fprintf(stderr, "%s was trained already; more steps: --steps; try: ", t->o->output);
    else if (t->wrote)
        fprintf(stderr, "wrote %s; try: ", t->o->output);
    else
        fprintf(stderr, "%s is the earlier one: no check of these steps was better; try: ", t->o->output);
    fprintf(stderr, "hunch %s %s --draft %s:%s\n", try, t->o->model, name, t->o->output);
}

/* Refuses flags that do not apply to the kind. */
static hunch_status check_kind(const training *t, hunch_error *err) {
    const hn_train_options *o = t->o;
    const hn_learn_kind *kind = t->kind;
    hn_learn_options read = {0};
    const hunch_status st = read_clusters(o, &read, err);
    if (st) return st;
    if (o->layers > 1 && !kind->layered)
        return hn_fail(err, HUNCH_USAGE, "--layers %d: a head of kind %s has one layer: expected no --layers", o->layers, kind->name);
    if ((o->init || o->divergence) && !kind->whole_model)
        return hn_fail(err, HUNCH_USAGE, "%s: a head of kind %s has fixed initial weights: expected it only with model",
                       o->init ? "--init" : "--divergence", kind->name);
    if (o->centroids && kind != &hn_learn_eagle3)
        return hn_fail(err, HUNCH_USAGE, "--centroids: a head of kind %s has none: expected it only with eagle3", kind->name);
    if (o->centroids && o->format && !strcmp(o->format, "hf"))
        return hn_fail(err, HUNCH_USAGE, "--format hf: no other program reads a head of eagle3 with --centroids: expected gguf, or no "
                                         "--format, and a folder for hunch");
    if (o->cell && kind != &hn_learn_mlp)
        return hn_fail(err, HUNCH_USAGE, "--cell: a head of kind %s has none: expected it only with mlp", kind->name);
    if ((o->shift_label || o->pure_prefix >= 0) && !kind->shifts)
        return hn_fail(err, HUNCH_USAGE, "--%s: a head of kind %s has none: expected it only with domino",
                       o->shift_label ? "shift-label" : "pure-prefix", kind->name);
    if (o->init && strlen(o->init) >= sizeof t->how.init)
        return hn_fail(err, HUNCH_USAGE, "--init: a path of %zu bytes, expected at most %zu", strlen(o->init), sizeof t->how.init - 1);
    if (o->on_policy >= 0 && !kind->whole_model)
        return hn_fail(err, HUNCH_USAGE, "--on-policy: a head of kind %s has no texts of its own: expected it only with model", kind->name);
    if ((o->refresh >= 0 || o->policy_temperature >= 0) && !(o->on_policy >= 0))
        return hn_fail(err, HUNCH_USAGE, "--%s: expected it with --on-policy", o->refresh >= 0 ? "refresh" : "policy-temperature");
    if (kind->whole_model && o->width >= 0)
        return hn_fail(err, HUNCH_USAGE, "--ffn: a draft model has the width of the model that it starts from: "
                                         "expected no --ffn");
    if (kind->whole_model && ((o->format && !strcmp(o->format, "gguf")) || (!o->format && hn_ends_with(o->output, ".gguf"))))
        return hn_fail(
            err, HUNCH_USAGE,
            "%s: a draft model is written as a folder: expected a name without .gguf; hunch convert makes a file of it",
            o->output);
    return HUNCH_OK;
}

static hunch_status learn(training *t, hunch_error *err) {
    const char *format = t->o->format;
    if (format && !strcmp(format, "hf") && !t->kind->others)
        return hn_fail(err, HUNCH_USAGE,
                       "--format hf: no other program reads a folder of such a head of %s: expected gguf, or no "
                       "--format, and a folder for hunch",
                       t->kind->name);
    if (format && !strcmp(format, "hf") && t->kind->one_layer_of_others && t->o->layers > 1)
        return hn_fail(err, HUNCH_USAGE,
                       "--format hf --layers %d: no other program reads several of %s: expected one, or no --format",
                       t->o->layers, t->kind->name);
    hunch_status st = check_kind(t, err);
    if (st) return st;
    t->gguf = hn_train_head_is_file(t->o);
    if (t->o->width >= 0 && t->kind->no_ffn)
        return hn_fail(err, HUNCH_USAGE,
                       "--ffn %d: a head of %s has no feed-forward layer of another width: expected no --ffn",
                       t->o->width, t->kind->name);
    if (t->o->head_type && !t->gguf)
        return hn_fail(err, HUNCH_USAGE, "--type %s: a folder has bf16: expected it with a name that ends in .gguf",
                       t->o->head_type);
    snprintf(t->folder, sizeof t->folder, "%.2900s.training", t->o->output);
    snprintf(t->checkpoint, sizeof t->checkpoint, "%s/checkpoint.bin", t->folder);
    snprintf(t->last, sizeof t->last, "%s/last", t->folder);
    hn_dtype type;
    int planned = 0;
    st = hn_convert_type(t->o->head_type, &type, err);
    if (!st) st = read_taps(t, err);
    if (!st) st = hn_train_folder_take(t->folder, &t->lock, err);
    if (!st) st = hn_train_identity(t->o->model, &t->identity, err);
    if (!st) st = hn_train_record_check(t->folder, t->kind->name, t->identity, t->o->force, err);
    if (!st) st = hn_learner_planned(t->checkpoint, t->kind, t->model, &planned, err);
    if (!st) st = read_texts(t, err);
    if (!st) st = check_held_out(t, err);
    if (!st) st = take_features(t, err);
    if (st) return st;
    choose_options(t);
    if (t->o->seconds > 0 && t->o->steps < 0) {
        if (planned)
            plan_steps(t, planned);
        else
            st = time_steps(t, err);
    }
    if (!st) st = open_learner(t, err);
    if (!st && hn_is_file(t->checkpoint)) st = hn_learner_load(t->learner, t->checkpoint, err);
    if (st) return st;
    show_plan(t);
    const int begun = hn_learner_step_number(t->learner);
    st = run_steps(t, err);
    if (!st) show_end(t, begun);
    return st;
}

hunch_status hn_train_learn(hunch_model *m, const hn_learn_kind *kind, const hn_train_options *o,
                            const volatile int *stop, hunch_error *err) {
    training t = {.model = m, .kind = kind, .o = o, .stop = stop, .lock = -1};
    hunch_status st = learn(&t, err);
    hn_learner_close(&t.learner);
    hn_features_close(&t.features);
    hn_train_texts_fini(&t.texts);
    hn_folder_unlock(&t.lock);
    return st;
}
