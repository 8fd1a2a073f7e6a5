/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/handles.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* What the standard calls a group of types; it decides which operations are valid. */
enum family { C_INTEGER, FORTRAN_INTEGER, MULTI_LANGUAGE, FLOATING };

/* X(handle, family, signed), the common ones first: they are searched in this order.  The standard has no reduction of
 * MPI_CHAR (MPI 4.0, 6.9.2), but both MPIs reduce it as the C type, and it is what OSU's benchmarks use when nothing else is
 * asked for. */
#define TYPES(X) \
	X(MPI_FLOAT, FLOATING, true) \
	X(MPI_DOUBLE, FLOATING, true) \
	X(MPI_INT, C_INTEGER, true) \
	X(MPI_LONG, C_INTEGER, true) \
	X(MPI_DOUBLE_PRECISION, FLOATING, true) \
	X(MPI_REAL, FLOATING, true) \
	X(MPI_INTEGER, FORTRAN_INTEGER, true) \
	X(MPI_UNSIGNED, C_INTEGER, false) \
	X(MPI_UNSIGNED_LONG, C_INTEGER, false) \
	X(MPI_LONG_LONG, C_INTEGER, true) \
	X(MPI_UNSIGNED_LONG_LONG, C_INTEGER, false) \
	X(MPI_INT8_T, C_INTEGER, true) \
	X(MPI_INT16_T, C_INTEGER, true) \
	X(MPI_INT32_T, C_INTEGER, true) \
	X(MPI_INT64_T, C_INTEGER, true) \
	X(MPI_UINT8_T, C_INTEGER, false) \
	X(MPI_UINT16_T, C_INTEGER, false) \
	X(MPI_UINT32_T, C_INTEGER, false) \
	X(MPI_UINT64_T, C_INTEGER, false) \
	X(MPI_SHORT, C_INTEGER, true) \
	X(MPI_UNSIGNED_SHORT, C_INTEGER, false) \
	X(MPI_SIGNED_CHAR, C_INTEGER, true) \
	X(MPI_UNSIGNED_CHAR, C_INTEGER, false) \
	X(MPI_CHAR, C_INTEGER, CHAR_MIN < 0) \
	X(MPI_REAL4, FLOATING, true) \
	X(MPI_REAL8, FLOATING, true) \
	X(MPI_INTEGER1, FORTRAN_INTEGER, true) \
	X(MPI_INTEGER2, FORTRAN_INTEGER, true) \
	X(MPI_INTEGER4, FORTRAN_INTEGER, true) \
	X(MPI_INTEGER8, FORTRAN_INTEGER, true) \
	X(MPI_AINT, MULTI_LANGUAGE, true) \
	X(MPI_OFFSET, MULTI_LANGUAGE, true) \
	X(MPI_COUNT, MULTI_LANGUAGE, true)

#define OPS(X) \
	X(MPI_SUM, NEZHA_SUM) \
	X(MPI_MAX, NEZHA_MAX) \
	X(MPI_MIN, NEZHA_MIN) \
	X(MPI_PROD, NEZHA_PROD) \
	X(MPI_LAND, NEZHA_LAND) \
	X(MPI_LOR, NEZHA_LOR) \
	X(MPI_LXOR, NEZHA_LXOR) \
	X(MPI_BAND, NEZHA_BAND) \
	X(MPI_BOR, NEZHA_BOR) \
	X(MPI_BXOR, NEZHA_BXOR)

#define X(...) +1
_Static_assert(0 TYPES(X) <= NEZHA_HANDLES_MAX, "room for all types");
#undef X

/* Open MPI reduces 8- and 16-bit sums with saturating instructions where the CPU has them, and without where
 * not (ompi#8045): nobody but itself can give its answer. */
#ifdef OPEN_MPI
#define NARROW_ARITHMETIC_NATIVE true
#else
#define NARROW_ARITHMETIC_NATIVE false
#endif

/* Some types are compared in an order that is not theirs, so that MAX and MIN of unsigned numbers come
 * out wrong: by MPICH 4.0.2 all unsigned ones, by Open MPI 4.1.4 unsigned long (as if it had a sign) and
 * MPI_OFFSET (as if it had none).  A result must not depend on which way a call went: these are left to
 * the library. */
static bool is_misordered(const struct nezha_handle *entry)
{
#ifdef OPEN_MPI
	return entry->handle == MPI_UNSIGNED_LONG || entry->handle == MPI_OFFSET;
#else
	return entry->type == NEZHA_UINT8 || entry->type == NEZHA_UINT16 || entry->type == NEZHA_UINT32 ||
	       entry->type == NEZHA_UINT64;
#endif
}

/* How the type is represented here; false: in a way that Nezha does not reduce. */
static bool represent(enum family family, bool is_signed, int size, enum nezha_type *out)
{
	switch (size) {
	case 1: *out = is_signed ? NEZHA_INT8 : NEZHA_UINT8; break;
	case 2: *out = is_signed ? NEZHA_INT16 : NEZHA_UINT16; break;
	case 4: *out = is_signed ? NEZHA_INT32 : NEZHA_UINT32; break;
	case 8: *out = is_signed ? NEZHA_INT64 : NEZHA_UINT64; break;
	default: return false;
	}
	if (family != FLOATING)
		return true;
	*out = size == 8 ? NEZHA_FLOAT64 : NEZHA_FLOAT32;
	return size >= 4;
}

/* A Fortran type may be null or of size 0 in a library without Fortran, and of any size by a compiler's
 * option. */
static void add_type(struct nezha_handles *handles, MPI_Datatype handle, enum family family, bool is_signed)
{
	struct nezha_handle *entry = &handles->types[handles->count];
	int size = 0;

	if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &size) != MPI_SUCCESS)
		return;
	if (!represent(family, is_signed, size, &entry->type))
		return;
	entry->handle = handle;
	entry->family = family;
	handles->count++;
}

void nezha_handles_list(struct nezha_handles *out)
{
	out->count = 0;
#define X(handle, family, is_signed) add_type(out, handle, family, is_signed);
	TYPES(X)
#undef X
}

static const struct nezha_handle *find_type(const struct nezha_handles *handles, MPI_Datatype datatype)
{
	for (size_t i = 0; i < handles->count; i++)
		if (handles->types[i].handle == datatype)
			return &handles->types[i];
	return NULL;
}

size_t nezha_handles_size(const struct nezha_handles *handles, MPI_Datatype datatype)
{
	const struct nezha_handle *entry = find_type(handles, datatype);

	return entry ? nezha_type_size(entry->type) : 0;
}

static bool find_op(MPI_Op operation, enum nezha_op *out)
{
#define X(handle, op) \
	if (operation == handle) { \
		*out = op; \
		return true; \
	}
	OPS(X)
#undef X
	return false;
}

/* Logical operations are for C's integers only, bitwise ones for all but floating point. */
static bool is_valid(enum nezha_op op, const struct nezha_handle *entry)
{
	if (op == NEZHA_LAND || op == NEZHA_LOR || op == NEZHA_LXOR)
		return entry->family == C_INTEGER;
	if ((op == NEZHA_SUM || op == NEZHA_PROD) && nezha_type_size(entry->type) < 4)
		return !NARROW_ARITHMETIC_NATIVE;
	if ((op == NEZHA_MIN || op == NEZHA_MAX) && is_misordered(entry))
		return false;
	return nezha_op_fits(op, entry->type);
}

enum nezha_reason nezha_handles_match(const struct nezha_handles *handles, MPI_Datatype datatype,
                                      MPI_Op operation, enum nezha_type *type, enum nezha_op *op)
{
	const struct nezha_handle *entry = find_type(handles, datatype);

	if (!entry)
		return NEZHA_REASON_TYPE;
	*type = entry->type;
	return find_op(operation, op) && is_valid(*op, entry) ? NEZHA_REASON_RULE : NEZHA_REASON_OP;
}
