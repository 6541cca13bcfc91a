/* base/assert.c - see base/assert.h. */
#include "base/assert.h"

typedef int fgi_assert_is_compiled; /* a file of a release has something in it, too */

#ifdef FGI_CHECKED
#include <stdio.h>
#include <stdlib.h>

void fgi_assert_fails(const char *what, const char *file, int line) {
    fprintf(stderr, "%s:%d: fginfer has made a mistake: %s does not hold\n", file, line, what);
    fflush(stderr);
    abort();
}

enum {
    ALWAYS = 16,             /* looks at first, none left out */
    AT_LEAST_EVERY = 1 << 12 /* occasions between two looks, later on */
};

int fgi_audit_is_due(uint32_t *looks) {
    const uint32_t n = (*looks)++;
    return n < ALWAYS || (n & (n - 1)) == 0 || n % AT_LEAST_EVERY == 0;
}
#endif
