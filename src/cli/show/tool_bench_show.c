/* SPDX-License-Identifier: Apache-2.0 */
/* tool_bench_show.c - see tool_bench.h: the figures as text tables. */
#include "cli/tool_bench.h"

typedef struct styles {
    const char *bold, *off;
} styles;

static void machine_show(const bench *b, styles l) {
    const hunch_machine *m = &b->machine;
    const tool_spread s = tool_spread_of(b->read_gb_s, b->n_read);
    printf("%s%s%s, %d threads, level %s, hunch %s\n", l.bold, m->cpu, l.off, m->threads, m->isa, hunch_version());
    if (b->n_read)
        printf("reads %.1f GB/s while measuring (%.1f to %.1f)", s.median, s.low, s.high);
    else
        printf("reads %.1f GB/s", m->read_gb_s);
    printf(" · products int8 %.0f, bf16 %.0f, f32 %.0f GMAC/s · barrier %.2f us\n", m->int8_gmac_s, m->bf16_gmac_s,
           m->f32_gmac_s, m->barrier_us);
    if (m->int8_dot_gmac_s > 0)
        printf("dot products alone: int8 %.0f GMAC/s", m->int8_dot_gmac_s);
    if (m->bf16_dot_gmac_s > 0)
        printf(", bf16 %.0f GMAC/s", m->bf16_dot_gmac_s);
    if (m->int8_dot_gmac_s > 0 || m->bf16_dot_gmac_s > 0)
        putchar('\n');
}

static void reads_show(const bench *b, styles l) {
    printf("\n%s%-25s", l.bold, "reading, GB/s (spread)");
    for (int i = 0; i < b->n_reads && b->reads[i].huge; i++)
        if (b->reads[i].threads == 1)
            printf("%15zu MiB", b->reads[i].bytes >> 20);
    printf("%s\n", l.off);
    for (int huge = 1; huge >= 0; huge--)
        for (int k = 0; k < b->n_reads; k++) {
            if (b->reads[k].huge != huge || b->reads[k].bytes != b->reads[0].bytes)
                continue; /* the largest size of each number of threads begins a line */
            const int threads = b->reads[k].threads;
            printf("%3d %-8s %s pages ", threads, threads == 1 ? "thread," : "threads,", huge ? "2 MiB" : "4 KiB");
            for (int i = 0; i < b->n_reads; i++)
                if (b->reads[i].huge == huge && b->reads[i].threads == threads)
                    printf("%7.1f (%4.0f-%4.0f)", b->reads[i].gb_s.median, b->reads[i].gb_s.low, b->reads[i].gb_s.high);
            putchar('\n');
        }
}

static void plain_show(const bench *b, styles l) {
    const bench_plain *p = &b->plain;
    printf("prefill of %d: %s%.1f tokens/s%s (%.1f to %.1f), %.0f %% of the machine's limit\n", p->prompt, l.bold,
           p->prefill.median, l.off, p->prefill.low, p->prefill.high, p->prefill_fraction * 100);
    printf("decode at %d: %s%.1f tokens/s%s (%.1f to %.1f), %.0f %%; %.0f %% of the read bandwidth", p->context, l.bold,
           p->decode.median, l.off, p->decode.low, p->decode.high, p->decode_fraction * 100, p->of_bandwidth * 100);
    if (b->parallel > 1)
        printf("; %d texts at once", b->parallel);
    puts("\n");
}

static void passes_show(const bench *b, styles l) {
    printf("%s%8s %5s %9s %19s %7s %9s %7s %6s %8s %6s %8s %9s%s\n", l.bold, "context", "rows", "ms", "low to high",
           "mad", "limit ms", "reached", "t/t1", "limit/t1", "read", "KV MB", "commit us", l.off);
    for (int i = 0; i < b->n_passes; i++) {
        const bench_pass *p = &b->passes[i];
        printf("%8d %5d %9.3f %9.3f-%9.3f %7.3f %9.3f %5.0f %% %6.2f %8.2f %4.0f %% %8.2f %9.1f\n", p->context, p->rows,
               p->s.median * 1e3, p->s.low * 1e3, p->s.high * 1e3, p->s.mad * 1e3, p->limit_s * 1e3, p->fraction * 100,
               p->s.median / p->one_row_s, p->limit_s / p->one_row_s, p->of_bandwidth * 100, p->work.kv_bytes / 1e6,
               p->commit_s * 1e6);
    }
}

/* Time by the number of experts that a pass uses. */
static void experts_show(const bench *b) {
    for (int i = 0; i < b->n_passes; i++) {
        const bench_pass *p = &b->passes[i];
        if (p->experts > 0)
            printf("%s%d row%s after %d: %.1f of %d experts a layer, %.1f MB, %.3f ms", i % 2 ? "; " : "\n", p->rows,
                   p->rows == 1 ? "" : "s", p->context, p->experts, b->info.experts, p->work.weight_bytes / 1e6,
                   p->s.median * 1e3);
    }
    if (b->info.experts > 0)
        putchar('\n');
}

static void rollbacks_show(const bench *b) {
    for (int i = 0; i < b->n_rollbacks; i++) {
        const bench_rollback *p = &b->rollback[i];
        printf("%s%d rows, %d kept, and the next: %.3f ms", i % 3 ? ", " : "\n", p->rows, p->commit, p->seconds * 1e3);
    }
    if (b->n_rollbacks > 0)
        putchar('\n');
    if (b->info.state_bytes > 0)
        printf("state per text: %.2f MB; per tentative row: %.3f MB; at most %d states are saved for later texts\n",
               (double)b->info.state_bytes / 1e6, (double)b->info.input_bytes / 1e6,
               b->engine ? hunch_engine_states(b->engine) : 0);
}

static void profile_show(const bench_profile *p, styles l) {
    double sum = 0;
    printf("\n%s%d row%s after %d: %.1f us%s\n", l.bold, p->rows, p->rows == 1 ? "" : "s", p->context, p->pass_s * 1e6,
           l.off);
    printf("%-10s %6s %10s %7s %7s %9s %7s %8s\n", "operation", "calls", "us", "share", "waits", "MB", "GB/s",
           "GMAC/s");
    for (int i = 0; i < HUNCH_PHASES; i++) {
        const hunch_phase *h = &p->phase[i];
        sum += h->seconds;
        if (!h->calls)
            continue;
        printf("%-10s %6d %10.1f %5.1f %% %5.1f %%", h->name, h->calls, h->seconds * 1e6, h->seconds / p->pass_s * 100,
               h->waited / h->seconds * 100);
        if (h->bytes > 0)
            printf(" %9.2f %7.1f %8.1f", h->bytes / 1e6, h->bytes / h->seconds * 1e-9, h->macs / h->seconds * 1e-9);
        putchar('\n');
    }
    printf("%-10s %6s %10.1f %5.1f %%\n", "between", "", (p->pass_s - sum) * 1e6, (1 - sum / p->pass_s) * 100);
}

int bench_table(const bench *b) {
    const bool color = tool_colors(b->o.color, stdout);
    const styles l = {tool_style(color, 'b'), tool_style(color, '0')};
    machine_show(b, l);
    if (b->n_reads)
        reads_show(b, l);
    if (b->model)
        printf("%s: %.1f M parameters, %.1f MB read a pass, loaded in %.2f s\n", b->name,
               (double)b->info.parameters / 1e6, (double)b->info.weight_bytes / 1e6, b->load_s);
    if (b->model && b->info.table_bytes > 0)
        printf("a table of %.1f MB stays in the file; a row of it for each token is not counted\n", (double)b->info.table_bytes / 1e6);
    for (int i = 0; i < b->n_profiles; i++)
        profile_show(&b->profiles[i], l);
    if (b->model && !b->n_profiles) {
        plain_show(b, l);
        passes_show(b, l);
        experts_show(b);
        rollbacks_show(b);
    }
    return tool_done(HUNCH_OK);
}
