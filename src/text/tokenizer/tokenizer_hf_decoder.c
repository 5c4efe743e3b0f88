/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_hf_decoder.c - the decoder of a tokenizer.json: the text of a token, if that is not the piece itself.
 *
 * ByteLevel, Metaspace, ByteFallback and Fuse need nothing: pieces and detok.c do the same already.
 */
#include <string.h>

#include "base/mem.h"
#include "text/normal/byte_letters.h"
#include "text/normal/normal_forms.h"
#include "text/normal/space_mark.h"
#include "text/tokenizer/tokenizer_hf.h"

typedef struct decoder {
    const char *from[HN_NORMAL_MAX_STEPS], *to[HN_NORMAL_MAX_STEPS]; /* replacements in each token */
    size_t n;
    bool letters, fused;
} decoder;

static hunch_status read_decoder_replace(decoder *d, const hn_tokenizer *t, const json_t *j, hunch_error *err) {
    const char *from = json_string_value(json_object_get(json_object_get(j, "pattern"), "String"));
    const char *to = hn_hf_string(j, "content");
    if (!from || !*from) return hn_hf_refuse("decoder Replace of a", "Regex", err);
    if (d->fused) return hn_hf_refuse("after Fuse, the decoder", "Replace", err);
    if (t->spelling == HN_SPELL_MARKS && strcmp(from, HN_SPACE_MARK) == 0 && strcmp(to, " ") == 0) return HUNCH_OK;
    if (d->n == HN_NORMAL_MAX_STEPS || strlen(to) > HN_NORMAL_MAX_CONTENT)
        return hn_hf_refuse("decoder", "Replace of this length", err);
    d->from[d->n] = from;
    d->to[d->n++] = to;
    return HUNCH_OK;
}

static hunch_status read_decoder_strip(const decoder *d, hn_tokenizer *t, const json_t *j, hunch_error *err) {
    json_int_t start = json_integer_value(json_object_get(j, "start")),
               stop = json_integer_value(json_object_get(j, "stop"));
    if (start == 0 && stop == 0) return HUNCH_OK;
    if (!d->fused || stop || start < 0 || start > 100 || strcmp(hn_hf_string(j, "content"), " ") != 0)
        return hn_hf_refuse(
            "decoder Strip of anything but spaces at the start of the text:", hn_hf_string(j, "content"), err);
    t->drops = (int)start;
    return HUNCH_OK;
}

static hunch_status read_decoder_part(decoder *d, hn_tokenizer *t, const json_t *j, hunch_error *err) {
    const char *type = hn_hf_string(j, "type");
    if (strcmp(type, "ByteFallback") == 0) return HUNCH_OK; /* pieces are bytes already */
    if (strcmp(type, "Fuse") == 0) {
        d->fused = true;
    } else if (strcmp(type, "ByteLevel") == 0) {
        d->letters = t->spelling != HN_SPELL_BYTES;
    } else if (strcmp(type, "Metaspace") == 0) {
        bool never = strcmp(hn_hf_prepend_scheme(j), "never") == 0;
        t->drops = never ? 0 : HN_MAX_TOKEN_BYTES; /* all of the first token's */
    } else if (strcmp(type, "Replace") == 0) {
        return read_decoder_replace(d, t, j, err);
    } else if (strcmp(type, "Strip") == 0) {
        return read_decoder_strip(d, t, j, err);
    } else {
        return hn_hf_refuse("decoder", type, err);
    }
    return HUNCH_OK;
}

/* Replaces every `from` in the bytes of out after `start` by `to`. False: as hn_text_put. */
static bool replace(hn_text *out, size_t start, hn_text *spare, const char *from, const char *to) {
    spare->len = 0;
    if (out->len == start) return true;
    if (!hn_text_put(spare, out->bytes + start, out->len - start)) return false;
    out->len = start;
    return hn_text_replace(out, spare->bytes, spare->len, from, to);
}

/* Appends the decoded text of a token and a NUL to out. False: as hn_text_put. */
static bool put_decoded(hn_text *out, hn_text *spare, const decoder *d, hn_piece p) {
    size_t start = out->len, n = 0;
    out->most = start + HN_MAX_TOKEN_BYTES + 1;
    if (!hn_text_put(out, p.bytes, p.len)) return false;
    for (size_t i = 0; i < d->n; i++) {
        if (!replace(out, start, spare, d->from[i], d->to[i])) return false;
    }
    spare->len = 0;
    if (d->letters && out->len > start) {
        if (!hn_text_put(spare, out->bytes + start, out->len - start)) return false;
        if (hn_letters_to_bytes(spare->bytes, spare->len, out->bytes + start, &n))
            out->len = start + n;
        else /* some letter is not in the alphabet */
            memcpy(out->bytes + start, spare->bytes, spare->len);
    }
    return hn_text_put(out, "", 1);
}

static hunch_status build_shown(hn_tokenizer *t, const decoder *d, hunch_error *err) {
    hn_text out = {0}, spare = {0};
    size_t *starts = hn_alloc(((size_t)t->vocab + 1) * sizeof *starts);
    t->shown = hn_zalloc((size_t)t->vocab, sizeof *t->shown);
    bool ok = starts && t->shown;
    for (int32_t id = 0; ok && id < t->vocab; id++) {
        starts[id] = out.len;
        ok = put_decoded(&out, &spare, d, t->pieces[id]);
    }
    t->shown_bytes = out.bytes;
    if (ok) starts[t->vocab] = out.len;
    for (int32_t id = 0; ok && id < t->vocab; id++)
        t->shown[id] = (hn_piece){out.bytes + starts[id], (uint32_t)(starts[id + 1] - starts[id] - 1)};
    hn_free(starts);
    hn_free(spare.bytes);
    if (ok) return HUNCH_OK;
    if (!out.over) return hn_fail_memory(err, "decoded tokens", out.len);
    return hn_fail(err, HUNCH_REFUSED, HN_HF_FILE "the decoder makes more than %d bytes of a token",
                   HN_MAX_TOKEN_BYTES);
}

hunch_status hn_hf_read_decoder(hn_tokenizer *t, const json_t *doc, hunch_error *err) {
    const json_t *thing = json_object_get(doc, "decoder"), *part;
    decoder d = {.n = 0};
    hunch_status s = HUNCH_OK;
    if (!json_is_object(thing)) { /* joins tokens by spaces; spaces in the tokens themselves are enough */
        t->spaces_between = t->spelling == HN_SPELL_PLAIN;
        t->drops = t->prefix != HN_SPACE_PREFIX_NONE;
        return HUNCH_OK;
    }
    for (size_t i = 0; !s && (part = hn_hf_part(thing, "decoders", i)); i++)
        s = read_decoder_part(&d, t, part, err);
    return !s && (d.n || d.letters) ? build_shown(t, &d, err) : s;
}
