/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_inspect.c - `hunch inspect`: keys and tensors of a model file or folder, and which of them the engine uses. A file that cannot run is
 * shown all the same, with the reason; with --draft also what a text costs in drafters. The summary comes last, where a terminal shows
 * it. */
#include <string.h>

#include "base/utf8.h"
#include "engine/program_files.h"
#include "app/tool_open.h"

static void heading(const char *text, bool color) {
    printf("%s%s%s\n", tool_style(color, 'b'), text, tool_style(color, '0'));
}

static long long int_of(const json_t *j, const char *key) {
    return (long long)json_integer_value(json_object_get(j, key));
}

static const char *text_of(const json_t *j, const char *key) {
    return json_string_value(json_object_get(j, key));
}

static void metadata_print(const json_t *metadata, bool color) {
    enum { WIDEST = 90 };
    const char *key;
    json_t *value;
    heading("metadata", color);
    json_object_foreach ((json_t *)(uintptr_t)metadata, key, value) {
        char *dump = tool_json_dump(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        size_t len = dump ? strlen(dump) : 0, shown = len < WIDEST ? len : hn_utf8_complete(dump, WIDEST);
        char *name = hn_utf8_mask(tool_strdup(key), ' ');
        printf("  %-44s %.*s%s\n", name, (int)shown, dump ? dump : "", shown < len ? "..." : "");
        hn_free(name);
        hn_free(dump);
    }
}

static void shape_print(const json_t *shape) {
    char text[128];
    size_t at = 0, i;
    const json_t *d;
    text[0] = 0;
    json_array_foreach (shape, i, d)
        if (at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? " x " : "",
                                   (long long)json_integer_value(d));
    printf("%-22s", text);
}

static void tensors_print(const json_t *tensors, bool color) {
    size_t i;
    const json_t *t;
    heading("tensors", color);
    json_array_foreach (tensors, i, t) {
        bool left = json_is_false(json_object_get(t, "used"));
        printf("  %-44s %-8s ", text_of(t, "name"), text_of(t, "type"));
        shape_print(json_object_get(t, "shape"));
        printf(" %14lld%s%s%s\n", int_of(t, "bytes"), tool_style(color && left, 'y'), left ? "  not used" : "",
               tool_style(color && left, '0'));
    }
}

static void types_print(const json_t *d, bool color) {
    size_t i;
    const json_t *t;
    double total = (double)int_of(d, "tensor_bytes");
    heading("types", color);
    printf("  %-10s %8s %14s %12s %7s\n", "", "tensors", "weights", "size", "share");
    json_array_foreach (json_object_get(d, "types"), i, t) {
        char size[32];
        double bytes = (double)int_of(t, "bytes");
        printf("  %-10s %8lld %14lld %12s %5.1f %%\n", text_of(t, "type"), int_of(t, "tensors"), int_of(t, "elements"),
               tool_size_text(bytes, size), total > 0 ? 100 * bytes / total : 0);
    }
}

static void model_print(const json_t *d) {
    const json_t *model = json_object_get(d, "model"), *metadata = json_object_get(d, "metadata");
    if (model) {
        printf("  %-12s %s, \"%s\": %lld layers, %lld wide, vocabulary %lld, context %lld\n", "model",
               text_of(model, "architecture"), text_of(model, "name"), int_of(model, "layers"), int_of(model, "hidden"),
               int_of(model, "vocab"), int_of(model, "context"));
        return;
    }
    const char *head = text_of(d, "head"), *arch = text_of(metadata, "general.architecture"),
               *name = text_of(metadata, "general.name");
    if (!arch)
        arch = text_of(metadata, "model_type");
    if (head) {
        printf("  %-12s a draft head of kind %s\n", "model", head);
        return;
    }
    printf("  %-12s %s%s%s%s\n", "model", arch ? arch : "of no architecture that the file names", name ? ", \"" : "",
           name ? name : "", name ? "\"" : "");
}

static void tokenizer_print(const json_t *d) {
    const json_t *t = json_object_get(d, "tokenizer");
    const char *pre = text_of(t, "pre");
    if (json_is_object(t))
        printf("  %-12s %s%s%s, %lld tokens\n", "tokenizer", text_of(t, "kind"), pre ? " split as " : "",
               pre ? pre : "", int_of(t, "tokens"));
    else
        printf("  %-12s none\n", "tokenizer");
    printf("  %-12s %s\n", "template", json_is_true(json_object_get(d, "chat_template")) ? "a chat template" : "none");
    const char *calls = text_of(d, "calls");
    if (json_object_get(d, "calls"))
        printf("  %-12s %s\n", "calls", calls ? calls : "are not parsed: the template writes them in no known format");
}

/* The first values of a list, one after another. */
static void list_print(const json_t *list) {
    enum { SHOWN = 12 };
    size_t i;
    const json_t *value;
    json_array_foreach (list, i, value) {
        if (i < SHOWN && json_is_string(value))
            printf("%s%s", i ? ", " : " ", json_string_value(value));
        else if (i < SHOWN)
            printf("%s%lld", i ? ", " : " ", (long long)json_integer_value(value));
    }
    if (json_array_size(list) > SHOWN)
        printf(", ...");
}

/* A line of names; none if there are none. */
static void names_print(const char *title, const json_t *names) {
    if (json_array_size(names) == 0)
        return;
    printf("  %-12s", title);
    list_print(names);
    printf("\n");
}

static void packed_print(const json_t *packed) {
    if (!json_is_object(packed))
        return;
    printf("  %-12s %s, %lld matrices, bits", "packed", text_of(packed, "method"), int_of(packed, "matrices"));
    list_print(json_object_get(packed, "bits"));
    printf(", groups of");
    list_print(json_object_get(packed, "groups"));
    printf(", run as");
    list_print(json_object_get(packed, "types"));
    if (int_of(packed, "act_order") > 0)
        printf("; %lld of them in act order", int_of(packed, "act_order"));
    printf("\n");
    names_print("as floats", json_object_get(packed, "floats"));
    names_print("not packed", json_object_get(packed, "plain"));
}

static void unused_print(const json_t *unused, bool color) {
    const size_t n = json_array_size(unused);
    printf("  %-12s ", "not used");
    if (n == 0)
        printf("none of the tensors");
    else
        printf("%s%zu of the tensors:", tool_style(color, 'y'), n);
    list_print(unused);
    printf("%s\n", tool_style(color && n, '0'));
}

static void summary_print(const json_t *d, bool color) {
    char size[32];
    const json_t *refused = json_object_get(d, "refused");
    double bytes = (double)int_of(d, "tensor_bytes"), weights = (double)int_of(d, "elements");
    const char *made = text_of(d, "quantisation");
    heading("summary", color);
    printf("  %-12s %s\n  %-12s %s, %lld file%s\n", "path", text_of(d, "path"), "format",
           strcmp(text_of(d, "format"), "gguf") == 0 ? "GGUF" : "Hugging Face", int_of(d, "files"),
           int_of(d, "files") == 1 ? "" : "s");
    model_print(d);
    printf("  %-12s %.1f M in %zu tensors, %s, %.2f bits each%s%s\n", "weights", weights / 1e6,
           json_array_size(json_object_get(d, "tensors")), tool_size_text(bytes, size),
           weights > 0 ? 8 * bytes / weights : 0, made ? ", made as " : "", made ? made : "");
    packed_print(json_object_get(d, "packed"));
    tokenizer_print(d);
    if (refused) {
        printf("  %-12s %sno: %s%s\n", "runs", tool_style(color, 'r'), json_string_value(refused),
               tool_style(color, '0'));
        return;
    }
    unused_print(json_object_get(d, "unused"), color);
    const json_t *model = json_object_get(d, "model");
    printf("  %-12s yes: with %s of weights in memory", "runs",
           tool_size_text((double)int_of(model, "packed_bytes"), size));
    if (json_object_get(model, "expert_bytes")) {
        printf(", or with --mapped-experts %s",
               tool_size_text((double)(int_of(model, "packed_bytes") - int_of(model, "packed_expert_bytes")), size));
        printf(" and %s of experts left in the file", tool_size_text((double)int_of(model, "expert_bytes"), size));
    }
    if (!json_is_object(json_object_get(d, "packed")))
        printf(", or with --mapped %s left in the file", tool_size_text((double)int_of(model, "mapped_bytes"), size));
    printf("\n");
    if (json_object_get(model, "table_bytes"))
        printf("  %-12s a table of %s stays in the file: a pass reads a row of it for each token\n", "",
               tool_size_text((double)int_of(model, "table_bytes"), size));
    char cache[160];
    printf("  %-12s %s\n", "cache",
           tool_cache_text((double)int_of(model, "cache_row_bytes"), (double)int_of(model, "cache_window_row_bytes"),
                           (double)int_of(model, "state_bytes"), cache, sizeof cache));
    printf("  %-12s up to %s for the sampler of a running text\n", "", tool_size_text((double)int_of(model, "text_bytes"), size));
}

/* ---- what a text costs in drafters ---- */

static void drafters_list(const hunch_engine *e, json_t *list) {
    const int context = hunch_engine_context(e);
    for (int i = 0; i < hunch_engine_drafters(e); i++)
        json_array_append_new(list, json_pack("{s:o, s:I, s:I, s:i}", "drafter",
                                              tool_json_name(hunch_engine_drafter_name(e, i)), "text_bytes",
                                              (json_int_t)hunch_engine_drafter_bytes(e, i, 0), "full_text_bytes",
                                              (json_int_t)hunch_engine_drafter_bytes(e, i, context), "context", context));
}

/* Adds "drafters" to the description. 0, or an exit code after a message. */
static int drafters_add(const tool_options *o, json_t *d) {
    enum { PARALLEL = 32 };
    hunch_error err = {0};
    hunch_model_options mo;
    hunch_model *m = NULL;
    hunch_engine *e = NULL;
    tool_method method;
    hunch_model_options_defaults(&mo);
    mo.mapped = !json_is_object(json_object_get(d, "packed")); /* whose matrices cannot stay in the file */
    if (hunch_model_open(&m, o->model, &mo, &err) != HUNCH_OK)
        return tool_failed(&err);
    json_t *list = json_array();
    tool_method_init(&method, (const char *const *)o->drafts.items, o->drafts.n);
    const int code = tool_engine_open(&e, m, o, &method, 0, o->parallel == TOOL_UNSET ? PARALLEL : o->parallel);
    if (!code)
        drafters_list(e, list);
    tool_method_fini(&method);
    hunch_engine_close(&e);
    hunch_model_close(&m);
    json_object_set_new(d, "drafters", list);
    return code;
}

static void drafters_print(const json_t *list, bool color) {
    size_t i;
    const json_t *one;
    if (!list)
        return;
    heading("a text in drafters, beside its rows in the cache", color);
    json_array_foreach (list, i, one) {
        char begin[32], full[32];
        printf("  %-12s %s, and %s with %lld tokens\n", text_of(one, "drafter"), tool_size_text((double)int_of(one, "text_bytes"), begin),
               tool_size_text((double)int_of(one, "full_text_bytes"), full), int_of(one, "context"));
    }
}

/* ---- what its family's files have ---- */

static void expected_add(void *user, const hn_expected *e) {
    json_t *d = user, *row = json_pack("{s:s, s:s}", "gguf", e->gguf, "folder", e->folder);
    json_object_set_new(row, e->tensor ? "shape" : "values", json_string(e->values));
    if (e->layers > 0) json_object_update_new(row, json_pack("{s:i, s:i}", "first_layer", e->layer, "layers", e->layers));
    json_array_append_new(json_object_get(d, e->tensor ? "tensors" : "keys"), row);
}

/* Adds "schema" to the description. 0, or an exit code after a message. */
static int schema_add(const tool_options *o, json_t *d) {
    hunch_error err = {0};
    json_t *schema = json_pack("{s:[], s:[]}", "keys", "tensors");
    json_object_set_new(d, "schema", schema);
    return hn_model_expects(o->model, text_of(d, "head") != NULL, expected_add, schema, &err) == HUNCH_OK ? 0 : tool_failed(&err);
}

static void rows_print(const json_t *rows, const char *what, const char *last, bool color) {
    size_t i;
    const json_t *row;
    heading(what, color);
    if (json_array_size(rows) == 0) printf("  not known from these files alone\n");
    json_array_foreach (rows, i, row) {
        const long long layers = int_of(row, "layers");
        printf("  %-44s %-44s %s", text_of(row, "gguf"), text_of(row, "folder"), text_of(row, last));
        if (layers > 0) printf("  in %lld layer%s", layers, layers == 1 ? "" : "s");
        printf("\n");
    }
}

static void schema_print(const json_t *schema, bool color) {
    if (!schema) return;
    rows_print(json_object_get(schema, "keys"), "keys of its family: in a GGUF, in a folder", "values", color);
    rows_print(json_object_get(schema, "tensors"), "tensors of its family: in a GGUF, in a folder", "shape", color);
}

/* Masks control characters: text of a file must not send escape sequences to the terminal. */
static void strings_mask(json_t *value) {
    size_t i;
    const char *key;
    json_t *part;
    json_array_foreach (value, i, part)
        strings_mask(part);
    json_object_foreach (value, key, part)
        strings_mask(part);
    if (!json_is_string(value))
        return;
    char *text = hn_utf8_mask(tool_strdup(json_string_value(value)), ' ');
    json_string_set(value, text);
    hn_free(text);
}

static int table_print(const json_t *d, const tool_options *o) {
    bool color = tool_colors(o->color, stdout);
    metadata_print(json_object_get(d, "metadata"), color);
    tensors_print(json_object_get(d, "tensors"), color);
    schema_print(json_object_get(d, "schema"), color);
    types_print(d, color);
    summary_print(d, color);
    drafters_print(json_object_get(d, "drafters"), color);
    return tool_done(HUNCH_OK);
}

static int inspect_run(const tool_options *o) {
    hunch_error err = {0};
    char *text;
    const char *path = o->model;
    if (!path)
        return tool_model_missing();
    if (hunch_inspect(path, &text, &err) != HUNCH_OK)
        return tool_failed(&err);
    json_t *d = hn_json_load(text, strlen(text), JSON_ALLOW_NUL, NULL);
    hunch_free(text);
    if (!d) {
        tool_message("%s: its description is not valid JSON", path);
        return HUNCH_FAILED;
    }
    int code = o->drafts.n ? drafters_add(o, d) : 0;
    if (!code && o->schema) code = schema_add(o, d);
    if (code) {
        json_decref(d);
        return code;
    }
    if (o->json)
        return tool_print_json(d);
    strings_mask(d);
    const int printed = table_print(d, o);
    json_decref(d);
    return printed;
}

int tool_inspect(int argc, char **argv) {
    tool_options o;
    int code = tool_options_parse(&o, TOOL_INSPECT, argc, argv);
    if (code >= 0)
        return code;
    code = inspect_run(&o);
    tool_options_fini(&o);
    return code;
}
