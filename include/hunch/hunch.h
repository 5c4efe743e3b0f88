/* SPDX-License-Identifier: Apache-2.0 */
/* hunch.h - the public API: load a model, open an engine on it, run sessions, read what came out.
 *
 *   hunch_model    weights, configuration and tokenizer of the target: read-only after open, shared by engines
 *   hunch_engine   a page pool, a set of drafters and the sessions that run: one speculation method over one model
 *   hunch_session  one text under generation
 *
 * Lossless by construction: whatever the drafters propose, the tokens of a session are those that plain decoding
 * gives (temperature 0: the same tokens; otherwise: the same seed means the same text, `match` verification).
 *
 * Conventions. Functions that can fail return hunch_status and write one line to *err (err may be NULL).
 * `close(&h)` takes NULL or a handle, frees everything the handle owns and sets it to NULL. Strings are UTF-8.
 * NULL for a handle, a string or a result's place that a call needs is HUNCH_USAGE and names the argument; a call without a status
 * then does nothing, and returns 0 or NULL.
 * Options structs are filled by their _defaults call before fields are set; NULL for one means these defaults.
 * Threads: a model may be used from any thread; an engine and its sessions from one thread at a time; two engines of
 * one model may be used from two threads, their passes then take turns (one worker pool a process).
 * Rounds need less than 128 KiB of their thread's stack.
 * The library installs no signal handlers; its threads take only the signals of their own faults. JSON is read by jansson
 * with the allocator that the program chose for it.
 */
#ifndef HUNCH_HUNCH_H
#define HUNCH_HUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default) /* what this header declares is what libhunch.so exports */
#endif

/* Semantic versioning; the number is defined only here. While MAJOR is 0 a new MINOR may change calls and structs, and the
 * library then has another name (libhunch.so.0.MINOR); a new PATCH changes neither. From 1.0 on only a new MAJOR does. Programs
 * must be recompiled when the name changes: structs of options grow, and a caller allocates them. */
#define HUNCH_VERSION_MAJOR 0
#define HUNCH_VERSION_MINOR 1
#define HUNCH_VERSION_PATCH 0
#define HUNCH_TEXT_OF_(x) #x
#define HUNCH_VERSION_OF_(major, minor, patch) HUNCH_TEXT_OF_(major) "." HUNCH_TEXT_OF_(minor) "." HUNCH_TEXT_OF_(patch)
#define HUNCH_VERSION HUNCH_VERSION_OF_(HUNCH_VERSION_MAJOR, HUNCH_VERSION_MINOR, HUNCH_VERSION_PATCH) /* "0.1.0" */

/* The values are the exit codes of the `hunch` command. */
typedef enum hunch_status {
    HUNCH_OK = 0,
    HUNCH_FAILED = 1,    /* input/output, or a bug */
    HUNCH_USAGE = 2,     /* an option, prompt or request that cannot be served */
    HUNCH_REFUSED = 3,   /* a model or head that is damaged, unknown or does not fit */
    HUNCH_NO_MEMORY = 4, /* memory or cache pages */
    HUNCH_DEVICE_LOST = 5, /* a GPU's driver ended its work: a restart of the program continues */
    HUNCH_CANCELLED = 130
} hunch_status;

typedef struct hunch_error {
    hunch_status status;
    char message[1000]; /* one line: what was wrong, and what was expected */
} hunch_error;

typedef int32_t hunch_token;

typedef struct hunch_model hunch_model;
typedef struct hunch_engine hunch_engine;
typedef struct hunch_session hunch_session;

const char *hunch_version(void); /* HUNCH_VERSION of the library; the macro is that of the header */
void hunch_free(void *p); /* frees what a function of this header returned "to be freed with hunch_free" */

/* How the library was built, and which level this machine uses. Independent of when and where it was built. Strings are static. */
typedef struct hunch_build_info {
    const char *version;
    const char *isa;      /* the level that runs here unless another is chosen */
    const char *levels;   /* levels that it contains, "ref avx2 ..." */
    const char *compiler; /* "gcc 12.2.0" */
    const char *type;     /* "Release", "Debug", ...; "" if the build has none. Sanitizers follow */
    const char *target;   /* "x86_64-linux-gnu" */
    const char *libraries; /* as they are loaded, "jansson 2.14, pcre2 10.42, utf8proc 2.8.0, glibc 2.36" */
} hunch_build_info;
void hunch_build_get_info(hunch_build_info *out); /* may be called by several threads */

/* Called repeatedly, from the thread that called the working function, with the work done so far and the total. */
typedef void (*hunch_progress)(void *user, uint64_t done, uint64_t total);

/* ---- model ------------------------------------------------------------------------------------------------- */

typedef enum hunch_precision {
    HUNCH_PRECISION_NATIVE, /* activations quantised as the kernels need them */
    HUNCH_PRECISION_F32     /* as the published reference computes: weights as stored, the rest float32 */
} hunch_precision;

typedef enum hunch_kv { HUNCH_KV_DEFAULT, HUNCH_KV_BF16, HUNCH_KV_F16, HUNCH_KV_F32, HUNCH_KV_Q8_0 } hunch_kv;

typedef struct hunch_model_options {
    int threads;               /* 0: the cores this process may use */
    const char *isa;           /* NULL or "best"; "ref", "avx2", "avxvnni", "avx512", "avx512bf16", "amx", "dotprod", "i8mm":
                                  one the machine lacks is HUNCH_USAGE */
    const char *device;        /* NULL or "cpu"; "vulkan", "vulkan:N": a GPU of hunch_devices; "auto": the first of them, or "cpu" */
    hunch_precision precision; /* HUNCH_PRECISION_NATIVE */
    hunch_progress progress;   /* of loading, in bytes of weights; may be NULL */
    void *progress_user;
    /* Matrices stay in the file, mapped read-only, and are packed strip by strip whenever a pass needs them: the same bits,
     * slower, and memory for little more than the cache. For files larger than memory. The file must then not change until
     * the model is closed. (Another file may take its name, or it may be removed.) Before and after each pass its size and time
     * of change are checked: a pass over a file that was written to or truncated is HUNCH_FAILED, with its name, and gives no
     * token. A file that is truncated during a pass raises SIGBUS, for which the library has no handler; a program that wants
     * to report that installs its own, as the `hunch` command does. */
    bool mapped;
    bool mapped_experts; /* the same for experts only: the rest is in memory, and experts are paged in as rows choose them */
    uint64_t grammar_bytes; /* memory of its grammars: of those that are open, and of those that it keeps for further requests, the newest
                             * one in any case. While the open ones take more, another one is refused (HUNCH_NO_MEMORY). 0: 256 MiB, and
                             * none is refused */
    bool text_only; /* only the tokenizer and the chat template: no weights are read or needed, and no engine opens on it */
} hunch_model_options;

void hunch_model_options_defaults(hunch_model_options *o);

/* A GPU that models can be opened on, or a driver that computes as one on a CPU (for tests). */
typedef struct hunch_device {
    char name[256], driver[256]; /* the driver with its version */
    char lacks[128];             /* what it would need to run models; "": nothing */
    uint64_t memory, memory_left; /* bytes of its own */
    bool is_cpu;
    int subgroup;                /* lanes that run together */
    uint64_t largest_range;      /* bytes that a kernel sees of one buffer: the cache's pages are no more */
} hunch_device;
enum { HUNCH_DEVICES = 16 };
/* Number N of the list is "vulkan:N". Errors: HUNCH_USAGE (there is no Vulkan here, or the build has none). */
hunch_status hunch_devices(hunch_device out[HUNCH_DEVICES], int *n, hunch_error *err);

/* Opens a GGUF file or a Hugging Face folder: `path`, or if that does not exist the download of that name.
 *   org/name, org/name@revision, org/name:Q4_K_M   in Hugging Face's cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub);
 *                                                  after the colon a part of the GGUF file's name
 *   name, name:tag, space/name:tag                 in Ollama's ($OLLAMA_MODELS, ~/.ollama/models and its service's)
 *   file, file.gguf                                in hunch's ($HUNCH_CACHE, ~/.cache/hunch) and llama.cpp's ($LLAMA_CACHE,
 *                                                  ~/.cache/llama.cpp)
 * Several of one name are HUNCH_REFUSED. Reads the environment, which no other thread may change meanwhile. The file is not
 * needed after this returns, unless it is mapped.
 * Errors: HUNCH_REFUSED (not there, damaged or unknown: names file, key or tensor), HUNCH_FAILED (cannot be read),
 * HUNCH_USAGE, HUNCH_NO_MEMORY. A file that is written to or truncated while it is read is HUNCH_FAILED, too. */
hunch_status hunch_model_open(hunch_model **out, const char *path, const hunch_model_options *o, hunch_error *err);
void hunch_model_close(hunch_model **m); /* after every engine on it was closed */

typedef struct hunch_model_info {
    const char *architecture, *name; /* owned by the model */
    int layers, hidden, vocab, context;
    uint64_t parameters;
    uint64_t weight_bytes;   /* read by a pass of one row: every matrix once; of an untied embedding one row only */
    uint64_t memory_bytes;   /* of weights in memory: packed matrices, vectors */
    uint64_t mapped_bytes;   /* of matrices that stay in the file; 0: none do */
    uint64_t table_bytes;    /* of a table in the file of which a pass reads a row for each token; in no other number; 0: there is none */
    int experts, experts_used; /* of a layer that has them (the largest), and how many a row uses; 0: there are none */
    uint64_t expert_bytes;   /* of one expert in every layer that has them; weight_bytes has experts_used of these */
    uint64_t state_bytes;    /* of recurrent layers: one state of a text; 0: no such layers */
    uint64_t input_bytes;    /* with it: what a row stores beside K and V until it is in the state, or rolled back */
    double macs_per_row;     /* multiply-accumulates of one row through all matrices, head included */
    const char *isa;         /* level chosen; of a device its name and driver */
    int threads;
    bool has_tokenizer, has_chat_template;
    bool has_thinking;       /* the chat template (hunch_model_set_marks) has marks around thinking */
    double load_seconds;
    int n_unused;            /* tensors of the file that are not used */
    const char *unused;      /* names of the first of them, "a, b, ..."; owned by the model */
} hunch_model_info;
void hunch_model_get_info(const hunch_model *m, hunch_model_info *info);
/* Elements of K and V that the last of `rows` rows of a text reads, over all layers; in a layer with a window at most its
 * window. */
uint64_t hunch_model_kv_elements(const hunch_model *m, int rows);
/* Bytes that a token of a text takes in the cache, in layers that keep every row; *window (may be NULL): in those with a window,
 * which keep no more tokens than the window and a pass have. In addition a text has a state (state_bytes) in recurrent layers. */
uint64_t hunch_model_row_bytes(const hunch_model *m, hunch_kv kv, uint64_t *window);
/* A context (hunch_engine_options) for a text of this many tokens and as many again: a power of two, at most the model's. 0: the
 * text does not fit the model. */
int hunch_model_context_for(const hunch_model *m, size_t tokens);

/* ---- text: every call but has_tokenizer needs a tokenizer, else HUNCH_USAGE ----------------------------------- */

enum {
    HUNCH_TEXT_PARSE_SPECIAL = 1, /* read <special> tokens */
    HUNCH_TEXT_ADD_SPECIAL = 2,   /* add BOS if the model wants it */
    HUNCH_TEXT_RENDERED = 3 | 4   /* both, for the output of a chat template: no second BOS if the text has one */
};

/* ids: malloc'ed, to be freed with hunch_free. Invalid UTF-8 is HUNCH_USAGE and names the byte offset. */
hunch_status hunch_tokenize(const hunch_model *m, const char *text, size_t len, int flags, hunch_token **ids, size_t *n,
                            hunch_error *err);
/* Bytes of one token as stored (may be part of a UTF-8 sequence). Owned by the model. special: may be NULL. */
hunch_status hunch_token_piece(const hunch_model *m, hunch_token id, const char **bytes, size_t *len, bool *special,
                               hunch_error *err);
/* Text of a token sequence (special tokens left out). *text is NUL-terminated, to be freed with hunch_free. */
hunch_status hunch_detokenize(const hunch_model *m, const hunch_token *ids, size_t n, char **text, size_t *len,
                              hunch_error *err);
/* Renders a chat template. vars_json: an object with "messages" [{"role","content"}] and any other variable (add_generation_prompt is
 * set to true unless given). *text: to be freed with hunch_free. */
typedef struct hunch_chat_options {
    const char *template_text; /* NULL: the model's own */
    const char *now;           /* "YYYY-MM-DD HH:MM:SS" for strftime_now; NULL: the clock */
} hunch_chat_options;
void hunch_chat_options_defaults(hunch_chat_options *o);
hunch_status hunch_chat_render(const hunch_model *m, const char *vars_json, const hunch_chat_options *o, char **text, size_t *len,
                               hunch_error *err);
/* A part of a text, in order. Names of special tokens that begin and end in parts that are special are these tokens (templates make
 * some of a role: "<|" + role + "|>"), others are plain text. */
typedef struct hunch_piece {
    size_t len; /* bytes */
    bool special;
} hunch_piece;
/* The same, with the pieces that the template wrote (special) and those that come from the variables, together as long as the text: so
 * nobody's message can end itself and begin another. Of vars_json only bos_token and eos_token that are not given count as the template's.
 * *text and *pieces (NULL if the text is empty): to be freed with hunch_free. */
hunch_status hunch_chat_pieces(const hunch_model *m, const char *vars_json, const hunch_chat_options *o, char **text, size_t *len,
                               hunch_piece **pieces, size_t *n_pieces, hunch_error *err);
/* Tokens of a text in pieces that were rendered: as hunch_tokenize does with HUNCH_TEXT_RENDERED, but names of
 * special tokens are read where they begin and end in special pieces alone. HUNCH_USAGE: the pieces are not as long as the text, or it is
 * not UTF-8. *ids: to be freed with hunch_free. */
hunch_status hunch_tokenize_pieces(const hunch_model *m, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                   hunch_token **ids, size_t *n, hunch_error *err);
/* As hunch_tokenize (pieces NULL) and hunch_tokenize_pieces (flags: HUNCH_TEXT_RENDERED), but a text of more than `most` tokens is not read
 * to its end: then *ids is NULL, and *n a number above `most` that the text has at least. */
hunch_status hunch_tokenize_at_most(const hunch_model *m, const char *text, size_t len, const hunch_piece *pieces, size_t n_pieces,
                                    int flags, size_t most, hunch_token **ids, size_t *n, hunch_error *err);
typedef struct hunch_message {
    const char *role, *content; /* role: "system", "user", "assistant" */
} hunch_message;
/* A conversation as the prompt for the next answer: rendered by the model's chat template (without one: the contents
 * concatenated), as tokens. Names of special tokens in roles and contents are plain text. *ids: to be freed with hunch_free. HUNCH_USAGE:
 * the template refuses the conversation, it is empty, or it is not UTF-8. */
hunch_status hunch_chat_tokens(const hunch_model *m, const hunch_message *messages, size_t n, hunch_token **ids,
                               size_t *n_ids, hunch_error *err);
/* The parts of an answer: what it says, what the model thought before, the marks that its template has around that ("<think>", or the
 * headers and ends of messages in channels), and calls of tools with their headers, which only templates with channels tell apart. */
typedef enum hunch_part_kind { HUNCH_PART_TEXT, HUNCH_PART_THINKING, HUNCH_PART_MARK, HUNCH_PART_CALL } hunch_part_kind;
typedef struct hunch_part {
    hunch_part_kind kind;
    size_t from, len; /* bytes of the text; len > 0 */
} hunch_part;
/* How far an answer was split; all zero but thinking, which is set before its first part: hunch_prompt_thinks of its prompt. */
typedef struct hunch_split {
    bool thinking;
    int message; /* of a template with channels: the message that the next part is in */
    size_t done; /* bytes */
} hunch_split;
/* The marks are those of this template, by which prompts are rendered, not of the model's own. Before anything else uses the model. */
hunch_status hunch_model_set_marks(hunch_model *m, const char *template_text, hunch_error *err);
/* Whether the marks are special tokens, so that an answer has them only with special_text of its request: without it all is text. */
bool hunch_marks_are_special(const hunch_model *m);
/* Whether a rendered prompt ends inside a thinking block, so that the answer begins in it. */
bool hunch_prompt_thinks(const hunch_model *m, const char *text, size_t len);
/* The next part of an answer's text so far (which grows from call to call), false: none yet. While it grows, a possible beginning of a
 * mark at its end is no part; ended: the text is whole. */
bool hunch_split_next(const hunch_model *m, hunch_split *s, const char *text, size_t len, bool ended, hunch_part *part);

/* ---- grammars: what an answer must look like ---------------------------------------------------------------------- */

/* A grammar, compiled for a model's vocabulary. Requests refer to it, and it lives as long as a session uses it. Any thread; a model keeps
 * the newest, so that the same source is compiled once. docs/structured.md says what each kind honours: what it cannot honour is refused by
 * name, never ignored. */
typedef struct hunch_grammar hunch_grammar;
typedef enum hunch_grammar_kind {
    HUNCH_GRAMMAR_JSON_SCHEMA, /* JSON that a schema (2020-12, a subset) validates */
    HUNCH_GRAMMAR_JSON_OBJECT, /* any JSON object; no text */
    HUNCH_GRAMMAR_REGEX,       /* the whole answer matches: ECMA-262 without look-around and back-references */
    HUNCH_GRAMMAR_GBNF,        /* llama.cpp's, from its rule `root` on */
    HUNCH_GRAMMAR_JSON_SCHEMA_LOOSE /* a schema of which what cannot be honoured is ignored: hunch_grammar_ignored says what */
} hunch_grammar_kind;
/* Where in the answer the grammar begins. */
typedef enum hunch_grammar_start {
    HUNCH_GRAMMAR_AT_ONCE,        /* an answer without thinking: of raw text, or of a template that has none */
    HUNCH_GRAMMAR_AFTER_THINKING, /* the answer may think first, between the template's marks or in channels, if it has any */
    HUNCH_GRAMMAR_IN_THINKING     /* the prompt ends inside thinking (hunch_prompt_thinks): it begins behind its end */
} hunch_grammar_start;
/* Errors: HUNCH_USAGE (no tokenizer; text is not of its kind, or asks for what cannot be honoured, which is named with its place),
 * HUNCH_NO_MEMORY. */
hunch_status hunch_grammar_open(hunch_grammar **out, const hunch_model *m, hunch_grammar_kind kind, const char *text, size_t len,
                                hunch_grammar_start start, hunch_error *err);
/* Where the parts of schemas stand that are ignored, "/properties/a/format, /items/uniqueItems": of HUNCH_GRAMMAR_JSON_SCHEMA_LOOSE, and of
 * functions with "strict": false; beyond 1,000 bytes "..." ends it. NULL: none. It lives as long as the grammar. */
const char *hunch_grammar_ignored(const hunch_grammar *g);
/* Sessions that use it go on. To be closed before its model is. */
void hunch_grammar_close(hunch_grammar **g);

/* ---- calls of tools ------------------------------------------------------------------------------------------ */

/* Functions that a model may call, in the format that its chat template has for calls. */
typedef struct hunch_tools hunch_tools;
typedef enum hunch_tool_choice {
    HUNCH_TOOLS_AUTO,     /* the model decides */
    HUNCH_TOOLS_NONE,     /* no call: its mark is forbidden */
    HUNCH_TOOLS_REQUIRED, /* at least one call */
    HUNCH_TOOLS_NAMED     /* one call, of the function `name` */
} hunch_tool_choice;
typedef struct hunch_tools_options {
    const char *tools;         /* a JSON list of functions: {"type": "function", "function": {"name", "description", "parameters"}}, as the
                                  template gets them; parameters are a JSON schema. "strict": false beside them: what of it cannot be
                                  honoured is ignored (hunch_grammar_ignored) */
    hunch_tool_choice choice;
    const char *name;          /* of HUNCH_TOOLS_NAMED */
    bool one;                  /* at most one call an answer */
    const char *format;        /* a name of hunch_tools_format_name; NULL: by the marks that the template has */
    const char *template_text; /* the template that renders the conversation; NULL: the model's own */
    size_t earlier;            /* calls of the conversation so far, for models whose ids count them */
} hunch_tools_options;
void hunch_tools_options_defaults(hunch_tools_options *o);
/* HUNCH_USAGE: the list, the choice or the format; names what is wrong. The model must live longer. */
hunch_status hunch_tools_open(hunch_tools **out, const hunch_model *m, const hunch_tools_options *o, hunch_error *err);
void hunch_tools_close(hunch_tools **t);
const char *hunch_tools_format(const hunch_tools *t);  /* NULL: none that is known, so that calls stay text */
const char *hunch_tools_format_name(int index);        /* all names, index 0, 1, ...; NULL: no more */

/* A token that the model writes behind its calls, for whoever answers them: for stop_tokens of hunch_request. -1: none. */
hunch_token hunch_tools_stop(const hunch_tools *t);
/* What an answer must be: with HUNCH_TOOLS_AUTO text in which every call is in its format, with arguments that its schema allows; of
 * those that must call thinking and then calls; with HUNCH_TOOLS_NONE text without the mark that opens a call. For
 * hunch_request.grammar; to be closed with hunch_grammar_close. thinks: as for hunch_calls_open. *out is NULL if nothing is to be held to:
 * unless a call is required in a format whose calls have no mark of their own, and with HUNCH_TOOLS_AUTO if a schema cannot be honoured.
 * Errors: HUNCH_USAGE (a required call that cannot be held to its schema, which is named), HUNCH_NO_MEMORY. */
hunch_status hunch_tools_grammar(hunch_grammar **out, const hunch_tools *t, bool thinks, hunch_error *err);

typedef enum hunch_call_state {
    HUNCH_CALL_OPEN,  /* more of it may follow */
    HUNCH_CALL_DONE,
    HUNCH_CALL_BROKEN, /* not in its format: it is no call after all */
    HUNCH_CALL_CUT     /* the answer ended within it */
} hunch_call_state;
typedef struct hunch_call {
    hunch_call_state state;
    const char *id;        /* the model's own if it wrote one, else one of ours; of a call whose id stands behind its arguments it is
                              replaced when the call is done */
    const char *name;
    const char *arguments; /* a JSON object as far as it is there; NULL: nothing yet */
    size_t n_arguments;
} hunch_call;
/* What is known of an answer so far. All of it only grows, and is the same however the answer was cut into pieces. */
typedef struct hunch_answer {
    const char *text, *thinking; /* without calls, marks, and white space at their ends */
    size_t n_text, n_thinking;
    size_t thinking_end;         /* bytes of the whole answer up to the end of the newest thinking; 0: none */
    const char *broken;          /* broken calls beside complete ones, as they were written; without a complete one they are text */
    size_t n_broken;
    size_t n_cut;                /* bytes at the end of `text` that are a call which the end of the answer cut */
    const hunch_call *call;
    size_t n_calls, n_done;      /* n_done: those that are HUNCH_CALL_DONE */
    bool cut;                    /* the end of the answer cut a call, or what would have been one */
} hunch_answer;
/* The reader of one answer, which is given its text piece by piece; the request must have special_text. thinks: hunch_prompt_thinks of its
 * prompt. The tools must live longer. */
typedef struct hunch_calls hunch_calls;
hunch_status hunch_calls_open(hunch_calls **out, const hunch_tools *t, bool thinks, hunch_error *err);
void hunch_calls_close(hunch_calls **c);
/* ended: the answer is whole (len may be 0). Errors: HUNCH_NO_MEMORY. */
hunch_status hunch_calls_feed(hunch_calls *c, const char *text, size_t len, bool ended, hunch_error *err);
void hunch_calls_get(const hunch_calls *c, hunch_answer *out); /* valid until the next piece */

/* ---- templates without a model ------------------------------------------------------------------------------ */

/* Renders any template without a model. now: "YYYY-MM-DD HH:MM:SS" for strftime_now, or NULL for the clock. */
hunch_status hunch_template_render(const char *template_text, const char *vars_json, const char *now, char **text,
                                   size_t *len, hunch_error *err);

/* ---- engine ------------------------------------------------------------------------------------------------ */

/* Which lossless rule accepts drafted tokens. All but greedy and match fix the distribution of the text for a seed, not the text.
 *   match      draws the target's own token and follows it: any drafts; the text does not depend on them
 *   ratio      accepts with min(1, p/q), else draws from the residual (2211.17192, 2302.01318; trees: 2305.09781,
 *              2402.12374); drafts without a distribution by the point-mass rule
 *   block      block verification of one drafter's chain (2403.10444)
 *   traversal  leaf to root on one drafter's tree (2505.12398)
 * At temperature 0 every rule is greedy. */
typedef enum hunch_verify {
    HUNCH_VERIFY_DEFAULT,
    HUNCH_VERIFY_GREEDY,
    HUNCH_VERIFY_MATCH,
    HUNCH_VERIFY_RATIO,
    HUNCH_VERIFY_BLOCK,
    HUNCH_VERIFY_TRAVERSAL
} hunch_verify;

/* Rules that may change the text; never a default, and the state of every answer made with one names it. */
typedef enum hunch_lossy_rule {
    HUNCH_LOSSLESS,
    HUNCH_LOSSY_LENIENCE, /* a = L in (0, 1]: accept with min(1, p/(L q)); greedy: a draft of probability >= L * the best's */
    HUNCH_LOSSY_TYPICAL,  /* a = epsilon, b = alpha: accept what has p > min(epsilon, alpha * e^-H(p)) (2401.10774) */
    HUNCH_LOSSY_TOP_M     /* a = M: accept what is among the M likeliest */
} hunch_lossy_rule;
typedef struct hunch_lossy {
    hunch_lossy_rule rule;
    double a, b;
} hunch_lossy;

typedef struct hunch_engine_options {
    const char *const *drafts; /* SPECs that draft together: "none", "ngram,min=2,max=4,depth=8", "forced,accept=.8,..." */
    int n_drafts;              /* 0: plain decoding */
    int context;               /* rows a sequence may hold; 0: the model's, at most 8192. Models with longrope (Phi-3) have
                                  two rotations: a context beyond their original length chooses the one for long texts,
                                  for every text of the engine; 0 stays within that length */
    int parallel;              /* sequences at once, at most 256; 1 */
    hunch_kv kv;               /* HUNCH_KV_DEFAULT: bf16, or f32 under HUNCH_PRECISION_F32 */
    hunch_verify verify;       /* default: greedy at temperature 0, else match */
    hunch_lossy lossy;         /* HUNCH_LOSSLESS; anything else needs verify DEFAULT */
    int chunk;                 /* rows of a prompt in a pass, 1 to 512; 0: 128, more for models with many experts, as memory allows.
                                  In recurrent models, 0: 64, a pass keeps one state for later texts; no result depends on it */
    double max_pause;          /* seconds that a round may take because of prompts that are read while other texts decode: of all
                                  prompts together a round reads as many rows as fit, but at least 8, half of them the oldest
                                  prompt's, then of those that have least left; 0: twice a round without them and 0.01, at most
                                  0.1, but at least 16 rows */
    int page_rows;             /* rows a cache page of the attention group holds, a power of two >= 16; 64 */
    int draft_depth;           /* levels of drafters whose spec gives no depth; 0: their own default */
    int pool_rows;             /* rows of all sequences together that the pages are planned for; 0: parallel + 1
                                  times the context, or parallel times if memory has no more, or what four fifths of it hold, at
                                  least one context. With fewer, sessions
                                  wait or are preempted and recomputed: their text stays the same. Raised to
                                  hunch_engine_context if less: one sequence always fits */
    uint64_t state_bytes;      /* of models with recurrent layers: memory for states that later texts, and preempted ones, may
                                  continue from, those of draft models included, beside those of running texts; 0: 16 states,
                                  or fewer if memory is short. With fewer than texts a preempted one may begin again */
    int64_t kept_bytes;        /* of keys and values of texts that have ended, for later ones that begin like them: more are dropped, those
                                  of the longest ago first, and memory that is free then goes back to the system; 0: as much as the
                                  pages hold; below 0: none */
    bool no_prefix_reuse;      /* false: a prompt that shares a prefix with an earlier text starts after its pages */
    bool pooling;              /* requests may ask for pooled states: passes keep the last state of each row */
} hunch_engine_options;

void hunch_engine_options_defaults(hunch_engine_options *o);
/* Errors: HUNCH_USAGE (a spec or value; names it and what was expected), HUNCH_REFUSED, HUNCH_NO_MEMORY. */
hunch_status hunch_engine_open(hunch_engine **out, hunch_model *m, const hunch_engine_options *o, hunch_error *err);
/* Running sessions are cancelled. The only call allowed on sessions of a closed engine is hunch_session_close. */
void hunch_engine_close(hunch_engine **e);
int hunch_engine_states(const hunch_engine *e);                         /* states that it may keep for later texts; 0: the
                                                                           model has none */
int hunch_engine_context(const hunch_engine *e);                        /* rows a sequence may hold */
int hunch_engine_chunk(const hunch_engine *e);                          /* rows of prefill a pass */
int hunch_engine_drafters(const hunch_engine *e);                       /* how many drafters are open */
const char *hunch_engine_drafter_name(const hunch_engine *e, int index); /* as the spec named it, but of a head or a draft
                                                                            model its kind in place of the path (which
                                                                            is in _about); owned by the engine */
/* One line: the contents of a draft head's files and what it reads of the model; NULL for other drafters. Owned by the engine. */
const char *hunch_engine_drafter_about(const hunch_engine *e, int index);
/* About what a text of this many tokens takes of the drafter's own memory (stores, tables, features), besides its rows in the cache; of an
 * engine without drafters, or without one of this index, 0. */
uint64_t hunch_engine_drafter_bytes(const hunch_engine *e, int index, int tokens);
/* Notes for the user, a line each, index 0, 1, ...; NULL: no more. There may be more after a round: a draft head or draft model whose
 * drafts are never right, a head beside the model that `auto` does not use, why texts lost a drafter. Owned by the engine. */
const char *hunch_engine_note(const hunch_engine *e, int index);
/* Drafters that `auto` did not open, and why: a line each, index 0, 1, ...; NULL: no more. Owned by the engine. */
const char *hunch_engine_left_out(const hunch_engine *e, int index);
/* Forgets what was learned from earlier sessions: drafters' stores, shared prefixes, acceptance estimates. Measured costs
 * stay. Inside a callback of a round or of hunch_evaluate: when that returns. */
void hunch_engine_forget(hunch_engine *e);

/* One round over all running sessions: a pass with every session's rows (a prefill chunk, or its draft tree), then
 * verification and commit. A session that fails, also for lack of memory, ends alone (hunch_session_state) and changes no other's
 * text; a status other than HUNCH_OK means that the engine itself cannot continue: a mapped file changed (hunch_model_options). */
hunch_status hunch_engine_round(hunch_engine *e, hunch_error *err);
int hunch_engine_running(const hunch_engine *e); /* sessions not finished, but those that are paused */
/* Runs rounds until no session runs, including those that are opened meanwhile (on_output). A failed session is HUNCH_OK here. */
hunch_status hunch_engine_run(hunch_engine *e, hunch_error *err);

/* ---- session ----------------------------------------------------------------------------------------------- */

typedef struct hunch_bias {
    hunch_token token;
    double bias; /* added to its logit; -INFINITY forbids the token */
} hunch_bias;

/* The probability distribution that tokens are drawn from. In order of application: logit bias; penalties; DRY; temperature;
 * top-n-sigma; top-k; typical; top-p; min-p; XTC. */
typedef struct hunch_sampling {
    double temperature; /* 0: greedy, ties to the lowest id */
    int top_k;          /* 0: off */
    double top_p;       /* 1: off */
    double min_p;       /* 0: off */
    uint64_t seed;
    double top_n_sigma; /* 0: off; keeps logits within this many standard deviations of the largest (2411.07641) */
    double typical_p;   /* 0 or 1: off; locally typical sampling (2202.00666) */
    double xtc_probability, xtc_threshold; /* 0: off; with this probability drops all tokens of at least the threshold
                                              (above 0, to 0.5) but the least likely of them */
    double repetition_penalty; /* 0 or 1: off; logits > 0 divided by it, others multiplied, for tokens of prompt and answer (1909.05858) */
    double frequency_penalty, presence_penalty; /* 0: off; subtracted per occurrence, and once, for tokens of the answer; -2 to 2 */
    double dry_multiplier; /* 0: off; subtracts multiplier * base^(n - allowed) from a token that would extend a repetition of n tokens */
    double dry_base;       /* 0: 1.75 */
    int dry_allowed_length;/* 0: 2 */
    int dry_range;         /* tokens looked back; 0: all */
    const char *const *dry_breakers; /* tokens that contain one of these end a repetition; NULL: newline, colon, quote, asterisk */
    int n_dry_breakers;              /* at most HUNCH_MOST_BREAKERS, of HUNCH_MOST_STOP_BYTES each */
    const hunch_bias *bias; /* copied */
    int n_bias;
} hunch_sampling;

typedef enum hunch_finish {
    HUNCH_RUNNING,
    HUNCH_FINISH_STOP,      /* end-of-sequence token, stop token or stop string: hunch_session_state names it */
    HUNCH_FINISH_LENGTH,    /* max_tokens or context */
    HUNCH_FINISH_CANCELLED,
    HUNCH_FINISH_FAILED,    /* see hunch_session_state */
    HUNCH_FINISH_LOOP,      /* loop_tokens of hunch_request */
    HUNCH_FINISH_DEADLINE,  /* its deadline_s */
    HUNCH_FINISH_GRAMMAR    /* its grammar has more states than fit: `error` of hunch_session_state says where; the text so far stays */
} hunch_finish;
enum { HUNCH_FINISHES = HUNCH_FINISH_GRAMMAR + 1 };

/* The output of a session since the last call of its on_output. */
typedef struct hunch_output {
    hunch_session *session;
    const char *text; /* whole characters; a possible beginning of a stop string is held back; not NUL-terminated. "" without tokenizer */
    size_t text_len;
    const hunch_token *tokens; /* emitted, their text possibly still held back; as in hunch_session_state */
    const int16_t *drafter_of; /* one a token: -1 target, or index of the drafter */
    size_t n_tokens;
    hunch_finish finish;       /* HUNCH_RUNNING, or how the session ended: then this is the last call */
} hunch_output;

/* A token, and the natural log of its probability under softmax(logits) before any processing. */
typedef struct hunch_logprob {
    hunch_token token;
    float logprob;
} hunch_logprob;
enum { HUNCH_MOST_TOP_LOGPROBS = 100, HUNCH_LOOP_TOKENS = 64 };
enum { HUNCH_MOST_STOPS = 64, HUNCH_MOST_STOP_BYTES = 1024, HUNCH_MOST_BREAKERS = 16, HUNCH_MOST_SALT_BYTES = 256 };
enum { HUNCH_MOST_PARALLEL = 256 }; /* sessions that an engine runs at once */
enum { HUNCH_MAX_DEPTH = 63, HUNCH_MAX_ROWS = 63 }; /* most levels of a draft tree, and drafted rows of it in a pass */
#define HUNCH_ALL_DRAFTERS UINT32_MAX

/* One vector for a prompt, made of the states of its rows after the model's last norm, those that its output matrix reads. */
typedef enum hunch_pooling { HUNCH_POOL_NONE, HUNCH_POOL_MEAN, HUNCH_POOL_LAST } hunch_pooling;

struct hunch_round_report;
typedef struct hunch_request {
    const hunch_token *prompt; /* copied; at least one token */
    size_t n_prompt;
    int max_tokens;            /* <= 0: as many as the context holds */
    bool ignore_eos;
    int loop_tokens;           /* N > 0: an answer ends when its last N tokens occur in it for the fourth time (not overlapping,
                                  anywhere in it); 0: off. HUNCH_LOOP_TOKENS is a good value for interactive use */
    hunch_sampling sampling;   /* defaults: the model's, else temperature 0; seed 0 */
    const char *const *stop;   /* stop strings, UTF-8, copied; the text ends before the first one that appears. At most
                                  HUNCH_MOST_STOPS of HUNCH_MOST_STOP_BYTES each */
    int n_stop;
    const hunch_token *stop_tokens; /* tokens that end the text as an end-of-sequence token does, with ignore_eos too; copied; at most
                                  HUNCH_MOST_STOPS */
    int n_stop_tokens;
    int min_tokens;            /* the text does not end before it has this many tokens: until then end-of-sequence tokens (unless
                                  ignore_eos) and stop_tokens have probability 0, a stop string is text, and repetition does not
                                  end it. 0; at most max_tokens, if there is one. max_tokens and the context end it in any case */
    bool special_text;         /* the text has special tokens too, by their names; false: only what is not special. Never the
                                  token that ends it */
    uint32_t drafters;         /* bit i: drafter i of the engine may propose for this text. The others still read it, so that they can
                                  draft for texts that continue it. HUNCH_ALL_DRAFTERS by default; 0: plain decoding */
    int draft_depth;           /* most levels that are drafted for it in a round, to HUNCH_MAX_DEPTH; 0: as the engine chooses */
    int draft_rows;            /* most rows that are drafted for it in a round, to HUNCH_MAX_ROWS; 0: as the engine chooses */
    bool one_token;            /* each round emits one token, however many drafts are right: on_round sees what drafters propose at every
                                  position of the text. Not for an engine whose drafters a controller chooses (HUNCH_USAGE) */
    const char *salt;          /* texts share rows of prefixes, and stores of drafters, only with those of the same salt, so that times
                                  tell nothing of what others sent; copied; at most HUNCH_MOST_SALT_BYTES. NULL or "": none, shared
                                  by all that have none */
    int priority;              /* of waiting texts that of the largest priority gets the next place, of equal ones the oldest; one place
                                  in eight goes to the text that waited longest, so that none waits for ever. Of texts that
                                  run the youngest of the lowest priority gives its pages up when they run out. 0 */
    double deadline_s;         /* seconds after hunch_session_open at which it ends (HUNCH_FINISH_DEADLINE) with what it has then,
                                  waiting or running; looked at when a round begins. 0: never */
    hunch_grammar *grammar;    /* of this model, that the answer obeys: tokens that cannot continue it have probability 0, and it ends
                                  where it is complete, by an end-of-sequence token (with ignore_eos, too). A limit (max_tokens, the
                                  context, a stop string) may end it earlier. NULL: the answer is free */
    int thinking_budget;       /* most tokens of thinking, all of it together, without its marks (hunch_split_next): then the end mark
                                  follows, its tokens one after another, and what comes behind it is free; a grammar that does not
                                  allow the mark yet lets it wait. For a model that has_thinking. 0: none */
    const hunch_token *prediction; /* a text that the answer is expected to resemble, for `prediction` drafters; copied */
    size_t n_prediction;
    bool logprobs;             /* keep the log-probability of every emitted token */
    int top_logprobs;          /* keep those of this many likeliest tokens at each position, too (and `logprobs`); 0: none */
    /* Log-probabilities of the prompt, and its pooled state: such a request computes all rows of its prompt, and takes none from the
     * prefix index. */
    bool prompt_logprobs;      /* keep the log-probability of every token of the prompt but the first, and of the top_logprobs likeliest
                                  tokens there */
    hunch_pooling pooling;     /* HUNCH_POOL_NONE; others need hunch_engine_options.pooling */
    bool prompt_only;          /* it ends when the prompt was read, without a token: HUNCH_FINISH_LENGTH */
    /* Called with the logits (float [vocab]) that decided each emitted token, in order; may be NULL. */
    void (*on_logits)(void *user, size_t index, const float *logits, int vocab);
    void *on_logits_user;
    /* Called after each decoding round of this session with what the controller considered, and with the tree; may be NULL. The
     * report and what it points to are valid during the call. */
    void (*on_round)(void *user, const struct hunch_round_report *report);
    void *on_round_user;
    /* Streams the answer; may be NULL. Called at the end of every round (of any kind: hunch_engine_round, hunch_engine_run)
     * that gave this session a token, some text or its end, in order of opening, on the thread of that call. The pieces
     * concatenated are the session's text, and its tokens: nothing is repeated or retracted, even if the session was preempted
     * in between. The last call has the text that had been held back, and how the session ended; it is made exactly once, but
     * never for a session that the caller itself cancels or closes.
     * Returning false cancels the session, without another call (its state then also has the text that was held back).
     * Inside it every call is allowed except rounds (HUNCH_USAGE) and hunch_engine_close: sessions may be opened, cancelled and
     * closed, this one too. `output` is valid until the callback returns, or cancels or closes the session.
     * Inside on_logits and on_round, in the middle of a round, only calls on the model are allowed, and hunch_session_get,
     * hunch_session_cancel, hunch_session_close and hunch_engine_forget: these three take effect when the round ends. */
    bool (*on_output)(void *user, const hunch_output *output);
    void *on_output_user;
} hunch_request;

/* One alternative that was considered in a round, and what was expected of it. */
typedef struct hunch_choice {
    int drafter;     /* index; -1: none, plain decoding; -2: several together */
    int rows;        /* drafted rows of this session in the pass */
    int depth;       /* of the deepest */
    double expected; /* tokens of this session */
    double seconds;  /* of the round */
} hunch_choice;
/* Why an alternative was chosen although another has more expected tokens a second. */
typedef enum hunch_reason {
    HUNCH_REASON_NUMBERS,  /* none has more */
    HUNCH_REASON_TRIED,    /* a drafter was tried, to learn its time and its gain, and that time is spent whatever is chosen */
    HUNCH_REASON_DRAFTED,  /* rows are chosen after drafting: its time is spent by then, too, and drafts may be worse than was
                              expected before */
    HUNCH_REASON_DRAWN,    /* drafts that were drawn stay, whatever they turned out to be (rules other than greedy and match) */
    HUNCH_REASON_MEASURED, /* a round without drafts, to measure its time again */
    HUNCH_REASON_TEXTS,    /* it is the best for all texts of the round together */
    HUNCH_REASON_NEAR,     /* the other has little more: a drafter that is not in use, drafting at all and each row have to gain some */
    HUNCH_REASON_UNCERTAIN /* a pass of that many rows was seldom timed, so a shorter time was assumed */
} hunch_reason;
/* A drafted token. */
typedef struct hunch_draft_node {
    hunch_token token;
    int parent;      /* index of a node, -1: the root */
    int drafter;
    int rank;        /* among its drafter's tokens after that parent, 0: the first */
    double q;        /* the drafter's probability: of the distribution it was drawn from, else softmax of its logits; 1 if it has none */
    double estimate; /* of its acceptance, given its parent's */
    double logp;     /* log q, summed along its path */
    double confidence; /* in a chain of a head that predicts it (DSpark): how likely it is accepted, 0 to 1; else -1 */
    int depth;       /* from 1 */
    /* How sure the drafter's model was of the token after that parent, by the softmax of its logits at temperature 1: the difference of
     * the two largest probabilities, and the entropy in nats. NAN: it has no logits that the host reads. */
    double margin, entropy;
} hunch_draft_node;
typedef struct hunch_round_report {
    uint64_t round;      /* of the session, from 1 */
    int context;         /* committed rows before it */
    bool controlled;     /* a controller chose; else every draft that fits is verified and `considered` is empty */
    const hunch_choice *considered;
    int n_considered, chosen; /* chosen: index, -1 if nothing was considered */
    hunch_reason reason;
    int rows, accepted;  /* how many were verified (root included) and accepted */
    double draft_s, pass_s;
    double draft_pass_s; /* of draft_s: passes of draft models and heads */
    hunch_token root;    /* the newest token before it */
    const hunch_draft_node *node; /* [rows - 1] the tree that was verified, parents first */
    const int *path;     /* [accepted] the nodes that were accepted, from the root on */
} hunch_round_report;

void hunch_request_defaults(hunch_request *r, const hunch_model *m);
/* A session beyond `parallel` waits for a place, in order of priority, then of opening.
 * Errors: HUNCH_USAGE (prompt empty, an id outside the vocabulary, longer than the context, parameters out of range),
 * HUNCH_NO_MEMORY. */
hunch_status hunch_session_open(hunch_session **out, hunch_engine *e, const hunch_request *r, hunch_error *err);
/* A running session is cancelled; its pages return to the pool. From another thread than the engine's: undefined, as is any call. Inside a
 * callback of a round or of hunch_evaluate the session lives on until that returns; *s is NULL at once. */
void hunch_session_close(hunch_session **s);
/* Finishes as HUNCH_FINISH_CANCELLED; inside such a callback when the round or hunch_evaluate returns, and not at all if the session ends
 * in it. */
void hunch_session_cancel(hunch_session *s);
/* A paused session takes no part in rounds until it is resumed: for an answer whose reader is slow. It keeps its place while no other
 * session needs that or its pages, and then gives it up before any other; its text is the same. It ends by its deadline, cancel and close
 * only. */
void hunch_session_pause(hunch_session *s, bool paused);

/* Everything about a session; arrays belong to the session and are valid until its next round or close.
 * rounds: target passes that decoded or verified (prefill's first token belongs to none); tau = (n_tokens-1)/rounds;
 * drafted: candidates verified; accepted: tokens emitted from candidates. */
typedef struct hunch_session_state {
    hunch_finish finish;
    hunch_error error;          /* of HUNCH_FINISH_FAILED */
    int stop_string;            /* of HUNCH_FINISH_STOP: index of the stop string that ended it, of several that begin at the same place
                                   the first; -1: none did */
    hunch_token stop_token;     /* of HUNCH_FINISH_STOP: the token that ended it, which is its last one; -1: none did */
    size_t n_prompt, n_prefilled;
    const hunch_token *tokens;  /* emitted, an end-of-sequence token that stopped it included */
    const int16_t *drafter_of;  /* one a token: -1 target, or index of the drafter */
    size_t n_tokens;
    const char *text;           /* of the emitted tokens: complete UTF-8; a possible beginning of a stop string is held
                                   back while it runs. NULL without tokenizer; text_len bytes (NUL-terminated once
                                   finished) */
    size_t text_len;
    uint64_t rounds, drafted, accepted;
    uint64_t depth_drafted;     /* sum over rounds of the deepest candidate */
    uint64_t accepted_per_position[HUNCH_MAX_DEPTH]; /* [i]: rounds in which the candidate at depth i+1 was emitted */
    uint64_t passes;            /* target passes, prefill included */
    int place;                  /* of the engine's `parallel`, counted from 0; -1: none, it waits, is paused or over */
    bool waiting;               /* for a place, for pages, or for shared rows that an earlier session is computing */
    uint64_t n_restored;        /* prompt rows from a shared prefix; part of n_prefilled */
    bool paused;                /* by hunch_session_pause */
    uint64_t preempted;         /* times its rows were dropped and computed again */
    const float *logprobs;      /* [n_tokens] natural logs under softmax(logits) before any processing; NULL unless requested */
    const hunch_logprob *top_logprobs; /* [n_tokens][n_top_logprobs], likeliest first, equal ones by their ids; NULL unless requested */
    int n_top_logprobs;         /* as requested, but at most the vocabulary */
    const float *prompt_logprobs; /* [n_prompt] of each token of the prompt given those before it; NAN for the first one, and for those
                                   that are not read yet. NULL unless requested */
    const hunch_logprob *prompt_top_logprobs; /* [n_prompt][n_top_logprobs], likewise; token -1 where the others have NAN */
    const float *pooled;        /* [n_pooled] of the whole prompt; NULL unless requested, and until it was read */
    int n_pooled;               /* hidden of hunch_model_info */
    hunch_lossy lossy;          /* the rule that made it, if not lossless */
    hunch_verify verify;        /* the rule that verified: greedy, match, ratio, block or traversal */
    double prefill_s, decode_s; /* share of wall time of the rounds that it took part in */
    double draft_s, verify_s;   /* parts of decode_s */
    double draft_pass_s;        /* of draft_s: passes of draft models and heads */
    double wait_s;              /* from hunch_session_open to its first place, or until now; part of no other time */
} hunch_session_state;
void hunch_session_get(const hunch_session *s, hunch_session_state *state);

/* ---- the numbers of an engine ---------------------------------------------------------------------------------- */

/* What one drafter did since the engine was opened. A draft that several drafters made is one of each that made it; if it was accepted, it
 * counts for the one that `drafter_of` names. Position i of an array is depth i + 1. */
typedef struct hunch_drafter_stats {
    uint64_t drafted, accepted; /* candidates that were verified; tokens that were emitted from them */
    uint64_t drafted_per_position[HUNCH_MAX_DEPTH], accepted_per_position[HUNCH_MAX_DEPTH];
    double pass_s; /* passes of a draft model or head; 0 for others */
    double draft_s; /* its part of drafting the trees that were verified */
} hunch_drafter_stats;

/* What an engine is doing, and counters since it was opened, which only grow: of all its sessions, those that are closed too. */
typedef struct hunch_engine_stats {
    int running, waiting;       /* sessions with a place, and those that wait for one */
    int pages, pages_used, pages_idle, pages_free; /* pages = used + idle (of ended texts, kept until their room is needed) + free */
    size_t page_bytes;
    uint64_t finished[HUNCH_FINISHES]; /* sessions by enum hunch_finish */
    uint64_t prompt_tokens;     /* of sessions that got a place */
    uint64_t tokens;            /* emitted */
    uint64_t prefix_queries, prefix_hits; /* rows of prompts that were looked up in the prefix index, and found there */
    uint64_t preemptions;       /* a session lost its place */
    uint64_t recomputed;        /* rows that were computed again after it */
    uint64_t rounds, passes;    /* of the target */
    uint64_t rows, prompt_rows; /* of those passes: all, and those that read a prompt, or a preempted text again */
    uint64_t drafts;            /* trees with at least one candidate: one a text and round */
    uint64_t drafted, accepted; /* as in hunch_session_state */
    uint64_t accepted_per_position[HUNCH_MAX_DEPTH];
    double round_s;             /* seconds in rounds; of them: */
    double pass_s, draft_s, verify_s; /* passes of the target; drafting; verification with what it emits */
    int n_drafters;
    const hunch_drafter_stats *drafter; /* [n_drafters], owned by the engine; rounds change it */
} hunch_engine_stats;
/* On the engine's thread, inside callbacks too. Takes no time worth counting. */
void hunch_engine_get_stats(const hunch_engine *e, hunch_engine_stats *out);

/* The memory of an engine, of its model and of other engines on that, in one account: what each part may take, and what it has now. */
enum {
    HUNCH_MEMORY_WEIGHTS,  /* of the model and of drafters; not what stays in a mapped file */
    HUNCH_MEMORY_PAGES,    /* keys, values and states: of running texts, and kept for later ones (kept_bytes) */
    HUNCH_MEMORY_STORES,   /* about what drafters keep of texts, planned as if each text filled its context */
    HUNCH_MEMORY_SAMPLERS,
    HUNCH_MEMORY_DISTS,    /* distributions of drafts */
    HUNCH_MEMORY_GRAMMARS, /* that are open, or that the model keeps (grammar_bytes) */
    HUNCH_MEMORY_BUFFERS,  /* of passes */
    HUNCH_MEMORY_PARTS
};
typedef struct hunch_memory_part {
    uint64_t planned, taken; /* bytes */
} hunch_memory_part;
typedef struct hunch_memory {
    hunch_memory_part part[HUNCH_MEMORY_PARTS];
    uint64_t planned, taken; /* of all parts */
} hunch_memory;
/* On the engine's thread, like its rounds. */
void hunch_engine_get_memory(const hunch_engine *e, hunch_memory *out);
const char *hunch_memory_part_name(int part); /* "weights", "pages", ...; NULL: there is no such part */
/* Bytes that may still be taken: what the system, or the device, has, without what is planned by the model's account and not taken yet. */
uint64_t hunch_model_memory_left(const hunch_model *m);

/* ---- inspection ---------------------------------------------------------------------------------------------- */

/* Logits of every position of a token sequence, in order, through an engine's cache and chunk size.
 * row: called with float [vocab] for positions 0..n-1; its memory is valid during the call only. Inside it, as inside
 * hunch_draft's on_logits, the calls are allowed that are allowed inside on_round. Sessions may run: if there are too few pages,
 * the youngest are preempted. */
hunch_status hunch_evaluate(hunch_engine *e, const hunch_token *tokens, size_t n,
                            void (*row)(void *user, size_t position, const float *logits, int vocab), void *user,
                            hunch_error *err);

/* One draft of the engine's drafters after a text. */
typedef struct hunch_draft_result {
    hunch_token root;       /* the target's (greedy) token after the text; of the second round with accept >= 0 */
    hunch_draft_node *node; /* parents first; freed with hunch_free */
    int n;
    bool is_tree;           /* from a head that makes trees: nodes are in its own order */
} hunch_draft_result;
/* Reads the text, appends the target's token as the root, and drafts `depth` levels (0: 8, or as many as its draft heads can; more
 * than a head can is HUNCH_USAGE). accept = N, 0 or more: commits N drafts of the first round's chain even if the target would
 * reject them, appends the target's token, and returns the second round; -1: returns the first. on_logits (may be NULL): a
 * drafter's logits of a level, float [vocab], -inf where it has none, of a chain if its draft is a tree; sampling NULL: greedy.
 * The engine must hold no session. Errors: HUNCH_USAGE, and those of a pass. */
hunch_status hunch_draft(hunch_engine *e, const hunch_token *tokens, size_t n, int depth, int accept,
                         const hunch_sampling *sampling,
                         void (*on_logits)(void *user, int level, const float *logits, int vocab), void *user,
                         hunch_draft_result *out, hunch_error *err);

/* The contents of a model file or folder, as JSON: path, format, metadata, tensors (each with "used", null if the model does not
 * run), sums by type, tokenizer, "head" (the kind of a draft head, else null), "runs", and "refused" with the reason or "model" and
 * "unused" (names of tensors). No byte of a tensor is read. path: as for hunch_model_open, or a draft head's. *json: to be freed
 * with hunch_free. */
hunch_status hunch_inspect(const char *path, char **json, hunch_error *err);
/* Checks whether a draft head fits this model and drafts well. As JSON: "passes", "fits" with "reason", "kind", "taps" and "outputs"
 * (the layers that it reads, in both numberings), "vocabulary", "tensors", and "smoke", null or how often it was right in real rounds
 * on texts that the model generated, against the best constant guess, and the likely cause if something is wrong
 * (docs/formats.md). spec: KIND:PATH or PATH, with keys. *json: to be freed with hunch_free. A head that does not fit is a result,
 * not an error. Errors: HUNCH_USAGE (no spec of a draft head), those of opening its files, and of passes. It opens engines of its
 * own for a few seconds; not while passes of the model run. */
typedef struct hunch_check_options {
    bool smoke; /* the test on texts, if the model has a tokenizer, or `tokens` are given; true */
    hunch_progress progress; /* of that test, estimated; may be NULL */
    void *progress_user;
    const hunch_token *tokens; /* [n_tokens] a text that the test continues instead of its own; NULL: none */
    size_t n_tokens;
} hunch_check_options;
void hunch_check_options_defaults(hunch_check_options *o);
hunch_status hunch_check_head(hunch_model *m, const char *spec, const hunch_check_options *o, char **json,
                              hunch_error *err);
/* Writes a model's Hugging Face folder, or a draft head (a folder or a file of weights), as GGUF. Complete or not at all: the file is
 * written as PLACE.partial and renamed to PLACE when it is on disk; until then an old file stays, and a failure removes the new one.
 * PLACE is out_path with its links followed. A device, a pipe or a file that a process has open (/dev/stdout) is written directly. An
 * existing file is replaced, even one of the folder's own. Errors: HUNCH_USAGE, HUNCH_REFUSED (the files, or a type for a model with
 * experts or gated delta nets), HUNCH_FAILED, HUNCH_NO_MEMORY. */
typedef struct hunch_convert_options {
    const char *target; /* of a draft head: the model that it drafts for, against which it is checked, as for hunch_model_open; NULL: the
                           head's files must specify what is needed of it, else HUNCH_USAGE */
    const char *type;   /* of matrices: "q8_0", "q4_0", "bf16" or "f32"; NULL: as stored. A matrix whose rows are not whole blocks of 32
                           becomes BF16; norms, biases and ids stay. A head's file drafts the same bits as its folder does with
                           weights=TYPE; a model is rounded, block by block, which is for draft models: there are better files of
                           targets */
    hunch_progress progress; /* in bytes of weights written; may be NULL */
    void *progress_user;
} hunch_convert_options;
void hunch_convert_options_defaults(hunch_convert_options *o);
hunch_status hunch_convert(const char *path, const char *out_path, const hunch_convert_options *o, hunch_error *err);

/* ---- measuring ------------------------------------------------------------------------------------------------ */

typedef struct hunch_machine {
    char cpu[128];
    const char *isa; /* the level measured */
    int threads;
    double read_gb_s;                            /* all threads, best of 8 sums over 1 GiB in huge pages */
    double int8_gmac_s, bf16_gmac_s, f32_gmac_s; /* all threads, the level's products of Q8_0 (with their block scales), BF16 and
                                                    F32 weights, operands in the caches */
    double int8_dot_gmac_s, bf16_dot_gmac_s;     /* the level's dot products alone, on registers; 0: it has none */
    double barrier_us;
} hunch_machine;

/* Measures the machine with a model's threads and level; without a model (NULL) with those of the options. It holds the memory
 * that it reads, usually 1 GiB. Not while passes run. Errors: HUNCH_USAGE, HUNCH_NO_MEMORY. */
typedef struct hunch_meter hunch_meter;
hunch_status hunch_meter_open(hunch_meter **out, const hunch_model *m, const hunch_model_options *o, hunch_error *err);
void hunch_meter_close(hunch_meter **t); /* before its model */
hunch_status hunch_meter_machine(hunch_meter *t, hunch_machine *out, hunch_error *err); /* about a second */
/* n readings in GB/s: sums over `bytes` by `threads` threads, in pages of 2 MiB or 4 KiB. */
hunch_status hunch_meter_read(hunch_meter *t, size_t bytes, int threads, bool huge_pages, int n, double *gb_s,
                              hunch_error *err);

/* The following use one sequence of the engine, which keeps its rows from call to call; missing rows of `context` are computed
 * before the measurement starts. The engine must hold no session. Errors: HUNCH_USAGE, and those of a pass. */

/* Seconds of `reps` passes of `rows` chain rows (all logits) after `context` committed rows. The first of them is cold. */
hunch_status hunch_measure_pass(hunch_engine *e, int rows, int context, int reps, double *seconds, hunch_error *err);
/* How many experts the rows of the engine's last pass used together, the mean over layers that have them; 0: none has. */
double hunch_measure_experts(const hunch_engine *e);
/* Seconds to read a prompt of `rows` tokens into an empty sequence, in the engine's chunks, logits of the last. */
hunch_status hunch_measure_prefill(hunch_engine *e, int rows, double *seconds, hunch_error *err);
/* Seconds of `rows` plain greedy tokens, one after the other, after `context` committed rows. */
hunch_status hunch_measure_decode(hunch_engine *e, int rows, int context, double *seconds, hunch_error *err);
/* Seconds of a pass of `rows` chain rows (their best token), a commit of the first `commit` of them, and the pass of one row that
 * follows, together: the cost of rolling back the rest until the text continues. After `context` committed rows, and the rows that
 * earlier measurements kept. */
hunch_status hunch_measure_rollback(hunch_engine *e, int rows, int commit, int context, int reps, double *seconds,
                                    hunch_error *err);
/* Seconds of a commit that keeps a path of `commit` rows out of a tree of `rows`, after `context` committed rows: the root
 * and the tree's last rows, so that every kept row but the root moves. The rest is rolled back. After one that warms up. */
hunch_status hunch_measure_commit(hunch_engine *e, int rows, int commit, int context, int reps, double *seconds,
                                  hunch_error *err);

/* Where the time of one such pass goes, after one that warms up. */
typedef struct hunch_phase {
    const char *name; /* embed, norm, qkv, rope, attention, o, gate up, down, output, other: a kind of operation */
    int calls;
    double seconds; /* from entering its operations to leaving them, the barrier at their end included */
    double waited;  /* of it, waiting for other threads: mean over all */
    double bytes;   /* of weights, keys and values that it reads */
    double macs;    /* multiply-accumulates of its products */
} hunch_phase;
enum { HUNCH_PHASES = 11 };
/* pass_s (may be NULL): seconds of that whole pass; phases leave out the time between operations. */
hunch_status hunch_measure_profile(hunch_engine *e, int rows, int context, hunch_phase phases[HUNCH_PHASES],
                                   double *pass_s, hunch_error *err);

/* What a pass of `rows` rows, `logits` of them with logits, after `context` committed rows must read and compute, nothing twice. Its
 * limit is the larger of bytes / bandwidth and the sum of MACs / their peak. */
typedef struct hunch_work {
    double weight_bytes, kv_bytes;
    double macs_int8, macs_bf16, macs_f32; /* by the arithmetic that their operands allow; attention is of the last two */
} hunch_work;
void hunch_engine_work(const hunch_engine *e, int rows, int logits, int context, hunch_work *out);

/* ---- planning ---------------------------------------------------------------------------------------------------- */

/* A machine and a model that are not here. */
typedef struct hunch_figures {
    double bandwidth;   /* bytes a second that all cores read */
    double int8_mac_s;  /* int8 multiply-accumulates a second of all cores */
    const char *config; /* a config.json, or a folder that has one; NULL: parameters */
    double parameters;  /* of matrices, all of which a row uses */
    const char *type;   /* "Q4_K", "Q8_0", "BF16", ...; NULL: as the config says, else BF16 */
} hunch_figures;

/* Drafters that draft together, and what the result calls them. */
typedef struct hunch_method {
    const char *name;
    const char *const *drafts;
    int n_drafts;
} hunch_method;

typedef struct hunch_plan_options {
    const hunch_method *methods;   /* NULL: `auto`, and each drafter that needs no file */
    int n_methods;
    const hunch_request *requests; /* answers by which acceptance and times of drafters are measured; NULL: typical ones that were
                                      published for drafters of the kind are used, and marked */
    int n_requests;
    const int *batch;              /* texts at once; NULL: 1, 4, 16. The recommendation is for the first */
    int n_batch;
    int context;                   /* rows of a text after which passes are timed; 0: the middle of the requests, else 512 */
    double seconds;                /* that each method may take for the requests, which are answered as far as that allows; 0: 60 */
    const hunch_engine_options *engine; /* context, cache and rule; NULL: defaults */
    const hunch_figures *figures;  /* NULL: the model and this machine are measured */
    hunch_progress progress;       /* in requests; may be NULL */
    void *progress_user;
    int machines;                  /* up to so many, at most 64, which divide the model (docs/machines.md); 0: this one alone */
    double link_latency, link_bytes_s; /* of the links between them: seconds, bytes a second */
} hunch_plan_options;
void hunch_plan_options_defaults(hunch_plan_options *o);
/* What speculation would give: limits of the machine, times of passes, acceptance of each method, tokens a second by method, depth and
 * batch, and what to use, as JSON (docs/formats.md). m: NULL with figures. It opens an engine of its own for each method; not while
 * passes of the model run. *json: to be freed with hunch_free. Errors: HUNCH_USAGE, those of opening drafters and configs, and of
 * passes. */
hunch_status hunch_plan(hunch_model *m, const hunch_plan_options *o, char **json, hunch_error *err);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
