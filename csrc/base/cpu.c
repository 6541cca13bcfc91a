#include "base/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(_WIN32)
#include <cpuid.h>

/* The compiler's own question needs a runtime library that is not linked on Windows; these are its three steps. */
int fgi_cpu_has_avx2(void) {
    const unsigned saved_and_avx = 1u << 27 | 1u << 28; /* of leaf 1: the system uses xsave; AVX */
    unsigned a, b, c, d, enabled, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & saved_and_avx) != saved_and_avx) return 0;
    __asm__ volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
    if ((enabled & 6u) != 6u) return 0; /* SSE and AVX registers */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 5 & 1u);
}
#elif defined(__x86_64__) && defined(__GNUC__)
int fgi_cpu_has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
#else
int fgi_cpu_has_avx2(void) { return 0; }
#endif
