/* base/util.c - see base/util.h. */
#if defined(__linux__)
#define _DEFAULT_SOURCE /* madvise */
#include <sys/mman.h>
#endif
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif
#include "base/util.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifndef FGI_VERSION
#define FGI_VERSION "0.0.0"
#endif

fgi_rc fgi_fail(fgi_error *err, fgi_rc rc, int64_t index, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->line = 0;
        err->index = index;
        err->token[0] = '\0';
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return rc;
}

fgi_rc fgi_no_memory(fgi_error *err) { return fgi_fail(err, FGI_NO_MEMORY, -1, "out of memory"); }

static int checked_bytes(int64_t n, size_t size, size_t *bytes) {
    if (n < 0 || (uint64_t)n > (uint64_t)PTRDIFF_MAX / size) return 0;
    *bytes = (size_t)n * size;
    return 1;
}

void fgi_prefer_large_pages(void *block, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    enum {
        PAGE = 4096,       /* bytes */
        WORTH_IT = 8 << 20 /* bytes; a huge page has 2 MB, and some must fit in */
    };
    if (!block || bytes < WORTH_IT) return;
    /* Rounded outwards, so that all of a mapping gets the advice: realloc cannot move one that is half advised without
     * a copy. */
    const uintptr_t begin = (uintptr_t)block / PAGE * PAGE,
                    end = ((uintptr_t)block + (uintptr_t)bytes + PAGE - 1) / PAGE * PAGE;
    (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* advice: a refusal does not matter */
#else
    (void)block;
    (void)bytes;
#endif
}

void *fgi_alloc(int64_t n, size_t size) {
    size_t bytes;
    if (!checked_bytes(n, size, &bytes)) return NULL;
    void *block = malloc(bytes ? bytes : 1);
    fgi_prefer_large_pages(block, (int64_t)bytes);
    return block;
}

void *fgi_calloc(int64_t n, size_t size) {
    size_t bytes;
    if (!checked_bytes(n, size, &bytes)) return NULL;
    void *block = calloc(bytes ? bytes : 1, 1); /* large ones come untouched from the system */
    fgi_prefer_large_pages(block, (int64_t)bytes);
    return block;
}

void *fgi_copy(const void *from, int64_t n, size_t size) {
    void *to = fgi_alloc(n, size);
    if (to && n > 0) memcpy(to, from, (size_t)n * size);
    return to;
}

double fgi_clock(void) {
#ifdef _WIN32
    LARGE_INTEGER now, frequency;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&frequency);
    return (double)now.QuadPart / (double)frequency.QuadPart;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#endif
}

const char *fgi_version(void) { return FGI_VERSION; }

const char *fgi_compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown compiler";
#endif
}
