/* SPDX-License-Identifier: Apache-2.0 */
/* time_left.h - how long work still takes of which each unit takes longer than the one before, by the same amount: a long prompt, whose
 * tokens attend to all before them. Two times are compared, now and when about a third was done. */
#ifndef HN_TIME_LEFT_H
#define HN_TIME_LEFT_H

typedef struct hn_time_left {
    struct {
        double done, elapsed;
    } before, last; /* before: a quarter to a half of what is done now; zeros at the start */
} hn_time_left;

/* done units took `elapsed` seconds; called in ascending order. */
static inline void hn_time_left_note(hn_time_left *t, double done, double elapsed) {
    if (done < 2 * t->last.done || done <= 0) return;
    t->before = t->last;
    t->last.done = done;
    t->last.elapsed = elapsed;
}

/* Seconds; done > 0. Units that became faster are taken to stay as they were on average. */
static inline double hn_time_left_of(const hn_time_left *t, double done, double total, double elapsed) {
    const double each = elapsed / done, earlier = t->before.done > 0 ? t->before.elapsed / t->before.done : each;
    const double most = each / done; /* as if the first unit took no time */
    double growth = t->before.done > 0 && t->before.done < done ? (each - earlier) / (done - t->before.done) : 0;
    growth = growth < 0 ? 0 : growth > most ? most : growth;
    return (total - done) * (each + growth * total); /* of done * (a + growth * done) seconds, a + growth * done = each */
}
#endif
