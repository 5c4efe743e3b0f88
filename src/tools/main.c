/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the `hunch` command: finds the subcommand and hands over. Every subcommand is one file, cmd_NAME.c; their
 * flags stand in tool_options.c. The command sees the library through hunch/hunch.h alone. */
#include <stdlib.h>
#include <string.h>

#include "tool_commands.h"

const tool_command tool_commands[] = {
    {TOOL_RUN, "run", "run -m MODEL -p PROMPT [--draft SPEC]... [FLAG...]",
     "generates; ends with tokens/s, acceptance length and where each token came from",
     "The prompt goes through the model's chat template, if it has one, unless --raw. -f reads a text file (one final\n"
     "newline is dropped) or JSON lines with one row {\"prompt\", or \"messages\" and perhaps \"tools\", or \"tokens\";\n"
     "\"prediction\"?}: the prediction is the text that a `prediction` drafter expects. Sampling defaults are the model's\n"
     "own, else temperature 0.\n",
     tool_run},
    {TOOL_CHAT, "chat", "chat -m MODEL [--system TEXT] [--draft SPEC]... [FLAG...]",
     "a conversation, line by line; Ctrl-C stops an answer",
     "Reads standard input: a terminal, or a pipe with one message a line. /help lists what else a line can say. A line\n"
     "that ends in a backslash goes on in the next. With --json-lines each answer is one object of the shape that run has.\n",
     tool_chat},
    {TOOL_COMPARE, "compare", "compare -m MODEL -f PROMPTS [--draft SPEC]... [FLAG...]",
     "plain against each drafting method, interleaved: speed, acceptance, identical text or not",
     "PROMPTS is a text file (one prompt) or JSON lines {\"id\",\"group\",\"prompt\",\"prediction\"?}; instead of the prompt a row\n"
     "may hold \"messages\" (and \"tools\") or \"tokens\". Each --draft is one method; A+B is one method of two drafters. Plain\n"
     "and drafted generation take turns every 16 tokens.\n"
     "ratio = plain decode time / drafted decode time over the same tokens, prefill excluded; ci = 90 % bootstrap over\n"
     "the slices of 16 tokens; ratio of a method = median over prompts; ratio_total = total / total. --repeat and\n"
     "--until-width pool the slices of all times that a prompt was answered, each time with emptied stores (--cold).\n",
     tool_compare},
    {TOOL_BENCH, "bench", "bench -m MODEL [--rows LIST] [--contexts LIST] [FLAG...] | --machine",
     "machine limits, time of a pass by rows and context, tokens/s",
     "limit = what the read bandwidth of the same seconds and the machine's arithmetic allow; reached = limit / time;\n"
     "t/t1 = time of a pass / time of one row at that context; read = share of the read bandwidth; mad = median distance\n"
     "from the median; commit = of half the rows, the rest rolled back. Medians of 7 turns. Contexts that the\n"
     "model lacks are left out.\n"
     "--requests answers lines of standard input: info; pass ROWS CONTEXT (all logits), prefill N, decode N CONTEXT (a\n"
     "token): milliseconds; quit. bench/peers lets other programs answer the same.\n",
     tool_bench},
    {TOOL_INSPECT, "inspect", "inspect MODEL [--json]", "what a model file or folder holds, and what of it is used", NULL,
     tool_inspect},
    {TOOL_TOKENIZE, "tokenize", "tokenize -m MODEL -p TEXT | -f FILE [--json-lines] | --messages VARS [--template FILE]",
     "token ids and pieces of a text, or a rendered chat template",
     "Special tokens in the text are read, no BOS is added. With --json-lines FILE holds rows\n"
     "{\"text\",\"parse_special\",\"add_special\"}, and each gives one line. --template FILE --messages VARS --text needs no model.\n",
     tool_tokenize},
    {TOOL_LOGITS, "logits", "logits -m MODEL -p TEXT | -f FILE | --tokens FILE -o OUT.npy",
     "logits of every position, float32 [T, V], as a NumPy file", NULL, tool_logits},
    {TOOL_DRAFT, "draft", "draft -m MODEL --draft SPEC -p TEXT [--depth K] [--accept N] [-o OUT.safetensors] [FLAG...]",
     "one round of a drafter behind a text",
     "The text is taken as it is, without the chat template; the target's token behind it is the root of the tree. Greedy\n"
     "unless --temperature says otherwise. -o writes the drafter's logits: \"logits\", float32 [depth, vocabulary], -inf where\n"
     "it has none.\n",
     tool_draft},
    {TOOL_SCORE, "score", "score -m MODEL -p TEXT | -f FILE | --tokens FILE [--json]",
     "negative log-likelihood of a text, in nats a token, and its perplexity",
     "Tokens 2 to T are scored, in windows of --context tokens (default: the model's context, at most 2048) with half\n"
     "overlap: each window starts half a window after the last, and scores the tokens that had no score yet.\n",
     tool_score},
    {TOOL_CONVERT, "convert", "convert -m FOLDER -o FILE.gguf", "a Hugging Face folder as GGUF, weights as stored", NULL,
     tool_convert},
    {0, NULL, NULL, NULL, NULL, NULL},
};

const tool_command *tool_command_find(unsigned bit) {
    const tool_command *c = tool_commands;
    while (c->name && c->bit != bit)
        c++;
    return c;
}

static int unknown_command(const char *name) {
    const char *names[sizeof tool_commands / sizeof *tool_commands];
    size_t n = 0;
    for (const tool_command *c = tool_commands; c->name; c++)
        names[n++] = c->name;
    const char *near = tool_nearest(name, names, n);
    if (near)
        return tool_usage("unknown command %s, did you mean %s?", name, near);
    return tool_usage("unknown command %s, see hunch --help", name);
}

int main(int argc, char **argv) {
    tool_signals_begin();
    json_set_alloc_funcs(tool_json_alloc, free);
    if (argc < 2) {
        tool_help(stderr);
        return HUNCH_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        tool_help(stdout);
        return tool_done(HUNCH_OK);
    }
    if (strcmp(name, "--version") == 0) {
        printf("hunch %s\n", hunch_version());
        return tool_done(HUNCH_OK);
    }
    for (const tool_command *c = tool_commands; c->name; c++)
        if (strcmp(name, c->name) == 0)
            return tool_exit_code(c->run(argc - 1, argv + 1));
    return unknown_command(name);
}
