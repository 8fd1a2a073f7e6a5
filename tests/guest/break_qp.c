/* SPDX-License-Identifier: BSD-3-Clause
 * To be preloaded: whenever the file that BREAK_QP names is there, it is removed, and the connected queue pairs of the process
 * are moved to the error state by ibv_modify_qp, as by somebody from outside.  Whoever looks up libibverbs' functions
 * gets those below, which remember the queue pairs. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 256

typedef void *lookup_fn(void *handle, const char *name);
typedef struct ibv_qp *create_fn(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
typedef int modify_fn(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
typedef int destroy_fn(struct ibv_qp *qp);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_qp *all[MOST];
static create_fn *real_create;
static modify_fn *real_modify;
static destroy_fn *real_destroy;

static void replace(struct ibv_qp *what, struct ibv_qp *by)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < MOST && all[i] != what)
		i++;
	if (i < MOST)
		all[i] = by;
	pthread_mutex_unlock(&lock);
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = real_create(pd, attr);

	if (qp)
		replace(NULL, qp);
	return qp;
}

static int destroy(struct ibv_qp *qp)
{
	replace(qp, NULL);
	return real_destroy(qp);
}

static int break_all(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int broken = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MOST; i++)
		broken += all[i] && all[i]->state == IBV_QPS_RTS && !real_modify(all[i], &attr, IBV_QP_STATE);
	pthread_mutex_unlock(&lock);
	return broken;
}

static void *watch(void *file)
{
	for (;;) {
		if (!unlink(file))
			fprintf(stderr, "break_qp: %d queue pairs are in the error state now\n", break_all());
		usleep(5000);
	}
	return NULL;
}

static void *real_dlsym(void *handle, const char *name)
{
	static lookup_fn *real;
	void *symbol;

	if (!real) {
		symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		if (!symbol)
			symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (!symbol)
			abort();
		memcpy(&real, &symbol, sizeof real);
	}
	return real(handle, name);
}

static void begin(void)
{
	pthread_t thread;

	if (getenv("BREAK_QP"))
		pthread_create(&thread, NULL, watch, getenv("BREAK_QP"));
}

void *dlsym(void *handle, const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	void *symbol = real_dlsym(handle, name);

	if (!symbol || strncmp(name, "ibv_", 4))
		return symbol;
	if (!strcmp(name, "ibv_modify_qp"))
		memcpy(&real_modify, &symbol, sizeof symbol);
	if (!strcmp(name, "ibv_create_qp")) {
		memcpy(&real_create, &symbol, sizeof symbol);
		memcpy(&symbol, &(create_fn *){ create }, sizeof symbol);
		pthread_once(&once, begin);
	} else if (!strcmp(name, "ibv_destroy_qp")) {
		memcpy(&real_destroy, &symbol, sizeof symbol);
		memcpy(&symbol, &(destroy_fn *){ destroy }, sizeof symbol);
	}
	return symbol;
}
