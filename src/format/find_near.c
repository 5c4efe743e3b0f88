/* SPDX-License-Identifier: Apache-2.0 */
/* find_near.c - see find_near.h. */
#include "format/find_near.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "format/find_caches.h"

static const char *last_component(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* True if name contains what is wanted, without its revision and choice (org/name@main:Q4_0). */
static bool holds_base(const char *name, const char *wanted) {
    char base[256];
    snprintf(base, sizeof base, "%.250s", last_component(wanted));
    base[strcspn(base, "@:")] = '\0';
    return *base && strcasestr(name, base) != NULL;
}

void hn_near_add(hn_near *n, const char *name) {
    const size_t len = strlen(n->wanted), ending = 5; /* of ".gguf", which users may omit */
    const bool cut = hn_ends_with(name, ".gguf") && !hn_ends_with(n->wanted, ".gguf");
    const size_t distance = holds_base(name, n->wanted)
                           ? 0
                           : hn_edit_distance(n->wanted, len, name, strlen(name) - (cut ? ending : 0));
    size_t at = n->n;
    if (distance > len / 3 + 1)
        return;
    for (; at > 0 && n->best[at - 1].distance > distance; at--)
        n->best[at] = n->best[at - 1];
    snprintf(n->best[at].name, sizeof n->best[at].name, "%.255s", name);
    n->best[at].distance = distance;
    n->n += n->n < HN_NEAR_SHOWN;
}

static hunch_status entry_add(void *user, const char *folder, const char *name) {
    char *path = hn_path_join(folder, name);
    if (path != NULL && (hn_ends_with(name, ".gguf") || hn_is_folder(path)))
        hn_near_add(user, name);
    hn_free(path);
    return HUNCH_OK;
}

bool hn_near_path(const char *path, char *out, size_t size) {
    char folder[4096], copy[4096];
    hn_near n = {.wanted = copy};
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return false;
    for (size_t len = strlen(copy); len > 1 && copy[len - 1] == '/'; len--)
        copy[len - 1] = '\0';
    n.wanted = last_component(copy);
    const int head = (int)(n.wanted - copy);
    snprintf(folder, sizeof folder, "%.*s", head ? head : 1, head ? copy : ".");
    if (*n.wanted == '\0' || hn_folder_each(folder, entry_add, &n, NULL) != HUNCH_OK || n.n == 0)
        return false;
    return snprintf(out, size, "%.*s%s", head, copy, n.best[0].name) < (int)size;
}
