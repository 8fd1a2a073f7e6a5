/* SPDX-License-Identifier: BSD-3-Clause */
#include "rails/host.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static size_t boot_id(char *out, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size);

	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : (size_t)n;
}

uint64_t nezha_host_identity(char *name, size_t size)
{
	struct utsname uts;
	unsigned char text[64 + sizeof uts.nodename] = { 0 };
	unsigned char hash[crypto_generichash_BYTES_MIN];
	uint64_t identity;

	uname(&uts);
	snprintf(name, size, "%s", uts.nodename);
	boot_id((char *)text, 64);
	memcpy(text + 64, uts.nodename, strnlen(uts.nodename, sizeof uts.nodename));
	crypto_generichash(hash, sizeof hash, text, sizeof text, NULL, 0);
	memcpy(&identity, hash, sizeof identity);
	return identity;
}
