#include "presolve.h"
int64_t ps_roof(ps_work *w) { (void)w; return 0; }
