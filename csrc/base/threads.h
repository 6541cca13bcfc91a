/*
 * base/threads.h - the few things that pthreads and Windows call by different names: threads that are joined, mutexes,
 * condition variables, the number of this process.
 */
#ifndef FGI_BASE_THREADS_H
#define FGI_BASE_THREADS_H

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX /* min and max are names of ours */
#include <windows.h>
#include <process.h>
#include <stdlib.h>
#undef far /* words of 16-bit Windows, which its headers still define away */
#undef near

typedef SRWLOCK fgi_mutex;
typedef CONDITION_VARIABLE fgi_condition;
typedef HANDLE fgi_thread;
typedef DWORD fgi_process;

static inline void fgi_mutex_init(fgi_mutex *m) { InitializeSRWLock(m); }
static inline void fgi_mutex_destroy(fgi_mutex *m) { (void)m; }
static inline void fgi_mutex_lock(fgi_mutex *m) { AcquireSRWLockExclusive(m); }
static inline void fgi_mutex_unlock(fgi_mutex *m) { ReleaseSRWLockExclusive(m); }
static inline void fgi_condition_init(fgi_condition *c) { InitializeConditionVariable(c); }
static inline void fgi_condition_destroy(fgi_condition *c) { (void)c; }
static inline void fgi_condition_wait(fgi_condition *c, fgi_mutex *m) { SleepConditionVariableSRW(c, m, INFINITE, 0); }
static inline void fgi_condition_signal(fgi_condition *c) { WakeConditionVariable(c); }
static inline void fgi_condition_broadcast(fgi_condition *c) { WakeAllConditionVariable(c); }
static inline fgi_process fgi_this_process(void) { return GetCurrentProcessId(); }

/* What a thread of Windows starts with: its functions return a number, ours a pointer. */
typedef struct fgi_thread_start {
    void *(*work)(void *);
    void *arg;
} fgi_thread_start;

static unsigned __stdcall fgi_thread_main(void *given) {
    fgi_thread_start start = *(fgi_thread_start *)given;
    free(given);
    start.work(start.arg);
    return 0;
}

/* Returns 0, or non-zero where the system has no thread for us. */
static inline int fgi_thread_create(fgi_thread *t, void *(*work)(void *), void *arg) {
    fgi_thread_start *start = malloc(sizeof *start);
    if (!start) return 1;
    *start = (fgi_thread_start){work, arg};
    *t = (HANDLE)_beginthreadex(NULL, 0, fgi_thread_main, start, 0, NULL);
    if (*t) return 0;
    free(start);
    return 1;
}

static inline void fgi_thread_join(fgi_thread t) {
    WaitForSingleObject(t, INFINITE);
    CloseHandle(t);
}

/* Some microseconds for others. */
static inline void fgi_thread_nap(void) { Sleep(0); }

/* A turn on this core for others. */
static inline void fgi_thread_yield(void) { SwitchToThread(); }

#else
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

typedef pthread_mutex_t fgi_mutex;
typedef pthread_cond_t fgi_condition;
typedef pthread_t fgi_thread;
typedef pid_t fgi_process;

static inline void fgi_mutex_init(fgi_mutex *m) { pthread_mutex_init(m, NULL); }
static inline void fgi_mutex_destroy(fgi_mutex *m) { pthread_mutex_destroy(m); }
static inline void fgi_mutex_lock(fgi_mutex *m) { pthread_mutex_lock(m); }
static inline void fgi_mutex_unlock(fgi_mutex *m) { pthread_mutex_unlock(m); }
static inline void fgi_condition_init(fgi_condition *c) { pthread_cond_init(c, NULL); }
static inline void fgi_condition_destroy(fgi_condition *c) { pthread_cond_destroy(c); }
static inline void fgi_condition_wait(fgi_condition *c, fgi_mutex *m) { pthread_cond_wait(c, m); }
static inline void fgi_condition_signal(fgi_condition *c) { pthread_cond_signal(c); }
static inline void fgi_condition_broadcast(fgi_condition *c) { pthread_cond_broadcast(c); }
static inline fgi_process fgi_this_process(void) { return getpid(); }

/* Returns 0, or non-zero where the system has no thread for us. */
static inline int fgi_thread_create(fgi_thread *t, void *(*work)(void *), void *arg) {
    return pthread_create(t, NULL, work, arg);
}

static inline void fgi_thread_join(fgi_thread t) { pthread_join(t, NULL); }

static inline void fgi_thread_nap(void) { nanosleep(&(struct timespec){0, 20000}, NULL); }

static inline void fgi_thread_yield(void) { sched_yield(); }
#endif

#endif
