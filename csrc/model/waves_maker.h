/* model/waves_maker.h - waves (model/waves.h) found by a thread of its own.
 *
 * To find them takes as long as a sweep or two. The first sweeps go on without them; since waves change no number, it
 * does not matter when they are there. */
#ifndef FGI_WAVES_MAKER_H
#define FGI_WAVES_MAKER_H
#include "model/waves.h"

typedef struct fgi_waves_maker fgi_waves_maker;

/* Structure and context stay until the maker is gone, and what they tell does not change. NULL without the memory or
 * the thread for it: there will be no waves. */
fgi_waves_maker *fgi_waves_maker_start(const fgi_structure *s, int threads, fgi_visit_work *work, const void *context);

/* Is it done? Then the maker is gone: *maker is NULL and *out what it has made, NULL if that is nothing. LOST: in a
 * forked child, where its thread is not; it can be started again. */
typedef enum fgi_waves_news { FGI_WAVES_COMING, FGI_WAVES_DONE, FGI_WAVES_LOST } fgi_waves_news;
fgi_waves_news fgi_waves_maker_look(fgi_waves_maker **maker, fgi_waves **out);

/* Ends it soon. NULL is fine. */
void fgi_waves_maker_free(fgi_waves_maker *maker);

#endif
