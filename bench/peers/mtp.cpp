/* SPDX-License-Identifier: Apache-2.0 */
/* mtp.cpp - times ik_llama.cpp's speculation by the block of multi-token prediction in a model's file, on its own common code.
 *
 *   mtp MODEL THREADS CONTEXT REPACK DEPTH ARCHITECTURE VOCABULARY < requests
 *
 * A request is "plain PROMPT ROUNDS" (DEPTH 0) or "mtp PROMPT ROUNDS ALL": a prompt of PROMPT tokens, then so many rounds. ALL 1:
 * every draft counts as accepted, whatever the model's choice, as with hunch's force=1; 0: random weights accept next to
 * nothing. The file needs no tokenizer. Build: mtp.sh, which replaces two functions of the common code by the wrappers here. */
#include "common.h"
#include "ggml.h"
#include "llama.h"
#include "sampling.h"
#include "speculative.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

static bool accept_all;

/* ---- wrappers (ld --wrap) ---------------------------------------------------------------------------------------- */

extern "C" {
std::vector<llama_token> __real__Z34common_sampler_sample_and_accept_nP14common_samplerP13llama_contextRKSt6vectorIiSaIiEES7_b(
    common_sampler *, llama_context *, const std::vector<int> &, const std::vector<llama_token> &, bool);

std::vector<llama_token> __wrap__Z34common_sampler_sample_and_accept_nP14common_samplerP13llama_contextRKSt6vectorIiSaIiEES7_b(
    common_sampler *sampler, llama_context *ctx, const std::vector<int> &rows, const std::vector<llama_token> &draft, bool grammar) {
    std::vector<llama_token> ids =
        __real__Z34common_sampler_sample_and_accept_nP14common_samplerP13llama_contextRKSt6vectorIiSaIiEES7_b(sampler, ctx, rows,
                                                                                                             draft, grammar);
    if (!accept_all || ids.empty()) return ids;
    std::vector<llama_token> all = draft;
    all.push_back(ids.back());
    return all;
}

std::string __wrap__Z21common_token_to_pieceB5cxx11PK13llama_contextib(const llama_context *, llama_token, bool) {
    return "";
}
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

static void add_override(gpt_params &p, const char *key, const char *text, int64_t number) {
    llama_model_kv_override o;
    memset(&o, 0, sizeof o);
    o.tag = text ? LLAMA_KV_OVERRIDE_TYPE_STR : LLAMA_KV_OVERRIDE_TYPE_INT;
    snprintf(o.key, sizeof o.key, "%s", key);
    if (text)
        snprintf(o.val_str, sizeof o.val_str, "%s", text);
    else
        o.val_i64 = number;
    p.kv_overrides.push_back(o);
}

static gpt_params params_of(char **argv, int depth) {
    gpt_params p;
    p.model = argv[1];
    p.n_threads = p.n_threads_batch = atoi(argv[2]);
    p.n_ctx = atoi(argv[3]);
    p.repack_tensors = atoi(argv[4]) != 0;
    if (p.repack_tensors) p.use_mmap = false;
    p.flash_attn = true;
    p.warmup = false;
    p.sparams.temp = 0;
    add_override(p, "tokenizer.ggml.model", "no_vocab", 0);
    add_override(p, (std::string(argv[6]) + ".vocab_size").c_str(), NULL, atoi(argv[7]));
    add_override(p, "", NULL, 0); /* the end */
    if (depth > 0) {
        common_speculative_stage_params s;
        s.type = p.speculative.type = COMMON_SPECULATIVE_TYPE_MTP;
        s.n_max = p.speculative.n_max = depth;
        s.n_min = 0;
        s.p_min = p.speculative.p_min = 0; /* always the whole depth */
        p.speculative.stages.push_back(s);
    }
    return p;
}

/* ---- requests ----------------------------------------------------------------------------------------------------- */

struct peer {
    gpt_params params;
    llama_model *model;
    llama_context *ctx;
    common_speculative *spec; /* NULL: plain */
    common_sampler *sampler;
    int vocab;
};

static llama_batch batch_of(const llama_tokens &t, int past) {
    llama_batch b = llama_batch_init((int)t.size(), 0, 1);
    for (size_t i = 0; i < t.size(); i++) common_batch_add(b, t[i], past + (int)i, {0}, true);
    return b;
}

/* NULL: fine. */
static const char *read_prompt(peer &p, int n) {
    llama_tokens prompt;
    for (int i = 0; i < n; i++) {
        const unsigned x = 2654435761u * (unsigned)(i + 1);
        prompt.push_back((llama_token)((x ^ x >> 15) % (unsigned)p.vocab));
    }
    if (p.spec)
        common_speculative_clear_sequence_kv(p.spec, p.ctx, 0);
    else
        llama_kv_cache_clear(p.ctx);
    common_sampler_reset(p.sampler);
    if (p.spec) llama_set_embeddings(p.ctx, true);
    llama_batch b = batch_of(prompt, 0);
    const bool failed = llama_decode(p.ctx, b) || (p.spec && common_speculative_on_target_seq_batch(p.spec, p.ctx, b, 0, true));
    llama_batch_free(b);
    if (failed) return "the prompt cannot be read";
    if (!p.spec) return NULL;
    common_speculative_begin(p.spec, {});
    if (!common_speculative_capture_output_hidden(p.spec, p.ctx, n - 1, 0, n - 1)) return "no state after the prompt";
    llama_set_embeddings(p.ctx, false);
    return NULL;
}

/* One more token, or the tokens of a round; 0: an error, which was printed. */
static int run_round(peer &p, int past, bool &carry, llama_token &carried) {
    if (p.spec) {
        const auto r = common_speculative_run_round(p.spec, p.model, p.ctx, p.sampler, nullptr, p.params.speculative, p.params.sparams,
                                                    0, past, 100000, carry, {}, carried);
        if (r.failed || !r.used_speculative) {
            printf("error: %s\n", r.failed ? r.error.c_str() : "a round without a draft");
            return 0;
        }
        carried = r.ids.back();
        carry = true;
        return (int)r.ids.size();
    }
    const llama_token id = common_sampler_sample_legacy(p.sampler, p.ctx, nullptr);
    common_sampler_accept(p.sampler, p.ctx, id, true);
    llama_batch b = batch_of({id}, past);
    const bool failed = llama_decode(p.ctx, b);
    llama_batch_free(b);
    if (failed) printf("error: a pass fails\n");
    return failed ? 0 : 1;
}

static void answer(peer &p, const std::string &line) {
    std::istringstream in(line);
    std::string what;
    int n_prompt = 0, n = 0, all = 0;
    in >> what >> n_prompt >> n >> all;
    accept_all = all != 0;
    if (const char *why = read_prompt(p, n_prompt)) {
        printf("error: %s\n", why);
        return;
    }
    int tokens = 0, rounds = 0, more = 1;
    bool carry = false;
    llama_token carried = 0;
    const int64_t begin = ggml_time_us();
    for (; rounds < n && (more = run_round(p, n_prompt + tokens, carry, carried)) > 0; rounds++) tokens += more;
    const double ms = (double)(ggml_time_us() - begin) / 1e3;
    printf("%s: %d rounds %d tokens, %.3f ms a round, %.2f tokens/s\n", line.c_str(), rounds, tokens, ms / std::max(rounds, 1),
           1e3 * tokens / ms);
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: mtp MODEL THREADS CONTEXT REPACK DEPTH ARCHITECTURE VOCABULARY\n");
        return 2;
    }
    const int depth = atoi(argv[5]);
    peer p;
    p.params = params_of(argv, depth);
    common_speculative_prepare_startup(p.params);
    llama_backend_init();
    auto opened = llama_init_from_gpt_params(p.params);
    p.model = opened.model;
    p.ctx = opened.context;
    p.spec = NULL;
    p.vocab = atoi(argv[7]);
    if (!p.model || !p.ctx) return 1;
    if (depth > 0 && (!common_speculative_finalize_startup(p.params, p.model) || !common_speculative_is_compat(p.ctx) ||
                      common_speculative_try_init(p.params.speculative, p.ctx, &p.spec) != COMMON_SPECULATIVE_INIT_READY)) {
        fprintf(stderr, "mtp: it cannot speculate with this model\n");
        return 1;
    }
    p.sampler = common_sampler_init(p.model, p.params.sparams);
    for (std::string line; std::getline(std::cin, line);) {
        answer(p, line);
        fflush(stdout);
    }
    return 0;
}
