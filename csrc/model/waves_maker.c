/* model/waves_maker.c - see model/waves_maker.h. */
#include "model/waves_maker.h"
#include "base/threads.h"
#include "base/util.h"

struct fgi_waves_maker {
    const fgi_structure *st;
    int threads;
    fgi_visit_work *work;
    const void *context;
    fgi_thread thread;
    fgi_process process; /* that it is a thread of */
    fgi_waves *waves;    /* what it has made */
    atomic_int stop, ended;
};

static void *make_waves(void *of) {
    fgi_waves_maker *maker = of;
    fgi_waves_create(maker->st, maker->threads, maker->work, maker->context, &maker->stop, &maker->waves);
    atomic_store_explicit(&maker->ended, 1, memory_order_release);
    return NULL;
}

fgi_waves_maker *fgi_waves_maker_start(const fgi_structure *s, int threads, fgi_visit_work *work, const void *context) {
    fgi_waves_maker *maker = fgi_calloc(1, sizeof *maker);
    if (!maker) return NULL;
    maker->st = s;
    maker->threads = threads;
    maker->work = work;
    maker->context = context;
    maker->process = fgi_this_process();
    if (fgi_thread_create(&maker->thread, make_waves, maker) == 0) return maker;
    free(maker);
    return NULL;
}

/* Waits for it. 0: it has stayed behind in the parent of this process, and what it had begun is lost. */
static int join(fgi_waves_maker *maker) {
    if (maker->process != fgi_this_process()) return 0;
    fgi_thread_join(maker->thread);
    return 1;
}

fgi_waves_news fgi_waves_maker_look(fgi_waves_maker **maker, fgi_waves **out) {
    fgi_waves_maker *m = *maker;
    *out = NULL;
    if (m->process == fgi_this_process() && !atomic_load_explicit(&m->ended, memory_order_acquire))
        return FGI_WAVES_COMING;
    *maker = NULL;
    if (!join(m)) return FGI_WAVES_LOST; /* not freed: its memory may be in any state */
    *out = m->waves;
    free(m);
    return FGI_WAVES_DONE;
}

void fgi_waves_maker_free(fgi_waves_maker *maker) {
    if (!maker) return;
    atomic_store(&maker->stop, 1);
    if (!join(maker)) return;
    fgi_waves_free(maker->waves);
    free(maker);
}
