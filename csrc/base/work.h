/* base/work.h - the unit of work: reading an entry of a table, in order, in a loop that the compiler has made wide.
 *
 * What else takes time is counted as so many entries. Meters (base/meter.h) and estimates use these numbers; no result
 * depends on a meter, so only the length of slices does. Methods that count something else (steps of propagation,
 * products of vectors) have a number of their own beside their meter. */
#ifndef FGI_WORK_H
#define FGI_WORK_H

enum {
    FGI_CLOCK_WORK = 1 << 17, /* between two looks at the clock: about a tenth of a millisecond */
    FGI_LINK_WORK = 16,       /* the fixed cost of a message between neighbours in a sweep */
    FGI_FACTOR_WORK = 64      /* the fixed cost of looking a factor up: its view, variables, and messages */
};

#endif
