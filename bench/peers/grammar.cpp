// SPDX-License-Identifier: Apache-2.0
// grammar.cpp - what a grammar costs ik_llama.cpp: the time of choosing a token, the pass not counted.
//
//     g++ -O2 -I IK_SOURCE/include -I IK_SOURCE/ggml/include grammar.cpp libllama.so libggml.so -o grammar
//     grammar MODEL GBNF PROMPT TOKENS SEED
//
// As its common code does: a token is drawn without the grammar, and only if that is refused, again among those that are allowed. Prints
// one line: microseconds a token of the choice, of those whose first draw was accepted and of the others, and how many these are.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "llama.h"

static double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void fill(std::vector<llama_token_data> &all, const float *logits) {
    for (size_t i = 0; i < all.size(); i++) all[i] = {(llama_token)i, logits[i], 0.0f};
}

static llama_token draw(llama_context *ctx, std::vector<llama_token_data> &all, const llama_grammar *g) {
    llama_token_data_array a = {all.data(), all.size(), -1, false};
    if (g) llama_grammar_apply(g, ctx, &a);
    return llama_sample_token(ctx, &a);
}

static bool allowed(llama_context *ctx, const llama_grammar *g, llama_token id) {
    llama_token_data one = {id, 1.0f, 0.0f};
    llama_token_data_array a = {&one, 1, -1, false};
    llama_grammar_apply(g, ctx, &a);
    return !std::isinf(one.logit);
}

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "usage: grammar MODEL GBNF PROMPT TOKENS SEED\n"), 2;
    std::ifstream file(argv[2]);
    std::stringstream text;
    text << file.rdbuf();
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    llama_model *m = llama_model_load_from_file(argv[1], llama_model_default_params());
    llama_context_params p = llama_context_default_params();
    p.n_ctx = 1024;
    p.n_threads = p.n_threads_batch = 2;
    llama_context *ctx = m ? llama_init_from_model(m, p) : nullptr;
    if (!ctx) return fprintf(stderr, "grammar: %s does not open\n", argv[1]), 1;
    llama_set_rng_seed(ctx, (uint32_t)atoi(argv[5]));
    llama_grammar *g = llama_sampler_init_grammar(llama_model_get_vocab(m), text.str().c_str(), "root");
    if (!g) return fprintf(stderr, "grammar: %s is none\n", argv[2]), 1;
    std::vector<llama_token> ids(1024);
    ids.resize((size_t)llama_tokenize(m, argv[3], (int)strlen(argv[3]), ids.data(), 1024, true, true));
    std::vector<llama_token_data> all((size_t)llama_n_vocab(m));
    double first = 0, again = 0;
    int n_first = 0, n_again = 0;
    llama_decode(ctx, llama_batch_get_one(ids.data(), (int)ids.size(), 0, 0));
    for (int i = 0, past = (int)ids.size(); i < atoi(argv[4]); i++, past++) {
        const float *logits = llama_get_logits_ith(ctx, -1);
        const double from = now();
        fill(all, logits);
        llama_token id = draw(ctx, all, nullptr);
        const bool ok = allowed(ctx, g, id);
        if (!ok) {
            fill(all, logits);
            id = draw(ctx, all, g);
        }
        if (llama_token_is_eog(m, id)) break;
        llama_grammar_accept_token(g, ctx, id);
        (ok ? first : again) += now() - from;
        (ok ? n_first : n_again)++;
        llama_decode(ctx, llama_batch_get_one(&id, 1, past, 0));
    }
    printf("%.1f us a token: %.1f of %d whose first draw was accepted, %.1f of %d others\n", (first + again) / (n_first + n_again),
           n_first ? first / n_first : 0.0, n_first, n_again ? again / n_again : 0.0, n_again);
    return 0;
}
