/* kernels.h - the few hot loops, each in a portable and a SIMD version that give the same bits; chosen once, at load time. */
#ifndef FGI_KERNELS_H
#define FGI_KERNELS_H
#include "fginfer.h"

#endif
