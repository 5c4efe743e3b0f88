// Rows of the cache: a head's keys of a page are row after row of `width` numbers; a row of codes is followed by its scales, of 32 each.
#define KV_F32 0
#define KV_F16 1
#define KV_BF16 2
#define KV_Q8 3
#if KV == KV_F32
#define KV_WORDS(width) (width)
#elif KV == KV_Q8
#define KV_WORDS(width) ((width) / 4u + (width) / 32u)
#else
#define KV_WORDS(width) ((width) / 2u)
#endif
