/* SPDX-License-Identifier: BSD-3-Clause
 * The rules without a table.  The numbers come from measurements (doc/design.md). */
#include <stdlib.h>

#include "tuning/log.h"
#include "tuning/status.h"
#include "tuning/table.h"

static const char builtin[] =
"{\n"
"  \"version\": 1,\n"
"  \"comment\": \"built in\",\n"
"  \"collectives\": {\n"
"    \"allreduce\": [\n"
"      {\"nodes_max\": 1, \"rules\": [{\"alg\": \"native\", \"reason\": \"one-node\"}]},\n"
"      {\"ppn_min\": 2, \"rules\": [\n"
"        {\"msg_size_max\": 65535, \"alg\": \"native\", \"reason\": \"small\"},\n"
"        {\"msg_size_max\": 262143, \"alg\": \"ring\", \"block\": \"8K\"},\n"
"        {\"msg_size_max\": 524287, \"alg\": \"ring\", \"block\": \"12K\"},\n"
"        {\"msg_size_max\": \"2M\", \"alg\": \"ring\", \"block\": \"24K\"},\n"
"        {\"msg_size_max\": \"8M\", \"alg\": \"ring\", \"block\": \"64K\"},\n"
"        {\"alg\": \"ring\", \"block\": \"128K\"}\n"
"      ]},\n"
"      {\"rules\": [\n"
"        {\"msg_size_max\": 16383, \"alg\": \"native\", \"reason\": \"small\"},\n"
"        {\"msg_size_max\": 262143, \"alg\": \"ring\", \"block\": \"8K\"},\n"
"        {\"msg_size_max\": 524287, \"alg\": \"ring\", \"block\": \"12K\"},\n"
"        {\"msg_size_max\": \"2M\", \"alg\": \"ring\", \"block\": \"24K\"},\n"
"        {\"msg_size_max\": \"8M\", \"alg\": \"ring\", \"block\": \"64K\"},\n"
"        {\"msg_size_max\": \"32M\", \"alg\": \"ring\", \"block\": \"128K\"},\n"
"        {\"alg\": \"ring\", \"block\": \"512K\"}\n"
"      ]}\n"
"    ]\n"
"  }\n"
"}\n";

int nezha_table_builtin(struct nezha_table **out)
{
	char *error = NULL;
	int status = nezha_table_parse(builtin, sizeof builtin - 1, "built-in table", out, &error);

	if (error)
		nezha_error("%s", error);
	free(error);
	return status;
}
