/* SPDX-License-Identifier: BSD-3-Clause
 * This file is compiled with -ffp-contract=off: were a compiler to fuse operations for one instruction set
 * and not for another, two unlike nodes would fold different bits.  As it is, all sets give the same. */
#include "rails/reduce.h"

#include <stdint.h>

#define ANY(type, name) typedef type name __attribute__((aligned(1), may_alias))
ANY(int8_t, any_int8);
ANY(uint8_t, any_uint8);
ANY(int16_t, any_int16);
ANY(uint16_t, any_uint16);
ANY(int32_t, any_int32);
ANY(uint32_t, any_uint32);
ANY(int64_t, any_int64);
ANY(uint64_t, any_uint64);
ANY(float, any_float32);
ANY(double, any_float64);

/* `out` is one of the operands or apart from both, so no element depends on another one; the compiler
 * cannot know, and its own check at run time would send out == own to the scalar loop. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"    /* that -O0 and sanitizers do not vectorise is fine */
#define NO_CARRIED_DEPENDENCE _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define NO_CARRIED_DEPENDENCE _Pragma("GCC ivdep")
#endif

#define SET(name) name##_base
#define TARGET
#include "rails/reduce_loops.h"

/* On vectors in the cache AVX2 doubles what the base set of x86-64 gives (59 GB/s instead of 30 for a
 * float sum, 44 instead of 14 for a 64-bit minimum, gcc 12 on a Zen 4); AVX-512 was slower than AVX2
 * there, so there is no third set. */
#ifdef __x86_64__
#define SET(name) name##_avx2
#define TARGET __attribute__((target("avx2")))
#include "rails/reduce_loops.h"
#endif

nezha_reduce_fn *nezha_reduce_kernel_of(enum nezha_reduce_set set, enum nezha_type type, enum nezha_op op)
{
	switch (set) {
	case NEZHA_REDUCE_BASE:
		return kernels_base[type][op];
	case NEZHA_REDUCE_AVX2:
#ifdef __x86_64__
		/* Not by ifunc (target_clones): its resolvers run before a sanitizer is ready for them. */
		if (__builtin_cpu_supports("avx2"))
			return kernels_avx2[type][op];
#endif
		return NULL;
	default:
		return NULL;
	}
}

nezha_reduce_fn *nezha_reduce_kernel(enum nezha_type type, enum nezha_op op)
{
	nezha_reduce_fn *kernel = nezha_reduce_kernel_of(NEZHA_REDUCE_AVX2, type, op);

	return kernel ? kernel : nezha_reduce_kernel_of(NEZHA_REDUCE_BASE, type, op);
}
