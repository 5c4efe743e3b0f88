/* SPDX-License-Identifier: Apache-2.0 */
/* chat_template.c - finds a model's chat templates: in keys of a GGUF file; in a folder's chat_template.jinja, else in its
 * tokenizer_config.json, as one string or a list of named ones. src/text/ interprets them. */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "format/source.h"

static const struct {
    const char *key, *name;
} uses[] = {[HN_CHAT_DEFAULT] = {HN_CHAT_KEY, "default"}, [HN_CHAT_TOOLS] = {HN_CHAT_TOOLS_KEY, "tool_use"}};

static hunch_status copy_out(const char *from, size_t n, char **text, size_t *len, hunch_error *err) {
    *text = hn_strndup(from, n);
    *len = n;
    return *text ? HUNCH_OK : hn_fail_memory(err, "a chat template", n);
}

/* The template in tokenizer_config.json; of two with one name the last counts. */
static const json_t *template_listed(const json_t *value, hn_chat_use use) {
    const json_t *one, *found = use == HN_CHAT_DEFAULT && json_is_string(value) ? value : NULL;
    size_t i;
    json_array_foreach (value, i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        const json_t *text = json_object_get(one, "template");
        if (name && strcmp(name, uses[use].name) == 0 && json_is_string(text)) found = text;
    }
    return found;
}

static hunch_status from_folder(const hn_source *s, hn_chat_use use, char **text, size_t *len, hunch_error *err) {
    char *path = hn_path_join(hn_source_path(s), HN_CHAT_FILE);
    if (!path) return hn_fail_memory(err, "a path", strlen(hn_source_path(s)));
    bool file;
    hunch_status st = hn_file_probe(path, &file, err);
    const json_t *value =
        file ? NULL
             : template_listed(json_object_get(hn_source_json(s, "tokenizer_config.json"), "chat_template"), use);
    if (file && use == HN_CHAT_DEFAULT) st = hn_file_read(path, 16 << 20, text, len, err);
    if (!st && value) st = copy_out(json_string_value(value), json_string_length(value), text, len, err);
    hn_free(path);
    return st;
}

hunch_status hn_source_chat_template(const hn_source *s, hn_chat_use use, char **text, size_t *len, hunch_error *err) {
    const char *value;
    bool found;
    *text = NULL;
    *len = 0;
    if (hn_source_get_kind(s) != HN_SOURCE_GGUF) return from_folder(s, use, text, len, err);
    hunch_status st = hn_source_str(s, uses[use].key, &value, len, &found, err);
    return st || !found ? st : copy_out(value, *len, text, len, err);
}
