/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf_pipeline.c - normalizer and pre-tokenizer of a tokenizer.json.
 *
 * Each is an object with a "type", or a Sequence of them. The types known here become steps of normalizer.h and
 * pretokenizer.h; any other is refused by its name: a tokenizer that is nearly right is worse than none.
 */
#include <string.h>

#include "base/mem.h"
#include "text/base64.h"
#include "text/normal/space_mark.h"
#include "text/tokenizer/tokenizer_hf.h"

/* \w and \p{P} as defined in the `tokenizers` package. */
#define WORD                                                                                                           \
    "\\p{L}\\p{M}\\p{Nl}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"                      \
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}"
#define WORDS_AND_SYMBOLS "[" WORD "]+|[^" WORD "\\s]+"
#define PUNCTUATION "[\\p{P}$+<=>^`|~]"

const char *hn_hf_string(const json_t *object, const char *key) {
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

bool hn_hf_bool(const json_t *object, const char *key) {
    return json_is_true(json_object_get(object, key));
}

const char *hn_hf_prepend_scheme(const json_t *metaspace) {
    const char *scheme = hn_hf_string(metaspace, "prepend_scheme");
    if (*scheme) return scheme;
    return json_is_false(json_object_get(metaspace, "add_prefix_space")) ? "never" : "always";
}

hunch_status hn_hf_refuse(const char *what, const char *type, hunch_error *err) {
    return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "%s \"%.60s\" is not supported", what, type);
}

const json_t *hn_hf_part(const json_t *thing, const char *members, size_t i) {
    if (strcmp(hn_hf_string(thing, "type"), "Sequence") == 0) return json_array_get(json_object_get(thing, members), i);
    return i == 0 && json_is_object(thing) ? thing : NULL;
}

void hn_hf_pipeline_fini(hn_hf_pipeline *p) {
    for (size_t i = 0; i < p->n_owned; i++) hn_free(p->owned[i]);
    p->n_owned = 0;
}

/* Keeps an allocation until the pipeline is opened. One for each step at most. */
static const char *own(hn_hf_pipeline *p, char *text) {
    if (text) p->owned[p->n_owned++] = text;
    return text;
}

/* {"Regex": …} or {"String": …}. *string: the latter, unquoted. */
static hunch_status read_pattern(hn_hf_pipeline *p, const json_t *value, const char **pattern, const char **string,
                                 hunch_error *err) {
    const char *regex = json_string_value(json_object_get(value, "Regex"));
    char *translated = NULL;
    *string = json_string_value(json_object_get(value, "String"));
    *pattern = NULL;
    if (!regex && !*string)
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "a pattern is neither {\"Regex\": …} nor {\"String\": …}");
    if (*string) return HUNCH_OK;
    hunch_status s = hn_pattern_translate(&translated, regex, err);
    *pattern = own(p, translated);
    return s;
}

/* ---- normalizer ---- */

static bool is_space_to_mark(const hn_normal_step *s) {
    return s->kind == HN_NORMAL_REPLACE && s->string && strcmp(s->string, " ") == 0 &&
           strcmp(s->content, HN_SPACE_MARK) == 0;
}

static bool is_mark_in_front(const hn_normal_step *s) {
    return s->kind == HN_NORMAL_PREPEND && strcmp(s->content, HN_SPACE_MARK) == 0;
}

static hunch_status read_charsmap(hn_hf_pipeline *p, hn_normal_step *s, const json_t *n, hunch_error *err) {
    const json_t *map = json_object_get(n, "precompiled_charsmap");
    size_t len = json_string_length(map), used;
    if (!json_is_string(map)) {
        return hn_fail(err, HUNCH_REFUSED,
                       HN_HF_FILE "normalizer Precompiled: precompiled_charsmap: expected a string");
    }
    char *bytes = hn_alloc(len / 4 * 3 + 3);
    if (!bytes) return hn_fail_memory(err, "a charsmap", len);
    own(p, bytes);
    if (!hn_base64_decode(json_string_value(map), len, bytes, &used))
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "normalizer Precompiled: precompiled_charsmap is not base64");
    *s = (hn_normal_step){
        .kind = HN_NORMAL_CHARSMAP, .charsmap = bytes, .n_charsmap = used, .rule = HN_CHARSMAP_CLUSTERS};
    return HUNCH_OK;
}

static hunch_status read_replace(hn_hf_pipeline *p, hn_normal_step *s, const json_t *n, hunch_error *err) {
    *s = (hn_normal_step){.kind = HN_NORMAL_REPLACE, .content = hn_hf_string(n, "content")};
    return read_pattern(p, json_object_get(n, "pattern"), &s->pattern, &s->string, err);
}

/* One that is no Sequence. */
static hunch_status read_normal_step(hn_hf_pipeline *p, const json_t *n, hunch_error *err) {
    static const struct {
        const char *name;
        hn_normal_kind kind;
    } plain[] = {{"NFC", HN_NORMAL_NFC},
                 {"NFD", HN_NORMAL_NFD},
                 {"NFKC", HN_NORMAL_NFKC},
                 {"NFKD", HN_NORMAL_NFKD},
                 {"Lowercase", HN_NORMAL_LOWERCASE},
                 {"StripAccents", HN_NORMAL_STRIP_ACCENTS},
                 {"Nmt", HN_NORMAL_NMT}};
    const char *type = hn_hf_string(n, "type");
    if (p->n_normal == HN_NORMAL_MAX_STEPS) return hn_hf_refuse("normalizer", "of so many steps", err);
    hn_normal_step *s = &p->normal[p->n_normal++];
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(type, plain[i].name) != 0) continue;
        *s = (hn_normal_step){.kind = plain[i].kind};
        return HUNCH_OK;
    }
    if (strcmp(type, "Strip") == 0) {
        *s = (hn_normal_step){
            .kind = HN_NORMAL_STRIP, .left = hn_hf_bool(n, "strip_left"), .right = hn_hf_bool(n, "strip_right")};
        return HUNCH_OK;
    }
    if (strcmp(type, "Prepend") == 0) {
        *s = (hn_normal_step){.kind = HN_NORMAL_PREPEND, .content = hn_hf_string(n, "prepend")};
        p->marks |= is_mark_in_front(s);
        return HUNCH_OK;
    }
    if (strcmp(type, "Precompiled") == 0) return read_charsmap(p, s, n, err);
    if (strcmp(type, "Replace") != 0) return hn_hf_refuse("normalizer", type, err);
    hunch_status status = read_replace(p, s, n, err);
    if (!status) p->marks |= is_space_to_mark(s);
    return status;
}

enum { MAX_DEPTH = 4 };

typedef hunch_status step_fn(hn_hf_pipeline *p, const json_t *part, hunch_error *err);

/* Sequences may hold Sequences. */
static hunch_status read_steps(hn_hf_pipeline *p, const json_t *thing, const char *members, step_fn *read, int depth,
                               hunch_error *err) {
    const json_t *part, *list = json_object_get(thing, members);
    hunch_status s = HUNCH_OK;
    if (thing && !json_is_null(thing) && !json_is_object(thing))
        return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "a member of %s is not an object", members);
    if (list && !json_is_array(list)) return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "%s: expected an array", members);
    for (size_t i = 0; !s && (part = hn_hf_part(thing, members, i)); i++) {
        if (strcmp(hn_hf_string(part, "type"), "Sequence") != 0)
            s = read(p, part, err);
        else if (depth == MAX_DEPTH)
            s = hn_hf_refuse("a deeper nesting of", "Sequence", err);
        else
            s = read_steps(p, part, members, read, depth + 1, err);
    }
    return s;
}

/* ---- pre-tokenizer ---- */

static hunch_status add_step(hn_hf_pipeline *p, hn_pretok_step step, hunch_error *err) {
    size_t needed = p->byte_level && !p->letters ? 2 : 1;
    if (p->n_pre + needed > HN_PRETOK_MAX_STEPS) return hn_hf_refuse("pre-tokenizer", "of so many steps", err);
    if (needed == 2) { /* after ByteLevel the text is in letters */
        p->pre[p->n_pre++] = (hn_pretok_step){.kind = HN_PRETOK_LETTERS};
        p->letters = true;
    }
    p->pre[p->n_pre++] = step;
    return HUNCH_OK;
}

static hunch_status add_split(hn_hf_pipeline *p, const char *pattern, hn_split split, bool invert, hunch_error *err) {
    return add_step(p, (hn_pretok_step){.kind = HN_PRETOK_SPLIT, .pattern = pattern, .split = split, .invert = invert},
                    err);
}

static hunch_status read_behavior(const json_t *p, hn_split *out, hunch_error *err) {
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const char *name = hn_hf_string(p, "behavior");
    for (int i = 0; i < 5; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (hn_split)i;
        return HUNCH_OK;
    }
    return hn_hf_refuse("pre-tokenizer with the behavior", name, err);
}

static hunch_status quote(hn_hf_pipeline *p, const char *string, const char **pattern, hunch_error *err) {
    *pattern = own(p, hn_pattern_quote(string));
    return *pattern ? HUNCH_OK : hn_fail_memory(err, "a pattern", strlen(string));
}

static hunch_status read_split(hn_hf_pipeline *p, const json_t *j, hunch_error *err) {
    const char *pattern, *string;
    hn_split split = HN_SPLIT_ISOLATED;
    hunch_status s = read_behavior(j, &split, err);
    if (!s) s = read_pattern(p, json_object_get(j, "pattern"), &pattern, &string, err);
    if (!s && string) s = quote(p, string, &pattern, err);
    return s ? s : add_split(p, pattern, split, hn_hf_bool(j, "invert"), err);
}

static hunch_status read_metaspace(hn_hf_pipeline *p, const json_t *j, hunch_error *err) {
    const char *scheme = hn_hf_prepend_scheme(j);
    if (strcmp(hn_hf_string(j, "replacement"), HN_SPACE_MARK) != 0)
        return hn_hf_refuse("Metaspace with the replacement", hn_hf_string(j, "replacement"), err);
    if (p->byte_level) return hn_hf_refuse("after ByteLevel, the pre-tokenizer", "Metaspace", err);
    hn_pretok_step step = {.kind = HN_PRETOK_METASPACE, .whole = json_is_false(json_object_get(j, "split"))};
    if (strcmp(scheme, "always") == 0)
        step.prefix = HN_SPACE_PREFIX_EACH;
    else if (strcmp(scheme, "first") == 0)
        step.prefix = HN_SPACE_PREFIX_FIRST;
    else if (strcmp(scheme, "never") != 0)
        return hn_hf_refuse("Metaspace with the prepend_scheme", scheme, err);
    p->marks = true;
    return add_step(p, step, err);
}

static hunch_status read_byte_level(hn_hf_pipeline *p, const json_t *j, hunch_error *err) {
    hunch_status s = HUNCH_OK;
    if (p->byte_level) return hn_hf_refuse("a second pre-tokenizer", "ByteLevel", err);
    if (hn_hf_bool(j, "add_prefix_space")) s = add_step(p, (hn_pretok_step){.kind = HN_PRETOK_SPACE}, err);
    if (!s && !json_is_false(json_object_get(j, "use_regex")))
        s = add_split(p, hn_pretok_gpt2, HN_SPLIT_ISOLATED, false, err);
    p->byte_level = true;
    return s;
}

/* One that is no Sequence. */
static hunch_status read_pre_step(hn_hf_pipeline *p, const json_t *j, hunch_error *err) {
    const char *type = hn_hf_string(j, "type"), *pattern;
    hn_split split = HN_SPLIT_ISOLATED;
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(p, j, err);
    if (strcmp(type, "Split") == 0) return read_split(p, j, err);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(p, j, err);
    if (strcmp(type, "Digits") == 0) {
        split = hn_hf_bool(j, "individual_digits") ? HN_SPLIT_ISOLATED : HN_SPLIT_CONTIGUOUS;
        return add_split(p, "\\p{N}", split, false, err);
    }
    if (strcmp(type, "Whitespace") == 0) return add_split(p, WORDS_AND_SYMBOLS, HN_SPLIT_REMOVED, true, err);
    if (strcmp(type, "WhitespaceSplit") == 0) return add_split(p, "\\s+", HN_SPLIT_REMOVED, false, err);
    if (strcmp(type, "Punctuation") == 0) {
        hunch_status s = json_object_get(j, "behavior") ? read_behavior(j, &split, err) : HUNCH_OK;
        return s ? s : add_split(p, PUNCTUATION, split, false, err);
    }
    if (strcmp(type, "CharDelimiterSplit") != 0) return hn_hf_refuse("pre-tokenizer", type, err);
    hunch_status s = quote(p, hn_hf_string(j, "delimiter"), &pattern, err);
    return s ? s : add_split(p, pattern, HN_SPLIT_REMOVED, false, err);
}

hunch_status hn_hf_pipeline_read(hn_hf_pipeline *p, hn_tokenizer *t, const json_t *doc, hunch_error *err) {
    *p = (hn_hf_pipeline){0};
    hunch_status s = read_steps(p, json_object_get(doc, "normalizer"), "normalizers", read_normal_step, 0, err);
    if (!s) s = read_steps(p, json_object_get(doc, "pre_tokenizer"), "pretokenizers", read_pre_step, 0, err);
    if (!s && p->marks && p->byte_level)
        s = hn_hf_refuse("with the pre-tokenizer ByteLevel, a normalizer of", "spaces as U+2581", err);
    t->spelling = p->byte_level ? HN_SPELL_BYTES : p->marks ? HN_SPELL_MARKS : HN_SPELL_PLAIN;
    return s;
}

/* True for a pipeline that only writes spaces as U+2581 and puts one in front: encoder.c does that itself. */
static bool take_fast_path(hn_hf_pipeline *p, hn_tokenizer *t) {
    const hn_pretok_step *m = &p->pre[0];
    size_t front = p->n_normal > 0 && is_mark_in_front(&p->normal[0]);
    if (t->spelling != HN_SPELL_MARKS) return false;
    if (p->n_normal == 0 && p->n_pre == 1 && m->kind == HN_PRETOK_METASPACE && m->whole) {
        t->prefix = m->prefix;
        t->prefix_unless_space = true;
        return true;
    }
    if (p->n_pre || p->n_normal != front + 1 || !is_space_to_mark(&p->normal[front])) return false;
    t->prefix = front ? HN_SPACE_PREFIX_EACH : HN_SPACE_PREFIX_NONE;
    return true;
}

hunch_status hn_hf_pipeline_open(hn_hf_pipeline *p, hn_tokenizer *t, bool names_normal, hunch_error *err) {
    if (!(names_normal && p->n_normal) && take_fast_path(p, t)) return HUNCH_OK;
    hunch_status s = p->n_normal ? hn_normalizer_open(&t->normalizer, p->normal, p->n_normal, err) : HUNCH_OK;
    if (!s && p->n_pre) s = hn_pretok_open(&t->pretok, p->pre, p->n_pre, err);
    return s;
}
