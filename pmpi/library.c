/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS_MAX 4096
#define VERSION_MAX (16 << 10)   /* bytes; the most that a library's mpi.h allows itself is 8 KiB */
#define WANTED "PMPI_Get_library_version"

struct object {
	uintptr_t address;      /* in: what it shall contain */
	uintptr_t low, high;
	const char *name;
};

struct names {
	size_t count;
	char *name[OBJECTS_MAX];
};

static int compare_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct object *object = context;
	uintptr_t low = UINTPTR_MAX, high = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (begin < low)
			low = begin;
		if (begin + segment->p_memsz > high)
			high = begin + segment->p_memsz;
	}
	if (object->address < low || object->address >= high)
		return 0;
	object->low = low;
	object->high = high;
	object->name = info->dlpi_name;
	return 1;
}

/* The object that contains the address; its name is the loader's, "" for the program itself. */
static bool find_object(const void *address, struct object *out)
{
	*out = (struct object){ .address = (uintptr_t)address };
	return dl_iterate_phdr(compare_object, out) == 1;
}

static int collect_name(struct dl_phdr_info *info, size_t size, void *context)
{
	struct names *names = context;

	(void)size;
	if (names->count < OBJECTS_MAX && (names->name[names->count] = strdup(info->dlpi_name)))
		names->count++;
	return 0;
}

static void *open_loaded(const char *name, int flags)
{
	return dlopen(name[0] ? name : NULL, RTLD_LAZY | RTLD_NOLOAD | flags);
}

/* The names come first: dlopen within dl_iterate_phdr would take the loader's locks in the wrong order. */
static void *find_symbol(void)
{
	struct names *names = calloc(1, sizeof(*names));
	void *symbol = NULL;

	if (!names)
		return NULL;
	dl_iterate_phdr(collect_name, names);
	for (size_t i = 0; i < names->count; i++) {
		void *handle = symbol ? NULL : open_loaded(names->name[i], 0);

		if (handle) {
			symbol = dlsym(handle, WANTED);
			dlclose(handle);
		}
		free(names->name[i]);
	}
	free(names);
	return symbol;
}

/* What it calls itself: the first line, as far as there is room.  Allowed before MPI_Init. */
static void ask_version(void *symbol, char *version, size_t room)
{
	static char text[VERSION_MAX];
	int length = 0;

	if (((int (*)(char *, int *))symbol)(text, &length))
		text[0] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	snprintf(version, room, "%s", text);
}

/* The library with MPI 5's own ABI, whoever made it, has that name: its handles are others. */
static bool is_of_standard_abi(const char *name)
{
	const char *base = strrchr(name, '/');

	return !strncmp(base ? base + 1 : name, "libmpi_abi.", strlen("libmpi_abi."));
}

/* Handles are numbers in MPICH's ABI, and whoever takes another library's for them crashes at best. */
static const char *find_flavour(const struct nezha_library *library, const char *name)
{
	static const char *const descendants[] = { "MPICH", "Intel(R) MPI", "MVAPICH", "ParaStation" };

	if (is_of_standard_abi(name))
		return NULL;
	if (dlsym(library->handle, "ompi_mpi_comm_world"))
		return "openmpi";
	for (size_t i = 0; i < sizeof(descendants) / sizeof(descendants[0]); i++)
		if (strstr(library->version, descendants[i]))
			return "mpich";
	return NULL;
}

bool nezha_library_find(struct nezha_library *out)
{
	void *symbol = find_symbol();
	struct object object;

	if (!symbol || !find_object(symbol, &object))
		return false;
	out->handle = open_loaded(object.name, RTLD_GLOBAL);
	if (!out->handle)
		return false;
	ask_version(symbol, out->version, sizeof(out->version));
	out->flavour = find_flavour(out, object.name);
	out->low = object.low;
	out->high = object.high;
	return true;
}

bool nezha_library_owns(const struct nezha_library *library, const void *code)
{
	struct object object;
	const char *base;

	if ((uintptr_t)code >= library->low && (uintptr_t)code < library->high)
		return true;
	if (!find_object(code, &object))
		return false;
	base = strrchr(object.name, '/');
	return base && !strncmp(base + 1, "mca_", 4);
}
