/* SPDX-License-Identifier: BSD-3-Clause
 * xdp_here: ends with 0 where XDP programs can be loaded, else with 1; for scripts. */
#include "tests/tools/xdp_here.h"

int main(void)
{
	return xdp_is_here() ? 0 : 1;
}
