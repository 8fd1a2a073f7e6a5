/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/sharp_api.h"

#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static_assert(sizeof(struct nezha_sharp_config) == 32 && sizeof(struct nezha_sharp_init) == 120 &&
              sizeof(struct nezha_sharp_group) == 32 && sizeof(struct nezha_sharp_buffer) == 40 &&
              sizeof(struct nezha_sharp_reduce) == 136, "the interface's layout");

static struct nezha_sharp_api api;
static char why_not[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The one object of which it is known how large it is: another size means another interface. */
static bool has_our_layout(const void *defaults)
{
	Dl_info info;
	const ElfW(Sym) *symbol = NULL;

	return dladdr1(defaults, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	       symbol->st_size == sizeof(struct nezha_sharp_config);
}

static bool find_all(void *library)
{
	const struct {
		const char *name;
		void *into;
	} wanted[] = {
		{ "sharp_coll_default_config", &api.defaults }, { "sharp_coll_init", &api.init },
		{ "sharp_coll_finalize", &api.end }, { "sharp_coll_caps_query", &api.caps },
		{ "sharp_coll_progress", &api.progress }, { "sharp_coll_comm_init", &api.group_init },
		{ "sharp_coll_comm_destroy", &api.group_end }, { "sharp_coll_reg_mr", &api.register_memory },
		{ "sharp_coll_dereg_mr", &api.release_memory }, { "sharp_coll_do_allreduce_nb", &api.allreduce },
		{ "sharp_coll_req_test", &api.test }, { "sharp_coll_req_free", &api.release },
		{ "sharp_coll_strerror", &api.text },
	};

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		void *found = dlsym(library, wanted[i].name);

		if (!found) {
			snprintf(why_not, sizeof why_not, "libsharp_coll has no %s", wanted[i].name);
			return false;
		}
		*(void **)wanted[i].into = found;
	}
	return true;
}

static void load(void)
{
	static const char *const names[] = { "libsharp_coll.so.5", "libsharp_coll.so" };
	void *library = NULL;

	for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		snprintf(why_not, sizeof why_not, "%s", dlerror());
	else if (find_all(library) && !has_our_layout(api.defaults))
		snprintf(why_not, sizeof why_not, "libsharp_coll is of a version with another interface");
}

const struct nezha_sharp_api *nezha_sharp_load(const char **why)
{
	pthread_once(&once, load);
	*why = why_not;
	return *why_not ? NULL : &api;
}

int nezha_sharp_type(enum nezha_type type)
{
	static const signed char number[NEZHA_TYPE_COUNT] = {
		[NEZHA_UINT32] = 0, [NEZHA_INT32] = 1, [NEZHA_UINT64] = 2, [NEZHA_INT64] = 3, [NEZHA_FLOAT32] = 4,
		[NEZHA_FLOAT64] = 5, [NEZHA_UINT16] = 6, [NEZHA_INT16] = 7, [NEZHA_UINT8] = 10, [NEZHA_INT8] = 11,
	};

	return number[type];
}

int nezha_sharp_operation(enum nezha_op op)
{
	switch (op) {
	case NEZHA_MAX:
		return 0;
	case NEZHA_MIN:
		return 1;
	case NEZHA_SUM:
		return 2;
	case NEZHA_BAND:
		return 5;
	case NEZHA_BOR:
		return 7;
	case NEZHA_BXOR:
		return 9;
	default:
		return NEZHA_SHARP_NONE;
	}
}
