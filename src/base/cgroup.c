/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - walks the control groups of this process, of both versions, wherever they are mounted. The callers interpret the
 * contents of their files. */
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

/* True if the comma-separated list contains the word. */
static bool list_holds(const char *list, const char *word) {
    for (; *list; list += strspn(list, ",")) {
        size_t n = strcspn(list, ",");
        if (n == strlen(word) && strncmp(list, word, n) == 0) return true;
        list += n;
    }
    return false;
}

/* Reads the next line, without its newline; a line that does not fit is truncated. NULL at the end of the file. */
static char *line_read(FILE *f, char *line, int size) {
    if (!fgets(line, size, f)) return NULL;
    size_t n = strlen(line);
    if (n > 0 && line[n - 1] == '\n') line[n - 1] = '\0';
    else
        for (int c = getc(f); c != EOF && c != '\n';) c = getc(f);
    return line;
}

/* ---- mounts of groups ------------------------------------------------------------------------------------------------ */

/* Decodes \ooo, which mount tables write for blanks and backslashes. In place. */
static void octal_decode(char *s) {
    for (char *to = s;; s++, to++) {
        *to = *s;
        if (!*s) return;
        if (*s != '\\' || strspn(s + 1, "01234567") < 3) continue;
        *to = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
        s += 3;
    }
}

typedef struct mount {
    char *root;  /* the group that is mounted there */
    char *point; /* its folder */
} mount;

/* A line "id parent device root point options [more] - type source options", if it mounts the controller's groups. */
static bool mount_parse(char *line, const char *controller, bool v2, mount *out) {
    char *dash = strstr(line, " - "), *word[5], *type, *rest;
    if (!dash) return false;
    rest = dash + 3;
    type = strsep(&rest, " ");
    if (strcmp(type, v2 ? "cgroup2" : "cgroup") != 0 || !strsep(&rest, " ")) return false;
    if (!v2 && (!rest || !list_holds(rest, controller))) return false;
    *dash = '\0';
    rest = line;
    for (int i = 0; i < 5; i++)
        if (!(word[i] = strsep(&rest, " "))) return false;
    *out = (mount){word[3], word[4]};
    octal_decode(out->root);
    octal_decode(out->point);
    return true;
}

/* The part of the group's path below the mount: all of it, or the part after the mounted group, as in a container that still
 * sees the host's names. */
static const char *group_below(const char *group, const char *root) {
    const size_t n = strlen(root);
    if (n > 1 && strncmp(group, root, n) == 0 && (group[n] == '/' || group[n] == '\0')) return group + n;
    return strcmp(group, "/") == 0 ? "" : group;
}

/* A group and all groups above it. Inside a container the path may name a folder that only the host sees; the walk up ends at
 * the mount itself, which is then the container's own group. */
static void group_visit(const mount *m, const char *group, bool v2,
                        void (*visit)(void *user, const char *folder, bool v2), void *user) {
    char folder[PATH_SIZE];
    int n = snprintf(folder, sizeof folder, "%s%s", m->point, group_below(group, m->root));
    if (n < 0 || (size_t)n >= sizeof folder) return;
    for (size_t top = strlen(m->point);;) {
        visit(user, folder, v2);
        if (strlen(folder) <= top) return;
        *strrchr(folder, '/') = '\0';
    }
}

/* ---- the walk -------------------------------------------------------------------------------------------------------- */

static void mounts_visit(const char *group, const char *mounts, const char *controller, bool v2,
                      void (*visit)(void *user, const char *folder, bool v2), void *user) {
    FILE *f = fopen(mounts, "r");
    if (!f) return;
    mount m;
    for (char line[2 * PATH_SIZE]; line_read(f, line, sizeof line);)
        if (mount_parse(line, controller, v2, &m)) group_visit(&m, group, v2, visit, user);
    fclose(f);
}

void hn_cgroups_visit(const char *table, const char *mounts, const char *controller,
                      void (*visit)(void *user, const char *folder, bool v2), void *user) {
    FILE *f = fopen(table, "r");
    if (!f) return;
    /* Lines are "id:controllers:/path"; version 2 has no controllers. */
    for (char line[PATH_SIZE]; line_read(f, line, sizeof line);) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/') continue;
        *group++ = '\0';
        controllers++;
        const bool v2 = !*controllers;
        if (v2 || list_holds(controllers, controller)) mounts_visit(group, mounts, controller, v2, visit, user);
    }
    fclose(f);
}
