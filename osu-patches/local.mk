# SPDX-License-Identifier: BSD-3-Clause
# Patches for the OSU Micro-Benchmarks: run from the source tree, nothing is built.
EXTRA_DIST += osu-patches/README osu-patches/apply osu-patches/osu_nezha.h \
	osu-patches/7.2.patch osu-patches/7.2.sha256 \
	osu-patches/7.3.patch osu-patches/7.3.sha256 \
	osu-patches/7.4.patch osu-patches/7.4.sha256
