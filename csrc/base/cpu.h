/* base/cpu.h - what the processor at hand can do, and the system saves the registers of; 0 on other machines. */
#ifndef FGI_CPU_H
#define FGI_CPU_H

int fgi_cpu_has_avx2(void);
int fgi_cpu_has_avx512(void); /* its foundation */

#endif
