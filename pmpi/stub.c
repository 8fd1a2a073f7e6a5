/* SPDX-License-Identifier: BSD-3-Clause
 * The library that is preloaded.  It has no part of MPI in it and loads nothing until the process calls
 * MPI; then it finds out which MPI that is and hands the calls to the backend for it.
 *
 * It is the bottom layer of a stack of tools, wherever it stands in LD_PRELOAD: MPI_X goes on to a tool
 * that comes after us, if there is one, and the tool comes back with PMPI_X, which does the work.
 * Fortran's entry points need no symbols of ours: they call MPI_X (MPICH) or PMPI_X (Open MPI). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmpi/entry.h"
#include "pmpi/folder.h"
#include "pmpi/library.h"
#include "pmpi/nezha.h"

#define EXPORT __attribute__((visibility("default")))
#define WORDS nezha_word a, nezha_word b, nezha_word c, nezha_word d, nezha_word e, nezha_word f
#define HERE ((nezha_word)__builtin_return_address(0))

#define MPI_SUCCESS 0      /* so in every MPI */
#define MPI_ERR_COUNT 2
#define MPI_ERR_OTHER 15

static struct {
	pthread_once_t resolved, loaded;
	struct nezha_library library;
	struct nezha_host host;
	const struct nezha_backend *backend;    /* NULL: not yet, or never, loaded */
	nezha_call_fn *tool[NEZHA_CALL_COUNT];  /* who comes after us with MPI_X, NULL: the library */
	nezha_call_fn *mpi[NEZHA_CALL_COUNT];   /* where MPI_X goes; NULL: not yet resolved */
	nezha_call_fn *pmpi[NEZHA_CALL_COUNT];  /* where PMPI_X goes */
	const struct nezha_tuner *tuner;        /* NULL: no backend */
} stub = { .resolved = PTHREAD_ONCE_INIT, .loaded = PTHREAD_ONCE_INIT };

static const char *const mpi_names[] = {
#define X(name) "MPI_" #name,
	NEZHA_CALLS(X)
#undef X
};

static const char *const pmpi_names[] = {
#define X(name) "PMPI_" #name,
	NEZHA_CALLS(X)
#undef X
};

/* Nothing will come of Nezha: why.  Once per job, as far as the launcher tells ranks apart. */
static void complain(const char *why, const char *what)
{
	static const char *const names[] = { "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *rank = getenv(names[i]);

		if (rank && strcmp(rank, "0"))
			return;
	}
	fprintf(stderr, "nezha error: all calls go to the MPI library: %s%s\n", why, what);
}

/* An MPI without large counts does not have this one, but somebody may have found ours with dlsym. */
static int call_allreduce_narrow(WORDS, nezha_word caller)
{
	if ((int64_t)c != (int)c)
		return MPI_ERR_COUNT;
	return stub.host.native[NEZHA_CALL_Allreduce](a, b, c, d, e, f, caller);
}

static int call_absent(WORDS, nezha_word caller)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)caller;
	return MPI_ERR_OTHER;
}

static bool from_library(const void *code)
{
	return nezha_library_owns(&stub.library, code);
}

static bool within_library(const void *address)
{
	return (uintptr_t)address >= stub.library.low && (uintptr_t)address < stub.library.high;
}

static void direct(enum nezha_call call, nezha_call_fn *fn)
{
	__atomic_store_n(&stub.pmpi[call], fn, __ATOMIC_RELEASE);
	__atomic_store_n(&stub.mpi[call], stub.tool[call] ? stub.tool[call] : fn, __ATOMIC_RELEASE);
}

static int begin_init(WORDS, nezha_word caller);
static int begin_init_thread(WORDS, nezha_word caller);

static void resolve(void)
{
	bool found = nezha_library_find(&stub.library);

	/* What is no MPI library of ours, as one for a single process in a program's own libraries, stays as it is. */
	if (!found && !dlsym(RTLD_NEXT, mpi_names[NEZHA_CALL_Init]))
		complain("but there is none in this process", "");
	if (found && !stub.library.flavour)
		complain("its ABI is neither Open MPI's nor MPICH's own: ", stub.library.version);
	stub.host.from_library = from_library;
	for (int i = 0; i < NEZHA_CALL_COUNT; i++) {
		void *next = dlsym(RTLD_NEXT, mpi_names[i]);
		void *native = dlsym(found ? stub.library.handle : RTLD_NEXT, pmpi_names[i]);

		/* Its MPI_X may call its PMPI_X, which is ours to pass on. */
		if (next && !within_library(next))
			stub.tool[i] = (nezha_call_fn *)next;
		if (!native && !found)
			native = next;
		stub.host.native[i] = native ? (nezha_call_fn *)native : call_absent;
		if (!native && i == NEZHA_CALL_Allreduce_c)
			stub.host.native[i] = call_allreduce_narrow;
	}
	/* Until MPI_Init, all but that is the library's. */
	for (int i = 0; i < NEZHA_CALL_COUNT; i++) {
		if (i == NEZHA_CALL_Init)
			direct(i, begin_init);
		else if (i == NEZHA_CALL_Init_thread)
			direct(i, begin_init_thread);
		else
			direct(i, stub.host.native[i]);
	}
}

/* The backend's own file, from the folder that we came from. */
static void *open_backend(void)
{
	char folder[4096], path[4096 + 64];
	void *handle;

	if (nezha_folder_find(open_backend, folder, sizeof(folder))) {
		complain("the folder of libnezha_pmpi.so cannot be found", "");
		return NULL;
	}
	snprintf(path, sizeof(path), "%s/libnezha_pmpi_%s.so", folder, stub.library.flavour);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle)
		complain("the backend for it cannot be loaded: ", dlerror());
	return handle;
}

static void load(void)
{
	void *handle = stub.library.flavour ? open_backend() : NULL;
	nezha_backend_fn *attach = handle ? (nezha_backend_fn *)dlsym(handle, NEZHA_BACKEND_SYMBOL) : NULL;
	const struct nezha_backend *backend = attach ? attach(&stub.host) : NULL;

	if (handle && !attach)
		complain("the backend is of another version: it lacks ", NEZHA_BACKEND_SYMBOL);
	if (backend)
		stub.tuner = backend->tuner;
	for (int i = 0; i < NEZHA_CALL_COUNT; i++)
		direct(i, backend ? backend->calls[i] : stub.host.native[i]);
	__atomic_store_n(&stub.backend, backend, __ATOMIC_RELEASE);
}

static int begin_init(WORDS, nezha_word caller)
{
	pthread_once(&stub.loaded, load);
	return stub.pmpi[NEZHA_CALL_Init](a, b, c, d, e, f, caller);
}

static int begin_init_thread(WORDS, nezha_word caller)
{
	pthread_once(&stub.loaded, load);
	return stub.pmpi[NEZHA_CALL_Init_thread](a, b, c, d, e, f, caller);
}

/* The target of a call out of stub.mpi or stub.pmpi. */
static inline nezha_call_fn *target(nezha_call_fn **entry)
{
	nezha_call_fn *fn = __atomic_load_n(entry, __ATOMIC_ACQUIRE);

	if (__builtin_expect(!fn, 0)) {
		pthread_once(&stub.resolved, resolve);
		fn = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
	}
	return fn;
}

/* For nezha-tune alone (tuner.h). */
EXPORT const struct nezha_tuner *nezha_tuner_2(void);

EXPORT const struct nezha_tuner *nezha_tuner_2(void)
{
	return stub.tuner;
}

EXPORT int MPI_Allreduce(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Allreduce])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Allreduce(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Allreduce])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Allreduce_c(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Allreduce_c])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Allreduce_c(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Allreduce_c])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Init(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Init])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Init(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Init])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Init_thread(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Init_thread])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Init_thread(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Init_thread])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Finalize(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Finalize])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Finalize(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Finalize])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Comm_set_info(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Comm_set_info])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Comm_set_info(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Comm_set_info])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Comm_dup_with_info(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Comm_dup_with_info])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Comm_dup_with_info(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Comm_dup_with_info])(a, b, c, d, e, f, HERE);
}

EXPORT int MPI_Pcontrol(WORDS)
{
	return target(&stub.mpi[NEZHA_CALL_Pcontrol])(a, b, c, d, e, f, HERE);
}

EXPORT int PMPI_Pcontrol(WORDS)
{
	return target(&stub.pmpi[NEZHA_CALL_Pcontrol])(a, b, c, d, e, f, HERE);
}

EXPORT size_t nezha_rail_counters(struct nezha_rail_counter *out, size_t max)
{
	const struct nezha_backend *backend = __atomic_load_n(&stub.backend, __ATOMIC_ACQUIRE);

	return backend ? backend->rail_counters(out, max) : 0;
}
