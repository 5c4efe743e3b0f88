/* SPDX-License-Identifier: Apache-2.0 */
/* serve_call.h - a call: one HTTP request for generated text, with its choices, each of which is a session of the engine.
 *
 * A thread for work makes it, fills the request and the prompts; a thread of HTTP submits it (serve_engine.h); the engine's thread appends
 * what its sessions give to `made`, and does nothing else with it within a round; its reader, a thread of HTTP or for work, moves that to
 * what it has, and answers from there without the lock. Each of both sides holds a reference. What both use is under `lock`; the rest
 * belongs to one of them, as noted. */
#ifndef HN_SERVE_CALL_H
#define HN_SERVE_CALL_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "hunch/hunch.h"
#include "server/http/serve_bytes.h"
#include "server/serve_thinking.h"
#include "server/http/serve_work.h"

struct serve_call;
struct serve_server;

typedef struct serve_prompt {
    hunch_token *ids; /* freed with hunch_free */
    size_t n;
    bool thinks;      /* of chats: the answer begins in thinking */
    serve_bytes text; /* of completions: as the client gave it, for `echo`; empty if it gave ids */
} serve_prompt;

/* How far the blocks of an answer were told (serve_blocks.h). */
typedef struct serve_told {
    size_t block; /* the first that is not told to its end */
    size_t n;     /* bytes of it that are */
    bool open;    /* its beginning is */
    int index;    /* blocks that are told to their ends */
    char *id;     /* of the call that is open, as it was told; NULL: none */
} serve_told;

/* What a session made and the reader has not taken. */
typedef struct serve_made {
    serve_bytes text;
    hunch_token *tokens;
    float *logprobs;              /* [n_tokens], if wanted */
    hunch_logprob *top;           /* [n_tokens][n_top] */
    size_t n_tokens, cap_tokens, cap_logprobs, cap_top;
    float *prompt_logprobs;       /* [prompt->n], if wanted and once it is read; NAN for the first token */
    hunch_logprob *prompt_top;    /* [prompt->n][n_top] */
    float *pooled;                /* [n_pooled] of the prompt, if wanted; NULL: not read */
    int n_top, n_pooled;
} serve_made;

typedef struct serve_choice {
    struct serve_call *call;
    int index; /* of the answer */
    const serve_prompt *prompt;
    uint64_t seed;
    /* the engine's thread */
    hunch_session *session; /* NULL: not open, or over */
    bool paused;            /* until its reader has taken what there is */
    size_t n_made;          /* tokens */
    bool prompt_made, pooled_made; /* those lists were */
    hunch_error no_memory;  /* for what it made; its status is 0: there was */
    size_t predicted_at;    /* of the prediction: behind the last token of it that was accepted */
    double first_s, last_s; /* times (hn_now) of its first and newest token; 0: none yet */
    uint64_t (*by_length)[HUNCH_MAX_DEPTH + 1]; /* [depth of the drafts][accepted] rounds; NULL: not wanted, or none. The reader's once it
                                                 * is done */
    /* under the lock */
    serve_made made;
    uint64_t made_predicted, made_right;
    bool over;                 /* its session is */
    hunch_session_state end;   /* then; without its arrays */
    /* the reader */
    serve_made taken;          /* on its way to the following, between collect and absorb */
    serve_bytes text;
    serve_parts parts;   /* what the text is made of */
    hunch_token *tokens;
    size_t n_tokens, cap_tokens;
    float *logprobs;
    size_t cap_logprobs;
    hunch_logprob *top;
    size_t cap_top;
    int n_top;
    float *prompt_logprobs;
    hunch_logprob *prompt_top;
    float *pooled;
    int n_pooled;
    uint64_t predicted, predicted_right; /* tokens of the prediction that were verified, and accepted */
    bool done, absorbed;       /* absorbed: all of it is in the following, and it is done */
    hunch_session_state state; /* once it is done */
    /* what a stream has sent */
    size_t sent_text, sent_tokens; /* sent_text: of a text that is no chat's */
    int sent_calls; /* whose beginnings were sent */
    bool begun, ended;
    serve_told told;
    size_t thinking_n, thinking_at; /* tokens that are known to be of its thinking, and their bytes: the next count goes on there */
    char partial[4];                /* [n_partial] the beginning of a character that they end with */
    size_t n_partial;
} serve_choice;

enum {
    SERVE_MOST_N = 8,
    SERVE_MOST_CHOICES = 1024,
    SERVE_CALL_ID = 80, /* bytes of a call's id */
    SERVE_MOST_UNSENT = 128 /* tokens of a choice that wait for a slow reader of a stream: then it is paused */
};

/* What runs in a place of the engine, as it was after the newest round. */
typedef struct serve_place {
    bool taken;
    char id[SERVE_CALL_ID], client[SERVE_CLIENT]; /* of the call */
    size_t n_prompt, n_read, n_tokens; /* tokens of its prompt, those that were read, and of the answer */
    int most;                          /* tokens that the answer may have; 0: as many as the context holds */
} serve_place;

typedef struct serve_call {
    /* set before it is submitted, then only read */
    bool chat;
    char id[SERVE_CALL_ID]; /* "chatcmpl-..." */
    char client[SERVE_CLIENT]; /* who asked */
    time_t created;
    hunch_model *model;
    hunch_request request;  /* of every choice; but its prompt, seed and callbacks. Its lists belong to this call */
    bool seed_given;
    serve_prompt *prompts;  /* [n_prompts] */
    int n_prompts, n;       /* n: choices a prompt */
    hunch_tools *tools;     /* that its answers may call; NULL: none */
    hunch_tools *forbidden; /* those of "tool_choice": "none" */
    bool whole_text;        /* thinking stays in the answer's text */
    bool stream, include_usage, continuous_usage, echo, token_ids, with_metrics, with_timings;
    int predicting;         /* the drafter that uses the request's prediction; -1: none */
    bool packed;            /* vectors are sent as base64 */
    bool generate;          /* of Ollama's endpoint that has one text, not a message */
    json_t *asked;          /* what its protocol says again of the request in answers; NULL: nothing */
    json_t *said;           /* the reader: what of its answer is complete; NULL: nothing */
    int n_events;           /* likewise: events that a stream has sent */
    bool say_comment;       /* likewise: the stream was silent for long */
    double received_s;
    int fd;                 /* of the connection, to see a client that hung up */
    serve_choice *choices;  /* [n_choices], of the first prompt first */
    int n_choices;

    pthread_mutex_t lock;
    /* under the lock */
    bool gone;              /* nobody waits for it any more: its sessions end */
    bool stopped;           /* the server ends */
    bool paused;            /* its sessions are: its client reads slowly */
    bool comment;           /* a stream that was silent for long sends a comment */
    int left;               /* choices that are not done */
    double opened_s;        /* when its first session was opened; 0: it waits in the queue */
    bool news;              /* output since the connection was last woken */
    bool untaken;           /* output that the reader has not taken */
    bool asleep;            /* the connection waits for news */
    void (*wake)(void *user); /* called under the lock, from the engine's thread */
    void *wake_user;
    /* the engine's thread */
    struct serve_call *next;
    int n_opened;
    struct serve_metrics *metrics;
    double spoke_s; /* when it last had news */

    atomic_int references;
} serve_call;

serve_call *serve_call_new(void); /* with one reference */
void serve_call_release(serve_call *c);
/* Makes the choices of its prompts; each has its own seed: the request's + 0, 1, .. n - 1. */
void serve_call_choices(serve_call *c);
/* Wakes the connection, if it sleeps. Under the lock. */
void serve_call_wake(serve_call *c);
size_t serve_call_prompt_tokens(const serve_call *c);
size_t serve_call_unsent(const serve_call *c); /* tokens of a stream that its connection has not taken. Under the lock */
/* The reader takes what was made: under the lock, a moment however much it is; then, without it, it is put behind what the reader has. */
void serve_call_collect(serve_call *c);
void serve_call_absorb(serve_call *c);
bool serve_call_over(const serve_call *c); /* every choice is done, for the reader */

#endif
