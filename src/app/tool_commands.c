/* SPDX-License-Identifier: Apache-2.0 */
/* tool_commands.c - see tool_commands.h: the table of subcommands and of topics. Texts only. */
#include "app/tool_commands.h"

#include <string.h>

#include "base/nearest.h"
#include "hunch/hunch.h"

const tool_command tool_commands[] = {
    {TOOL_RUN, "run", "answers a prompt, or each prompt of a file, and reports the speed and the drafter of each token",
     "MODEL [TEXT | -f FILE | --tokens FILE] [--draft SPEC]... [FLAG...]",
     "The text goes through the model's chat template, if it has one, unless --raw is given. Without TEXT, -p, -f and "
     "--tokens it is read from standard input, where that is no terminal.\n\n"
     "A FILE is a text (one newline at its end is dropped) or JSON: an object with \"prompt\", or \"messages\" and "
     "perhaps \"tools\", or \"tokens\"; or a bare array of messages. \"prediction\" is the text that a `prediction` "
     "drafter expects; \"max_tokens\", \"temperature\", \"top_p\", \"top_k\", \"min_p\", \"seed\", \"stop\" and the "
     "penalties are the flags of these names, and go before them. A FILE is taken for JSON where it is one such value, "
     "its name ends in .jsonl, its first line is an object, or it begins with one that has such a key. Sampling is the "
     "model's own, else temperature 0, unless row or flags set it.\n\n"
     "With --json-lines a FILE may have many rows, one a line: each is answered, --parallel at once, as an object with "
     "its \"id\" (the number of its line where it has none), in the order in which they are done. A row that cannot be "
     "answered is an object {\"id\", \"error\"}; the others go on, and the exit code is 1. -o takes them to a file, "
     "each written as soon as it is complete; --resume continues a file that was interrupted.\n\n"
     "On a terminal every token has the colour of the drafter that proposed it; the last lines list the colours.",
     {"MODEL", "TEXT"},
     {{"Ask a question; the drafts are automatic.", "hunch run model.gguf \"Why is the sky blue?\""},
      {"Summarise a file; its own words make good drafts.", "hunch run model.gguf -f article.txt -n 200 --draft ngram"},
      {"Three answers with seeds 7, 8 and 9, as JSON.",
       "hunch run model.gguf \"Tell a story.\" --temperature 0.8 --seed 7 --samples 3 --json-lines"},
      {"Answer all prompts of a file; run again, it continues where it stopped.",
       "hunch run model.gguf -f prompts.jsonl --json-lines --parallel 4 -o answers.jsonl --resume"},
      {"See what the controller weighed in every round.", "hunch run model.gguf \"Count to twenty.\" --why"}}},
    {TOOL_CHAT, "chat", "a conversation, with line editing and history; Ctrl-C stops an answer",
     "MODEL [--system TEXT] [--draft SPEC]... [FLAG...]",
     "Reads standard input: a terminal, or a pipe with one message a line. A line that ends in a backslash goes on in "
     "the next, and so does what begins with \"\"\", up to the next \"\"\"; what is pasted into a terminal is one "
     "message. Lines that begin with / are commands: /help lists them, /set NAME VALUE changes temperature, seed, "
     "drafts and more, /save FILE and /load FILE keep a conversation, /again answers once more.\n\n"
     "Ctrl-C stops an answer, whose tokens so far are kept, and clears a line; twice at an empty line it exits. The "
     "arrow keys show the history, which is kept between sessions.\n\n"
     "When the context is full the oldest turns are left out of what the model reads, and a line says so; the system "
     "message and the first turns (--keep) stay. An answer that repeats the same 64 tokens a fourth time ends "
     "there.\n\n"
     "With --json-lines each message has one object: an answer of the shape that run has, or {\"error\"}. Where input "
     "is no terminal the exit code is 1 if a message had no answer, or a command could not be done.",
     {"MODEL"},
     {{"Talk.", "hunch chat model.gguf"},
      {"Talk to somebody.", "hunch chat model.gguf --system \"You are a laconic pirate.\" --temperature 0.7"},
      {"Sample, and always keep the first turn.",
       "hunch chat model.gguf --temperature 0.8 --seed 7 --keep 1"},
      {"Ask from a script.", "echo \"Why is the sky blue?\" | hunch chat model.gguf --json-lines"}}},
    {TOOL_COMPARE, "compare", "plain against each drafting method, in turns: speed, acceptance, identical text",
     "MODEL [TEXT | -f PROMPTS | --tokens FILE] [--draft SPEC]... [FLAG...]",
     "PROMPTS is a text (one prompt) or JSON lines {\"id\", \"group\", \"prompt\", \"prediction\"}; instead of the "
     "prompt a row may hold \"messages\" (and \"tools\") or \"tokens\", and settings as for run. A file is taken for "
     "JSON lines where its name ends in .jsonl, its first line is an object, or it begins with one that has such a "
     "key. Each --draft is one method; A+B is one method of two drafters. Plain and drafted generation take turns "
     "every 16 tokens.\n\n"
     "ratio is plain decode time / drafted decode time over the same tokens, without prefill; its interval is a 90 % "
     "bootstrap over slices of 16 tokens. The ratio of a method is the median over prompts; the total is of all times. "
     "tau is the acceptance length: tokens a round. --repeat and --until-width pool the slices of all times that a "
     "prompt was answered, each time with emptied stores (--cold).",
     {"MODEL", "TEXT"},
     {{"What is gained, and is it the same text?", "hunch compare model.gguf \"Write a limerick.\" --show"},
      {"Two methods over a file of prompts.",
       "hunch compare model.gguf -f prompts.jsonl --draft ngram --draft suffix -n 64"},
      {"A drafting model beside the free ones.",
       "hunch compare model.gguf -f prompts.jsonl --draft model:small.gguf+ngram -n 64 --json"}}},
    {TOOL_PLAN, "plan", "what speculation would give here: which drafter, how deep, or why none",
     "MODEL [TEXT | -f PROMPTS] [--draft SPEC]... [--batch LIST] | [CONFIG] --machine bandwidth=B,peak=P [--parameters N] [--type TYPE]",
     "Measures the machine's limits, passes by their rows, and what each method accepts on the prompts, which are those of compare; then "
     "computes tokens a second by method, depth and texts at once, and recommends flags. Without prompts acceptance is what was "
     "published for drafters of the kind, and marked so. Each --draft is one method; default: auto, ngram and suffix.\n\n"
     "a is the rate of a draft that follows right ones, c what it costs in passes of one row, v what the pass that verifies costs; factor "
     "is (1 + a + ... + a^K) / (K c + v), Leviathan's with v = 1. operations is the arithmetic a token relative to plain decoding.\n\n"
     "With --machine nothing is measured and no weights are needed: all is predicted from figures.",
     {"MODEL", "TEXT"},
     {{"Would a drafter help here?", "hunch plan model.gguf"},
      {"On your own prompts, for one reader and for eight.", "hunch plan model.gguf -f prompts.jsonl --batch 1,8"},
      {"With a plot, and a draft model among the methods.",
       "hunch plan model.gguf -f prompts.jsonl --draft auto --draft model:small.gguf --svg plan.svg"},
      {"A model and a machine that are not here.", "hunch plan --machine bandwidth=300e9,peak=4e12 --parameters 8B --type Q4_K"}}},
    {TOOL_BENCH, "bench", "the machine's limits, and how close passes and generation come to them",
     "MODEL [--rows LIST] [--contexts LIST] [FLAG...] | --machine",
     "limit is the bound by the read bandwidth of the same turn and by the machine's arithmetic; reached is limit / "
     "time; t/t1 is the time of a pass / that of one row at that context; read is the share of the read bandwidth; mad "
     "is the median distance from the median; commit is of half the rows, the rest rolled back. Medians of 7 turns. "
     "Contexts that the model lacks are left out.\n\n"
     "--requests answers lines of standard input: info; pass ROWS CONTEXT (all logits), prefill N, decode N CONTEXT (a "
     "token): milliseconds; quit.",
     {"MODEL"},
     {{"The machine alone.", "hunch bench --machine --quick"},
      {"A model, quickly.", "hunch bench model.gguf --quick"},
      {"With a plot.", "hunch bench model.gguf --svg passes.svg --json=passes.json"}}},
    {TOOL_INSPECT, "inspect", "what a model file or folder holds, and what of it is used", "MODEL [--schema] [--draft SPEC] [--json]",
     "Reads no weights but the scales of packed integers: metadata, tensors, types, the tokenizer, and whether hunch runs it or why "
     "not. With --draft the drafters are opened, beside weights that stay in the file, for what a text costs in them.",
     {"MODEL"},
     {{"Look inside a file.", "hunch inspect model.gguf"},
      {"What a file of its family should have.", "hunch inspect model.gguf --schema"},
      {"Its chat template.", "hunch inspect model.gguf --json"},
      {"What a text costs in a draft head.", "hunch inspect model.gguf --draft eagle3:head"}}},
    {TOOL_TOKENIZE, "tokenize", "token ids and pieces of a text, or a rendered chat template",
     "MODEL [TEXT | -f FILE [--json-lines]] | --messages VARS [--template FILE] [--text]",
     "Special tokens in the text are read, no BOS is added. With --json-lines FILE holds rows {\"text\", "
     "\"parse_special\", \"add_special\"}, and each gives one line. --template FILE --messages VARS --text needs no "
     "model.",
     {"MODEL", "TEXT"},
     {{"Ids and pieces.", "hunch tokenize model.gguf \"Once upon a time\""},
      {"What a template makes of a conversation.", "hunch tokenize --template chat.jinja --messages talk.json --text"}}},
    {TOOL_LOGITS, "logits", "logits of every position, float32 [T, V], as a NumPy file",
     "MODEL [TEXT | -f FILE | --tokens FILE] -o OUT.npy [FLAG...]",
     "The text is taken as it is, without the chat template.", {"MODEL", "TEXT"},
     {{"All logits of a sentence.", "hunch logits model.gguf \"Once upon a time\" -o logits.npy"}}},
    {TOOL_DRAFT, "draft", "one round of a drafter after a text, as a tree",
     "MODEL [TEXT | -f FILE | --tokens FILE] --draft SPEC [--depth K] [--accept N] [-o OUT.safetensors] [FLAG...]",
     "The text is taken as it is, without the chat template; the model's token after it is the root of the tree. Each "
     "line has a token, the drafter's confidence, and a mark if the model generates it too (not with --accept). Greedy "
     "unless --temperature is given. -o writes the drafter's logits: \"logits\", float32 [depth, vocabulary], -inf "
     "where it has none.",
     {"MODEL", "TEXT"},
     {{"What would it guess?", "hunch draft model.gguf \"The cat ran. The cat ran. The\" --draft ngram"}}},
    {TOOL_CHECK, "check", "checks whether a draft head fits a model and drafts better than a constant guess",
     "MODEL --draft SPEC [--tokens FILE | --no-smoke] [--json] [FLAG...]",
     "SPEC is a head's folder or file, with its KIND: before it or without, and with keys (hunch help drafts). Reports "
     "the layers that it reads, counted as states and as outputs, widths, vocabulary, tensors used, left over and "
     "missing.\n\n"
     "Then the model continues some built-in texts, a few seconds long, and the head drafts. Its acceptance at the "
     "first position, over 200 of them, is compared with the best constant guess. Where it is not three standard "
     "errors above that, or where the head guesses clearly better when it is read otherwise (rows shifted by one, "
     "other layers, other norms), the likely cause is named, with the key that repairs it if there is one. Exit code "
     "3: the head does not fit, is no better than a constant guess, or is read wrongly.",
     {"MODEL"},
     {{"A head that was downloaded.", "hunch check model.gguf --draft head"},
      {"Only whether it fits.", "hunch check model.gguf --draft eagle3:head --no-smoke"}}},
    {TOOL_SCORE, "score", "how likely a text is: nats a token, and perplexity",
     "MODEL [TEXT | -f FILE | --tokens FILE] [--json] [FLAG...]",
     "Tokens 2 to T are scored, in windows of --context tokens (default: the model's context, at most 2048) with half "
     "overlap: each window starts half a window after the last, and scores the tokens that had no score yet.",
     {"MODEL", "TEXT"},
     {{"Perplexity of a file.", "hunch score model.gguf -f article.txt"}}},
    {TOOL_CONVERT, "convert", "a Hugging Face folder as GGUF, weights as stored",
     "FOLDER -o FILE.gguf [--target MODEL] [--type TYPE]",
     "One tensor is in memory at a time. FILE.gguf is written completely or not at all; an existing one is replaced "
     "only with --force. Packed integers (AWQ, GPTQ, compressed-tensors) become GGUF's type that holds the same numbers. A draft "
     "head's folder or file of weights becomes a file for --draft.",
     {"FOLDER"},
     {{"One file of a folder.", "hunch convert folder -o out.gguf"},
      {"Of a draft head, checked against its model.", "hunch convert head -o head.gguf --target model.gguf"},
      {"Of a draft head, in the type that it drafts with.", "hunch convert head -o head-q8_0.gguf --type q8_0"},
      {"Of a draft model, in half the bytes.", "hunch convert folder -o half.gguf --type q8_0"}}},
    {TOOL_TRAIN, "train", "trains a draft head for a model on the model's own answers",
     "data MODEL -f FILE... -o DIR | KIND MODEL -f DIR... -o HEAD [--seconds T] | trie MODEL FILE... -o TRIE",
     "The first form lets the model answer prompts and keeps the answers; the second trains a draft head of a KIND on them, "
     "measured inside the engine. Either continues where it stopped when it is run again. The third counts the n-grams of "
     "texts, for trees of heads that draft all levels at once (tree=pruned). All are done by hunch-train, a program of its "
     "own beside hunch.",
     {"KIND", "MODEL", "FILES"},
     {{"The model's answers to prompts, to learn from.", "hunch train data model.gguf -f prompts.jsonl -o texts"},
      {"A head of EAGLE-3 that learns from them.", "hunch train eagle3 model.gguf -f texts -o my-head --steps 50"}}},
    {TOOL_SERVE, "serve", "a server with OpenAI's protocol: many clients at once, with speculation",
     "MODEL [--port N] [--draft SPEC]... [FLAG...]",
     "Chats, completions, streams, models, tokens, metrics: docs/server.md has every field. Requests that arrive together "
     "are answered together, up to --parallel; each has the text that hunch run gives for its seed, whatever else runs. "
     "The first line on standard error is the address, before the model is loaded; /health answers 200 once it is.\n\n"
     "Ctrl-C and SIGTERM let running answers end and refuse new ones; a second one ends the server at once. It listens "
     "on this machine alone unless --host says otherwise, and speaks no TLS: put a proxy in front of it. All is done by "
     "hunch-serve, a program of its own beside hunch.",
     {"MODEL"},
     {{"On this machine, port 8080.", "hunch serve model.gguf"},
      {"For others, who have a key of a file with one a line.",
       "hunch serve model.gguf --host 0.0.0.0 --api-key-file keys.txt"}}},
    {TOOL_HELP, "help", "about hunch, a command or a topic", "[COMMAND | TOPIC]",
     "hunch COMMAND --help prints the same for a command; -h only its most used flags.", {"COMMAND"},
     {{"All that run can do.", "hunch help run"}, {"Every way to draft.", "hunch help drafts"}}},
    {TOOL_MANUAL, "manual", "a page for man", "[COMMAND] | --list",
     "Prints the page of hunch, or of one of its commands (as \"run\" or \"hunch-run\"), in the language of troff; "
     "--list prints the names of all pages.",
     {"COMMAND"},
     {{"Read one that is not installed.", "hunch manual run > hunch-run.1 && man -l hunch-run.1"}}},
    {TOOL_COMPLETION, "completion", "a script that lets a shell complete commands, flags and values", "bash|zsh|fish",
     "Load it where the shell starts. The script asks hunch itself what fits: commands, flags and their values, "
     "drafters and their keys, downloads and files.",
     {"SHELL"},
     {{"bash: in ~/.bashrc", "source <(hunch completion bash)"},
      {"zsh: in ~/.zshrc, after compinit", "source <(hunch completion zsh)"},
      {"fish: in ~/.config/fish/config.fish", "hunch completion fish | source"}}},
    {TOOL_DEVICES, "devices", "the GPUs that --device takes: name, driver, memory", "[--json]",
     "Models run on them by Vulkan; what a device lacks to be used is said beside it.", {NULL}, {{"Run on the first one.",
         "hunch run model.gguf \"Why is the sky blue?\" --device vulkan:0"}}},
    {TOOL_VERSION, "version", "version, instruction level, compiler and libraries", "[--json]",
     "Include this output in bug reports. hunch --version is the same.", {NULL}, {{"As JSON.",
         "hunch version --json"}}},
    {0, NULL, NULL, NULL, NULL, {NULL}, {{NULL, NULL}}},
};

const tool_example tool_first_examples[] = {
    {"Ask something.", "hunch run model.gguf \"Why is the sky blue?\""},
    {"Talk.", "hunch chat model.gguf"},
    {"Is it faster, and the same text?", "hunch compare model.gguf \"List ten animals.\" --draft ngram --show"},
    {"What is in a file?", "hunch inspect model.gguf"},
    {NULL, NULL},
};

const tool_topic tool_topics[] = {
    {"models", "where models come from, and what runs",
     "MODEL is a GGUF file (of a split one its first part), a Hugging Face folder, or the name of something that "
     "another program has downloaded. hunch downloads nothing itself. Dense families run (Llama, SmolLM, Mistral, "
     "Qwen, Granite, Phi, Gemma); hunch inspect MODEL says whether one does. A path that exists goes before a download "
     "of that name.",
     {{"org/name", "in Hugging Face's cache: a folder, or its one GGUF file; org/name@revision, org/name:Q4_K_M"},
      {"name:tag", "in Ollama's; space/name:tag"},
      {"file, file.gguf", "in hunch's and llama.cpp's"}}},
    {"drafts", "SPECs: every way to draft", NULL, {{NULL, NULL}}},
    {"environment", "variables that hunch reads", "",
     {{"HUNCH_CACHE", "hunch's folder: measured costs of passes, and models; default ~/.cache/hunch"},
      {"HF_HUB_CACHE, HF_HOME", "where Hugging Face's downloads lie; default ~/.cache/huggingface/hub"},
      {"OLLAMA_MODELS", "where Ollama's lie; default ~/.ollama/models and its service's"},
      {"LLAMA_CACHE", "where llama.cpp's lie; default ~/.cache/llama.cpp"},
      {"XDG_CACHE_HOME", "a folder that takes the place of ~/.cache"},
      {"XDG_STATE_HOME",
       "a folder that takes the place of ~/.local/state, where hunch/chat_history has what was typed in chat"},
      {"EDITRC", "keys of chat's lines, as editrc(5) has them; default ~/.editrc"},
      {"NO_COLOR", "no colours, unless --color=always"},
      {"CLICOLOR_FORCE", "colours also where output is no terminal, unless it is 0"},
      {"TERM, COLORTERM", "which colours there are; TERM=dumb: none, no progress bars, and no line editing"},
      {"COLUMNS", "width of what is shown side by side where output is no terminal"}}},
    {"exit", "exit codes of the commands", "",
     {{"0", "done"},
      {"1", "failed: input, output, or a bug of hunch"},
      {"2", "wrong usage: a flag, a prompt or a request that cannot be served"},
      {"3",
       "refused: a model that is damaged, unknown or does not fit; of check: a head that does not fit, or is no better "
       "than a constant guess"},
      {"4", "out of memory"},
      {"130", "interrupted"}}},
    {NULL, NULL, NULL, {{NULL, NULL}}},
};

const tool_command *tool_command_find(unsigned bit) {
    const tool_command *c = tool_commands;
    while (c->name && c->bit != bit)
        c++;
    return c;
}

const tool_command *tool_command_named(const char *name) {
    for (const tool_command *c = tool_commands; c->name; c++)
        if (strcmp(name, c->name) == 0)
            return c;
    return NULL;
}

const char *tool_command_near(const char *name, bool topics) {
    const char *names[sizeof tool_commands / sizeof *tool_commands + sizeof tool_topics / sizeof *tool_topics];
    size_t n = 0;
    for (const tool_command *c = tool_commands; c->name; c++)
        names[n++] = c->name;
    for (const tool_topic *t = tool_topics; topics && t->name; t++)
        names[n++] = t->name;
    return hn_nearest(name, names, n);
}
