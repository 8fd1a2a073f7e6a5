/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_ask.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rails/clock.h"
#include "rails/ina_wire.h"
#include "tuning/status.h"

static void limit_waits(int fd, double limit)
{
	struct timeval time = { .tv_sec = (time_t)limit, .tv_usec = (suseconds_t)((limit - (time_t)limit) * 1e6) };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);   /* connect's, too: socket(7) */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

static int reach(int fd, const struct nezha_ina_address *at)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr = at->address, .sin_port = htons(at->port),
	};

	if (!connect(fd, (const struct sockaddr *)&address, sizeof address))
		return NEZHA_OK;
	return errno == EINPROGRESS || errno == ETIMEDOUT ? NEZHA_ERR_TIMEOUT : NEZHA_ERR_SYSTEM;
}

static int hear(int fd)
{
	struct nezha_ina_record record;
	ssize_t n = recv(fd, &record, sizeof record, MSG_WAITALL);

	if (n < 0)
		return errno == EAGAIN ? NEZHA_ERR_TIMEOUT : NEZHA_ERR_SYSTEM;
	if (n != sizeof record || nezha_ina_record_check_downward(&record) != NEZHA_OK ||
	    record.kind != NEZHA_INA_CHALLENGE)
		return NEZHA_ERR_PROTOCOL;
	return NEZHA_OK;
}

int nezha_ina_ask(const struct nezha_ina_address *at, double limit, double *ms)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status, cause;
	uint64_t begin = nezha_now();

	if (fd < 0)
		return NEZHA_ERR_SYSTEM;
	limit_waits(fd, limit);
	status = reach(fd, at);
	if (status == NEZHA_OK)
		status = hear(fd);
	*ms = (double)(nezha_now() - begin) / 1e6;
	cause = errno;
	close(fd);
	errno = cause;
	return status;
}
