/* What a second thread can be worth on this machine: the same work by one thread and by two, each on a core of its own.
 *
 *     gcc -O2 -pthread bench/scale/cores.c -o /tmp/cores && /tmp/cores [MB of the large array, 64]
 *
 * Prints the least time of five rounds, in turns. Two threads of one core share its adders: where the first lines say
 * 2.0x, the cores are two. Linux on x86-64. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SMALL = 1 << 14, ROUNDS = 5 }; /* doubles of an array that fits in a second-level cache: 128 KB */

typedef struct job {
    int kind, me, threads;
    double *x;
    int32_t *at; /* random places */
    int64_t n;
    volatile double out;
} job;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* As many independent sums as keep all adders busy. */
static double add(int64_t n) {
    double a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (int64_t k = 0; k < n; k++) {
        a += 1.5, b += 1.5, c += 1.5, d += 1.5, e += 1.5, f += 1.5, g += 1.5, h += 1.5;
        __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(f), "+x"(g), "+x"(h));
    }
    return a + b + c + d + e + f + g + h;
}

static double read_all(const double *x, int64_t n, int64_t times) {
    double a = 0, b = 0, c = 0, d = 0;
    for (int64_t t = 0; t < times; t++)
        for (int64_t k = 0; k < n; k += 4) a += x[k], b += x[k + 1], c += x[k + 2], d += x[k + 3];
    return a + b + c + d;
}

static double write_all(double *x, int64_t n, int64_t times) {
    for (int64_t t = 0; t < times; t++) {
        for (int64_t k = 0; k < n; k++) x[k] = 0.5 * x[k] + 1;
        __asm__ volatile("" : : "r"(x) : "memory");
    }
    return x[0];
}

static double read_anywhere(const double *x, const int32_t *at, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += x[at[k]];
    return sum;
}

static const char *const NAMES[] = {"additions in registers", "read 128 KB", "read and write 128 KB",
    "read the large array", "read and write it", "read it anywhere"};
enum { KINDS = sizeof NAMES / sizeof *NAMES };

static void *work(void *arg) {
    job *j = arg;
    const int64_t own = j->n / j->threads, times = 20000 / j->threads;
    double *x = j->x + j->me * own;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(j->me, &core);
    pthread_setaffinity_np(pthread_self(), sizeof core, &core);
    switch (j->kind) {
    case 0: j->out = add(50000000 / j->threads); break;
    case 1: j->out = read_all(x, SMALL, times); break;
    case 2: j->out = write_all(x, SMALL, times); break;
    case 3: j->out = read_all(x, own, 10); break;
    case 4: j->out = write_all(x, own, 10); break;
    default: j->out = read_anywhere(j->x, j->at + j->me * own, own); break;
    }
    return NULL;
}

static double seconds(const job *given, int threads) {
    pthread_t thread[2];
    job jobs[2];
    const double began = now();
    for (int k = 0; k < threads; k++) {
        jobs[k] = *given;
        jobs[k].me = k;
        jobs[k].threads = threads;
        if (pthread_create(&thread[k], NULL, work, &jobs[k])) exit(1);
    }
    for (int k = 0; k < threads; k++) pthread_join(thread[k], NULL);
    return now() - began;
}

int main(int argc, char **argv) {
    const int64_t n = (argc > 1 ? atoll(argv[1]) : 64) << 17;
    double *x = malloc((size_t)n * sizeof *x);
    int32_t *at = malloc((size_t)n * sizeof *at);
    if (n < 2 * SMALL || n > INT32_MAX || !x || !at) return 1;
    uint64_t state = 1;
    for (int64_t k = 0; k < n; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's generator */
        x[k] = 1;
        at[k] = (int32_t)((state >> 33) % (uint64_t)n);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        const job j = {.kind = kind, .x = x, .at = at, .n = n};
        double best[3] = {0, 1e9, 1e9};
        for (int round = 0; round < ROUNDS; round++)
            for (int threads = 1; threads <= 2; threads++) {
                const double t = seconds(&j, threads);
                if (t < best[threads]) best[threads] = t;
            }
        printf("%-24s %8.1f ms %8.1f ms %6.2fx\n", NAMES[kind], 1e3 * best[1], 1e3 * best[2], best[1] / best[2]);
    }
    free(x);
    free(at);
    return 0;
}
