/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/verbs_offer.h"

#include <stdbool.h>

#include "rails/verbs_message.h"
#include "rails/verbs_port.h"
#include "tuning/status.h"

static bool is_mtu(uint16_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

int nezha_verbs_offer_check(const struct nezha_verbs_offer *offer, enum nezha_verbs_offer_kind kind)
{
	if (offer->magic != NEZHA_VERBS_MAGIC || offer->kind != kind || offer->reserved)
		return NEZHA_ERR_PROTOCOL;
	if (offer->link != NEZHA_VERBS_ETHERNET && offer->link != NEZHA_VERBS_INFINIBAND)
		return NEZHA_ERR_PROTOCOL;
	/* Queue pairs 0 and 1 are the fabric's own. */
	if (offer->qpn < 2 || offer->qpn >> 24 || offer->psn >> 24 || !is_mtu(offer->mtu))
		return NEZHA_ERR_PROTOCOL;
	if (offer->buffers < 1 || offer->buffers > NEZHA_VERBS_BUFFERS_MAX || offer->message != NEZHA_VERBS_MESSAGE)
		return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}
