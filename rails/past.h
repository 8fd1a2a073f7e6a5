/* SPDX-License-Identifier: BSD-3-Clause
 * Copying past the caches: what is written is not read into them first, nor does it drive out what lies there.  For vectors which
 * all together are larger than the caches: a third of the memory traffic of such a copy is the reading of what it overwrites (Intel 64
 * and IA-32 Architectures Optimization Reference Manual, non-temporal stores).  Pure. */
#ifndef NEZHA_RAILS_PAST_H
#define NEZHA_RAILS_PAST_H

#include <stddef.h>

/* As memcpy; where the processor has no such stores, it is memcpy.  What is written is seen by others as after memcpy. */
void nezha_past_copy(void *to, const void *from, size_t bytes);

#endif
