/* SPDX-License-Identifier: Apache-2.0 */
/* build_info.c - see build_info.h. The build defines HUNCH_BUILD_TYPE; the compiler and the libraries report the rest. */
#include "text/build_info.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <features.h>
#include <jansson.h>
#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "base/cpu.h"

#ifndef HUNCH_BUILD_TYPE
#define HUNCH_BUILD_TYPE ""
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86_64"
enum { FIRST_LEVEL = HN_ISA_AVX2, LAST_LEVEL = HN_ISA_AMX };
#elif defined(__aarch64__)
#define PROCESSOR "aarch64"
enum { FIRST_LEVEL = HN_ISA_DOTPROD, LAST_LEVEL = HN_ISA_I8MM };
#else
#define PROCESSOR "other processor"
enum { FIRST_LEVEL = 1, LAST_LEVEL = HN_ISA_REF };
#endif

#ifdef __GLIBC__
#define TARGET PROCESSOR "-linux-gnu"
#else
#define TARGET PROCESSOR "-linux"
#endif

/* clang has features where gcc has macros. */
#ifdef __has_feature
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS(address_sanitizer)
#define SANITIZER " with AddressSanitizer"
#elif defined(__SANITIZE_THREAD__) || HAS(thread_sanitizer)
#define SANITIZER " with ThreadSanitizer"
#else
#define SANITIZER ""
#endif

static char levels[128], compiler[64], libraries[160];

static void levels_list(void) {
    strcpy(levels, hn_isa_name(HN_ISA_REF));
    for (int i = FIRST_LEVEL; i <= LAST_LEVEL; i++) strcat(strcat(levels, " "), hn_isa_name((hn_isa)i));
}

static void libraries_list(void) {
    char pcre2[32] = "";
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof pcre2) pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    pcre2[strcspn(pcre2, " ")] = '\0'; /* a date follows */
    snprintf(libraries, sizeof libraries, "jansson %s, pcre2 %s, utf8proc %s", jansson_version_str(), pcre2,
             utf8proc_version());
#ifdef __GLIBC__
    const size_t n = strlen(libraries);
    snprintf(libraries + n, sizeof libraries - n, ", glibc %s", gnu_get_libc_version());
#endif
}

static void texts_make(void) {
    snprintf(compiler, sizeof compiler, "%.60s", COMPILER);
    for (size_t n = strlen(compiler); n > 0 && compiler[n - 1] == ' ';) compiler[--n] = '\0';
    levels_list();
    libraries_list();
}

hunch_build_info hn_build_info(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, texts_make);
    return (hunch_build_info){.version = HUNCH_VERSION,
                              .isa = hn_isa_name(hn_isa_best()),
                              .levels = levels,
                              .compiler = compiler,
                              .type = HUNCH_BUILD_TYPE SANITIZER,
                              .target = TARGET,
                              .libraries = libraries};
}
