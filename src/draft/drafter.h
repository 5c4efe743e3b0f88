/* SPDX-License-Identifier: Apache-2.0 */
/* drafter.h - the one interface of every drafting method. A drafter proposes continuations; correctness never depends on it.
 *
 * Calls take many sequences at once (ids 0..max_seqs-1, given by the engine). One thread calls one drafter.
 * Life of a sequence: begin · (feed · propose · observe)* · end; a preempted sequence ends and begins again with its text.
 * The committed text of a sequence is readable through hn_committed_text from token 0, restored or not; it includes the newest token,
 * which is the root of the next tree and whose row is not in the target's cache yet. A round may pass without a propose for
 * a sequence (its tree was full, others were worth more), and a tree that is observed may have lost rows since propose:
 * recognise paths by their tokens, and new text by its length: until `end` a text only grows.
 *
 * To add a drafter: one file with its hn_drafter_kind, and its name in the list at the end of this one. Of its operations open,
 * propose and close are required; the others may be NULL. A drafter of one chain a round makes it with draft_chain.h;
 * drafter_for_tests.h drives a drafter as the engine does. docs/drafting.md, "Adding a drafter".
 */
#ifndef HN_DRAFTER_H
#define HN_DRAFTER_H
#include "base/status.h"
#include "draft/drafter_help.h"
#include "draft/tree.h"
#include "model/pass.h"
#include "sample/sampler.h"
#include "text/tokenizer/tokenizer.h"

typedef struct hn_drafter hn_drafter;

/* SPEC = KIND[:PATH][,key=value…] | PATH[,key=value…], where \, is a comma of a path or value. */
typedef struct hn_spec {
    char *text;                  /* as given: also the drafter's name in errors */
    const char *keys;            /* its end, from the comma before the keys on */
    char *words;                 /* a copy that is split; kind, path, keys and values point into it */
    const char *kind, *path;     /* kind: NULL until the path's is known; path: NULL if absent */
    int n;                       /* key=value pairs */
    char *key[16], *value[16];
    bool used[16];               /* a drafter's open marks the keys it knows through the getters */
    const char *known_key[24];       /* the keys that getters were called with: those that this drafter and form know */
    int n_known;
} hn_spec;
hunch_status hn_spec_parse(hn_spec *out, const char *text, hunch_error *err); /* HUNCH_USAGE */
/* A spec that is this path alone: its commas with backslashes, and "./" before a name without a folder. False: there is no room. */
bool hn_spec_of_path(char *out, size_t size, const char *path);
void hn_spec_fini(hn_spec *s);
/* Getters: default if absent; HUNCH_USAGE for a value that is not a number or out of [min, max], naming spec and key. */
hunch_status hn_spec_int(hn_spec *s, const char *key, long min, long max, long dflt, long *out, hunch_error *err);
hunch_status hn_spec_double(hn_spec *s, const char *key, double min, double max, double dflt, double *out, hunch_error *err);
const char *hn_spec_string(hn_spec *s, const char *key); /* as given, NULL: absent; lives as long as the spec */
/* One of the names (NULL-terminated list); *out is its index. */
hunch_status hn_spec_choice(hn_spec *s, const char *key, const char *const *names, int dflt, int *out, hunch_error *err);
/* "kv=bf16|f16|f32": the type of a drafter's own cache rows. */
hunch_status hn_spec_kv(hn_spec *s, hn_dtype dflt, hn_dtype *out, hunch_error *err);
hunch_status hn_spec_all_used(const hn_spec *s, hunch_error *err); /* an unknown key: HUNCH_USAGE, naming it */
hunch_status hn_spec_no_path(const hn_spec *s, hunch_error *err);  /* for kinds that read no file */

/* What a drafter may use of the target at open. */
struct hn_machines;
typedef struct hn_target_info {
    const char *name; /* of the model, for messages; NULL: none */
    const char *path; /* its file or folder, which may hold a draft head too; NULL: not known */
    const hn_model *model; /* lives longer than the drafter; NULL in tests without one */
    int vocab, hidden, layers, context;
    const hn_tokenizer *tokenizer; /* NULL: none */
    /* how it computes: a draft model uses its pool, level and cache type unless its spec has others */
    hn_pool *pool;
    hn_isa isa;
    bool f32;
    hn_dtype kv;
    int depth; /* levels to draft if the spec does not specify them, 0: the drafter's own choice */
    bool controlled; /* `auto` decides how much of what it can draft pays */
    /* Of a target that ranks divide: opens a draft model over them too; NULL: there are none */
    hunch_status (*open_over_ranks)(struct hn_machines *machines, hn_model *m, hn_source *src, hn_model_load *load, hunch_error *err);
    struct hn_machines *machines;
    struct hn_head_report *report; /* head_reading.h: filled by a draft head's open; NULL: no report */
} hn_target_info;

/* Committed text of a sequence. */
typedef struct hn_committed_text {
    const int32_t *token;
    int n, n_prompt;
} hn_committed_text;

typedef struct hn_begin {
    int seq;
    uint64_t seed;
    uint64_t salt;              /* texts of different salts share no store (text/salt_stores.h); 0: it has none */
    hn_committed_text text;               /* the committed text: the prompt, or the whole text when a session resumes */
    int rows_restored;          /* of the drafter's own cache rows, by a prefix hit */
    const int32_t *oracle;      /* requested by `forced`: the plain continuation after the prompt; else NULL. Copied */
    int n_oracle;
    const int32_t *prediction;  /* the answer that the caller expects; NULL: none. Copied */
    int n_prediction;
} hn_begin;

/* One committed row of the target, in order: prompt chunks and accepted rows alike. Rows are fed after verification, so
 * the next token is always known: the pair (feature of position, token at position + 1) is complete. */
enum { HN_FEED_ROWS = 64 }; /* of one call */
typedef struct hn_feed_row {
    int seq, position;
    int32_t token;      /* at this position */
    int32_t next_token; /* at position + 1 */
    int16_t node;       /* row of the round's tree that it was, -1: a prompt row */
    int feature_row;    /* row in the feature buffers */
} hn_feed_row;

/* The features that open requested (hn_needs), f32 [rows][ld]: the layers in ascending order, then post-norm. */
typedef struct hn_features {
    const hn_buf *buffer;
    int n, ld;
} hn_features;

typedef struct hn_observe {
    int seq;
    const hn_tree *tree;
    int n_accepted;            /* rows of the accepted path after the root */
    const int16_t *path;       /* [n_accepted] their rows in the tree */
    int32_t next_token;        /* the text's newest token, after them */
    const int32_t *best;       /* [tree->n_rows][n_best] the target's likeliest tokens after each row, accepted or not, likeliest first; -1
                                  after the last if a row has fewer. At least as many as hn_needs.best; NULL: it was 0 */
    int n_best;
} hn_observe;

typedef struct hn_propose {
    int seq;
    hn_committed_text text;
    hn_tree *tree;             /* add candidates to rows of depth `level` */
    int budget;                /* rows that may still be added for this drafter; sharing a row costs nothing */
    int depth;                 /* levels that the tree may have */
    bool by_levels;            /* each level is decided on when it is known, and the tree is the drafter's until it adds no more: a level of
                                  a drafter that holds tokens back, since later ones may be better, adds what it would end with here */
    bool ahead;                /* the round waits once: tokens of passes are not read, but added as known later (hn_tree_add_later), by
                                  shapes that do not depend on them. A drafter that cannot do so waits for its passes */
    bool chain;                /* one chain is requested, whatever the drafter's trees are like (hunch_draft) */
    bool certainty;            /* candidates from logits that are read shall have theirs (hn_candidate) */
    hn_sampler *sampler;       /* the request's distribution and noise, for drafters that have logits */
    /* How a token is chosen from logits. false: hn_sampler_draw after the row's own path (greedy at temperature 0, else
     * coupled with the target's noise), candidates one-hot. true: drawn from a distribution q that the candidate carries, keyed
     * by HN_PURPOSE_PROPOSAL at the root's position (text.n - 1). */
    bool drawn;
    void (*on_logits)(void *ctx, int level, const float *logits); /* [target vocabulary]; NULL: none */
    void *on_logits_ctx;
    float *confidence; /* [levels] of a chain: the head's confidence that each draft is accepted; NULL: not requested */
} hn_propose;

/* What a drafter's time is spent on. It is measured, and under `auto` counted as a cost (plan/controller.h). */
typedef enum hn_draft_cost {
    HN_COST_PER_ROUND, /* a chain or tree at level 0, later levels from memory, or nearly nothing: called or not, as a whole */
    HN_COST_PER_LEVEL  /* a pass of its own for each level: decided on before each one */
} hn_draft_cost;

/* Whether a candidate could be added after the row. Without a row to spend only one that shares its row; drawn ones must not be left out
 * because of their token, that would distort the distribution, so then none is drawn. */
bool hn_propose_has_room(const hn_propose *p, int row);

enum { HN_MAX_DRAFT_GROUPS = 8 };
typedef struct hn_needs {      /* what open requests from the engine */
    bool oracle;               /* the plain continuation (engine/oracle.c), generated untimed before the session's first round */
    bool has_logits;           /* candidates that were not drawn are added with softmax(its logits) at temperature 1 */
    hn_feature_set features;   /* of the target's pass, fed with every committed row */
    int best;                  /* likeliest tokens after each row of a verified tree (hn_observe), to HN_MAX_TOP, without a row of logits */
    int max_depth;             /* levels it can draft, 1 or more: deeper ones are not requested */
    bool has_dist;              /* its candidates can carry q */
    bool branches;             /* its trees may have several candidates at a row */
    bool stays;                /* its trees may have candidates that stay (hn_candidate), so it has a share of a round's rows */
    bool for_grammar;          /* it drafts for texts with a grammar alone, and leaves them to the others where the rule takes no drafter
                                  beside one with a distribution (hn_rule_check) */
    bool is_tree;              /* a tree was requested, even if it may be one path: hunch_draft shows it as one */
    hn_draft_cost cost;        /* of all levels, or of each */
    bool shorter;              /* of HN_COST_PER_ROUND: a round of fewer levels takes less time, so `auto` asks for no more than it uses */
    hn_cache_group group[HN_MAX_DRAFT_GROUPS]; /* rows of its own in the pool (model_id and page_rows are set by the engine) */
    int n_groups;
} hn_needs;

struct hn_head_form;
struct hn_head_names;
struct hn_head_taps;
/* Describes the head in a file: a is filled by hn_head_read, its other fields are to be set. HUNCH_REFUSED: it is not of the kind,
 * or does not fit the target. */
typedef hunch_status (*hn_head_describe)(hn_arch *a, hn_source *src, const struct hn_head_names *names, hn_spec *spec,
                                         const hn_target_info *target, struct hn_head_taps *taps, hunch_error *err);

/* What is known of a kind of draft head without opening one: how its files are recognised (head/open/head_kind.h), and what they hold. */
typedef struct hn_head_facts {
    hn_head_describe describe;
    const struct hn_head_form *form[2]; /* forms of folders that only this kind has (model/head/head.h); NULL: none */
    const struct hn_head_form *gguf_form[2]; /* the same of GGUF files of each `architecture`, NULL: any, which name the kind; the first is
                                                written */
    const char *only[8];   /* beginnings of names that only this kind's tensors in a folder have, "model." before them or not */
    const char *shared[3]; /* the same, if tensors of kinds with names of their own have such names too */
    bool (*is)(hn_source *folder);     /* whether a folder without any of these is of this kind; NULL: no */
    const char *architecture[2], *tensor; /* of a GGUF that does not name its kind: its architectures, and a tensor of it; NULL: any */
    const char *steps_tensor;          /* with weights for each position: the tensor by which it is recognised; else NULL */
    size_t (*states)(const hn_source *folder); /* how many layers of a model it reads, 0: not specified; NULL: the last state */
    bool in_model;       /* a model's own file may have such a head */
    bool has_confidence; /* it may estimate its confidence in a draft: key min_confidence */
} hn_head_facts;

typedef struct hn_drafter_ops {
    /* Sets d->state, for d->max_seqs sequences, and needs; a failed open leaves nothing behind. Before it d->state is NULL. */
    hunch_status (*open)(hn_drafter *d, hn_spec *spec, const hn_target_info *target, hn_needs *needs, hunch_error *err);
    /* Called after every drafter was opened and the pool made: its groups are first_group .. first_group + n_groups - 1, their rows
     * belong to `model_id`. */
    hunch_status (*attach)(hn_drafter *d, hn_cache *cache, int first_group, int model_id, hunch_error *err);
    /* On failure the sequence's session fails too; a sequence that failed is not ended. */
    hunch_status (*begin)(hn_drafter *d, const hn_begin *seqs, int n, hunch_error *err);
    /* Every row that is committed, of all sequences of a pass together, once; at most HN_FEED_ROWS a call: a pass of a prompt may
     * have more, and takes several calls. Rows that came with a prefix are not fed: a drafter with rows of its own that needs them
     * sets hn_cache_group.recompute, and rows that it has already may be fed again. A text whose rows it cannot take is without its drafts
     * until the text begins again; the reason is recorded. */
    void (*feed)(hn_drafter *d, const hn_feed_row *rows, int n, const hn_features *features);
    void (*observe)(hn_drafter *d, const hn_observe *o, int n); /* after verification, of every tree that was verified */
    /* One more level (0 = children of the root) of at most needs.max_depth. Returns how many candidates were added over all trees (one that
     * shares a row counts: more may follow it); 0: nothing more this round. A drafter that computes a
     * whole block stores it and adds the later levels from memory. */
    int (*propose)(hn_drafter *d, hn_propose *p, int n, int level);
    /* Cache rows that hold the committed text: the drafter has to read the rest before it can draft, which `auto` includes in its
     * price. NULL: it has none. */
    int (*valid_rows)(const hn_drafter *d, int seq);
    double (*pass_s)(const hn_drafter *d); /* seconds that passes of its own have taken so far; NULL: it has none */
    /* About the bytes that a text of so many tokens takes, in this drafter's stores and tables: its rows in the pool are not counted. */
    size_t (*text_bytes)(const hn_drafter *d, int tokens);
    /* Called before texts end or are preempted, and before another text takes rows that it shares with them: computes pending committed
     * rows of n sequences, together, so that they can be shared. */
    void (*flush_pending)(hn_drafter *d, const int *seq, int n);
    void (*end)(hn_drafter *d, int seq);
    /* Called after every round, also if it read prompts alone: at most about a millisecond of what can wait. True: there is more. */
    bool (*work)(hn_drafter *d);
    /* Empties stores that outlive sequences; live sequences keep what they committed. */
    void (*forget)(hn_drafter *d);
    void (*close)(hn_drafter *d); /* frees d->state; sequences may be live */
} hn_drafter_ops;

/* A kind of drafter: facts about its name and files, and its operations. */
typedef struct hn_drafter_kind {
    const char *name; /* KIND */
    const hn_drafter_help *help;
    /* How it uses files: PATH is a model, a draft head or another file that is read; the keys whose values are files that it reads (NULL at
     * the end), and the key of the file that it writes (NULL: none). */
    bool path_is_model;
    const char *reads[6], *writes;
    hunch_status (*check_written)(const char *path, hunch_error *err); /* HUNCH_REFUSED: the file is no earlier one of `writes` */
    bool (*reads_word)(const char *key, const char *value); /* a value of a key of `reads` that is no file; NULL: all are files */
    const hn_head_facts *head; /* of a kind of draft head, which can be converted; else NULL */
    const hn_drafter_ops *ops;
} hn_drafter_kind;

struct hn_drafter {
    const hn_drafter_ops *ops;
    void *state;
    int index;     /* in the engine: candidates carry it */
    int max_seqs;
    char *name;    /* the spec's text */
    char *label;   /* what reports call it: the spec, of a head or a draft model with its kind in the place of its path */
    char *about;   /* one line on what open found in its files, for the user; NULL: none. Set by open, freed by close */
    hn_needs needs;
    hunch_error failure; /* the first that was recorded since the engine last reported one; status HUNCH_OK: none */
};

/* Calls between begin and end serve many texts, which all go on whatever happens to their drafts, so they do not return errors of passes:
 * they record them, and the texts of a failed pass are not drafted for before they begin again. HUNCH_NO_MEMORY is not recorded: passes
 * allocate nothing, so it says that the pool has no page left, and that only means fewer drafts. */
void hn_drafter_record(hn_drafter *d, const hunch_error *why);

const hn_drafter_kind *hn_drafter_named(const char *kind); /* NULL: there is none */
const hn_drafter_kind *hn_drafter_kind_at(int i);            /* the i-th of the list; NULL: there are no more */

/* Finds the kind, opens it, checks that every key was known. Unknown kind: HUNCH_USAGE with a list of the kinds. */
hunch_status hn_drafter_open(hn_drafter *d, const char *spec, int index, int max_seqs, const hn_target_info *target,
                             hunch_error *err);
void hn_drafter_close(hn_drafter *d); /* zeroed drafter is fine */

/* The list of kinds, in the order in which messages name them. KIND(NAME) is hn_drafter_NAME, which drafter_NAME.c defines. */
#define HN_DRAFTER_KINDS(KIND)                                                                                                        \
    KIND(ngram) KIND(cache) KIND(suffix) KIND(prediction) KIND(grammar) KIND(recycle) KIND(lookahead) KIND(model)                      \
    KIND(eagle) KIND(hass) KIND(eagle3) KIND(peagle) KIND(mtp) KIND(medusa) KIND(hydra) KIND(mlp) KIND(meta_mtp) KIND(dart)            \
    KIND(dflash) KIND(dspark) KIND(jetspec) KIND(pard) KIND(domino) KIND(dflash2) KIND(falcon) KIND(assistant) KIND(forced)
#define HN_DRAFTER_DECLARED(NAME) extern const hn_drafter_kind hn_drafter_##NAME;
HN_DRAFTER_KINDS(HN_DRAFTER_DECLARED)
#endif
