/* SPDX-License-Identifier: Apache-2.0 */
/* other_names.h - what Ollama's converter called things before it wrote llama.cpp's names: architectures, keys, tensors. They are looked
 * up where a GGUF has none of the usual name, so that the families know one name of each; `hunch inspect` shows the file's own. */
#ifndef HN_OTHER_NAMES_H
#define HN_OTHER_NAMES_H
#include <stdbool.h>
#include <stddef.h>

/* The architecture's usual name, or the name itself. */
const char *hn_usual_architecture(const char *name);
/* The name in a file of this architecture (as the file says it) of a key or tensor; false: it has no other. */
bool hn_other_key(const char *architecture, const char *key, char *out, size_t size);
bool hn_other_tensor(const char *architecture, const char *name, char *out, size_t size);
/* The pre-tokenizer of files that name none; NULL: it is not known. */
const char *hn_other_pretokenizer(const char *architecture);
#endif
