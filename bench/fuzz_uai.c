/* usage: fuzz_uai INPUTS [FIRST]   (built and run by bench/fuzz_uai.sh; see tests/c/fuzz_uai.h) */
#include "fuzz_uai.h"

int main(int argc, char **argv) {
    int64_t n = argc > 1 ? atoll(argv[1]) : 1000000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int failures = fuzz_many(first, n);
    printf("%lld inputs from %llu on: %d failures\n", (long long)n, (unsigned long long)first, failures);
    return failures != 0;
}
