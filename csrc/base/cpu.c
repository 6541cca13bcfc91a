#include "base/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__) && defined(_WIN32)
#include <cpuid.h>

/* The compiler's own question needs a runtime library that is not linked on Windows; these are its three steps.
 * registers: those that the system must save; bit: of the feature, in leaf 7. */
static int has(unsigned registers, int bit) {
    const unsigned saved_and_avx = 1u << 27 | 1u << 28; /* bits of leaf 1: the system uses xsave; AVX */
    unsigned a, b, c, d, enabled, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & saved_and_avx) != saved_and_avx) return 0;
    __asm__ volatile("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
    if ((enabled & registers) != registers) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> bit & 1u);
}

int fgi_cpu_has_avx2(void) { return has(0x06u, 5); }    /* SSE and AVX registers */
int fgi_cpu_has_avx512(void) { return has(0xe6u, 16); } /* the system also saves the three kinds of AVX-512 registers */
#elif defined(__x86_64__) && defined(__GNUC__)
int fgi_cpu_has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
int fgi_cpu_has_avx512(void) { return __builtin_cpu_supports("avx512f") != 0; }
#else
int fgi_cpu_has_avx2(void) { return 0; }
int fgi_cpu_has_avx512(void) { return 0; }
#endif
