/* SPDX-License-Identifier: Apache-2.0 */
/* vk_device.h - a device, its memory, and what is recorded for it. For files of this folder, and tests of them. */
#ifndef HN_VK_DEVICE_H
#define HN_VK_DEVICE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define VK_NO_PROTOTYPES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wundef"
#include <volk.h>
#pragma GCC diagnostic pop

#include "vulkan/vulkan_backend.h"

enum {
    VK_SLOTS = 8,         /* submissions under way */
    VK_ARGS = 9,          /* buffers of a kernel, the first its numbers of rows */
    VK_PUSH = 128,        /* bytes of push constants */
    VK_RANGES = 128,      /* that are remembered between two barriers */
    VK_KEPT = 256,        /* submissions whose times are known */
    VK_TOUCHED = 256      /* ranges that a submission writes and the host may read */
};
static const size_t vk_part_overlap = (size_t)128 << 20, vk_flush_bytes = (size_t)16 << 20;

/* ---- memory ------------------------------------------------------------------------------------------------- */

typedef struct vk_block {
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *host; /* where it is mapped; NULL: it is not */
    size_t bytes;
} vk_block;

/* What an hn_mem is here. Weights beyond the largest allocation are several blocks, of which each has the first bytes of the next one too:
 * a range of up to vk_part_overlap bytes is in one of them. */
typedef struct vk_mem {
    size_t size, step; /* step: from the start of a block to that of the next */
    hn_mem_kind kind;
    int n_blocks;
    vk_block *block;
    vk_block shadow;     /* of HN_MEM_READBACK: what the host reads */
    unsigned char *copy; /* what was read of other memory */
} vk_mem;

static inline vk_mem *vk_mem_of(const hn_mem *m) { return (vk_mem *)(uintptr_t)m; }

/* ---- what is recorded --------------------------------------------------------------------------------------- */

/* Bytes that a kernel reads or writes: rows of `width` bytes, `step` apart; step 0: all of them. */
typedef struct vk_range {
    const vk_mem *mem;
    size_t off, bytes, step, width;
    bool write;
} vk_range;

/* What was recorded, for its check: barriers; kernels and copies with their ranges; the work of submissions before, which may have written
 * anything. */
typedef struct vk_note {
    bool barrier, earlier;
    int n;
    const char *kernel;
    vk_range range[VK_ARGS];
} vk_note;
typedef struct vk_log {
    int n, room;
    vk_note *note;
} vk_log;

bool hn_vk_ranges_meet(const vk_range *a, const vk_range *b);
/* The first note that depends on one before it without a barrier between them, or -1; notes `without` (a barrier; -1: none) is left out. */
int hn_vk_log_fault(const vk_log *log, int without);

/* Counts of a submission, to compare with the formulas of a pass. */
typedef struct vk_counts {
    int dispatches, barriers;
    double bytes, macs; /* of weights and of keys and values that kernels read; of products */
} vk_counts;

/* ---- the device --------------------------------------------------------------------------------------------- */

/* A write that waits for the next submission. */
typedef struct vk_write {
    vk_mem *mem;
    size_t off, bytes, at; /* at: in the block */
    int block;
    bool apart;            /* it meets no other */
} vk_write;

typedef struct vk_slot {
    VkCommandBuffer cmd;
    uint64_t ticket; /* 0: it was never submitted */
    vk_block *staging;
    int n_staging, used_block; /* block that is filled */
    size_t used;               /* of it */
} vk_slot;

typedef struct vk_pipeline {
    struct vk_pipeline *next;
    uint32_t constant[2];
    VkPipeline pipeline;
} vk_pipeline;

typedef enum vk_kernel {
    VK_NORM, VK_ACT, VK_ROPE_TABLE, VK_FIX_HEADS, VK_MERGE, VK_GATHER, VK_PICK, VK_APPLY, VK_MOVE, VK_TOP, VK_SUMS,
    VK_EMBED,                              /* each of the next four has the types of weights, or of the cache, in a row */
    VK_LINEAR = VK_EMBED + 5,              /* by rows of floats */
    VK_LINEAR_PACKED = VK_LINEAR + 5,      /* of Q4 and Q8, by rows of codes */
    VK_STORE = VK_LINEAR_PACKED + 2,
    VK_ATTENTION = VK_STORE + 4,
    VK_KERNELS = VK_ATTENTION + 4
} vk_kernel;

typedef struct vk_device {
    int users;
    pthread_mutex_t lock;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    struct VolkDeviceTable f;
    VkQueue queue;
    uint32_t family;
    VkPhysicalDeviceMemoryProperties memory;
    size_t align, largest_range, largest_block;
    double tick; /* nanoseconds of a timestamp */
    bool budget, rte, denorm, signed_zero; /* extensions and modes that it has */
    char level[256];
    _Atomic uint64_t taken; /* bytes of its own memory */
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    vk_pipeline *pipeline[VK_KERNELS];
    vk_mem *nothing;  /* bound where a kernel has no buffer */
    VkCommandPool pool;
    VkSemaphore timeline;
    vk_slot slot[VK_SLOTS];
    int at; /* the slot that is filled: writes, then work */
    bool open;
    vk_write *write;
    int n_writes, write_room;
    size_t write_bytes;
    uint64_t submitted;
    atomic_bool lost; /* read by any thread */
    double recorded; /* seconds that it took to record the last submission */
    double begun[VK_KEPT], over; /* when each submission was, and when the last one that was waited for ended */
    /* the submission that is recorded */
    VkPipeline bound;
    vk_range range[VK_RANGES];
    int n_ranges;
    vk_range touched[VK_TOUCHED];
    int n_touched;
    vk_counts counts, last_counts;
    vk_log *log; /* NULL: it is not kept */
    struct vk_profile *profile; /* NULL: kernels are not timed */
} vk_device;

typedef struct vk_backend {
    hn_backend base; /* first */
    vk_device *d;
} vk_backend;

static inline vk_backend *vk_of(const hn_backend *b) { return (vk_backend *)(uintptr_t)b; }
static inline vk_device *vk_device_of(const hn_exec *ex) { return vk_of(ex->backend)->d; }

/* vk_load.c */
hunch_status hn_vk_device_open(vk_device **out, int number, hunch_error *err);
void hn_vk_device_close(vk_device *d); /* of one user */
uint64_t hn_vk_memory_left(const vk_device *d);

/* vk_memory.c */
hunch_status hn_vk_block_create(vk_device *d, size_t bytes, VkMemoryPropertyFlags needs, VkMemoryPropertyFlags wants, vk_block *out,
                                hunch_error *err);
void hn_vk_block_free(vk_device *d, vk_block *b);
hunch_status hn_vk_mem_create(hn_backend *b, hn_mem_kind kind, size_t bytes, hn_mem **out, hunch_error *err);
void hn_vk_mem_free(hn_backend *b, hn_mem *m);
void hn_vk_write(hn_backend *b, hn_buf dst, const void *src, size_t bytes);
void hn_vk_write_locked(vk_device *d, hn_buf dst, const void *src, size_t bytes, bool apart);
const void *hn_vk_read(hn_backend *b, hn_ticket t, hn_buf src, size_t bytes);

/* vk_record.c */
hn_ticket hn_vk_submit(hn_backend *b, hn_record_fn *record, const void *arg);
hn_ticket hn_vk_submit_locked(vk_device *d, hn_backend *b, hn_record_fn *record, const void *arg);
double hn_vk_wait(hn_backend *b, hn_ticket t);
double hn_vk_wait_locked(vk_device *d, hn_ticket t);
bool hn_vk_done(const hn_backend *b, hn_ticket t);
hunch_status hn_vk_failed(const hn_backend *b, hunch_error *err);
void hn_vk_slot_open(vk_device *d);
void hn_vk_check(vk_device *d, VkResult r); /* a result that is not success: the device is lost */

/* Kernels: buffers and the place of their first element. */
typedef struct vk_arg {
    hn_buf at;
    size_t bytes, step, width;
    bool write;
} vk_arg;
static inline vk_arg vk_no_arg(void) { return (vk_arg){{NULL, 0}, 0, 0, 0, false}; }
static inline vk_arg vk_bytes(hn_buf at, size_t bytes, bool write) { return (vk_arg){at, bytes, 0, 0, write}; }
/* n rows of a matrix. */
static inline vk_arg vk_rows(hn_matrix m, int n, bool write) {
    const size_t width = sizeof(float) * (size_t)m.cols, step = sizeof(float) * (size_t)m.ld;
    return (vk_arg){m.at, n > 0 ? step * (size_t)(n - 1) + width : 0, step, width, write};
}
/* The most bytes of a memory that are bound at once. */
static inline size_t hn_vk_most(const vk_device *d, hn_buf at) {
    const bool several = at.mem && vk_mem_of(at.mem)->n_blocks > 1;
    return several && vk_part_overlap < d->largest_range ? vk_part_overlap : d->largest_range;
}
/* The first element of `unit` bytes in what is bound for a place. */
uint32_t hn_vk_at(const vk_device *d, hn_buf at, size_t unit);
/* push: its first two words are filled with the number of rows. args: from binding 1 on. */
void hn_vk_dispatch(const hn_exec *ex, int kernel, const uint32_t constant[2], hn_count n, const vk_arg *args, int n_args, void *push,
                    size_t push_bytes, int x, int y, int z);

/* vk_shaders.c */
VkPipeline hn_vk_pipeline(vk_device *d, int kernel, const uint32_t constant[2]);
void hn_vk_pipelines_free(vk_device *d);
const char *hn_vk_kernel_name(int kernel);

/* vk_profile.c: seconds of each kernel, one after another, of all submissions that are waited for between these. */
void hn_vk_profile_begin(vk_device *d);
void hn_vk_profile_note(vk_device *d, int kernel);
void hn_vk_profile_read(vk_device *d);
void hn_vk_profile_end(vk_device *d, FILE *to);

/* vk_weights.c */
enum { VK_F32, VK_F16, VK_BF16, VK_Q4, VK_Q8, VK_TYPES }; /* layouts of weights: shaders/weight.glsl */
int hn_vk_type(hn_dtype t); /* -1: none */
typedef struct vk_layout {
    int type;
    size_t code_row, scale_row; /* bytes of a row */
    size_t scales;              /* from the codes to the scales */
    size_t bytes;
} vk_layout;
vk_layout hn_vk_layout(hn_dtype t, int out, int in);
size_t hn_vk_matrix_bytes(const hn_backend *b, hn_dtype t, int out, int in);
hn_matrix_place hn_vk_place(const hn_backend *b, hn_dtype t, int in, hn_buf at);
void hn_vk_pair(const hn_backend *b, hn_matrix_place *first, hn_matrix_place *second);
void hn_vk_pack(hn_backend *b, const hn_weight *w, int matrix, int first, const void *rows, size_t row_bytes, const float *factors);

/* vk_ops.c, vk_linear.c, vk_attention.c: contracts in ops.h */
extern const hn_ops hn_vk_ops;
/* Parts of an input: rows of codes, of their scales and sums, of floats, of further floats. */
typedef struct vk_act {
    hn_buf codes, meta, plain, second;
    uint32_t ld_codes, ld_meta, ld_plain; /* in words */
} vk_act;
vk_act hn_vk_act(hn_act a);
bool hn_vk_applies(hn_function f); /* whether `apply` has it */
size_t hn_vk_act_bytes(int in, int max_rows);
static inline int vk_blocks(int n, int of) { return (n + of - 1) / of; }
void hn_vk_linear(const hn_exec *ex, hn_count n, hn_act a, const hn_linear_out *outs, int n_outs, bool add);
void hn_vk_linear_glu(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *gate, const hn_weight *up, hn_glu act, hn_act y);
void hn_vk_linear_top(const hn_exec *ex, hn_count n, hn_act a, const hn_weight *w, const hn_output_rows *out, const hn_top *top);
size_t hn_vk_top_scratch(const hn_backend *b, int max_rows, int k);
void hn_vk_glu(const hn_exec *ex, hn_count n, hn_glu act, const hn_glu_in *in, float scale, hn_act y);
void hn_vk_quantise(const hn_exec *ex, hn_count n, hn_matrix x, hn_act a);
void hn_vk_embed(const hn_exec *ex, const hn_rows *rows, const hn_weight *table, float scale, hn_matrix x);
void hn_vk_rope_store(const hn_exec *ex, const hn_rows *rows, const hn_rope_table *by, const hn_kv *kv, const hn_qkv *x);
void hn_vk_attention(const hn_exec *ex, const hn_rows *rows, const hn_kv *kv, const hn_attention_params *how, hn_matrix q, hn_matrix out,
                     hn_act a, hn_buf scratch);
size_t hn_vk_attention_scratch(const hn_backend *b, int max_rows, int heads, const hn_kv *kv, int max_positions);
void hn_vk_kv_move(const hn_exec *ex, const hn_kv *kv, hn_count n, hn_buf moves);
#endif
