/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/nic_kernel.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rails/lack.h"
#include "tuning/log.h"
#include "tuning/status.h"

#define ANSWER_BYTES 65536     /* the kernel fills at most 32 KiB at a time */
#define ANSWER_LIMIT 3         /* seconds for one part of an answer */
#define TRIES 5                /* an answer is void if interfaces came or went meanwhile */
#define HARDWARE_ADDRESS_MAX 32

struct found {
	struct nezha_interface *interfaces;
	unsigned char (*hardware)[HARDWARE_ADDRESS_MAX];   /* parallel to interfaces */
	size_t interface_count;
	struct nezha_interface_address *addresses;
	size_t address_count;
};

/* ---- rtnetlink ---- */

typedef int take_fn(struct found *found, const struct nlmsghdr *message);

static void copy_text(char *to, size_t room, const struct rtattr *from)
{
	size_t len = strnlen(RTA_DATA(from), RTA_PAYLOAD(from));

	if (len >= room)
		len = room - 1;
	memcpy(to, RTA_DATA(from), len);
	to[len] = '\0';
}

static uint32_t number(const struct rtattr *attribute)
{
	uint32_t value = 0;

	if (RTA_PAYLOAD(attribute) >= sizeof value)
		memcpy(&value, RTA_DATA(attribute), sizeof value);
	return value;
}

static void take_kind(struct nezha_interface *interface, const struct rtattr *info)
{
	const struct rtattr *part = RTA_DATA(info);
	int len = (int)RTA_PAYLOAD(info);

	for (; RTA_OK(part, len); part = RTA_NEXT(part, len))
		if (part->rta_type == IFLA_INFO_KIND)
			copy_text(interface->kind, sizeof interface->kind, part);
}

static int take_link(struct found *found, const struct nlmsghdr *message)
{
	const struct ifinfomsg *header = NLMSG_DATA(message);
	int len = (int)message->nlmsg_len - (int)NLMSG_LENGTH(sizeof *header);
	struct nezha_interface interface = { .numa = -1 };
	unsigned char hardware[HARDWARE_ADDRESS_MAX] = { 0 };
	bool elsewhere = false;
	void *grown;

	if (message->nlmsg_type != RTM_NEWLINK || len < 0)
		return NEZHA_OK;
	interface.index = header->ifi_index;
	interface.flags = header->ifi_flags;
	interface.type = header->ifi_type;
	for (const struct rtattr *a = IFLA_RTA(header); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		switch (a->rta_type & NLA_TYPE_MASK) {
		case IFLA_IFNAME:
			copy_text(interface.device, sizeof interface.device, a);
			break;
		case IFLA_MTU:
			interface.mtu = number(a);
			break;
		case IFLA_LINK:
			interface.lower = (int)number(a);
			break;
		case IFLA_LINK_NETNSID:
			elsewhere = true;
			break;
		case IFLA_MASTER:
			interface.master = (int)number(a);
			break;
		case IFLA_LINKINFO:
			take_kind(&interface, a);
			break;
		case IFLA_ADDRESS:
			memcpy(hardware, RTA_DATA(a),
			       RTA_PAYLOAD(a) < sizeof hardware ? RTA_PAYLOAD(a) : sizeof hardware);
			break;
		default:
			break;
		}
	}
	if (elsewhere)
		interface.lower = 0;
	grown = realloc(found->interfaces, (found->interface_count + 1) * sizeof *found->interfaces);
	if (!grown)
		return NEZHA_ERR_NOMEM;
	found->interfaces = grown;
	grown = realloc(found->hardware, (found->interface_count + 1) * sizeof *found->hardware);
	if (!grown)
		return NEZHA_ERR_NOMEM;
	found->hardware = grown;
	memcpy(found->hardware[found->interface_count], hardware, sizeof hardware);
	found->interfaces[found->interface_count++] = interface;
	return NEZHA_OK;
}

static int take_address(struct found *found, const struct nlmsghdr *message)
{
	const struct ifaddrmsg *header = NLMSG_DATA(message);
	int len = (int)message->nlmsg_len - (int)NLMSG_LENGTH(sizeof *header);
	struct nezha_interface_address address = { 0 };
	bool has_local = false;
	void *grown;

	if (message->nlmsg_type != RTM_NEWADDR || len < 0 || header->ifa_family != AF_INET)
		return NEZHA_OK;
	address.index = (int)header->ifa_index;
	address.prefix = header->ifa_prefixlen;
	for (const struct rtattr *a = IFA_RTA(header); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		/* On a point-to-point device IFA_ADDRESS is the other end. */
		if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && !has_local))
			address.address.s_addr = number(a);
		has_local |= a->rta_type == IFA_LOCAL;
	}
	grown = realloc(found->addresses, (found->address_count + 1) * sizeof *found->addresses);
	if (!grown)
		return NEZHA_ERR_NOMEM;
	found->addresses = grown;
	found->addresses[found->address_count++] = address;
	return NEZHA_OK;
}

static int ask(int fd, unsigned type, unsigned char family, unsigned sequence)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg body;      /* at least as long as what the other requests want */
	} request = {
		.header = { .nlmsg_len = sizeof request,
		            .nlmsg_type = (unsigned short)type,
		            .nlmsg_seq = sequence,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .ifi_family = family },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	return sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0 ?
	       NEZHA_ERR_SYSTEM : NEZHA_OK;
}

/* One part of the answer.  NEZHA_INPROGRESS: more will come; *torn: the answer as a whole is void. */
static int take_part(struct found *found, const struct nlmsghdr *message, size_t len, unsigned sequence,
                     take_fn *take, bool *torn)
{
	for (; NLMSG_OK(message, len); message = NLMSG_NEXT(message, len)) {
		int status = NEZHA_OK;

		if (message->nlmsg_seq != sequence)
			continue;
		*torn |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (message->nlmsg_type == NLMSG_DONE)
			return NEZHA_OK;
		if (message->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *error = NLMSG_DATA(message);
			errno = message->nlmsg_len >= NLMSG_LENGTH(sizeof *error) ? -error->error : EPROTO;
			return NEZHA_ERR_SYSTEM;
		}
		status = take(found, message);
		if (status < 0)
			return status;
	}
	return NEZHA_INPROGRESS;
}

static int dump(int fd, unsigned type, unsigned char family, unsigned sequence, take_fn *take,
                struct found *found, bool *torn)
{
	void *answer = malloc(ANSWER_BYTES);
	int status = answer ? ask(fd, type, family, sequence) : NEZHA_ERR_NOMEM;

	if (status == NEZHA_OK)
		status = NEZHA_INPROGRESS;
	while (status == NEZHA_INPROGRESS) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_len = sizeof from;
		ssize_t n = recvfrom(fd, answer, ANSWER_BYTES, 0, (struct sockaddr *)&from, &from_len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			status = NEZHA_ERR_SYSTEM;
		else if (from.nl_pid == 0)      /* else not from the kernel */
			status = take_part(found, answer, (size_t)n, sequence, take, torn);
	}
	free(answer);
	return status;
}

static void forget(struct found *found)
{
	free(found->interfaces);
	free(found->hardware);
	free(found->addresses);
	*found = (struct found){ 0 };
}

static int dump_both(int fd, struct found *found)
{
	bool torn = true;
	int status = NEZHA_OK;

	for (unsigned try = 0; torn && status == NEZHA_OK && try < TRIES; try++) {
		forget(found);
		torn = false;
		status = dump(fd, RTM_GETLINK, AF_UNSPEC, 2 * try + 1, take_link, found, &torn);
		if (status == NEZHA_OK)
			status = dump(fd, RTM_GETADDR, AF_INET, 2 * try + 2, take_address, found, &torn);
	}
	return status;
}

/* ---- what rtnetlink does not tell ---- */

static uint32_t speed_of(int fd, const char *device)
{
	union {
		struct ethtool_link_settings settings;
		char room[sizeof(struct ethtool_link_settings) +
		          3 * 127 * sizeof(uint32_t)]; /* three bit maps */
	} answer = { .settings = { .cmd = ETHTOOL_GLINKSETTINGS } };
	struct ifreq request = { .ifr_data = (void *)&answer };

	memcpy(request.ifr_name, device, sizeof request.ifr_name);
	/* The first call only tells how many words (at most 127) a map has, as a negative number. */
	if (ioctl(fd, SIOCETHTOOL, &request) || answer.settings.link_mode_masks_nwords >= 0)
		return 0;
	answer.settings.link_mode_masks_nwords = (signed char)-answer.settings.link_mode_masks_nwords;
	answer.settings.cmd = ETHTOOL_GLINKSETTINGS;
	if (ioctl(fd, SIOCETHTOOL, &request) || answer.settings.speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return answer.settings.speed;
}

/* The device of the default route with the smallest metric; "" if there is none. */
static void default_route(char device[IF_NAMESIZE])
{
	FILE *f = fopen("/proc/self/net/route", "re");
	unsigned best = 0;
	char line[256];

	device[0] = '\0';
	while (f && fgets(line, sizeof line, f)) {
		char name[IF_NAMESIZE];
		unsigned long destination, gateway, mask;
		unsigned flags, metric;
		int count;

		count = sscanf(line, "%15s %lx %lx %x %*d %*u %u %lx", name, &destination, &gateway, &flags,
		               &metric, &mask);
		if (count == 6 && destination == 0 && mask == 0 && (!device[0] || metric < best)) {
			memcpy(device, name, sizeof name);
			best = metric;
		}
	}
	if (f)
		fclose(f);
}

/* Reads one line below /sys/class/net; false if there is none. */
static bool read_sys(const char *device, const char *file, char *line, size_t len)
{
	char path[96];
	FILE *f;
	bool ok;

	snprintf(path, sizeof path, "/sys/class/net/%s/%s", device, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, (int)len, f) != NULL;
	fclose(f);
	return ok;
}

static bool same_device_in_sys(const struct nezha_interface *interface, const unsigned char *hardware)
{
	char line[3 * HARDWARE_ADDRESS_MAX + 8];
	const char *c = line;
	char *end;

	if (!read_sys(interface->device, "ifindex", line, sizeof line) ||
	    strtol(line, NULL, 10) != interface->index ||
	    !read_sys(interface->device, "address", line, sizeof line))
		return false;
	for (size_t i = 0; i < HARDWARE_ADDRESS_MAX; i++, c = end + 1) {
		if (strtoul(c, &end, 16) != hardware[i])
			return false;
		if (*end != ':')
			return end != c;
	}
	return true;
}

static int numa_of(const struct nezha_interface *interface, const unsigned char *hardware)
{
	char line[32];

	if (!same_device_in_sys(interface, hardware) ||
	    !read_sys(interface->device, "device/numa_node", line, sizeof line))
		return -1;
	return (int)strtol(line, NULL, 10);
}

static void complete(int fd, struct found *found)
{
	char device[IF_NAMESIZE];

	default_route(device);
	for (size_t i = 0; i < found->interface_count; i++) {
		struct nezha_interface *interface = &found->interfaces[i];

		interface->speed = speed_of(fd, interface->device);
		interface->numa = numa_of(interface, found->hardware[i]);
		interface->default_route = strcmp(interface->device, device) == 0;
	}
}

int nezha_kernel_interfaces(struct nezha_interface **interfaces, size_t *interface_count,
                            struct nezha_interface_address **addresses, size_t *address_count)
{
	struct timeval limit = { .tv_sec = ANSWER_LIMIT };
	struct found found = { 0 };
	int status = NEZHA_ERR_SYSTEM;
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int inet = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (netlink >= 0 && inet >= 0 && !setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit))
		status = dump_both(netlink, &found);
	if (status == NEZHA_ERR_SYSTEM)
		nezha_log(nezha_lack_is(errno) ? NEZHA_LOG_INFO : NEZHA_LOG_ERROR,
		          "the kernel does not tell its network interfaces: %m");
	if (status == NEZHA_OK)
		complete(inet, &found);
	if (inet >= 0)
		close(inet);
	if (netlink >= 0)
		close(netlink);
	if (status != NEZHA_OK) {
		forget(&found);
		return status;
	}
	free(found.hardware);
	*interfaces = found.interfaces;
	*interface_count = found.interface_count;
	*addresses = found.addresses;
	*address_count = found.address_count;
	return NEZHA_OK;
}
