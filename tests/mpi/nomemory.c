/* SPDX-License-Identifier: BSD-3-Clause
 * A fault to preload: of the allocations that the backend makes after nomemory_arm(n), whichever of its threads makes them, the
 * n-th one fails, and only that.  Those of the MPI library and of the system's are left alone. */
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

bool nomemory_arm(long n);
uintptr_t nomemory_site(void);

/* glibc's own, under the names that it gives them for replacements such as this one. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static uintptr_t begin, end;    /* the backend's code */
static atomic_long left;        /* allocations until the one that fails; 0: none shall */
static atomic_uintptr_t site;   /* where in the backend's code the one that failed was asked for */

static int find_backend(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!object->dlpi_name || !strstr(object->dlpi_name, "libnezha_pmpi_"))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
			begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
			end = begin + object->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

/* The n-th one from now on; 0: none.  false: there is no backend. */
bool nomemory_arm(long n)
{
	if (!end)
		dl_iterate_phdr(find_backend, NULL);
	atomic_store(&site, 0);
	atomic_store(&left, n);
	return end;
}

/* Where it was asked for, one number for each place in the code; 0: it has not failed. */
uintptr_t nomemory_site(void)
{
	return atomic_load(&site);
}

static bool fails(const void *caller)
{
	if ((uintptr_t)caller < begin || (uintptr_t)caller >= end || atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
		return false;
	atomic_store(&site, (uintptr_t)caller - begin);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *got = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);

	if (!got)
		return ENOMEM;
	*out = got;
	return 0;
}
