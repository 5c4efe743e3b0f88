/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_manual.c - `hunch manual`: manual pages, made from the same tables as help. Their date is that of the version, so that builds are
 * reproducible. */
#include <string.h>

#include "app/tool_help.h"
#include "app/tool_options.h"

static const char release_date[] = "2026-11-21";

static void head_put(const char *name, const char *summary) {
    printf(".\\\" Made by: hunch manual\n.TH %s 1 %s \"hunch %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n", name,
           release_date, hunch_version());
    for (const char *c = name; *c; c++) /* an escaped hyphen stays ASCII, as apropos needs it */
        printf(*c == '-' ? "\\-" : "%c", *c);
    printf(" \\- %s\n", summary);
}

static void see_also_put(const char *but) {
    puts(".SH SEE ALSO");
    bool first = true;
    if (but) {
        fputs(".BR hunch (1)", stdout);
        first = false;
    }
    for (const tool_command *c = tool_commands; c->name; c++) {
        if (but && strcmp(c->name, but) == 0)
            continue;
        printf("%s.BR hunch\\-%s (1)", first ? "" : ",\n", c->name);
        first = false;
    }
    putchar('\n');
}

static void topics_put(tool_page *p) {
    static const char *const headings[] = {"Models", "Drafts", "Environment", "Exit status"};
    for (int i = 0; tool_topics[i].name; i++) {
        tool_page_heading(p, headings[i]);
        tool_write_topic(p, &tool_topics[i]);
    }
}

static void page_all(void) {
    tool_page p = {.roff = true};
    head_put("hunch", "faster answers of a language model, with identical text");
    tool_page_heading(&p, "Synopsis");
    tool_page_synopsis(&p, "hunch", "COMMAND [MODEL] [FLAG...]");
    tool_page_heading(&p, "Description");
    tool_page_text(&p, "A cheap drafter guesses several tokens ahead; the model checks all the guesses in one pass, "
                       "and keeps exactly those that it would have generated itself. With and without drafting the "
                       "tokens and the logits are the same to the bit.\n\n"
                       "Standard output carries the answer alone; messages, progress and summaries go to standard "
                       "error.");
    tool_page_heading(&p, "Commands");
    tool_write_commands(&p);
    topics_put(&p);
    tool_page_heading(&p, "Files");
    tool_page_items(&p, 0);
    tool_page_item(&p, "~/.cache/hunch", NULL, "what passes cost on this machine, by model; may be removed at any "
                                               "time. GGUF files in it are found by name.", false);
    tool_write_examples(&p, tool_first_examples, TOOL_MOST_EXAMPLES);
    see_also_put(NULL);
}

static void page_command(const tool_command *c) {
    tool_page p = {.roff = true};
    char name[40];
    snprintf(name, sizeof name, "hunch-%s", c->name);
    head_put(name, c->summary);
    tool_page_heading(&p, "Synopsis");
    snprintf(name, sizeof name, "hunch %s", c->name);
    tool_page_synopsis(&p, name, c->synopsis);
    tool_page_heading(&p, "Description");
    tool_page_text(&p, c->text);
    tool_write_kinds(&p, c);
    tool_write_flags(&p, c, false);
    tool_page_heading(&p, "Exit status and environment");
    tool_page_text(&p, "As in hunch(1).");
    tool_write_examples(&p, c->examples, TOOL_MOST_EXAMPLES);
    see_also_put(c->name);
}

static int page_named(const char *name) {
    static const char prefix[] = "hunch-";
    const char *bare = strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
    const tool_command *c = tool_command_named(bare);
    if (c) {
        page_command(c);
        return tool_done(HUNCH_OK);
    }
    if (strcmp(name, "hunch") == 0) {
        page_all();
        return tool_done(HUNCH_OK);
    }
    const char *near = tool_command_near(bare, false);
    return near ? tool_usage("manual: no page of %s, did you mean %s?", name, near)
                : tool_usage("manual: no page of %s, see hunch manual --list", name);
}

static int pages_list(void) {
    puts("hunch");
    for (const tool_command *c = tool_commands; c->name; c++)
        printf("hunch-%s\n", c->name);
    return tool_done(HUNCH_OK);
}

int tool_manual(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_MANUAL, argc, argv);
    if (code >= 0)
        return code;
    if (o.list && o.positional)
        code = tool_usage("manual: --list names all pages: leave %s out, or --list", o.positional);
    else
        code = o.list ? pages_list() : page_named(o.positional ? o.positional : "hunch");
    tool_options_fini(&o);
    return code;
}
