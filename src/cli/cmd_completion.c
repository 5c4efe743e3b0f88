/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_completion.c - `hunch completion`: the scripts that shells load, and the query that they run.
 *
 * A script only runs `hunch completion --query WORD...` with the words of the line after the command, the last of them the one being
 * completed, and shows the output, so that all candidates are found in one place. A line of output is a word, with or without a tab and a
 * description; or ":files", ":models", ":folders" for the shell's own completion of the part of the word that is a path (after a flag and
 * its =, a drafter and its colon). */
#include <string.h>

#include "base/nearest.h"
#include "engine/program_files.h"
#include "app/tool_drafts.h"
#include "app/tool_flags.h"
#include "app/tool_options.h"
#include "app/tool_train.h"

/* ---- scripts --------------------------------------------------------------------------------------------------- */

/* bash also splits words at = and :, and completes only the part after the last one. */
static const char bash_script[] =
    "# bash completion of hunch; load it with: source <(hunch completion bash)\n"
    "_hunch() {\n"
    "    local words=() word line kept part i\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((${#words[@]})) && [[ $word == [=:]* || ${words[-1]} == *[=:] ]] &&\n"
    "            [[ ${words[-1]} == -* || ${words[-1]} == *[:=,]* || $word == [=:]* ]] && "
    "! ((i == COMP_CWORD && ${#word} == 0)); then\n"
    "            words[-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    word=${words[-1]}\n"
    "    kept=\n"
    "    [[ $word == *[=:]* ]] && kept=${word%\"${word##*[=:]}\"}\n"
    "    part=${word#\"$kept\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        line=${line%%$'\\t'*}\n"
    "        case $line in\n"
    "        :folders) compopt -o filenames 2> /dev/null; "
    "mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -d -- \"$part\") ;;\n"
    "        :models)\n"
    "            compopt -o filenames 2> /dev/null\n"
    "            mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -d -- \"$part\"; "
    "compgen -f -X '!*.gguf' -- \"$part\") ;;\n"
    "        :files) compopt -o filenames 2> /dev/null; "
    "mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$part\") ;;\n"
    "        *) COMPREPLY+=(\"${line#\"$kept\"}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion --query \"${words[@]}\" 2> /dev/null)\n"
    "    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[=:,+] ]]; then compopt -o nospace 2> /dev/null; fi\n"
    "}\n"
    "complete -F _hunch hunch\n";

static const char zsh_script[] =
    "#compdef hunch\n"
    "# zsh completion of hunch; load it, behind compinit, with: source <(hunch completion zsh)\n"
    "_hunch() {\n"
    "    local line word=${words[CURRENT]} kept what\n"
    "    local -a plain open\n"
    "    [[ $word == -*=* ]] && kept=\"${word%%=*}=\"\n"
    "    for line in \"${(@f)$(${(Q)words[1]} completion --query \"${(@Q)words[2,CURRENT]}\" 2> /dev/null)}\"; do\n"
    "        [[ -z $line ]] && continue\n"
    "        what=${line#*$'\\t'}\n"
    "        line=${line%%$'\\t'*}\n"
    "        case $line in\n"
    "        :folders) compset -P '*[=:]'; _files -/ ;;\n"
    "        :models) compset -P '*[=:]'; _files -g '*.gguf(-.)' ;;\n"
    "        :files) compset -P '*[=:]'; _files ;;\n"
    "        *[=:,+]) open+=(\"${line//:/\\\\:}:$what\") ;;\n"
    "        *) plain+=(\"${line//:/\\\\:}:$what\") ;;\n"
    "        esac\n"
    "    done\n"
    "    ((${#plain})) && _describe -t values hunch plain -Q\n"
    "    ((${#open})) && _describe -t values hunch open -Q -S ''\n"
    "    return 0\n"
    "}\n"
    "if [[ $funcstack[1] == _hunch ]]; then _hunch \"$@\"; else compdef _hunch hunch; fi\n";

static const char fish_script[] =
    "# fish completion of hunch; load it with: hunch completion fish | source\n"
    "function __hunch_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    set -l word $words[-1]\n"
    "    set -l kept (string match -r '^-[^=]*=|^.*:' -- $word)\n"
    "    set -q kept[1]; or set kept ''\n"
    "    set -l part (string replace -- \"$kept\" '' $word)\n"
    "    for line in ($words[1] completion --query $words[2..-1] 2> /dev/null)\n"
    "        switch $line\n"
    "            case ':folders'\n"
    "                printf '%s\\n' $kept(__fish_complete_directories $part)\n"
    "            case ':models' ':files'\n"
    "                printf '%s\\n' $kept(__fish_complete_path $part)\n"
    "            case '*'\n"
    "                echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c hunch -f -a '(__hunch_complete)'\n";

static const struct {
    const char *shell, *script;
} scripts[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
enum { SHELLS = sizeof scripts / sizeof *scripts };

/* ---- answers --------------------------------------------------------------------------------------------------- */

typedef struct query {
    const char *word;  /* being written */
    int kept;          /* bytes of it before the part to complete */
    bool topics;       /* topics of help are commands, too */
    const char *first; /* the first argument */
} query;

static void answer(const query *q, const char *text, const char *end, const char *what) {
    const char *part = q->word + q->kept;
    if (strncmp(text, part, strlen(part)) == 0)
        printf("%.*s%s%s\t%s\n", q->kept, q->word, text, end, what);
}

static void download_answer(void *user, const char *name) {
    answer(user, name, "", "a download");
}

static void models_answer(query *q) {
    puts(":models");
    hn_downloads(download_answer, q, NULL);
}

/* A folder, a file of weights or a download. */
static void heads_answer(query *q) {
    puts(":files");
    hn_downloads(download_answer, q, NULL);
}

/* Words separated by `apart`: the choices of a flag, or levels. */
static void words_answer(const query *q, const char *words, char apart, const char *what) {
    char word[64];
    while (*words) {
        const char *end = strchr(words, apart);
        const size_t len = end ? (size_t)(end - words) : strlen(words);
        snprintf(word, sizeof word, "%.*s", (int)len, words);
        answer(q, word, "", what);
        words += len + (end != NULL);
    }
}

/* Values of a drafter's key; those in capitals are placeholders. */
static void key_words_answer(const query *q, const hn_drafter_key *k) {
    char words[64] = "";
    for (const char *at = k->value; *at;) {
        const size_t len = strcspn(at, "|");
        if (*at < 'A' || *at > 'Z')
            snprintf(words + strlen(words), sizeof words - strlen(words), "%s%.*s", *words ? "|" : "", (int)len, at);
        at += len + (at[len] == '|');
    }
    words_answer(q, words, '|', k->help);
}

static void kinds_answer(const query *q) {
    tool_draft_kind k;
    for (int i = 0; tool_draft_kind_at(i, &k); i++)
        answer(q, k.name, k.path && k.path[0] == ':' ? ":" : "", k.help);
}

static void keys_answer(const query *q, const tool_draft_kind *kind) {
    for (const hn_drafter_key *key = kind->keys; key->name; key++)
        answer(q, key->name, "=", key->help);
}

static void key_values_answer(const query *q, const tool_draft_kind *kind, const char *key, size_t len) {
    for (const hn_drafter_key *k = kind->keys; k->name; k++) {
        if (strlen(k->name) != len || memcmp(k->name, key, len) != 0)
            continue;
        if (strchr(k->value, '|'))
            key_words_answer(q, k);
        if (strstr(k->value, "FILE"))
            puts(":files");
    }
}

/* Completes after the last + of a SPEC: a kind, its path, a key or a key's value. */
static void spec_answer(query *q) {
    const char *spec = q->word + q->kept, *plus = strrchr(spec, '+');
    spec = plus ? plus + 1 : spec;
    q->kept = (int)(spec - q->word);
    const size_t len = strcspn(spec, ":,");
    tool_draft_kind found;
    const tool_draft_kind *kind = tool_draft_kind_find(spec, len, &found) ? &found : NULL;
    const char *comma = strrchr(spec, ','), *colon = strchr(spec, ':'), *equals = comma ? strchr(comma, '=') : NULL;
    if (!comma && !colon) {
        kinds_answer(q);
    } else if (kind && comma) {
        q->kept = (int)((equals ? equals : comma) + 1 - q->word);
        if (equals)
            key_values_answer(q, kind, comma + 1, (size_t)(equals - comma - 1));
        else
            keys_answer(q, kind);
    } else if (kind && kind->path) {
        q->kept = (int)(colon + 1 - q->word);
        if (strstr(kind->path, "MODEL"))
            models_answer(q);
        else if (strstr(kind->path, "HEAD"))
            heads_answer(q);
        else
            puts(":files");
    }
}

static void value_answer(query *q, const tool_flag *f) {
    hunch_build_info build;
    if (f->kind == TOOL_CHOICE || f->kind == TOOL_WORD) {
        for (int i = 0; f->choices[i]; i++)
            if (strcmp(f->choices[i], "default") != 0)
                answer(q, f->choices[i], "", "");
    } else if (strcmp(f->value, "SPEC") == 0) {
        spec_answer(q);
    } else if (strcmp(f->value, "LEVEL") == 0) {
        hunch_build_get_info(&build);
        words_answer(q, build.levels, ' ', "");
        answer(q, "best", "", "");
    } else if (strcmp(f->value, "MODEL") == 0) {
        models_answer(q);
    } else if (strcmp(f->value, "FOLDER") == 0) {
        puts(":folders");
    } else if (strstr(f->value, "FILE")) {
        puts(":files");
    }
}

static void flags_answer(const query *q, const tool_command *c) {
    for (int i = 0; i < tool_n_flags; i++) {
        const tool_flag *f = &tool_flags[i];
        if (!(f->commands & c->bit))
            continue;
        answer(q, f->name, "", f->help);
        if (f->alias)
            answer(q, f->alias, "", f->help);
    }
}

static void commands_answer(const query *q, bool topics) {
    for (const tool_command *c = tool_commands; c->name; c++)
        answer(q, c->name, "", c->summary);
    for (const tool_topic *t = tool_topics; topics && t->name; t++)
        answer(q, t->name, "", t->summary);
}

/* A positional argument; free text has no completions. */
static void argument_answer(query *q, const char *what) {
    if (!what)
        return;
    if (strcmp(what, "MODEL") == 0)
        models_answer(q);
    else if (strcmp(what, "FOLDER") == 0)
        puts(":folders");
    else if (strcmp(what, "COMMAND") == 0)
        commands_answer(q, q->topics);
    else if (strcmp(what, "FILES") == 0 && strcmp(q->first, "trie") == 0)
        puts(":files");
    for (const tool_train_word *w = tool_train_words; w->name && strcmp(what, "KIND") == 0; w++)
        answer(q, w->name, "", w->about);
    for (int i = 0; i < SHELLS && strcmp(what, "SHELL") == 0; i++)
        answer(q, scripts[i].shell, "", "");
}

static bool takes_next(const tool_flag *f) {
    return f && tool_flag_needs_value(f);
}

/* The kind of the argument after `given` words; NULL: there is none. A model may be given by its flag instead. */
static const char *argument_after(const tool_command *c, int given, bool model) {
    for (int i = 0; i < TOOL_MOST_ARGUMENTS && c->arguments[i]; i++) {
        const char *what = c->arguments[i];
        if (model && (strcmp(what, "MODEL") == 0 || strcmp(what, "FOLDER") == 0))
            continue;
        if (given-- == 0 || strcmp(what, "FILES") == 0)
            return what;
    }
    return NULL;
}

/* words[0] is the command, words[n - 1] the word being completed. */
static void command_answer(query *q, const tool_command *c, char **words, int n) {
    const tool_flag *f = NULL;
    int arguments = 0;
    bool model = false;
    q->topics = c->bit == TOOL_HELP;
    for (int i = 1; i < n - 1; i++) {
        const bool value = takes_next(f);
        const bool is_flag = !value && words[i][0] == '-' && words[i][1];
        f = is_flag ? tool_flag_find(words[i], strlen(words[i]), c->bit) : NULL;
        const size_t named = strcspn(words[i], "=");
        const tool_flag *given = is_flag ? tool_flag_find(words[i], named, c->bit) : NULL;
        if (!value && !is_flag && arguments++ == 0)
            q->first = words[i];
        model |= given && strcmp(given->name, "--model") == 0;
    }
    const char *equals = strchr(q->word, '=');
    if (takes_next(f)) {
        value_answer(q, f);
    } else if (q->word[0] == '-' && equals) {
        f = tool_flag_find(q->word, (size_t)(equals - q->word), c->bit);
        q->kept = (int)(equals + 1 - q->word);
        if (f && f->value)
            value_answer(q, f);
    } else if (q->word[0] == '-') {
        flags_answer(q, c);
    } else {
        argument_answer(q, argument_after(c, arguments, model));
    }
}

static int query_answer(char **words, int n) {
    query q = {.word = n > 0 ? words[n - 1] : ""};
    const tool_command *c = n > 1 ? tool_command_named(words[0]) : NULL;
    if (c) {
        command_answer(&q, c, words, n);
    } else if (n <= 1) {
        commands_answer(&q, false);
        answer(&q, "--help", "", "help");
        answer(&q, "--version", "", "version and build");
    }
    return tool_done(HUNCH_OK);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int script_print(const char *shell) {
    const char *names[SHELLS];
    for (int i = 0; i < SHELLS; i++) {
        names[i] = scripts[i].shell;
        if (shell && strcmp(shell, names[i]) == 0) {
            fputs(scripts[i].script, stdout);
            return tool_done(HUNCH_OK);
        }
    }
    const char *near = shell ? hn_nearest(shell, names, SHELLS) : NULL;
    if (near)
        return tool_usage("completion: no script for %s, did you mean %s?", shell, near);
    return tool_usage("completion: %s%s: expected bash, zsh or fish", shell ? "no script for " : "for which shell?",
                      shell ? shell : "");
}

int tool_completion(int argc, char **argv) {
    tool_options o;
    if (argc > 1 && strcmp(argv[1], "--query") == 0)
        return query_answer(argv + 2, argc - 2);
    int code = tool_options_parse(&o, TOOL_COMPLETION, argc, argv);
    if (code >= 0)
        return code;
    code = script_print(o.positional);
    tool_options_fini(&o);
    return code;
}
