/* SPDX-License-Identifier: Apache-2.0 */
/* json_number.c - numbers between bounds, digit by digit.
 *
 * A number is digits before the point and, unless it is an integer, digits behind it. Of numbers with as many digits as a bound, those
 * above it share its first digits and then have a larger one. Bounded numbers have no exponent, and so few digits behind the point that
 * different ones are different doubles: else a reader could round one to an exclusive bound. What is asked of all digits together, as that
 * they are a multiple, is remembered beside them as a remainder (`hn_json_form`).
 */
#include <string.h>

#include "base/mem.h"
#include "grammar/json_text.h"

enum {
    DIGITS = 15, /* decimal digits that a double keeps */
    MAX_ROOM = 340,
    USUAL_ROOM = 6, /* behind the point, where nothing else says how many and all digits count */
    MAX_EDGES = 400000
};

/* ---- digits ---- */

static hn_expr digits(hn_builder *b, char low, char high, int min, int max) {
    hn_byte_set set = {{0}};
    hn_byte_set_add(&set, (unsigned char)low, (unsigned char)high);
    return hn_expr_repeat(b, hn_expr_set(b, &set), min, max);
}

/* Any digits behind a point, or none, not more than `room`. */
static hn_expr any_part(hn_builder *b, int room) {
    if (room <= 0) return hn_expr_empty(b);
    const hn_expr part[] = {hn_expr_text(b, "."), digits(b, '0', '9', 1, room)};
    return hn_expr_repeat(b, hn_expr_seq(b, part, 2), 0, 1);
}

/* least to most digits (most -1: no limit) before the point. */
static hn_expr any_whole(hn_builder *b, int least, int most, int room) {
    hn_expr one[] = {digits(b, '1', '9', 1, 1), digits(b, '0', '9', least - 1, most < 0 ? -1 : most - 1), any_part(b, room)};
    const hn_expr zero[] = {hn_expr_text(b, "0"), any_part(b, room)};
    const hn_expr either[] = {hn_expr_seq(b, one, 3), hn_expr_seq(b, zero, 2)};
    return hn_expr_alt(b, either, least == 1 ? 2 : 1);
}

/* ---- what all digits are together ---- */

/* It is remembered as one number below remainders_of: the remainder, whether a digit behind the point was not 0, whether the last was. */
static int32_t remainders_of(hn_json_form d) {
    return (d.multiple ? d.multiple : 1) * (d.fraction ? 2 : 1) * (d.one_spelling ? 2 : 1);
}

static int32_t remainder_next(hn_json_form d, int32_t r, int digit, bool part) {
    const int32_t n = d.multiple ? d.multiple : 1;
    int32_t rest = r % n, marks = r / n;
    rest = (int32_t)((10 * (int64_t)rest + digit) % n);
    if (!part) return rest + marks * n;
    int32_t fraction = d.fraction ? marks % 2 : 0, zero = digit == 0;
    if (digit) fraction = 1;
    marks = (d.fraction ? fraction : 0) + (d.one_spelling ? zero * (d.fraction ? 2 : 1) : 0);
    return rest + marks * n;
}

/* Whether a number may end with so many digits behind the point. */
static bool remainder_ends(hn_json_form d, int32_t r, int part) {
    const int32_t n = d.multiple ? d.multiple : 1, marks = r / n;
    int64_t rest = r % n;
    if (d.fraction && marks % 2 == 0) return false;
    if (d.one_spelling && marks / (d.fraction ? 2 : 1)) return false;
    for (int i = part; i < d.places && rest; i++) rest = 10 * rest % n;
    return rest == 0;
}

/* ---- between two decimals ---- */

/* Bounds of numbers >= 0. */
typedef struct limits {
    hn_decimal low, high;
    bool has_high, low_open, high_open; /* open: the bound itself is not allowed */
    int room;                           /* digits behind the point */
    hn_json_form form;
} limits;

/* A graph of numbers: a node is how many digits were read, whether they are the low bound's first digits, the high bound's, both or
 * neither, and the remainder. */
typedef struct digit_graph {
    hn_builder *b;
    const limits *l;
    int whole; /* digits before the point */
    int32_t remainders;
    hn_expr label[10][10]; /* from one digit to another; -1: not made yet */
    bool *reached;         /* [nodes] */
    hn_graph_edge *edges;
    size_t n, cap;
} digit_graph;

static bool rest_is_zero(const hn_decimal *d, int i) {
    for (; i < d->n_whole + d->n_part; i++)
        if (hn_decimal_digit(d, i)) return false;
    return true;
}

/* After i digits; point: the one behind the last whole digit was read. */
static int node_of(const digit_graph *g, int i, bool point, bool low, bool high, int32_t r) {
    return (4 * (i + (point || i > g->whole)) + 2 * low + high) * g->remainders + r;
}

static void put_edge(digit_graph *g, int from, int to, hn_expr label) {
    if (g->b->failed) return;
    if (g->n == MAX_EDGES)
        hn_builder_fail(g->b, HUNCH_USAGE, "bounds or multiples of numbers with too many digits");
    else if (!hn_grow((void **)&g->edges, &g->cap, g->n + 1, sizeof *g->edges))
        hn_builder_no_memory(g->b);
    else
        g->edges[g->n++] = (hn_graph_edge){from, to, label};
    g->reached[to] = true;
}

static void put_digits(digit_graph *g, int from, int to, int first, int last) {
    hn_expr *label = &g->label[first][last];
    if (*label < 0) *label = digits(g->b, (char)('0' + first), (char)('0' + last), 1, 1);
    put_edge(g, from, to, *label);
}

static bool graph_init(digit_graph *g, hn_builder *b, const limits *l, int whole, int nodes) {
    *g = (digit_graph){.b = b, .l = l, .whole = whole, .remainders = remainders_of(l->form)};
    for (int i = 0; i < 100; i++) g->label[i / 10][i % 10] = -1;
    if (nodes > MAX_EDGES / g->remainders)
        return hn_builder_fail(b, HUNCH_USAGE, "bounds or multiples of numbers with too many digits") >= 0;
    g->reached = hn_zalloc((size_t)nodes * (size_t)g->remainders + 2, sizeof *g->reached);
    return g->reached || hn_builder_no_memory(b) >= 0;
}

/* Node 0 and the start change places; the end is the node behind the start. */
static hn_expr graph_expr(digit_graph *g, int start) {
    for (size_t i = 0; i < g->n; i++) {
        hn_graph_edge *e = &g->edges[i];
        e->from = e->from == start ? 0 : e->from == 0 ? start : e->from;
        e->to = e->to == start ? 0 : e->to == 0 ? start : e->to;
    }
    const hn_expr e = g->b->failed ? -1 : hn_expr_graph(g->b, start + 2, g->edges, g->n);
    hn_free(g->edges);
    hn_free(g->reached);
    return e;
}

/* Digit number i, read at node `from`. */
static void digit_edges(digit_graph *g, int i, int from, bool low, bool high, int32_t r) {
    const int first = i == 0 && g->whole > 1 ? 1 : 0;
    const int least = low ? hn_decimal_digit(&g->l->low, i) : 0, most = high ? hn_decimal_digit(&g->l->high, i) : 9;
    const bool part = i + 1 > g->whole;
    for (int d = least > first ? least : first, last; d <= most; d = last + 1) {
        const bool tight_low = low && d == least, tight_high = high && d == most;
        const int32_t next = remainder_next(g->l->form, r, d, part);
        last = d;
        while (!tight_low && !tight_high && last < most - high && remainder_next(g->l->form, r, last + 1, part) == next) last++;
        put_digits(g, from, node_of(g, i + 1, part, tight_low, tight_high, next), d, last);
    }
}

/* Whether a number may end after i digits. */
static bool may_end(const digit_graph *g, int i, bool low, bool high, int32_t r) {
    if (!remainder_ends(g->l->form, r, i - g->whole)) return false;
    if (low && (!rest_is_zero(&g->l->low, i) || g->l->low_open)) return false;
    return !(high && g->l->high_open && rest_is_zero(&g->l->high, i));
}

/* Of `whole` digits before the point. */
static hn_expr of_length(hn_builder *b, const limits *l, int whole, bool low, bool high) {
    digit_graph g;
    const int total = whole + l->room, nodes = 4 * (total + 2);
    if (b->failed || !graph_init(&g, b, l, whole, nodes)) return -1;
    const hn_expr empty = hn_expr_empty(b), point = hn_expr_text(b, ".");
    const int start = nodes * g.remainders, end = start + 1; /* they become 0 and the last */
    put_edge(&g, start, node_of(&g, 0, false, low, high, 0), empty);
    for (int i = 0; i <= total && !b->failed; i++) {
        for (int32_t k = 0; k < 4 * g.remainders && !b->failed; k++) {
            const int32_t r = k / 4;
            const bool lo = k & 2, hi = k & 1;
            const int at = node_of(&g, i, i > whole, lo, hi, r), behind = node_of(&g, i, true, lo, hi, r);
            if (!g.reached[at]) continue;
            if (i >= whole && may_end(&g, i, lo, hi, r)) put_edge(&g, at, end, empty);
            if (i == whole && total > i) put_edge(&g, at, behind, point);
            if (i < whole || (i > whole && i < total)) digit_edges(&g, i, at, lo, hi, r);
            if (i == whole && i < total) digit_edges(&g, i, behind, lo, hi, r);
        }
    }
    return graph_expr(&g, start);
}

/* least to most digits before the point (most -1: no limit), with remainders: of nodes of one length there is one for each, and so behind
 * the point. */
static hn_expr any_with(hn_builder *b, const limits *l, int least, int most) {
    digit_graph g;
    const int kept = most < 0 ? least : most, nodes = 2 + kept + l->room + 1;
    if (most >= 0 && most < least) return hn_expr_nothing(b);
    if (b->failed || !graph_init(&g, b, l, kept, nodes)) return -1;
    const int32_t n = g.remainders;
    const int start = nodes * n, end = start + 1, behind = kept + 1;
    const hn_expr empty = hn_expr_empty(b), point = hn_expr_text(b, ".");
    put_edge(&g, start, n, empty); /* node 1: no digit yet; 0 is left free for the start */
    for (int i = 0; i < behind + 1 + l->room && !b->failed; i++) {
        const bool part = i >= behind, again = most < 0 && i == kept;
        for (int32_t r = 0; r < n && !b->failed; r++) {
            const int at = (i + 1) * n + r, digits_read = part ? i - behind : i;
            if (!g.reached[at] && !again) continue; /* nodes that lead to each other may be reached later */
            if ((part ? digits_read > 0 : i >= least) && remainder_ends(l->form, r, part ? digits_read : 0)) put_edge(&g, at, end, empty);
            if (!part && i >= least && l->room) put_edge(&g, at, (behind + 1) * n + r, point);
            if (part ? digits_read == l->room : i == most) continue;
            for (int d = i == 0, last; d <= 9; d = last + 1) {
                const int32_t next = remainder_next(l->form, r, d, part);
                for (last = d; last < 9 && remainder_next(l->form, r, last + 1, part) == next;) last++;
                put_digits(&g, at, (again ? i + 1 : i + 2) * n + next, d, last);
            }
        }
    }
    return graph_expr(&g, start);
}

/* Numbers >= 0 between the limits: of as many digits as a bound has, and of those between. */
static hn_expr magnitudes(hn_builder *b, const limits *l) {
    const int low = l->low.n_whole, high = l->has_high ? l->high.n_whole : -1;
    hn_expr part[3];
    size_t n = 0;
    if (l->has_high && high < low) return hn_expr_nothing(b);
    part[n++] = of_length(b, l, low, true, high == low);
    if (high > low) part[n++] = of_length(b, l, high, false, true);
    if (high >= 0 && high <= low + 1) return hn_expr_alt(b, part, n);
    if (remainders_of(l->form) == 1)
        part[n++] = any_whole(b, low + 1, high < 0 ? -1 : high - 1, l->room);
    else
        part[n++] = any_with(b, l, low + 1, high >= 0 ? high - 1 : l->room ? DIGITS - l->room : -1);
    return hn_expr_alt(b, part, n);
}

/* ---- with signs ---- */

static hn_expr unbounded(hn_builder *b, bool integer) {
    const hn_expr minus = hn_expr_repeat(b, hn_expr_text(b, "-"), 0, 1);
    const hn_expr zero = hn_expr_text(b, "0"), one[] = {digits(b, '1', '9', 1, 1), digits(b, '0', '9', 0, -1)};
    const hn_expr whole[] = {zero, hn_expr_seq(b, one, 2)};
    const hn_expr point[] = {hn_expr_text(b, "."), digits(b, '0', '9', 1, -1)};
    hn_byte_set e = {{0}}, sign = {{0}};
    hn_byte_set_add(&e, 'e', 'e');
    hn_byte_set_add(&e, 'E', 'E');
    hn_byte_set_add(&sign, '+', '+');
    hn_byte_set_add(&sign, '-', '-');
    const hn_expr small[] = {digits(b, '0', '9', 1, 2), digits(b, '1', '2', 1, 1)}; /* up to 299: a double is finite */
    const hn_expr large[] = {small[1], digits(b, '0', '9', 2, 2)};
    const hn_expr power[] = {small[0], hn_expr_seq(b, large, 2)};
    const hn_expr exponent[] = {hn_expr_set(b, &e), hn_expr_repeat(b, hn_expr_set(b, &sign), 0, 1), hn_expr_alt(b, power, 2)};
    const hn_expr all[] = {minus, hn_expr_alt(b, whole, 2), hn_expr_repeat(b, hn_expr_seq(b, point, 2), 0, 1),
                           hn_expr_repeat(b, hn_expr_seq(b, exponent, 3), 0, 1)};
    return hn_expr_seq(b, all, integer ? 2 : 4);
}

/* Zeros behind the point before the first other digit; of 0 itself -1. */
static int leading_zeros(const hn_decimal *d) {
    for (int i = 0; i < d->n_part; i++)
        if (d->part[i] != '0') return i;
    return -1;
}

/* So many digits behind the point that numbers near the larger bound have 15 that count. */
static int room_of(const hn_decimal *x, const hn_decimal *y) {
    const int whole = x->n_whole > y->n_whole ? x->n_whole : y->n_whole;
    const int a = leading_zeros(x), b = leading_zeros(y), zeros = a < 0 ? b : b < 0 || a < b ? a : b;
    if (x->whole[0] != '0' || y->whole[0] != '0') return whole < DIGITS ? DIGITS - whole : 0;
    return zeros > 0 && DIGITS + zeros < MAX_ROOM ? DIGITS + zeros : DIGITS;
}

/* False: failed. */
static bool bound_read(hn_builder *b, hn_json_bound bound, hn_decimal *d) {
    if (hn_decimal_read(bound.value, d)) return true;
    hn_builder_fail(b, HUNCH_USAGE, "a bound of numbers with more than %d digits", HN_DECIMAL_WHOLE);
    return false;
}

/* l, h: the bounds, 0 for those that are not given. */
static hn_expr bounded(hn_builder *b, hn_json_bound low, hn_json_bound high, const hn_decimal *l, const hn_decimal *h, limits *x) {
    const bool low_minus = !low.value || l->minus, high_minus = high.value && h->minus;
    hn_expr part[2];
    size_t n = 0;
    if (!high_minus) {
        if (low_minus) hn_decimal_read(NULL, &x->low);
        if (!low_minus) x->low = *l;
        x->low_open = !low_minus && low.exclusive;
        x->has_high = high.value;
        x->high = *h;
        x->high_open = high.exclusive;
        part[n++] = magnitudes(b, x);
    }
    if (low_minus) { /* of the numbers below zero the high bound is the lower one of their digits; -0 is none */
        if (!high_minus) hn_decimal_read(NULL, &x->low);
        if (high_minus) x->low = *h;
        x->low_open = !high_minus || high.exclusive;
        x->has_high = low.value;
        x->high = *l;
        x->high_open = low.exclusive;
        const hn_expr minus[] = {hn_expr_text(b, "-"), magnitudes(b, x)};
        part[n++] = hn_expr_seq(b, minus, 2);
    }
    return hn_expr_alt(b, part, n);
}

hn_expr hn_json_number(hn_builder *b, bool integer, hn_json_bound low, hn_json_bound high, hn_json_form form) {
    hn_decimal l, h;
    const bool remembers = remainders_of(form) > 1, any_places = integer || !form.multiple; /* a multiple of .01 has two at most */
    if (!low.value && !high.value && !remembers && any_places && !form.one_spelling) return unbounded(b, integer);
    if (!bound_read(b, low, &l) || !bound_read(b, high, &h)) return -1;
    limits *x = hn_zalloc(1, sizeof *x);
    if (!x) return hn_builder_no_memory(b);
    x->room = integer ? 0 : room_of(&l, &h);
    if (remembers && !(low.value && high.value) && x->room > USUAL_ROOM) x->room = USUAL_ROOM;
    if (form.multiple && x->room > form.places) x->room = form.places;
    x->form = form;
    const hn_expr e = bounded(b, low, high, &l, &h, x);
    hn_free(x);
    return e;
}
