/*
 * fuzz_uai.c - the UAI reader and writer under a fuzzer. Two ways, both by bench/fuzz.sh:
 *   with clang's libFuzzer, guided by coverage from the files in tests/corpus (-DFUZZ_COVERAGE);
 *   else: fuzz_uai INPUTS [FIRST], random damage as in tests/c/fuzz_uai.h.
 */
#include "fuzz_uai.h"

#ifdef FUZZ_COVERAGE
/* The first byte says whether the numbers are logarithms, and seeds the lengths of the pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz_text text;
    fgi_rng g = {size ? data[0] : 0};
    fgi_error whole = {0}, cut = {0};
    fgi_model *a = NULL, *b = NULL;
    int64_t given_a = -1, given_b = -1;
    int logs = size > 0 && (data[0] & 1);
    if (size < 2 || size - 1 > FUZZ_CAPACITY) return 0;
    text.n = (int64_t)size - 1;
    memcpy(text.at, data + 1, size - 1);
    fgi_rc rc = fuzz_read(&text, logs, text.n, &g, &a, &given_a, &whole);
    fgi_rc rc_cut = fuzz_read(&text, logs, 1 + fgi_rng_below(&g, 100), &g, &b, &given_b, &cut);
    if (rc != rc_cut || (rc && rc != FGI_BAD_FORMAT)) abort();
    if (rc && (whole.line != cut.line || strcmp(whole.message, cut.message) || !whole.message[0])) abort();
    if (!rc && (given_a != given_b || !fuzz_same(a, b))) abort();
    if (!rc && !(fuzz_round_trip(a, 0, !logs, &g) && fuzz_round_trip(a, 1, 1, &g))) abort();
    fgi_model_free(a);
    fgi_model_free(b);
    return 0;
}
#else
int main(int argc, char **argv) {
    int64_t n = argc > 1 ? atoll(argv[1]) : 1000000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int failures = fuzz_many(first, n);
    printf("%lld inputs from %llu on: %d failures\n", (long long)n, (unsigned long long)first, failures);
    return failures != 0;
}
#endif
