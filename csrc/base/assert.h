/* base/assert.h - what must hold, said where it is relied on, and looked at in checked builds.
 *
 * A checked build defines FGI_CHECKED: C tests, builds with sanitizers, fuzzing, and the module with
 * -DFGINFER_CHECKED=ON. There a wrong assertion prints its place and ends the program; elsewhere nothing of it is left.
 * Assertions are for our own mistakes. What callers and files may get wrong is an fgi_error.
 *
 * The invariants of a struct are numbered in its header, and its `..._check` function looks at each; that function
 * stands between #ifdef FGI_CHECKED and #endif. */
#ifndef FGI_ASSERT_H
#define FGI_ASSERT_H
#include <stdint.h>

#ifdef FGI_CHECKED
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void fgi_assert_fails(const char *what, const char *file, int line);
/* Whether a look at a whole struct is due: the first few times, and then ever more rarely, so that looks at everything
 * cost a small part of a run. */
int fgi_audit_is_due(uint32_t *looks);

#define fgi_assert(what) ((what) ? (void)0 : fgi_assert_fails(#what, __FILE__, __LINE__))
/* A call of a check function: every time, and now and then. */
#define fgi_audit(check) (check)
#define fgi_audit_rarely(check)                          \
    do {                                                 \
        static _Thread_local uint32_t fgi_looks;         \
        if (fgi_audit_is_due(&fgi_looks)) (void)(check); \
    } while (0)
#else
#define fgi_assert(what) ((void)sizeof((what) ? 1 : 0)) /* never computed, but what it names counts as used */
#define fgi_audit(check) ((void)0)
#define fgi_audit_rarely(check) ((void)0)
#endif

#endif
