/* check.h - how the C tests say that something is wrong. A test program ends with `return failed();`. */
#ifndef CHECK_H
#define CHECK_H
#include <stdint.h>
#include <stdio.h>

static int check_failures;

/* Says so, counts and goes on. */
#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            check_failures++;                                          \
        }                                                              \
    } while (0)

/* The same with a message of its own, as of printf. */
#define CHECK_SAYING(what, ...)                             \
    do {                                                    \
        if (!(what)) {                                      \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            check_failures++;                               \
        }                                                   \
    } while (0)

/* Says so and leaves a function that returns 1 on failure. */
#define REQUIRE(what)                                                  \
    do {                                                               \
        if (!(what)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            return 1;                                                  \
        }                                                              \
    } while (0)

static inline int failed(void) {
    if (check_failures) fprintf(stderr, "%d failures\n", check_failures);
    return check_failures != 0;
}

#endif
