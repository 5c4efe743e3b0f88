/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - matrices of integers that a folder packs into words: AWQ's (AutoAWQ 0.2, "gemm"), GPTQ's (GPTQModel) and those of
 * compressed-tensors ("pack-quantized", "int-quantized"). When the folder opens, the tensors of a module M become one virtual tensor
 * M.weight (tensor_view.c); which modules are packed, their widths and groups are told by the tensors that are there, not by the lists
 * in config.json.
 *
 * A weight is (code - zero) * scale, zero and scale of its group of inputs. That is the number of a block type, exactly:
 *     codes of 2 and 3 bits, and of 4 with all zeros 8    Q4_0, whose codes are code - zero + 8
 *     codes of 4 bits with other zeros                    Q5_0, of five bits: code - zero + 16
 *     codes of 8 bits with all zeros 128                  Q8_0
 * where groups are whole blocks of 32 inputs and the scale is an F16. All else becomes F32, which every such product fits into: groups
 * that are no multiple of 32, or in no order (GPTQ's act order; a loader that can permute inputs sorts them, hn_source_sort), zeros of 8
 * bits, scales that F16 does not hold.
 *
 * What is stored, [rows, columns], words of 32 bits, low field first:
 *     AWQ   qweight [in, out/8]        field AWQ_PLACE[o % 8] of word o / 8    qzeros [groups, out/8], the same    scales [groups, out]
 *     GPTQ  qweight [in*bits/32, out]  a column is a string of bits            qzeros [groups, out*bits/32]        scales [groups, out]
 *     c.-t. weight_packed [out, in*bits/32], a row is one   weight_zero_point [out*bits/32, groups]   weight_scale [out, groups]
 *           weight [out, in], I8                            weight_zero_point [out, groups], I8       the same
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/quantised.h"
#include "format/source_private.h"

enum { BLOCK = 32, WORD = 32, MOST_GROUPS = UINT16_MAX };

/* Where AWQ has the code of output o: in this field of its word. */
static const unsigned char AWQ_PLACE[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/* Numbers as they are stored: `columns` elements for each of `rows` things, which are outputs, or as many as share a word. */
typedef struct stored {
    hn_by_columns at; /* rows 1: it is of all outputs */
    bool by_columns;
} stored;

struct hn_packed {
    hn_packing packing;
    bool bytes;          /* codes and zeros are I8, read as 0 to 255 with a middle of 128, and no strings of bits */
    int bits, added;     /* added: to a zero that is stored */
    size_t in, out, groups;
    int sharing;         /* outputs that share an element of zeros (and of codes, AWQ) */
    stored codes, scales, zeros; /* zeros.at.element 0: there are none, all are in the middle */
    hn_dtype scale_type;
    uint16_t *group_of;  /* owned: [in]; NULL: in order */
    int32_t *order;      /* owned: [in] the inputs of group 0, of group 1, ...; NULL: rows are read as they are (hn_source_sort) */
    bool middle;         /* all zeros are */
    bool narrow;         /* F16 holds all scales */
};

void hn_packed_free(hn_packed *p) {
    if (!p) return;
    hn_free(p->group_of);
    hn_free(p->order);
    hn_free(p);
}

hn_packed_info hn_packed_get_info(const hn_packed *p) {
    static const char *const methods[] = {
        [HN_PACKED_AWQ] = "awq", [HN_PACKED_GPTQ] = "gptq", [HN_PACKED_COMPRESSED] = "compressed-tensors"};
    return (hn_packed_info){methods[p->packing], p->bits, (p->in + p->groups - 1) / p->groups, p->group_of != NULL};
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

static size_t row_bytes(const stored *from) { return from->at.columns * from->at.element; }

/* The numbers of one thing. */
static hunch_status read_stored(const hn_source *s, const stored *from, size_t row, void *to, hunch_error *err) {
    const hn_by_columns *c = &from->at;
    const hn_source_file *f = &s->files[c->part.file];
    if (c->rows == 1) row = 0;
    if (from->by_columns) return hn_transposed_read(s, c, row, 1, 1, to, err);
    return hn_map_read(&f->map, f->path, (size_t)(c->part.data - f->map.data) + row * row_bytes(from), row_bytes(from), to, err);
}

/* Field number `at` of a string of fields. */
static int field(const unsigned char *words, int bits, size_t at) {
    const size_t from = at * (size_t)bits, byte = from / 8;
    const unsigned shift = (unsigned)(from % 8);
    unsigned value = words[byte] >> shift;
    if (shift + (unsigned)bits > 8) value |= (unsigned)words[byte + 1] << (8 - shift);
    return (int)(value & ((1u << bits) - 1));
}

static int middle_of(const hn_packed *p) { return 1 << (p->bits - 1); }

/* Of a group's element, the zero of an output. */
static int zero_at(const hn_packed *p, const unsigned char *element, size_t output) {
    const size_t within = output % (size_t)p->sharing;
    if (p->bytes) return *element ^ 128;
    const int zero = field(element, p->bits, p->packing == HN_PACKED_AWQ ? AWQ_PLACE[within] : within);
    return (zero + p->added) & ((1 << p->bits) - 1);
}

static bool fits_f16(float f) { return isfinite(f) && hn_f16_to_f32(hn_f32_to_f16(f)) == f; }

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

/* One row, taken apart. */
typedef struct row {
    uint8_t *code; /* [in] */
    float *scale;  /* [groups] */
    uint8_t *zero; /* [groups] */
    unsigned char *room; /* of what is stored of the row's codes, zeros or scales; 64-byte aligned */
} row;

/* The codes of a row. The loops are such as compilers make vectors of: they are most of the time of a load. */
static void unpack(const hn_packed *p, const unsigned char *restrict from, size_t output, uint8_t *restrict code) {
    const size_t n = p->in;
    if (p->bytes)
        for (size_t i = 0; i < n; i++) code[i] = from[i] ^ 128;
    else if (p->packing == HN_PACKED_AWQ) {
        const uint32_t *restrict word = (const uint32_t *)(const void *)from;
        const int shift = 4 * AWQ_PLACE[output % 8];
        for (size_t i = 0; i < n; i++) code[i] = (uint8_t)(word[i] >> shift & 15);
    } else if (p->bits == 4) {
        for (size_t i = 0; i < n / 2; i++) {
            code[2 * i] = from[i] & 15;
            code[2 * i + 1] = from[i] >> 4;
        }
        if (n % 2) code[n - 1] = from[n / 2] & 15;
    } else if (p->bits == 8)
        memcpy(code, from, n);
    else
        for (size_t i = 0; i < n; i++) code[i] = (uint8_t)field(from, p->bits, i);
}

static hunch_status read_scales(const hn_source *s, const hn_tensor *t, size_t output, row *r, hunch_error *err) {
    const hn_packed *p = t->view->packed;
    const hunch_status st = read_stored(s, &p->scales, output, r->room, err);
    if (st) return st;
    hn_dequantise(p->scale_type, r->room, p->groups, r->scale);
    for (size_t g = 0; g < p->groups; g++)
        if (!isfinite(r->scale[g]))
            return hn_fail(err, HUNCH_REFUSED, "%s: the scales of tensor %s: that of row %zu, group %zu is not finite", s->path, t->name,
                           output, g);
    return HUNCH_OK;
}

static hunch_status read_zeros(const hn_source *s, const hn_packed *p, size_t output, row *r, hunch_error *err) {
    const size_t element = p->zeros.at.element;
    hunch_status st = element ? read_stored(s, &p->zeros, output / (size_t)p->sharing, r->room, err) : HUNCH_OK;
    for (size_t g = 0; !st && g < p->groups; g++)
        r->zero[g] = (uint8_t)(element ? zero_at(p, r->room + g * element, output) : middle_of(p));
    return st;
}

static hunch_status read_row(const hn_source *s, const hn_tensor *t, size_t output, row *r, hunch_error *err) {
    const hn_packed *p = t->view->packed;
    hunch_status st = read_scales(s, t, output, r, err);
    if (!st) st = read_zeros(s, p, output, r, err);
    if (!st) st = read_stored(s, &p->codes, p->packing == HN_PACKED_AWQ ? output / 8 : output, r->room, err);
    if (!st) unpack(p, r->room, output, r->code);
    return st;
}

/* Bit 4 of each of eight bytes, as eight bits. */
static uint8_t fifth_bits(const uint8_t code[8]) {
    uint64_t x = 0;
    for (int i = 0; i < 8; i++) x |= (uint64_t)code[i] << 8 * i;
    return (uint8_t)((x >> 4 & 0x0101010101010101u) * 0x0102040810204080u >> 56);
}

/* A block of 32 codes in a type's form, behind its scale; zero: what is subtracted from them. */
static void put_block(hn_dtype type, const uint8_t *restrict code, uint8_t zero, unsigned char *restrict to) {
    const uint8_t middle = type == HN_Q8_0 ? 0 : type == HN_Q5_0 ? 16 : 8, more = (uint8_t)(middle - zero);
    uint8_t own[BLOCK];
    for (int i = 0; i < BLOCK; i++) own[i] = (uint8_t)(code[i] + more);
    if (type == HN_Q8_0) {
        memcpy(to, own, sizeof own);
        return;
    }
    for (int i = 0; type == HN_Q5_0 && i < 4; i++) *to++ = fifth_bits(own + 8 * i);
    for (int i = 0; i < BLOCK / 2; i++) to[i] = (unsigned char)((own[i] & 15) | own[i + BLOCK / 2] << 4);
}

static void put_floats(const hn_packed *p, const row *r, unsigned char *to) {
    const size_t group = p->in / p->groups;
    for (size_t i = 0; i < p->in; i++) {
        const size_t g = p->group_of ? p->group_of[i] : i / group;
        const float w = (float)(r->code[i] - r->zero[g]) * r->scale[g];
        memcpy(to + i * sizeof w, &w, sizeof w);
    }
}

/* Blocks of the inputs as they are, or sorted. */
static void put_blocks(const hn_packed *p, hn_dtype type, const row *r, unsigned char *to) {
    const size_t group = p->in / p->groups;
    for (size_t i = 0; i < p->in; i += BLOCK, to += hn_dtype_block_bytes(type)) {
        const size_t g = p->order ? p->group_of[p->order[i]] : i / group;
        const uint16_t scale = hn_f32_to_f16(r->scale[g]);
        const uint8_t *code = r->code + i;
        uint8_t sorted[BLOCK];
        if (p->order) {
            for (int k = 0; k < BLOCK; k++) sorted[k] = r->code[p->order[i + (size_t)k]];
            code = sorted;
        }
        memcpy(to, &scale, sizeof scale);
        put_block(type, code, r->zero[g], to + sizeof scale);
    }
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Memory for one row; NULL on failure. */
static unsigned char *row_open(const hn_packed *p, row *r) {
    const size_t room = (larger(row_bytes(&p->codes), larger(row_bytes(&p->scales), row_bytes(&p->zeros))) + 63) & ~(size_t)63;
    unsigned char *at = hn_alloc(room + p->groups * (sizeof *r->scale + sizeof *r->zero) + p->in);
    if (!at) return NULL;
    r->room = at;
    r->scale = (float *)(void *)(at + room);
    r->zero = at + room + p->groups * sizeof *r->scale;
    r->code = r->zero + p->groups;
    return at;
}

hunch_status hn_packed_read(const hn_source *s, const hn_tensor *t, size_t first, size_t n, size_t step, unsigned char *to,
                            hunch_error *err) {
    const hn_packed *p = t->view->packed;
    row r = {0};
    unsigned char *room = row_open(p, &r);
    hunch_status st = room ? HUNCH_OK : hn_fail_memory(err, t->name, t->view->row_bytes);
    for (size_t i = 0; !st && i < n; i++, to += t->view->row_bytes) {
        st = read_row(s, t, first + i * step, &r, err);
        if (!st && t->dtype == HN_F32) put_floats(p, &r, to);
        else if (!st) put_blocks(p, t->dtype, &r, to);
    }
    hn_free(room);
    return st;
}

/* ---- joining ------------------------------------------------------------------------------------------------------------- */

enum { CODES, SCALES, ZEROS, /* of these three, also the kinds of columns */ ORDER, SHAPE, PARTS };
static const char *const gptq_names[PARTS] = {"qweight", "scales", "qzeros", "g_idx", NULL},
                  *const compressed_names[PARTS] = {"weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx", "weight_shape"},
                  *const bytes_names[PARTS] = {"weight", "weight_scale", "weight_zero_point", "weight_g_idx", NULL};

/* The tensors of a module. */
typedef struct module {
    const char *const *names; /* NULL: it is not packed */
    hn_tensor *part[PARTS];   /* NULL: absent */
    hn_packed *packed;        /* owned until it is the tensor's */
    hn_dtype as;
} module;

typedef struct joiner {
    hn_source *s;
    hn_packed_scheme scheme;
    module *of; /* [n_tensors]: of the tensor that has the codes */
    hunch_error *err;
} joiner;

/* It is missing, or of another type. */
static hunch_status refuse_part(const joiner *j, const module *m, int part, const char *expected) {
    const hn_tensor *t = m->part[part];
    if (t) return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has type %s, expected %s", j->s->path, t->name, t->type_name, expected);
    return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has no %s beside it: expected %s", j->s->path, m->part[CODES]->name,
                   m->names[part], expected);
}

/* The shape of a part is not the one that follows from the others. */
static hunch_status refuse_shape(const joiner *j, const module *m, int part, size_t rows, size_t columns) {
    char has[96], expected[96], of_other[96];
    const hn_tensor *t = m->part[part], *other = m->part[part == SCALES ? CODES : SCALES];
    const uint64_t dims[2] = {columns, rows};
    hn_shape_text(has, sizeof has, t->dims, t->n_dims);
    hn_shape_text(expected, sizeof expected, dims, 2);
    hn_shape_text(of_other, sizeof of_other, other->dims, other->n_dims);
    return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has shape %s, expected %s: tensor %s has %s", j->s->path, t->name, has, expected,
                   other->name, of_other);
}

/* The name of a tensor of the same module. */
static const char *beside(char name[HN_MAX_NAME + 32], const hn_tensor *t, const char *end) {
    const char *dot = strrchr(t->name, '.');
    snprintf(name, HN_MAX_NAME + 32, "%.*s%s", dot ? (int)(dot - t->name) + 1 : 0, t->name, end);
    return name;
}

static hn_tensor *find_beside(const joiner *j, const hn_tensor *t, const char *end) {
    char name[HN_MAX_NAME + 32];
    const ptrdiff_t found = hn_name_index_find(&j->s->by_name, beside(name, t, end));
    return found >= 0 ? &j->s->tensors[found] : NULL;
}

/* The names of the module that a tensor has the codes of. NULL: it has none, or they are no integers. */
static const char *const *names_of(const hn_packed_scheme *scheme, const hn_tensor *t) {
    const char *dot = strrchr(t->name, '.'), *end = dot ? dot + 1 : t->name;
    if (scheme->packing != HN_PACKED_COMPRESSED) return strcmp(end, gptq_names[CODES]) == 0 ? gptq_names : NULL;
    if (!t->known) return NULL;
    if (t->dtype == HN_I32 && strcmp(end, compressed_names[CODES]) == 0) return compressed_names;
    return t->dtype == HN_I8 && strcmp(end, bytes_names[CODES]) == 0 ? bytes_names : NULL;
}

/* A matrix's [outer, inner] as its shape has them: the inner one is contiguous. */
static size_t inner(const hn_tensor *t) { return (size_t)t->dims[0]; }
static size_t outer(const hn_tensor *t) { return t->n_dims > 1 ? (size_t)t->dims[1] : 1; }
static size_t length(const hn_tensor *t) { return t->n_dims ? inner(t) : 1; } /* of a vector, or a number */
static bool is_matrix(const hn_tensor *t, size_t rows, size_t columns) {
    return t->n_dims == 2 && outer(t) == rows && inner(t) == columns;
}

static stored stored_of(const module *m, int part, bool by_columns, size_t rows, size_t columns, size_t element) {
    const hn_tensor *t = m->part[part];
    return (stored){{{t->data, t->file}, columns, rows, element, part}, by_columns};
}

/* Bits of each of n numbers in so many words; more than are read: WORD. */
static int bits_in(size_t words, size_t n) { return words * WORD / n < WORD ? (int)(words * WORD / n) : WORD; }
/* Outputs whose codes of this many bits are whole words. */
static int outputs_a_word(int bits) { return WORD % bits == 0 ? WORD / bits : WORD; }

static hunch_status check_width(const joiner *j, const module *m, int bits) {
    const hn_tensor *t = m->part[CODES];
    char said[80] = "";
    const char *known = j->scheme.packing == HN_PACKED_GPTQ ? "2, 3, 4 or 8" : j->scheme.packing == HN_PACKED_AWQ ? "4" : "4 or 8";
    const bool read = bits == 4 || (bits == 8 && j->scheme.packing != HN_PACKED_AWQ) ||
                      ((bits == 2 || bits == 3) && j->scheme.packing == HN_PACKED_GPTQ);
    if (read && (j->scheme.widths >> bits & 1)) return HUNCH_OK;
    if (!read)
        return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has codes of %d bits by the shapes beside it, expected %s", j->s->path,
                       t->name, bits, known);
    for (int i = 0, n = 0; i < WORD && n < (int)sizeof said; i++)
        if (j->scheme.widths >> i & 1) n += snprintf(said + n, sizeof said - (size_t)n, "%s%d", n ? ", " : "", i);
    return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has codes of %d bits by the shapes beside it, but quantization_config says %s",
                   j->s->path, t->name, bits, *said ? said : "none");
}

/* AWQ and GPTQ: all is stored by columns. */
static hunch_status plan_columns(const joiner *j, module *m) {
    hn_packed *p = m->packed;
    const hn_tensor *codes = m->part[CODES], *scales = m->part[SCALES], *zeros = m->part[ZEROS];
    const bool awq = j->scheme.packing == HN_PACKED_AWQ;
    p->out = inner(scales);
    p->groups = outer(scales);
    p->bits = awq || p->out == 0 ? 4 : bits_in(inner(zeros), p->out);
    hunch_status st = check_width(j, m, p->bits);
    if (st) return st;
    const size_t bits = (size_t)p->bits, words = outer(codes), columns = awq ? p->out / 8 : p->out;
    p->in = awq ? words : words * WORD / bits;
    p->sharing = outputs_a_word(p->bits);
    if (!is_matrix(codes, words, columns) || (!awq && p->in * bits != words * WORD))
        return refuse_shape(j, m, CODES, awq ? words : p->in * bits / WORD, columns);
    if (p->out % (size_t)p->sharing)
        return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has scales of %zu outputs, expected a multiple of %d: whole words of zeros",
                       j->s->path, scales->name, p->out, p->sharing);
    if (!is_matrix(zeros, p->groups, p->out * bits / WORD))
        return refuse_shape(j, m, ZEROS, p->groups, p->out * bits / WORD);
    p->codes = stored_of(m, CODES, true, columns, words, 4);
    p->scales = stored_of(m, SCALES, true, p->out, p->groups, (size_t)hn_dtype_block_bytes(scales->dtype));
    p->zeros = stored_of(m, ZEROS, true, p->out / (size_t)p->sharing, p->groups, (size_t)p->sharing * bits / 8);
    p->added = j->scheme.zero_added;
    return HUNCH_OK;
}

/* compressed-tensors: the codes of a row are a string of bits, or bytes. */
static hunch_status plan_rows(const joiner *j, module *m) {
    hn_packed *p = m->packed;
    const hn_tensor *codes = m->part[CODES], *scales = m->part[SCALES], *zeros = m->part[ZEROS];
    int64_t shape[2] = {(int64_t)outer(codes), (int64_t)inner(codes)};
    hunch_status st = m->part[SHAPE] ? hn_source_read_integers(j->s, m->part[SHAPE], 2, 1, INT32_MAX, shape, j->err) : HUNCH_OK;
    if (st) return st;
    p->bytes = m->names == bytes_names;
    p->out = (size_t)shape[0];
    p->in = (size_t)shape[1];
    p->bits = p->bytes ? 8 : bits_in(inner(codes), p->in);
    st = check_width(j, m, p->bits);
    if (st) return st;
    const size_t bits = (size_t)p->bits, words = p->bytes ? p->in : (p->in * bits + WORD - 1) / WORD;
    p->sharing = p->bytes ? 1 : outputs_a_word(p->bits);
    const bool one = scales->n_dims < 2 && length(scales) == 1; /* of the whole matrix */
    p->groups = scales->n_dims > 1 ? inner(scales) : 1;
    if (!is_matrix(codes, p->out, words)) return refuse_shape(j, m, CODES, p->out, words);
    if (!one && (scales->n_dims > 1 ? !is_matrix(scales, p->out, p->groups) : length(scales) != p->out))
        return refuse_shape(j, m, SCALES, p->out, p->groups);
    const size_t shared = one && p->bytes ? 1 : (p->out + (size_t)p->sharing - 1) / (size_t)p->sharing;
    if (zeros && (!zeros->known || zeros->dtype != (p->bytes ? HN_I8 : HN_I32)))
        return refuse_part(j, m, ZEROS, p->bytes ? "type I8" : "type I32");
    if (zeros && (zeros->n_dims > 1 ? !is_matrix(zeros, shared, p->groups) : p->groups != 1 || length(zeros) != shared))
        return refuse_shape(j, m, ZEROS, shared, p->groups);
    p->codes = stored_of(m, CODES, false, p->out, words, p->bytes ? 1 : 4);
    p->scales = stored_of(m, SCALES, false, one ? 1 : p->out, p->groups, (size_t)hn_dtype_block_bytes(scales->dtype));
    if (zeros) p->zeros = stored_of(m, ZEROS, false, shared, p->groups, p->bytes ? 1 : 4);
    return HUNCH_OK;
}

/* The list of groups; none is kept if it is in order. */
static hunch_status read_order(const joiner *j, module *m) {
    hn_packed *p = m->packed;
    const hn_tensor *t = m->part[ORDER];
    const size_t group = p->in / p->groups;
    if (!t) return HUNCH_OK;
    int64_t *of = hn_alloc(p->in * sizeof *of);
    p->group_of = hn_alloc(p->in * sizeof *p->group_of);
    hunch_status st = of && p->group_of ? hn_source_read_integers(j->s, t, p->in, 0, (int64_t)p->groups - 1, of, j->err)
                                        : hn_fail_memory(j->err, t->name, p->in * sizeof *of);
    bool ordered = !st && p->in % p->groups == 0;
    for (size_t i = 0; !st && i < p->in; i++) {
        p->group_of[i] = (uint16_t)of[i];
        ordered = ordered && (size_t)of[i] == i / group;
    }
    hn_free(of);
    if (!ordered) return st;
    hn_free(p->group_of);
    p->group_of = NULL;
    return HUNCH_OK;
}

/* Reads all zeros and scales, a sixtieth of the file: which type has the same numbers depends on them. */
static hunch_status scan_numbers(const joiner *j, hn_packed *p) {
    const size_t n = larger(row_bytes(&p->zeros), row_bytes(&p->scales));
    unsigned char *room = hn_alloc(n);
    hunch_status st = room ? HUNCH_OK : hn_fail_memory(j->err, "scales", n);
    p->middle = p->narrow = true;
    for (size_t o = 0; !st && p->zeros.at.element && p->middle && o < p->out; o++) {
        if (o % (size_t)p->sharing == 0) st = read_stored(j->s, &p->zeros, o / (size_t)p->sharing, room, j->err);
        for (size_t g = 0; !st && g < p->groups; g++)
            p->middle = p->middle && zero_at(p, room + g * p->zeros.at.element, o) == middle_of(p);
    }
    for (size_t o = 0; !st && p->scale_type != HN_F16 && p->narrow && o < p->out; o++) {
        st = read_stored(j->s, &p->scales, o, room, j->err);
        for (size_t g = 0; !st && g < p->groups; g++) {
            float scale;
            hn_dequantise(p->scale_type, room + g * p->scales.at.element, 1, &scale);
            p->narrow = p->narrow && fits_f16(scale);
        }
    }
    hn_free(room);
    return st;
}

/* The type of rows whose groups are whole blocks. */
static hn_dtype type_of_blocks(const hn_packed *p) {
    if (p->in % BLOCK || !p->narrow || (p->bits == 8 && !p->middle)) return HN_F32;
    return p->bits == 8 ? HN_Q8_0 : p->bits == 4 && !p->middle ? HN_Q5_0 : HN_Q4_0;
}

static hn_dtype type_of(const hn_packed *p) {
    return p->group_of || p->in / p->groups % BLOCK ? HN_F32 : type_of_blocks(p);
}

static hunch_status plan_module(const joiner *j, module *m) {
    const bool by_rows = j->scheme.packing == HN_PACKED_COMPRESSED;
    const hn_tensor *codes = m->part[CODES], *scales = m->part[SCALES], *zeros = m->part[ZEROS];
    hn_packed *p = m->packed = hn_zalloc(1, sizeof *p);
    if (!p) return hn_fail_memory(j->err, codes->name, sizeof *p);
    p->packing = j->scheme.packing;
    if (!by_rows && (!codes->known || codes->dtype != HN_I32)) return refuse_part(j, m, CODES, "type I32");
    if (!scales || !scales->known || scales->dtype > HN_BF16) return refuse_part(j, m, SCALES, "type F16, BF16 or F32");
    if (!by_rows && (!zeros || !zeros->known || zeros->dtype != HN_I32)) return refuse_part(j, m, ZEROS, "type I32");
    if (m->names == compressed_names && !m->part[SHAPE]) return refuse_part(j, m, SHAPE, "the matrix's two sizes");
    p->scale_type = scales->dtype;
    hunch_status st = by_rows ? plan_rows(j, m) : plan_columns(j, m);
    if (st) return st;
    if (p->in == 0 || p->out == 0 || p->groups == 0 || p->groups > MOST_GROUPS || (!m->part[ORDER] && p->in % p->groups))
        return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has %zu groups for %zu inputs, expected whole groups, or a list %s beside it",
                       j->s->path, scales->name, p->groups, p->in, m->names[ORDER]);
    st = read_order(j, m);
    if (!st) st = scan_numbers(j, p);
    m->as = type_of(p);
    return st;
}

/* Parts of a module whose codes are missing, and so is M.weight. */
static hunch_status check_orphan(const joiner *j, const hn_tensor *t) {
    const char *const *names = j->scheme.packing == HN_PACKED_COMPRESSED ? compressed_names : gptq_names;
    const char *dot = strrchr(t->name, '.'), *end = dot ? dot + 1 : t->name;
    for (int i = SCALES; i < PARTS; i++)
        if (names[i] && strcmp(end, names[i]) == 0 && !find_beside(j, t, names[CODES]) && !find_beside(j, t, "weight"))
            return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has neither %s nor weight beside it", j->s->path, t->name, names[CODES]);
    return HUNCH_OK;
}

static hunch_status find_module(const joiner *j, size_t at) {
    hn_tensor *t = &j->s->tensors[at];
    module *m = &j->of[at];
    const char *const *names = names_of(&j->scheme, t), *const other = names == bytes_names ? compressed_names[CODES] : "weight";
    if (!names) return check_orphan(j, t);
    if (names == bytes_names && !find_beside(j, t, names[SCALES])) return HUNCH_OK; /* some other bytes */
    *m = (module){.names = names, .part = {t}};
    for (int i = SCALES; i < PARTS; i++)
        if (names[i]) m->part[i] = find_beside(j, t, names[i]);
    const hn_tensor *twin = find_beside(j, t, other);
    if (twin)
        return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s has tensor %s beside it, expected one of them", j->s->path, t->name,
                       twin->name);
    return plan_module(j, m);
}

/* The type that holds the numbers of both. */
static hn_dtype both(hn_dtype a, hn_dtype b) {
    if (a == b) return a;
    return (a == HN_Q4_0 || a == HN_Q5_0) && (b == HN_Q4_0 || b == HN_Q5_0) ? HN_Q5_0 : HN_F32;
}

/* The length of what the names of a layer's experts begin with; 0: it is not an expert's. */
static size_t layer_of_experts(const char *name) {
    static const char experts[] = ".experts.";
    const char *at = strstr(name, experts);
    return at ? (size_t)(at - name) + strlen(experts) : 0;
}

/* What experts have one of each: gate_proj, .. */
enum { MOST_ROLES = 8 };
typedef struct expert_role {
    const char *name; /* behind the expert's number */
    hn_dtype as;
} expert_role;

/* The last place is of all that have none of their own. */
static expert_role *role_of(expert_role *roles, const char *name) {
    int i = 0;
    name += strcspn(name, ".");
    while (i < MOST_ROLES - 1 && roles[i].name && strcmp(roles[i].name, name) != 0) i++;
    if (!roles[i].name) roles[i] = (expert_role){name, HN_DTYPES};
    return &roles[i];
}

/* The matrices of one role are one weight, of one type, for all experts of a layer: they take that which holds the numbers of each. */
static void agree(const joiner *j) {
    const hn_name_index *x = &j->s->by_name; /* sorted: a layer's stand together */
    for (size_t i = 0, end; i < x->count; i = end) {
        const char *name = x->names[i].name;
        const size_t same = layer_of_experts(name);
        expert_role roles[MOST_ROLES] = {{NULL}};
        for (end = i; end < x->count && strncmp(x->names[end].name, name, same) == 0 && (same || end == i); end++) {
            const module *m = &j->of[x->names[end].index];
            expert_role *r = same && m->names ? role_of(roles, x->names[end].name + same) : NULL;
            if (r) r->as = r->as == HN_DTYPES ? m->as : both(r->as, m->as);
        }
        for (size_t k = i; same && k < end; k++) {
            module *m = &j->of[x->names[k].index];
            if (m->names) m->as = role_of(roles, x->names[k].name + same)->as;
        }
    }
}

/* Makes the tensor with the codes M.weight; the others lose their names. */
static hunch_status join(const joiner *j, module *m) {
    hn_tensor *t = m->part[CODES];
    const hn_packed *p = m->packed;
    char name[HN_MAX_NAME + 32];
    size_t one = 0, bytes = 0;
    if (!hn_dtype_row_bytes(m->as, p->in, &one) || !hn_mul_size(one, p->out, &bytes))
        return hn_fail(j->err, HUNCH_REFUSED, "%s: tensor %s is too large", j->s->path, t->name);
    char *own = hn_strdup(beside(name, t, "weight"));
    t->view = hn_zalloc(1, sizeof *t->view);
    if (!own || !t->view) {
        hn_free(own);
        return hn_fail_memory(j->err, t->name, strlen(name) + 1 + sizeof *t->view);
    }
    *t->view = (hn_tensor_view){.kind = &hn_view_packed, .rows = p->out, .row_bytes = one, .packed = m->packed};
    m->packed = NULL;
    hn_free((char *)(uintptr_t)t->name);
    t->name = own;
    t->dtype = m->as;
    snprintf(t->type_name, sizeof t->type_name, "%s", hn_dtype_name(t->dtype));
    t->n_dims = 2;
    t->dims[0] = p->in;
    t->dims[1] = p->out;
    t->bytes = bytes;
    t->data = NULL;
    for (int i = SCALES; i < PARTS; i++) {
        if (!m->part[i]) continue;
        hn_free((char *)(uintptr_t)m->part[i]->name);
        m->part[i]->name = NULL;
    }
    return HUNCH_OK;
}

hunch_status hn_packed_join(hn_source *s, hunch_error *err) {
    joiner j = {.s = s, .scheme = hn_quantised_scheme(s), .err = err};
    if (j.scheme.packing == HN_NOT_PACKED || s->n_tensors == 0) return HUNCH_OK;
    j.of = hn_zalloc(s->n_tensors, sizeof *j.of);
    hunch_status st = j.of ? hn_source_index_tensors(s, err) : hn_fail_memory(err, "a list of tensors", s->n_tensors * sizeof *j.of);
    if (!st) st = hn_transposed_open(s, err);
    for (size_t i = 0; !st && i < s->n_tensors; i++) st = find_module(&j, i);
    if (!st) agree(&j);
    for (size_t i = 0; !st && i < s->n_tensors; i++)
        if (j.of[i].names) st = join(&j, &j.of[i]);
    for (size_t i = 0; j.of && i < s->n_tensors; i++) hn_packed_free(j.of[i].packed);
    hn_free(j.of);
    hn_transposed_trim(s);
    if (!st) hn_source_drop_unnamed(s);
    return st;
}

/* ---- sorting ------------------------------------------------------------------------------------------------------------- */

/* order = the inputs of group 0, of group 1, ..., ascending. begin: [groups]. False: a group is not whole blocks. */
static bool sort_inputs(const hn_packed *p, int32_t *begin, int32_t *order) {
    int32_t n = 0;
    bool whole = true;
    for (size_t i = 0; i < p->in; i++) begin[p->group_of[i]]++;
    for (size_t g = 0; g < p->groups; g++) {
        const int32_t count = begin[g];
        whole = whole && count % BLOCK == 0;
        begin[g] = n;
        n += count;
    }
    for (size_t i = 0; i < p->in; i++) order[begin[p->group_of[i]]++] = (int32_t)i;
    return whole;
}

hunch_status hn_source_sort(hn_tensor *t, const int32_t **order, hunch_error *err) {
    hn_packed *p = t->view ? t->view->packed : NULL;
    *order = p ? p->order : NULL;
    if (!p || p->order || !p->group_of || type_of_blocks(p) == HN_F32) return HUNCH_OK;
    int32_t *begin = hn_zalloc(p->groups, sizeof *begin), *sorted = hn_alloc(p->in * sizeof *sorted);
    const bool whole = begin && sorted && sort_inputs(p, begin, sorted);
    hn_free(begin);
    if (!whole) hn_free(sorted);
    if (!begin || !sorted) return hn_fail_memory(err, t->name, p->in * sizeof *sorted);
    if (!whole) return HUNCH_OK;
    *order = p->order = sorted;
    t->dtype = type_of_blocks(p);
    snprintf(t->type_name, sizeof t->type_name, "%s", hn_dtype_name(t->dtype));
    hn_dtype_row_bytes(t->dtype, p->in, &t->view->row_bytes);
    t->bytes = t->view->row_bytes * p->out;
    return HUNCH_OK;
}
