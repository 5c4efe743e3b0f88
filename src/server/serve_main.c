/* SPDX-License-Identifier: Apache-2.0 */
/* serve_main.c - hunch-serve, the program that `hunch serve` starts: reads the flags, listens, lets the engine's thread load the model, and
 * waits for signals. The rest is in the files beside it: connections (serve_http.c), endpoints (serve_routes.c), the engine
 * (serve_engine.c). */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "server/protocols/serve_about.h"
#include "server/serve_answer.h"
#include "server/http/serve_address.h"
#include "server/http/serve_head.h"
#include "server/http/serve_http.h"
#include "server/http/serve_log.h"
#include "server/http/serve_socket.h"
#include "app/tool_machines.h"
#include "app/tool_open.h"
#include "app/tool_serve.h"

enum { MOST_TEMPLATE = 4 << 20, APART = 1 << 20, GRAMMAR_BYTES = 256 << 20, AVERAGE_ROWS = 1024, TICK_NS = 50000000, LONGEST_NAME = 255 };

typedef struct program {
    tool_options o;
    serve_settings settings;
    serve_server server;
    serve_http *http;
    char name[LONGEST_NAME + 1];
    const char **names; /* [n] under which it is served */
    serve_callers *callers;
    char *template_text;
    atomic_int code;   /* of the engine's thread */
    atomic_bool ended; /* that thread has */
} program;

/* ---- the engine ---------------------------------------------------------------------------------------------- */

/* The drafters of the flags, and one for requests that bring a prediction, which proposes nothing for others. A rule that wants one
 * drafter alone has that. */
static void method_make(tool_method *method, const tool_options *o) {
    const char *specs[64] = {"auto"};
    int n = o->drafts.n ? 0 : 1;
    bool add = o->verify == TOOL_UNSET || o->verify == HUNCH_VERIFY_MATCH || o->verify == HUNCH_VERIFY_GREEDY;
    for (int i = 0; i < o->drafts.n && n < 63; i++) {
        specs[n++] = o->drafts.items[i];
        add = add && strcmp(o->drafts.items[i], "none") != 0 && !strstr(o->drafts.items[i], "prediction");
    }
    if (add) specs[n++] = "prediction";
    tool_method_init(method, specs, n);
}

static int engine_open(hunch_engine **e, hunch_model *m, program *p, int context, int rows) {
    tool_method method;
    method_make(&method, &p->o);
    uint64_t window;
    const uint64_t row = hunch_model_row_bytes(m, p->o.kv == TOOL_UNSET ? HUNCH_KV_DEFAULT : (hunch_kv)p->o.kv, &window) + window;
    const int64_t kept = tool_serve_kept(&p->o), half = (int64_t)(row / 2 * (uint64_t)rows);
    p->o.pool_rows = rows;
    p->o.kept_bytes = kept ? kept : half > 0 ? half : 1;
    p->o.pools = true;
    const int code = tool_engine_open(e, m, &p->o, &method, context, p->o.parallel);
    tool_method_fini(&method);
    return code;
}

/* Rows of the cache for the memory that was given, or four fifths of what is left; at most a context for each text and one more. */
static int rows_of(const program *p, const hunch_model *m, int context) {
    uint64_t window;
    const uint64_t row = hunch_model_row_bytes(m, p->o.kv == TOOL_UNSET ? HUNCH_KV_DEFAULT : (hunch_kv)p->o.kv, &window) + window;
    const uint64_t given = tool_serve_memory(&p->o), memory = given ? given : hunch_model_memory_left(m) / 5 * 4;
    const uint64_t most = ((uint64_t)p->o.parallel + 1) * (uint64_t)context, rows = row ? memory / row : most;
    const uint64_t fit = rows < most ? rows : most;
    return (int)(fit < (uint64_t)context ? (uint64_t)context : fit > INT32_MAX ? INT32_MAX : fit);
}

/* Whether --memory holds one whole text: with less no request could use the context that clients are told. */
static int memory_check(const program *p, const hunch_model *m, int context) {
    uint64_t window;
    const uint64_t row = hunch_model_row_bytes(m, p->o.kv == TOOL_UNSET ? HUNCH_KV_DEFAULT : (hunch_kv)p->o.kv, &window) + window;
    const uint64_t given = tool_serve_memory(&p->o), need = row * (uint64_t)context;
    char size[32];
    if (!given || given >= need) return 0;
    tool_size_text((double)need, size);
    return tool_usage(
        "serve: --memory %s does not hold one text of %d tokens, which takes %s: a smaller --context, or more memory",
        p->o.memory, context, size);
}

static int context_of(const program *p, const hunch_model *m) {
    enum { BY_DEFAULT = 8192 };
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    return p->o.context != TOOL_UNSET ? p->o.context : info.context < BY_DEFAULT ? info.context : BY_DEFAULT;
}

static int open_all(void *user, hunch_model **m, hunch_engine **e) {
    program *p = user;
    p->o.grammar_bytes = tool_serve_grammars(&p->o);
    if (!p->o.grammar_bytes) p->o.grammar_bytes = GRAMMAR_BYTES;
    int code = tool_model_open(m, &p->o, NULL);
    if (code) return code;
    hunch_error err = {0};
    if (p->template_text && hunch_model_set_marks(*m, p->template_text, &err)) return tool_failed(&err);
    const int context = context_of(p, *m);
    if ((code = memory_check(p, *m, context))) return code;
    code = engine_open(e, *m, p, context, rows_of(p, *m, context));
    return code;
}

static void ready(void *user, hunch_model *m HN_UNUSED, hunch_engine *e) {
    program *p = user;
    json_t *drafters = json_array();
    for (int i = 0; i < hunch_engine_drafters(e); i++) {
        const char *name = hunch_engine_drafter_name(e, i); /* may have names of files */
        json_array_append_new(drafters, serve_text_json(name, strlen(name)));
    }
    p->server.drafters = drafters;
    p->server.about = serve_about_read(p->o.model);
    serve_metrics_engine(p->server.metrics, e);
    tool_drafters_note(e);
}

/* The account of memory, in one line. */
static void memory_say(const hunch_engine *e) {
    hunch_memory m;
    char line[400], planned[32], taken[32];
    int n = 0;
    hunch_engine_get_memory(e, &m);
    for (int i = 0; i < HUNCH_MEMORY_PARTS; i++) {
        if (!m.part[i].planned && !m.part[i].taken) continue;
        tool_size_text((double)m.part[i].planned, planned);
        n += snprintf(line + n, sizeof line - (size_t)n, ", %s %s", hunch_memory_part_name(i), planned);
    }
    tool_size_text((double)m.planned, planned);
    tool_size_text((double)m.taken, taken);
    tool_message("memory: %s planned, %s taken%s", planned, taken, n ? line : "");
}

static void ready_say(void *user, hunch_model *m, hunch_engine *e) {
    program *p = user;
    uint64_t window;
    char size[32];
    const uint64_t row = hunch_model_row_bytes(m, p->o.kv == TOOL_UNSET ? HUNCH_KV_DEFAULT : (hunch_kv)p->o.kv, &window);
    if (p->o.quiet) return;
    hunch_model_info info;
    hunch_model_get_info(m, &info);
    if (!info.has_chat_template && !p->settings.template_text)
        tool_message("the model has no chat template: messages of chats are joined as they are; --chat-template-file FILE has one");
    tool_size_text((double)(row + window) * p->o.pool_rows, size);
    tool_message("ready: context %d, %d texts at once, %s for %d rows: %d texts of %d tokens fit", hunch_engine_context(e), p->o.parallel,
                 size, p->o.pool_rows, p->o.pool_rows / AVERAGE_ROWS, AVERAGE_ROWS);
    memory_say(e);
}

static void ended(void *user, int code) {
    program *p = user;
    p->code = code;
    p->ended = 1;
    kill(getpid(), SIGUSR1); /* the main thread waits for signals */
}

/* ---- settings ------------------------------------------------------------------------------------------------ */

/* The last part of the model's path, without .gguf: no answer has the rest. What of a file's name is not UTF-8 is U+FFFD: the name is part
 * of answers. */
static void name_choose(program *p) {
    char path[1024];
    snprintf(path, sizeof path, "%s", p->o.model);
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') path[--n] = 0;
    const char *last = strrchr(path, '/');
    const char *name = last ? last + 1 : path;
    n = hn_utf8_mend(name, strlen(name), p->name, sizeof p->name - 1);
    p->name[n] = 0;
    if (n > 5 && strcmp(p->name + n - 5, ".gguf") == 0) p->name[n - 5] = 0;
}

/* The names for clients: those that were given, else the file's. */
static int names_make(program *p) {
    const tool_texts *given = &p->o.served_names;
    p->names = serve_alloc((size_t)given->n + 1, sizeof *p->names);
    for (int i = 0; i < given->n; i++) {
        const char *name = given->items[i];
        if (!name[strspn(name, " ")]) return tool_usage("serve: --served-model-name is empty");
        if (strlen(name) > LONGEST_NAME)
            return tool_usage("serve: --served-model-name %.40s... is longer than %d bytes", name, LONGEST_NAME);
        if (hn_utf8_check(name, strlen(name)) < strlen(name))
            return tool_usage("serve: --served-model-name %s is not valid UTF-8", name);
        for (const char *at = name; *at; at++)
            if ((unsigned char)*at < ' ' || *at == 0x7f) return tool_usage("serve: --served-model-name %s has a control character", name);
        p->names[i] = name;
    }
    if (given->n == 0) name_choose(p), p->names[0] = p->name;
    return 0;
}

/* Who may call; a server that anyone can reach and use says so. */
static int callers_make(program *p) {
    const tool_options *o = &p->o;
    const bool local = serve_host_is_local(o->host);
    hunch_error err = {0};
    if (o->proxy && !serve_address_read(o->proxy).family) return tool_usage("serve: --proxy %s is not an address", o->proxy);
    if (serve_callers_new(&p->callers, o->cors.items, o->cors.n, o->host_names.items, o->host_names.n,
                          local && !o->api_key_file, &err))
        return tool_failed(&err);
    if (!local && !o->api_key_file && !o->allow_anyone)
        tool_message("warning: other machines can reach %s, and no key is asked for: --api-key-file FILE has keys, "
                     "--allow-anyone silences "
                     "this",
                     o->host);
    return 0;
}

static int tool_format_check(const char *format) {
    if (!format) return 0;
    for (int i = 0; hunch_tools_format_name(i); i++)
        if (strcmp(format, hunch_tools_format_name(i)) == 0) return 0;
    return tool_usage("serve: --tool-format %s: no format of calls has this name (docs/tools.md lists them)", format);
}

static void message_put(void *log, const char *line) { serve_log_line(log, line, strlen(line)); }

static int settings_make(program *p) {
    const tool_options *o = &p->o;
    hunch_error err = {0};
    size_t n;
    int code = names_make(p);
    if (!code) code = callers_make(p);
    if (!code) code = tool_format_check(o->tool_format);
    if (code) return code;
    if (o->chat_template_file && hn_file_read(o->chat_template_file, MOST_TEMPLATE, &p->template_text, &n, &err))
        return tool_failed(&err);
    if (o->api_key_file && serve_keys_read(&p->server.keys, o->api_key_file, &err)) return tool_failed(&err);
    p->settings = (serve_settings){.host = o->host,
                                   .port = o->port,
                                   .model_name = p->names[0],
                                   .names = p->names,
                                   .n_names = o->served_names.n ? o->served_names.n : 1,
                                   .callers = p->callers,
                                   .proxy = o->proxy,
                                   .connections_per_address = o->connections_per_address,
                                   .parallel = o->parallel,
                                   .queue = o->queue,
                                   .connections = o->connections,
                                   .stall_s = o->stall,
                                   .most_body = (size_t)o->max_body << 20,
                                   .log_json = o->log_json,
                                   .log_text = o->log_text,
                                   .quiet = o->quiet,
                                   .template_text = p->template_text,
                                   .tool_format = o->tool_format};
    p->server.settings = &p->settings;
    p->server.metrics = serve_metrics_new();
    if (!o->quiet && !(p->server.log = serve_log_new(STDERR_FILENO)))
        return tool_message("the log's thread cannot be started"), HUNCH_FAILED;
    if (p->server.log) tool_messages_to(message_put, p->server.log);
    p->server.started = time(NULL);
    return 0;
}

/* ---- running ------------------------------------------------------------------------------------------------- */

/* The next of these signals, or 0 after a moment. */
static int signal_wait(const sigset_t *set, bool for_long) {
    const struct timespec moment = {0, TICK_NS};
    int number = 0;
    if (for_long) return sigwait(set, &number) == 0 ? number : 0;
    number = sigtimedwait(set, NULL, &moment);
    return number > 0 ? number : 0;
}

/* Until every answer is sent, or another signal comes. */
static void drain(program *p, const sigset_t *set) {
    if (!p->o.quiet) tool_message("new requests are refused; running ones end first");
    serve_engine_drain(p->server.engine);
    while (!p->ended && !(serve_engine_idle(p->server.engine) && serve_http_busy(p->http) == 0))
        if (signal_wait(set, false)) return;
}

static int run(program *p, const sigset_t *set) {
    const serve_engine_options eo = {.parallel = p->o.parallel, .queue = p->o.queue, .metrics = p->server.metrics, .open = open_all,
                                     .ended = ended, .ready = ready, .ready_say = ready_say, .user = p};
    char url[300];
    hunch_error err = {0};
    /* The address is known before the engine's thread begins; a client that comes in between waits for the answer of its first look. */
    p->server.engine = serve_engine_new(&eo);
    hunch_status st = serve_http_start(&p->http, &p->server, url, &err);
    if (st) return tool_failed(&err);
    fprintf(stderr, "listening on %s\n", url);
    if (!serve_engine_start(p->server.engine)) {
        tool_message("the engine's thread cannot be started");
        serve_log_end(p->server.log);
        _exit(HUNCH_FAILED); /* connections may wait for it already */
    }
    signal_wait(set, true);
    if (!p->ended) drain(p, set);
    if (serve_engine_phase(p->server.engine) == SERVE_LOADING) { /* it cannot be interrupted */
        serve_log_end(p->server.log);
        _exit(128 + SIGTERM);
    }
    serve_engine_stop(p->server.engine);
    serve_http_stop(p->http);
    serve_engine_free(p->server.engine);
    return p->code;
}

/* Reserves the numbers of standard streams that are closed: a connection would otherwise get one, and receive messages. */
static void closed_streams_reserve(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd) _exit(HUNCH_FAILED);
}

int main(int argc, char **argv) {
    static program p;
    sigset_t set;
    closed_streams_reserve();
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, APART); /* else it grows with what is freed, and heaps of threads keep bodies of 16 MB */
#endif
    json_set_alloc_funcs(serve_json_alloc, free);
    int code = tool_machines_begin(argc, argv);
    if (code >= 0) return code;
    code = tool_serve_parse(&p.o, argc, argv);
    if (code >= 0) return tool_machines_end(code);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* for all threads: they are taken here alone */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    code = settings_make(&p);
    if (!code) code = run(&p, &set);
    tool_messages_to(NULL, NULL);
    serve_log_free(p.server.log);
    if (p.server.metrics) serve_metrics_free(p.server.metrics);
    serve_keys_free(p.server.keys);
    json_decref(p.server.drafters);
    json_decref(p.server.about);
    serve_callers_free(p.callers);
    hn_free(p.names);
    hn_free(p.template_text);
    tool_options_fini(&p.o);
    return tool_machines_end(code);
}
