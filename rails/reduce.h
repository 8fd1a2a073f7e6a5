/* SPDX-License-Identifier: BSD-3-Clause
 * The reduction kernels: plain loops that the compiler vectorises, one per (type, operation). */
#ifndef NEZHA_RAILS_REDUCE_H
#define NEZHA_RAILS_REDUCE_H

#include <stddef.h>

#include "tuning/types.h"

/* out[i] = partial[i] op own[i] for i < n elements.  `partial` is what came from the ring and is always
 * the left operand: the fold order, on which the bits of a result depend.  `out` may equal `own` or `partial`, no other
 * overlap.  Any alignment is allowed.  Signed overflow wraps (as the MPI libraries' compiled loops do).
 * Integer MIN/MAX as usual; float MIN/MAX return `partial` unless `own` is smaller/larger; a sum or
 * product of two NaNs is one of both, which one is not said. */
typedef void nezha_reduce_fn(void *out, const void *partial, const void *own, size_t n);

/* The fastest kernel of this CPU; NULL if the operation is not defined on the type (see nezha_op_fits). */
nezha_reduce_fn *nezha_reduce_kernel(enum nezha_type type, enum nezha_op op);

/* The same for one instruction set, NULL also if this CPU lacks it: for tests and benchmarks.  All sets
 * give the same bits. */
enum nezha_reduce_set { NEZHA_REDUCE_BASE, NEZHA_REDUCE_AVX2, NEZHA_REDUCE_SETS };
nezha_reduce_fn *nezha_reduce_kernel_of(enum nezha_reduce_set set, enum nezha_type type, enum nezha_op op);

#endif
