/*
 * scarce.h - memory that runs out on purpose. CMake links the test_scarce_* programs with --wrap, so that every
 * allocation of the core and of the test comes here; the k-th one, and with `for_good` all behind it, gets none.
 */
#ifndef SCARCE_H
#define SCARCE_H
#include <stddef.h>
#include <stdint.h>
#include "check.h"
#include "fginfer.h"

static _Atomic int64_t scarce_asked; /* allocations so far, of all threads */
static int64_t scarce_at;            /* the one that fails; 0: none */
static int scarce_for_good;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static int scarce_refuses(void) {
    const int64_t mine = ++scarce_asked;
    return scarce_at && (mine == scarce_at || (scarce_for_good && mine > scarce_at));
}
void *__wrap_malloc(size_t n) { return scarce_refuses() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return scarce_refuses() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return scarce_refuses() ? NULL : __real_realloc(p, n); }

/* What is tried: returns what the core said, and checks what it then still promises. */
typedef fgi_rc scarce_job(void *given);

/*
 * Runs the job with every allocation failing once (of more than `most` an even choice), and again with all behind it
 * failing, too. Either the job does without, or it says FGI_NO_MEMORY; the sanitizers say whether anything was lost.
 */
static void scarce_try(const char *name, scarce_job *job, void *given, int64_t most) {
    scarce_at = 0;
    scarce_asked = 0;
    CHECK_SAYING(job(given) == FGI_OK, "%s fails with memory enough\n", name);
    const int64_t all = scarce_asked, step = all / most + 1;
    int refusals = 0;
    for (scarce_for_good = 0; scarce_for_good < 2; scarce_for_good++)
        for (int64_t k = 1 + scarce_for_good % step; k <= all; k += step) {
            scarce_asked = 0;
            scarce_at = k;
            const fgi_rc rc = job(given);
            scarce_at = 0;
            refusals += rc == FGI_NO_MEMORY;
            CHECK_SAYING(rc == FGI_OK || rc == FGI_NO_MEMORY, "%s, allocation %lld of %lld: code %d\n", name,
                (long long)k, (long long)all, (int)rc);
        }
    CHECK_SAYING(all == 0 || refusals > 0, "%s: %lld allocations, none of which is missed\n", name, (long long)all);
}

#endif
