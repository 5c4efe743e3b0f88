// Elements of packed matrices (vk_weights.c): row after row of codes, then row after row of scales, one of 32.
#define W_F32 0
#define W_F16 1
#define W_BF16 2
#define W_Q4 3
#define W_Q8 4
