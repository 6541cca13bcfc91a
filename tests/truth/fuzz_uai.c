/*
 * fuzz_uai.c - the UAI reader and writer and the readers of .wcsp and .cfn under a fuzzer. Two ways, both by fuzz.sh:
 *   with clang's libFuzzer, guided by coverage from the files in tests/corpus (-DFUZZ_COVERAGE);
 *   else: fuzz_uai INPUTS [FIRST], random damage as in tests/c/fuzz_uai.h and fuzz_costs.h, a third of it each.
 * Compiled with FGI_SMALL_PIECES and in place of base/pool.c, so that small files are read as long ones are by two
 * threads, without threads: the parts of a text go to two helpers in turn, the last part first.
 */
#include "base/pool.h"
#include "fuzz_costs.h"

fgi_pool *fgi_pool_create(int threads) { return (void)threads, NULL; }
int fgi_pool_threads(fgi_pool *pool) { return (void)pool, 2; }
void fgi_pool_free(fgi_pool *pool) { (void)pool; }
void fgi_pool_run(fgi_pool *pool, int64_t n, int64_t block, fgi_body body, void *context) {
    (void)pool, (void)block;
    for (int64_t k = n; k-- > 0;) body(context, k, k + 1, (int)(k & 1));
}

#ifdef FUZZ_COVERAGE
/* The first byte says whether it is a .wcsp or .cfn file ('w', 'c'), else whether the numbers are logarithms, and seeds the lengths
 * of the pieces. */
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
    if (data[0] == 'w' || data[0] == 'c') {
        if (fuzz_costs_check(&text, data[0] == 'c', &g)) abort();
        return 0;
    }
    fgi_rc rc = fuzz_read(&text, logs, text.n, &g, &a, &given_a, &whole);
    fgi_rc rc_cut = fuzz_read(&text, logs, fuzz_piece(&g), &g, &b, &given_b, &cut);
    if (rc != rc_cut || !fuzz_may_end(rc, logs)) abort();
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
    int failures =
        fuzz_many(first, n - 2 * (n / 3)) + fuzz_costs_many(0, first, n / 3) + fuzz_costs_many(1, first, n / 3);
    printf("%lld inputs from %llu on: %d failures\n", (long long)n, (unsigned long long)first, failures);
    return failures != 0;
}
#endif
