/* kernels.c - see kernels.h. */
#include "kernels.h"

const char *fgi_cpu_path(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) return "avx2";
#endif
    return "scalar";
}
