/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - walks the control groups of this process, of both versions. What their files say is for the callers. */
#include "base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

int hn_cgroup_numbers(const char *folder, const char *file, long long *v, int max) {
    char path[PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    int n = 0;
    for (char word[32]; n < max && fscanf(f, "%31s", word) == 1; n++) {
        v[n] = strcmp(word, "max") == 0 ? -1 : strtoll(word, NULL, 10);
    }
    fclose(f);
    return n;
}

/* A group and all groups above it. Inside a container the path may name a folder that only the host sees; the walk up ends at
 * the mount itself, which is then the container's own group. */
static void group_visit(const char *mount, const char *group, bool v2, void (*see)(void *user, const char *folder, bool v2),
                        void *user) {
    char folder[PATH_SIZE];
    int n = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof folder) return;
    for (size_t root = strlen(mount);;) {
        see(user, folder, v2);
        if (strlen(folder) <= root) return;
        *strrchr(folder, '/') = '\0';
    }
}

/* True if the comma-separated list of v1 controllers holds the one. */
static bool list_holds(const char *list, const char *controller) {
    for (; *list; list += strspn(list, ",")) {
        size_t n = strcspn(list, ",");
        if (n == strlen(controller) && strncmp(list, controller, n) == 0) return true;
        list += n;
    }
    return false;
}

void hn_cgroups_visit(const char *table, const char *mount, const char *controller,
                      void (*see)(void *user, const char *folder, bool v2), void *user) {
    FILE *f = fopen(table, "r");
    if (!f) return;
    /* Lines are "id:controllers:/path"; version 2 has no controllers. */
    for (char line[PATH_SIZE]; fgets(line, sizeof line, f);) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        *group++ = '\0';
        controllers++;
        bool v2 = !*controllers;
        if (!v2 && !list_holds(controllers, controller)) continue;
        char root[PATH_SIZE];
        int n = snprintf(root, sizeof root, "%s%s%s", mount, v2 ? "" : "/", controllers);
        if (n < 0 || (size_t)n >= sizeof root) continue;
        group_visit(root, strcmp(group, "/") == 0 ? "" : group, v2, see, user);
    }
    fclose(f);
}
