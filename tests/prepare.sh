# SPDX-License-Identifier: BSD-3-Clause
# What tests/demo, tests/check and .ci/run share (sourced by bash): installing what is missing, building.

nezha_packages=(build-essential autoconf automake libtool pkg-config mpich libmpich-dev openmpi-bin libopenmpi-dev
	libhwloc-dev libibverbs-dev libisal-dev libjansson-dev libcmocka-dev libsodium-dev iproute2 iputils-ping util-linux procps kmod
	gfortran python3 python3-mpi4py clang libclang-rt-14-dev libbpf-dev ethtool man-db groff-base)
# the guest with RDMA devices (tests/guest)
nezha_packages+=(qemu-system-x86 busybox-static cpio ibverbs-providers ibverbs-utils perftest)

nezha_missing() {
	local p
	for p in "${nezha_packages[@]}"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
	done
}

# Installs what is missing, where that can be done; says what it does.
nezha_install() {
	local wanted
	command -v dpkg-query >/dev/null || { echo "not a Debian: assuming that all is there"; return 0; }
	mapfile -t wanted < <(nezha_missing)
	[ ${#wanted[@]} -gt 0 ] || { echo "nothing is missing"; return 0; }
	echo "missing: ${wanted[*]}"
	[ "$(id -u)" = 0 ] || { echo "not root: going on without"; return 0; }
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q && apt-get install -y -q --no-install-recommends "${wanted[@]}"
}

# nezha_build SOURCE BUILD CONFIGURE-ARGUMENTS...
nezha_build() {
	local source=$1 build=$2
	shift 2
	[ -x "$source/configure" ] || (cd "$source" && ./autogen.sh) || return
	mkdir -p "$build" && cd "$build" || return
	[ -f Makefile ] || "$source/configure" --prefix="$build/root" "$@" || return
	make -j"$(nproc)"
}

# nezha_ready SOURCE BUILD: both, with one line each, and the log only if something failed
nezha_ready() {
	local log=$2.log
	mkdir -p "$(dirname "$log")"
	: >"$log" || return
	echo "installing what is missing ..."
	nezha_install >>"$log" 2>&1 || { tail -n 30 "$log"; return 1; }
	echo "building in $2 ..."
	(nezha_build "$1" "$2") >>"$log" 2>&1 || { tail -n 30 "$log"; return 1; }
}
