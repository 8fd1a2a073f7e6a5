/* SPDX-License-Identifier: BSD-3-Clause
 * What Nezha must leave to the MPI library: prints, for each such call, what came back - the error class, how
 * often the error handler ran, a digest of the result.  A driver compares the output with and without the
 * preload: it must be the same to the letter.  Vectors are large, so that only the case itself keeps them off
 * the rails.
 *   native [-f CASE]      -f: only this one, which is deadly in one of the libraries; -f "" lists them */
#include "tests/mpi/common.h"
#include "tests/mpi/values.h"

#define COUNT (1 << 18) /* of 4-byte elements: 1 MiB */

static unsigned char in[COUNT * 16 + 64] __attribute__((aligned(64)));
static unsigned char out[COUNT * 16 + 64] __attribute__((aligned(64)));
static atomic_int handled;
static MPI_Errhandler counting;

static void count_error(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	handled++;
}

static void clear(void)
{
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i % 3);
	memset(out, 0, sizeof(out));
	handled = 0;
}

/* Prints what rank 0 saw and checks that all ranks saw the same. */
static void tell(const char *name, int error)
{
	struct {
		uint64_t digest;
		int class, handled;
	} mine, first;

	memset(&mine, 0, sizeof(mine));
	MPI_Error_class(error, &mine.class);
	mine.digest = values_digest(0, out, sizeof(out));
	mine.handled = handled;
	first = mine;
	MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
	if (memcmp(&first, &mine, sizeof(first)))
		printf("%s: rank %d differs from rank 0\n", name, world_rank);
	if (world_rank == 0)
		printf("%s: class %d handler %d digest %016llx\n", name, mine.class, mine.handled,
		       (unsigned long long)mine.digest);
	clear();
}

static void call(const char *name, const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm)
{
	watched = name;
	tell(name, MPI_Allreduce(send, receive, count, type, op, comm));
}

static void add_pairs(void *a, void *b, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)b)[i] += 2 * ((int *)a)[i];
}

static void types(void)
{
	MPI_Datatype three, pair;

	call("BYTE BXOR", in, out, 4 * COUNT, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
	call("WCHAR SUM", in, out, COUNT, MPI_WCHAR, MPI_SUM, MPI_COMM_WORLD);
	call("C_BOOL LOR", in, out, COUNT, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
	call("LOGICAL LAND", in, out, COUNT, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD);
	call("INTEGER LAND", in, out, COUNT, MPI_INTEGER, MPI_LAND, MPI_COMM_WORLD);
	call("AINT LXOR", in, out, COUNT, MPI_AINT, MPI_LXOR, MPI_COMM_WORLD);
	call("FLOAT BAND", in, out, COUNT, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD);
	memset(in, 0, sizeof(in)); /* long double: bytes of anything else would not be numbers */
	call("LONG_DOUBLE SUM", in, out, COUNT, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	call("C_FLOAT_COMPLEX PROD", in, out, COUNT, MPI_C_FLOAT_COMPLEX, MPI_PROD, MPI_COMM_WORLD);
	call("COMPLEX MAX", in, out, COUNT, MPI_COMPLEX, MPI_MAX, MPI_COMM_WORLD);
	call("FLOAT_INT MAXLOC", in, out, COUNT, MPI_FLOAT_INT, MPI_MAXLOC, MPI_COMM_WORLD);
	call("2INT MINLOC", in, out, COUNT, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
	call("INT MINLOC", in, out, COUNT, MPI_INT, MPI_MINLOC, MPI_COMM_WORLD);
	call("PACKED BOR", in, out, COUNT, MPI_PACKED, MPI_BOR, MPI_COMM_WORLD);
	call("null type", in, out, COUNT, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);

	MPI_Type_contiguous(3, MPI_INT, &three);
	call("uncommitted type", in, out, COUNT, three, MPI_SUM, MPI_COMM_WORLD);
	MPI_Type_commit(&three);
	call("derived type", in, out, COUNT, three, MPI_SUM, MPI_COMM_WORLD);
	MPI_Type_free(&three);
	MPI_Type_dup(MPI_INT, &pair);
	call("dup of INT", in, out, COUNT, pair, MPI_SUM, MPI_COMM_WORLD);
	MPI_Type_free(&pair);
}

static void ops(void)
{
	MPI_Op own;
	MPI_Datatype three;

	MPI_Op_create(add_pairs, 1, &own);
	call("user op", in, out, COUNT, MPI_INT, own, MPI_COMM_WORLD);
	MPI_Type_contiguous(1, MPI_INT, &three);
	MPI_Type_commit(&three);
	call("user op on a derived type", in, out, COUNT, three, own, MPI_COMM_WORLD);
	MPI_Type_free(&three);
	MPI_Op_free(&own);
	call("null op", in, out, COUNT, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD);
	call("REPLACE", in, out, COUNT, MPI_INT, MPI_REPLACE, MPI_COMM_WORLD);
	call("NO_OP", in, out, COUNT, MPI_INT, MPI_NO_OP, MPI_COMM_WORLD);
}

static void arguments(void)
{
	call("count 0", in, out, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	call("count 0, null buffers", NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	call("receive in place", in, MPI_IN_PLACE, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	call("same buffer twice", out, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	call("null communicator", in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_NULL);
}

static void communicators(void)
{
	MPI_Comm half, inter, grid;
	MPI_Group group;
	int dims[1] = { world_size }, periods[1] = { 1 };

	call("SELF", in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_SELF);
	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid);
	call("cartesian", in, out, COUNT, MPI_INT, MPI_SUM, grid);
	MPI_Comm_free(&grid);
	MPI_Comm_group(MPI_COMM_WORLD, &group);
	MPI_Comm_create(MPI_COMM_WORLD, group, &half);
	call("of a group", in, out, COUNT, MPI_INT, MPI_SUM, half);
	MPI_Comm_free(&half);
	MPI_Group_free(&group);
	if (world_size > 1) {
		MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
		MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 1, &inter);
		memset(in, world_rank % 2, sizeof(in));
		watched = "intercommunicator";
		int error = MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_BOR, inter);
		memset(out, out[0] ^ world_rank % 2, sizeof(out)); /* the two sides get each other's */
		tell("intercommunicator", error);
		MPI_Comm_free(&inter);
		MPI_Comm_free(&half);
	}
#ifdef MPICH /* Open MPI's handle is a pointer to freed memory by then */
	MPI_Comm copy;
	MPI_Comm_dup(MPI_COMM_WORLD, &half);
	call("before free", in, out, COUNT, MPI_INT, MPI_SUM, half);
	copy = half;
	MPI_Comm_free(&half);
	call("after free", in, out, COUNT, MPI_INT, MPI_SUM, copy);
#endif
}

/* A call on COMM_WORLD must obey the handler of COMM_WORLD, one on a communicator that communicator's. */
static void handlers(void)
{
	MPI_Comm own;

	MPI_Comm_dup(MPI_COMM_WORLD, &own);
	MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
	call("own handler returns", in, out, COUNT, MPI_INT, MPI_OP_NULL, own);
	MPI_Comm_set_errhandler(own, counting);
	call("own handler counts", in, out, COUNT, MPI_INT, MPI_OP_NULL, own);
	MPI_Comm_free(&own);
}

/* Errors that some library does not find before it falls over: they must not become anything else. */
static int deadly(const char *name)
{
	const struct {
		const char *name;
		void *send, *receive;
		int count;
		MPI_Datatype type;
		MPI_Op op;
	} cases[] = {
		{ "null-send", NULL, out, COUNT, MPI_INT, MPI_SUM },
		{ "null-receive", in, NULL, COUNT, MPI_INT, MPI_SUM },
		{ "double-land", in, out, COUNT, MPI_DOUBLE, MPI_LAND },
		{ "count-negative", in, out, -1, MPI_INT, MPI_SUM },
		{ "count-lowest", in, out, -2147483647 - 1, MPI_INT, MPI_SUM },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, name)) {
			call(name, cases[i].send, cases[i].receive, cases[i].count, cases[i].type,
			     cases[i].op, MPI_COMM_WORLD);
			return finish("native");
		} else if (!*name && world_rank == 0) {
			printf("%s\n", cases[i].name);
		}
	MPI_Finalize();
	return *name ? 2 : 0;
}

int main(int argc, char **argv)
{
	begin(&argc, &argv, MPI_THREAD_SINGLE);
	MPI_Comm_create_errhandler(count_error, &counting);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, counting);
	clear();
	watch(120, "start");
	if (argc == 3 && !strcmp(argv[1], "-f"))
		return deadly(argv[2]);
	if (argc > 1)
		return 2;
	types();
	ops();
	arguments();
	communicators();
	handlers();
	MPI_Errhandler_free(&counting);
	return finish("native");
}
