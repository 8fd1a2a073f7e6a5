/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmpi/folder.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of /proc/self/maps is "low-high perms offset device inode      /path". */
static bool parse_line(const char *line, uintptr_t address, char *out, size_t len)
{
	uintptr_t low, high;
	const char *path = strchr(line, '/'), *end;

	if (!path || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &low, &high) != 2)
		return false;
	if (address < low || address >= high)
		return false;
	end = strrchr(path, '/');
	if ((size_t)(end - path) >= len)
		return false;
	memcpy(out, path, (size_t)(end - path));
	out[end - path] = 0;
	return true;
}

int nezha_folder_find(const void *code, char *out, size_t len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (!maps)
		return -1;
	while (!found && getline(&line, &room, maps) > 0)
		found = parse_line(line, (uintptr_t)code, out, len);
	free(line);
	fclose(maps);
	return found ? 0 : -1;
}
