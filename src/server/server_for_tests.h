/* SPDX-License-Identifier: Apache-2.0 */
/* server_for_tests.h - a server without sockets, over a tiny model, for tests of one program. Include after fixture.h. */
#ifndef HN_SERVER_FOR_TESTS_H
#define HN_SERVER_FOR_TESTS_H
#include <unistd.h>

#include "server/serve_server.h"

static serve_settings settings;
static serve_server server;
static int test_texts, test_context; /* of its engine */

static int test_engine_open(void *user, hunch_model **m, hunch_engine **e) {
    (void)user;
    *m = open_model(data_path("models/stories260K/stories260K.f32.gguf"), "best", 1, HUNCH_PRECISION_NATIVE);
    *e = open_engine(*m, NULL, test_texts, 16, HUNCH_KV_DEFAULT, 16, test_context);
    return 0;
}

static void test_engine_ended(void *user, int code) { (void)user, (void)code; }
static void test_engine_ready(void *user, hunch_model *m, hunch_engine *e) { (void)user, (void)m, (void)e; }

/* template_text: the chat template, NULL: the model's own. */
static void test_server_start(int texts, int queue, int context, const char *template_text) {
    static const char *const names[] = {"m"};
    test_texts = texts;
    test_context = context;
    settings = (serve_settings){.model_name = "m", .names = names, .n_names = 1, .template_text = template_text};
    server = (serve_server){.settings = &settings, .metrics = serve_metrics_new(), .drafters = json_array()};
    const serve_engine_options o = {.parallel = texts, .queue = queue, .metrics = server.metrics, .open = test_engine_open,
                                    .ended = test_engine_ended, .ready = test_engine_ready};
    server.engine = serve_engine_new(&o);
    assert_true(serve_engine_start(server.engine));
    while (serve_engine_phase(server.engine) == SERVE_LOADING) usleep(1000);
}

static void test_server_stop(void) {
    serve_engine_stop(server.engine);
    serve_engine_free(server.engine);
    serve_metrics_free(server.metrics);
    json_decref(server.drafters);
}
#endif
