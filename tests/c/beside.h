/* beside.h - work beside that of a test, on a thread of its own; at once where there is only one (WebAssembly). */
#ifndef BESIDE_H
#define BESIDE_H

#include <pthread.h>

typedef struct beside {
    pthread_t thread;
    void *result;
} beside;

/* Returns 0, or non-zero where the system has no thread for us. */
static inline int beside_begin(beside *b, void *(*work)(void *), void *arg) {
#if defined __EMSCRIPTEN__ && !defined __EMSCRIPTEN_PTHREADS__
    b->result = work(arg);
    return 0;
#else
    return pthread_create(&b->thread, NULL, work, arg);
#endif
}

static inline void *beside_end(beside *b) {
#if !defined __EMSCRIPTEN__ || defined __EMSCRIPTEN_PTHREADS__
    pthread_join(b->thread, &b->result);
#endif
    return b->result;
}

#endif
