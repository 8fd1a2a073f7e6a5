/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/ina_address.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "rails/ina_wire.h"
#include "tuning/status.h"

/* 1 to 65535 in decimal digits and nothing else; 0: it is not. */
static uint16_t parse_port(const char *text)
{
	unsigned port = 0;

	if (!*text || *text == '0' || strlen(text) > 5)
		return 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return 0;
		port = port * 10 + (unsigned)(*text - '0');
	}
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* One host's: not any, not all, not a group's. */
static int is_host(struct in_addr address)
{
	uint32_t host = ntohl(address.s_addr);

	return host >> 24 && !IN_MULTICAST(host) && !IN_BADCLASS(host);
}

int nezha_ina_address_parse(const char *text, struct nezha_ina_address *out, const char **wrong)
{
	size_t length = strcspn(text, ":");
	char address[INET_ADDRSTRLEN];
	struct nezha_ina_address result = { .port = NEZHA_INA_PORT };

	*wrong = "has no IPv4 address of a host; allowed is ADDRESS[:PORT], such as 10.1.0.254:4790";
	if (length >= sizeof address)
		return NEZHA_ERR_INVALID;
	memcpy(address, text, length);
	address[length] = '\0';
	if (inet_pton(AF_INET, address, &result.address) != 1 || !is_host(result.address))
		return NEZHA_ERR_INVALID;
	*wrong = "has no port behind the colon; allowed are 1 to 65535, as in 10.1.0.254:4790";
	if (text[length]) {
		result.port = parse_port(text + length + 1);
		if (!result.port)
			return NEZHA_ERR_INVALID;
	}
	*out = result;
	return NEZHA_OK;
}

void nezha_ina_keep_alive(int fd)
{
	int on = 1, idle = 5, pause = 3, count = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof pause);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}
