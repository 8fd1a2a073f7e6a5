/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/conformance/fake_region.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REGIONS 1024            /* at a time */
#define KEY 7000u               /* of the first */
#define PAGE 4096u

struct region {
	struct ibv_mr ibv;
	char *pages;            /* a second mapping of the pages that it began with; NULL: there is none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *regions[REGIONS];
static int count;
static long ever;

static char *page_of(const void *at)
{
	return (char *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
}

static size_t bytes_of_pages(const struct ibv_mr *mr)
{
	size_t bytes = (size_t)((char *)mr->addr + mr->length - page_of(mr->addr));

	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* The lock is held. */
static void enter(struct region *region)
{
	uint32_t i = 0;

	while (i < REGIONS && regions[i])
		i++;
	if (i == REGIONS)
		abort();
	regions[i] = region;
	region->ibv.lkey = KEY + i;
	count++;
	ever++;
}

struct ibv_mr *fake_region_make(struct ibv_pd *pd, void *at, size_t length)
{
	struct region *region = calloc(1, sizeof *region);

	if (!region)
		abort();
	region->ibv = (struct ibv_mr){ .pd = pd, .addr = at, .length = length };
	/* An old size of 0 makes a second mapping of shared pages, and an error of others (mremap(2)). */
	region->pages = mremap(page_of(at), 0, bytes_of_pages(&region->ibv), MREMAP_MAYMOVE);
	if (region->pages == MAP_FAILED)
		region->pages = NULL;
	pthread_mutex_lock(&lock);
	enter(region);
	pthread_mutex_unlock(&lock);
	return &region->ibv;
}

void fake_region_unmake(struct ibv_mr *mr)
{
	struct region *region = (struct region *)mr;

	pthread_mutex_lock(&lock);
	regions[mr->lkey - KEY] = NULL;
	count--;
	pthread_mutex_unlock(&lock);
	if (region->pages)
		munmap(region->pages, bytes_of_pages(mr));
	free(region);
}

char *fake_region_place(const struct ibv_sge *piece)
{
	struct region *region = NULL;
	uintptr_t first, end;

	pthread_mutex_lock(&lock);
	if (piece->lkey >= KEY && piece->lkey < KEY + REGIONS)
		region = regions[piece->lkey - KEY];
	pthread_mutex_unlock(&lock);
	first = region ? (uintptr_t)region->ibv.addr : 0;
	end = region ? first + region->ibv.length : 0;
	if (piece->addr < first || piece->addr + piece->length > end) {
		fprintf(stderr, "fake_region: key %u does not cover the %u bytes of a piece\n", piece->lkey, piece->length);
		abort();
	}
	if (!region->pages)
		return (char *)(uintptr_t)piece->addr;
	return region->pages + (piece->addr - (uintptr_t)page_of(region->ibv.addr));
}

int fake_region_count(void)
{
	int now;

	pthread_mutex_lock(&lock);
	now = count;
	pthread_mutex_unlock(&lock);
	return now;
}

long fake_region_ever(void)
{
	long now;

	pthread_mutex_lock(&lock);
	now = ever;
	pthread_mutex_unlock(&lock);
	return now;
}
