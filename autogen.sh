#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes configure out of configure.ac; needed after a checkout, not in a release.
set -e
cd "$(dirname "$0")"
for tool in autoconf automake libtoolize pkg-config; do
	command -v "$tool" >/dev/null || {
		echo "autogen.sh: $tool is missing (Debian: apt-get install autoconf automake libtool pkg-config)" >&2
		exit 1
	}
done
exec autoreconf --install --force "$@"
