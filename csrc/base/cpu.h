/* base/cpu.h - what the processor at hand can do. */
#ifndef FGI_CPU_H
#define FGI_CPU_H

int fgi_cpu_has_avx2(void); /* and the system saves its registers; 0 on other machines */

#endif
