/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/probe.h"

/* Bytes, and so many seconds' worth: what a probe sends grows with the path's rate, and a call of 16 MiB over rails of 20 Gbit/s,
 * which it measures in its 15 ms, was followed by a probe of 8 MiB on each. */
struct least {
	uint64_t bytes;
	double seconds;
};
#define DOUBLINGS 2
static const struct least
	every = { 32u << 20, 0.4 },     /* of the link: without a measurement they are followed by a probe; twice and then four times as much
	                                 * before the next ones, if no doubt arises */
	doubted = { 1u << 20, 8e-3 },   /* of the path: get the chance to settle a doubt by themselves, as large calls do */
	rest = { 4u << 20, 64e-3 };     /* between two probes, however often there is a doubt; and a doubt waits as long where small
	                                 * calls may settle it, too, since what leaves the host is told (departures.h) */

static uint64_t least(const struct least *of, double rate)
{
	double worth = of->seconds * rate;

	return worth > (double)of->bytes ? (uint64_t)worth : of->bytes;
}

/* A power of two, and so the same on all ranks, whose estimates differ by some per cent. */
static uint64_t interval(const struct nezha_probe *probe, double link)
{
	uint64_t bytes = every.bytes;

	while (bytes < least(&every, link))
		bytes *= 2;
	return bytes << probe->certain;
}

/* A path that is long not measured has its probe where the link's bytes come to a multiple of the interval: in the same call
 * on all ranks and rails.  One after the other they would each have a call wait. */
static bool is_turn(struct nezha_probe *probe, uint64_t interval)
{
	uint64_t turn = probe->given / interval;
	bool due = turn != probe->seen / interval && probe->unmeasured >= interval / 2;

	probe->seen = probe->given;
	return due;
}

bool nezha_probe_is_due(struct nezha_probe *probe, struct nezha_estimator *estimator, double link, bool able)
{
	bool doubt, due;

	if (!estimator->doubt)
		probe->doubted = 0;
	if (probe->measured != estimator->measured)
		probe->unmeasured = 0;
	probe->measured = estimator->measured;
	if (!able)
		return false;
	doubt = probe->doubted > least(estimator->last.left ? &rest : &doubted, estimator->rate) &&
	        probe->unprobed > least(&rest, estimator->rate);
	due = is_turn(probe, interval(probe, link)) || doubt;
	if (due) {
		probe->certain = doubt ? 0 : probe->certain < DOUBLINGS ? probe->certain + 1 : DOUBLINGS;
		probe->unmeasured = probe->unprobed = probe->doubted = 0;
		estimator->doubt = false;
	}
	return due;
}

void nezha_probe_count(struct nezha_probe *probe, const struct nezha_estimator *estimator, uint64_t bytes)
{
	probe->given += bytes;
	probe->unmeasured += bytes;
	probe->unprobed += bytes;
	probe->doubted += estimator->doubt ? bytes : 0;
}
