/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - see pickle.h. One function for each kind of opcode, by the table at the end; the opcodes are those that PyTorch's
 * own restricted reader accepts, and the four of protocol 4 with the same meaning. */
#include "format/pickle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { PROTOCOL_MAX = 5, SHOWN_MAX = 100 }; /* bytes of a name in a message */

typedef struct machine {
    hn_pickle *p;
    const unsigned char *at, *end;
    const hn_pickle_global *globals;
    size_t n_globals;
    uint32_t *stack; /* values */
    size_t n_stack, cap_stack;
    uint32_t *marks; /* heights of the stack */
    size_t n_marks, cap_marks;
    uint32_t *memo; /* value + 1; 0: nothing */
    size_t n_memo, cap_memo;
    size_t pushed; /* in total */
    bool stopped;
    const char *path;
    hunch_error *err;
} machine;

static hunch_status refuse(const machine *m, const char *what) {
    return hn_fail(m->err, HUNCH_REFUSED, "%s: damaged pickle: %s at byte %zu", m->path, what,
                   (size_t)(m->at - m->p->bytes));
}

static hunch_status no_memory(const machine *m) {
    return hn_fail_memory(m->err, "the values of a pickle", m->p->n_values * sizeof(hn_py));
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

const hn_py *hn_pickle_at(const hn_pickle *p, const hn_py *v, size_t i) {
    if (i >= v->n) return NULL;
    uint32_t at = v->first;
    while (i-- > 0) at = p->items[at].next;
    return &p->values[p->items[at].value];
}

bool hn_pickle_is_text(const hn_pickle *p, const hn_py *v, const char *text) {
    return v != NULL && v->kind == HN_PY_TEXT && v->n == strlen(text) && memcmp(hn_pickle_text(p, v), text, v->n) == 0;
}

const hn_py *hn_pickle_get(const hn_pickle *p, const hn_py *dict, const char *key) {
    const hn_py *found = NULL;
    uint32_t at = dict->first;
    for (uint32_t i = 0; i < dict->n; i++, at = p->items[at].next)
        if (hn_pickle_is_text(p, &p->values[p->items[at].key], key)) found = &p->values[p->items[at].value];
    return found;
}

static hunch_status push_index(machine *m, uint32_t value) {
    if (++m->pushed > HN_PICKLE_VALUES)
        return hn_fail(m->err, HUNCH_REFUSED, "%s: its pickle makes more than %d values", m->path, HN_PICKLE_VALUES);
    if (!hn_grow((void **)&m->stack, &m->cap_stack, m->n_stack + 1, sizeof *m->stack)) return no_memory(m);
    m->stack[m->n_stack++] = value;
    return HUNCH_OK;
}

/* There are at most as many values as pushes, which are counted. */
static hunch_status push(machine *m, hn_py value) {
    hn_pickle *p = m->p;
    if (!hn_grow((void **)&p->values, &p->cap_values, p->n_values + 1, sizeof *p->values)) return no_memory(m);
    p->values[p->n_values++] = value;
    return push_index(m, (uint32_t)(p->n_values - 1));
}

/* Values above the last mark. */
static size_t height(const machine *m) {
    return m->n_stack - (m->n_marks ? m->marks[m->n_marks - 1] : 0);
}

static hunch_status pop(machine *m, uint32_t *value) {
    *value = 0;
    if (height(m) == 0) return refuse(m, "an opcode needs a value, the stack is empty");
    *value = m->stack[--m->n_stack];
    return HUNCH_OK;
}

/* Appends an item to a container. There are at most as many items as pushes: each was on the stack. */
static hunch_status item_add(machine *m, hn_py *to, uint32_t key, uint32_t value) {
    hn_pickle *p = m->p;
    if (!hn_grow((void **)&p->items, &p->cap_items, p->n_items + 1, sizeof *p->items)) return no_memory(m);
    const uint32_t at = (uint32_t)p->n_items++;
    p->items[at] = (hn_py_item){.key = key, .value = value};
    if (to->n++ == 0)
        to->first = at;
    else
        p->items[to->last].next = at;
    to->last = at;
    return HUNCH_OK;
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

/* Reads an operand of n bytes as a number. */
static hunch_status operand(machine *m, unsigned n, uint64_t *out) {
    *out = 0;
    if ((size_t)(m->end - m->at) < n) return refuse(m, "it ends within a step");
    for (unsigned i = 0; i < n; i++) *out |= (uint64_t)m->at[i] << 8 * i;
    m->at += n;
    return HUNCH_OK;
}

/* "module\n" or "name\n". */
static hunch_status line(machine *m, const char **text, size_t *len) {
    const unsigned char *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    *text = (const char *)m->at;
    *len = end != NULL ? (size_t)(end - m->at) : 0;
    if (end == NULL) return refuse(m, "it ends within a name");
    m->at = end + 1;
    return HUNCH_OK;
}

/* ---- opcodes: plain values -------------------------------------------------------------------------------------- */

typedef struct opcode opcode;
struct opcode {
    hunch_status (*run)(machine *m, const opcode *s);
    unsigned bytes; /* of its operand */
    hn_pickle_kind kind;
    uint32_t n; /* of a tuple or list, or a value */
};

static hunch_status op_constant(machine *m, const opcode *s) {
    return push(m, (hn_py){.kind = s->kind, .i = s->n});
}

static hunch_status op_empty(machine *m, const opcode *s) {
    return push(m, (hn_py){.kind = s->kind});
}

/* One or two bytes have no sign, more have. */
static hunch_status op_int(machine *m, const opcode *s) {
    uint64_t v;
    hunch_status status = operand(m, s->bytes, &v);
    if (status) return status;
    return push(m, (hn_py){.kind = HN_PY_INT, .i = s->bytes == 4 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v});
}

/* An integer; its first byte is its length. */
static hunch_status op_long(machine *m, const opcode *s) {
    uint64_t n, v = 0;
    hunch_status status = operand(m, s->bytes, &n);
    if (!status && n > 8) return refuse(m, "an integer of more than 64 bits");
    if (!status) status = operand(m, (unsigned)n, &v);
    if (status) return status;
    if (n > 0 && n < 8 && v >> (8 * n - 1)) v |= ~(uint64_t)0 << 8 * n; /* negative */
    return push(m, (hn_py){.kind = HN_PY_INT, .i = (int64_t)v});
}

static hunch_status op_float(machine *m, const opcode *s) {
    uint64_t v;
    double f;
    hunch_status status = operand(m, s->bytes, &v);
    if (status) return status;
    v = __builtin_bswap64(v); /* the only big-endian number */
    memcpy(&f, &v, sizeof f);
    return push(m, (hn_py){.kind = HN_PY_FLOAT, .f = f});
}

static hunch_status op_text(machine *m, const opcode *s) {
    uint64_t n;
    hunch_status status = operand(m, s->bytes, &n);
    if (status) return status;
    if (n > (size_t)(m->end - m->at)) return refuse(m, "it ends within a text");
    const uint32_t first = (uint32_t)(m->at - m->p->bytes);
    m->at += n;
    return push(m, (hn_py){.kind = HN_PY_TEXT, .n = (uint32_t)n, .first = first});
}

/* ---- opcodes: containers ---------------------------------------------------------------------------------------- */

static hunch_status op_mark(machine *m, const opcode *s HN_UNUSED) {
    if (m->n_marks >= HN_PICKLE_VALUES) return refuse(m, "too many marks");
    if (!hn_grow((void **)&m->marks, &m->cap_marks, m->n_marks + 1, sizeof *m->marks)) return no_memory(m);
    m->marks[m->n_marks++] = (uint32_t)m->n_stack;
    return HUNCH_OK;
}

/* Removes the last mark; *from: the height of the stack when it was set. */
static hunch_status mark_pop(machine *m, size_t *from) {
    *from = 0;
    if (m->n_marks == 0) return refuse(m, "an opcode needs a mark, the stack has none");
    *from = m->marks[--m->n_marks];
    return HUNCH_OK;
}

/* A tuple of s->n values, or of all values after the mark. */
static hunch_status op_tuple(machine *m, const opcode *s) {
    size_t from = 0;
    hn_py tuple = {.kind = HN_PY_TUPLE};
    hunch_status status = HUNCH_OK;
    if (s->n == 0)
        status = mark_pop(m, &from);
    else if (height(m) < s->n)
        status = refuse(m, "an opcode needs a value, the stack is empty");
    else
        from = m->n_stack - s->n;
    for (size_t i = !status ? from : m->n_stack; i < m->n_stack && !status; i++)
        status = item_add(m, &tuple, 0, m->stack[i]);
    if (status) return status;
    m->n_stack = from;
    return push(m, tuple);
}

/* Adds the values from stack index `from` to the list or dictionary below them; s->n at a time: 1, or a key and a value. */
static hunch_status fill(machine *m, const opcode *s, size_t from) {
    const size_t n = m->n_stack - from;
    m->n_stack = from;
    if (height(m) == 0 || m->p->values[m->stack[from - 1]].kind != s->kind)
        return refuse(m, s->kind == HN_PY_LIST ? "items are added to a value that is not a list"
                                               : "items are added to a value that is not a dictionary");
    if (n % s->n != 0) return refuse(m, "a key without a value");
    hn_py *to = &m->p->values[m->stack[from - 1]];
    hunch_status status = HUNCH_OK;
    for (size_t i = from; i < from + n && !status; i += s->n)
        status = item_add(m, to, m->stack[i], m->stack[i + s->n - 1]);
    return status;
}

static hunch_status op_fill_one(machine *m, const opcode *s) {
    if (height(m) < s->n) return refuse(m, "an opcode needs a value, the stack is empty");
    return fill(m, s, m->n_stack - s->n);
}

static hunch_status op_fill(machine *m, const opcode *s) {
    size_t from;
    hunch_status status = mark_pop(m, &from);
    return status ? status : fill(m, s, from);
}

/* ---- opcodes: the memo ------------------------------------------------------------------------------------------ */

static hunch_status memo_put(machine *m, uint64_t i) {
    const size_t old = m->cap_memo;
    if (height(m) == 0) return refuse(m, "an opcode needs a value, the stack is empty");
    if (i >= HN_PICKLE_VALUES) return refuse(m, "a memo index that is too large");
    if (!hn_grow((void **)&m->memo, &m->cap_memo, (size_t)i + 1, sizeof *m->memo)) return no_memory(m);
    memset(m->memo + old, 0, (m->cap_memo - old) * sizeof *m->memo);
    m->n_memo += m->memo[i] == 0;
    m->memo[i] = m->stack[m->n_stack - 1] + 1;
    return HUNCH_OK;
}

static hunch_status op_put(machine *m, const opcode *s) {
    uint64_t i = m->n_memo; /* without an operand: the next one */
    hunch_status status = s->bytes > 0 ? operand(m, s->bytes, &i) : HUNCH_OK;
    return status ? status : memo_put(m, i);
}

static hunch_status op_get(machine *m, const opcode *s) {
    uint64_t i;
    hunch_status status = operand(m, s->bytes, &i);
    if (status) return status;
    if (i >= m->cap_memo || m->memo[i] == 0) return refuse(m, "a memo entry that was not set");
    return push_index(m, m->memo[i] - 1);
}

/* ---- opcodes: names and calls ----------------------------------------------------------------------------------- */

static hunch_status global_push(machine *m, const char *module, size_t n_module, const char *name, size_t n_name) {
    for (size_t i = 0; i < m->n_globals; i++) {
        const char *known = m->globals[i].name;
        if (strlen(known) == n_module + 1 + n_name && memcmp(known, module, n_module) == 0 && known[n_module] == '.' &&
            memcmp(known + n_module + 1, name, n_name) == 0)
            return push(m, (hn_py){.kind = HN_PY_GLOBAL, .global = &m->globals[i]});
    }
    return hn_fail(m->err, HUNCH_REFUSED,
                   "%s: its pickle names %.*s.%.*s; expected only tensors and containers of them (nothing was "
                   "executed)",
                   m->path, (int)(n_module < SHOWN_MAX ? n_module : SHOWN_MAX), module,
                   (int)(n_name < SHOWN_MAX ? n_name : SHOWN_MAX), name);
}

static hunch_status op_global(machine *m, const opcode *s HN_UNUSED) {
    const char *module, *name = NULL;
    size_t n_module, n_name = 0;
    hunch_status status = line(m, &module, &n_module);
    if (!status) status = line(m, &name, &n_name);
    return status ? status : global_push(m, module, n_module, name, n_name);
}

static hunch_status op_stack_global(machine *m, const opcode *s HN_UNUSED) {
    uint32_t a = 0, b;
    hunch_status status = pop(m, &b);
    if (!status) status = pop(m, &a);
    if (status) return status;
    const hn_py *module = &m->p->values[a], *name = &m->p->values[b];
    if (module->kind != HN_PY_TEXT || name->kind != HN_PY_TEXT) return refuse(m, "a name that is not a string");
    return global_push(m, hn_pickle_text(m->p, module), module->n, hn_pickle_text(m->p, name), name->n);
}

/* A call is recorded, not executed. */
static hunch_status op_call(machine *m, const opcode *s HN_UNUSED) {
    uint32_t a, f = 0;
    hunch_status status = pop(m, &a);
    if (!status) status = pop(m, &f);
    if (status) return status;
    const hn_py args = m->p->values[a], *function = &m->p->values[f];
    if (args.kind != HN_PY_TUPLE || function->kind != HN_PY_GLOBAL)
        return refuse(m, "a call of a value that is not a function, or without arguments");
    const hn_pickle_global *g = function->global;
    if (g->use == HN_PICKLE_MAKES_DICT && args.n == 0) return push(m, (hn_py){.kind = HN_PY_DICT});
    if (g->use != HN_PICKLE_CALL)
        return hn_fail(m->err, HUNCH_REFUSED, "%s: its pickle calls %s%s; expected tensors and what holds them alone",
                       m->path, g->name, args.n > 0 ? " with arguments" : "");
    return push(m, (hn_py){.kind = HN_PY_CALL, .n = args.n, .first = args.first, .last = args.last, .global = g});
}

/* BUILD, the state of an object: ignored for a dictionary. */
static hunch_status op_state(machine *m, const opcode *s HN_UNUSED) {
    uint32_t state;
    hunch_status status = pop(m, &state);
    if (status) return status;
    if (height(m) == 0 || m->p->values[m->stack[m->n_stack - 1]].kind != HN_PY_DICT)
        return refuse(m, "a state for a value that is not a dictionary");
    return HUNCH_OK;
}

static hunch_status op_outside(machine *m, const opcode *s HN_UNUSED) {
    uint32_t where;
    hunch_status status = pop(m, &where);
    if (status) return status;
    hn_py v = m->p->values[where];
    if (v.kind != HN_PY_TUPLE) return refuse(m, "the reference to a tensor's storage is not a tuple");
    v.kind = HN_PY_OUTSIDE;
    return push(m, v);
}

/* ---- opcodes: the frame ----------------------------------------------------------------------------------------- */

static hunch_status op_protocol(machine *m, const opcode *s) {
    uint64_t version;
    hunch_status status = operand(m, s->bytes, &version);
    if (!status && version > PROTOCOL_MAX)
        return hn_fail(m->err, HUNCH_REFUSED, "%s: a pickle of protocol %" PRIu64 "; expected at most %d", m->path,
                       version, PROTOCOL_MAX);
    return status;
}

static hunch_status op_frame(machine *m, const opcode *s) {
    uint64_t bytes;
    hunch_status status = operand(m, s->bytes, &bytes);
    return !status && bytes > (size_t)(m->end - m->at) ? refuse(m, "a frame longer than the pickle")
                                                                  : status;
}

static hunch_status op_stop(machine *m, const opcode *s HN_UNUSED) {
    if (m->n_marks > 0 || m->n_stack != 1) return refuse(m, "it does not stop with exactly one value");
    m->p->root = m->stack[0];
    m->stopped = true;
    return HUNCH_OK;
}

static const opcode OPCODES[256] = {
    [0x80] = {.run = op_protocol, .bytes = 1},
    [0x95] = {.run = op_frame, .bytes = 8},
    ['.'] = {.run = op_stop},
    ['N'] = {.run = op_constant, .kind = HN_PY_NONE},
    [0x88] = {.run = op_constant, .kind = HN_PY_BOOL, .n = 1},
    [0x89] = {.run = op_constant, .kind = HN_PY_BOOL},
    ['K'] = {.run = op_int, .bytes = 1},
    ['M'] = {.run = op_int, .bytes = 2},
    ['J'] = {.run = op_int, .bytes = 4},
    [0x8a] = {.run = op_long, .bytes = 1},
    ['G'] = {.run = op_float, .bytes = 8},
    ['U'] = {.run = op_text, .bytes = 1},
    ['T'] = {.run = op_text, .bytes = 4},
    [0x8c] = {.run = op_text, .bytes = 1},
    ['X'] = {.run = op_text, .bytes = 4},
    [')'] = {.run = op_empty, .kind = HN_PY_TUPLE},
    [']'] = {.run = op_empty, .kind = HN_PY_LIST},
    ['}'] = {.run = op_empty, .kind = HN_PY_DICT},
    ['('] = {.run = op_mark},
    ['t'] = {.run = op_tuple},
    [0x85] = {.run = op_tuple, .n = 1},
    [0x86] = {.run = op_tuple, .n = 2},
    [0x87] = {.run = op_tuple, .n = 3},
    ['a'] = {.run = op_fill_one, .kind = HN_PY_LIST, .n = 1},
    ['e'] = {.run = op_fill, .kind = HN_PY_LIST, .n = 1},
    ['s'] = {.run = op_fill_one, .kind = HN_PY_DICT, .n = 2},
    ['u'] = {.run = op_fill, .kind = HN_PY_DICT, .n = 2},
    ['q'] = {.run = op_put, .bytes = 1},
    ['r'] = {.run = op_put, .bytes = 4},
    [0x94] = {.run = op_put},
    ['h'] = {.run = op_get, .bytes = 1},
    ['j'] = {.run = op_get, .bytes = 4},
    ['c'] = {.run = op_global},
    [0x93] = {.run = op_stack_global},
    ['R'] = {.run = op_call},
    ['b'] = {.run = op_state},
    ['Q'] = {.run = op_outside},
};

static hunch_status machine_run(machine *m) {
    hunch_status status = HUNCH_OK;
    while (!status && !m->stopped) {
        if (m->at == m->end) return refuse(m, "it ends before it stops");
        const unsigned op = *m->at;
        const opcode *s = &OPCODES[op];
        if (s->run == NULL)
            return hn_fail(m->err, HUNCH_REFUSED,
                           "%s: its pickle has opcode 0x%02x at byte %zu, which is not supported", m->path, op,
                           (size_t)(m->at - m->p->bytes));
        m->at++;
        status = s->run(m, s);
    }
    return status;
}

hunch_status hn_pickle_read(hn_pickle *p, const unsigned char *bytes, size_t size, const hn_pickle_global *globals,
                            size_t n_globals, const char *path, size_t *used, hunch_error *err) {
    *p = (hn_pickle){.bytes = bytes};
    machine m = {
        .p = p, .at = bytes, .end = bytes + size, .globals = globals, .n_globals = n_globals, .path = path, .err = err};
    hunch_status status = size > UINT32_MAX ? refuse(&m, "4 GiB or more") : machine_run(&m);
    if (used != NULL) *used = (size_t)(m.at - bytes);
    hn_free(m.stack);
    hn_free(m.marks);
    hn_free(m.memo);
    if (status) hn_pickle_free(p);
    return status;
}

void hn_pickle_free(hn_pickle *p) {
    hn_free(p->values);
    hn_free(p->items);
    *p = (hn_pickle){0};
}
