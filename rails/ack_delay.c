/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ack_delay.h"

#define DELAY_MOST 8e-3         /* s: what a neighbour has before it on a rail, 3 ms or up to three blocks (policy.c) */
#define LOOK_BYTES 36864        /* a look tells something if more than this is not acknowledged: two packets as the kernel builds them */
#define LOOKS 32                /* that are remembered, about */
#define AWAY_MOST 0.75          /* a path that is given too little runs dry at half of the looks */

void nezha_ack_delay_look(struct nezha_ack_delay *delay, const struct nezha_path_sample *sample)
{
	bool away = sample->left >= sample->sent;       /* what is not sent waits for TCP's window, wherever the path is held back */

	if (sample->sent > sample->acked + LOOK_BYTES)
		delay->away += ((double)away - delay->away) / LOOKS;
}

bool nezha_ack_delay_is_away(const struct nezha_ack_delay *delay)
{
	return delay->away > AWAY_MOST;
}

uint64_t nezha_ack_delay_bytes(const struct nezha_ack_delay *delay, const struct nezha_path_sample *latest, double rate)
{
	uint64_t most = (uint64_t)(rate * DELAY_MOST), late;

	/* What was lost has left the host, too. */
	if (latest->left <= latest->acked || latest->recovering || nezha_ack_delay_is_away(delay))
		return 0;
	late = latest->left - latest->acked;
	return late < most ? late : most;
}
