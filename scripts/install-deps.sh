#!/bin/sh
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Usage: install-deps.sh [--check]
# Installs what the build needs and the machine lacks, with apt-get: as root, or through
# sudo if it asks for no password. Otherwise, or with --check, prints the line to run and
# exits with 1. A tool from elsewhere (PATH, /usr/local) counts as there.
# STRATA_DEPS=0 skips all of this.
set -eu
[ "${STRATA_DEPS:-1}" != 0 ] || exit 0
crate='librocksdb-sys-0.19.0+11.8.1'

required='' # packages without which nothing works
helpful=''  # packages that only make it faster

# tool PACKAGE COMMAND: a command on PATH
tool() { command -v "$2" > /dev/null 2>&1 || required="$required $1"; }
# header PACKAGE FILE: a header where the compiler finds it
header() {
  for dir in /usr/include /usr/local/include /usr/include/*-linux-gnu; do
    [ ! -e "$dir/$2" ] || return 0
  done
  if command -v c++ > /dev/null 2>&1 &&
      printf '#include <%s>\n' "$2" | c++ -E -x c++ - > /dev/null 2>&1; then
    return 0
  fi
  required="$required $1"
}

tool g++ c++
tool cmake cmake
tool ninja-build ninja
tool git git
tool make make
tool python3 python3
tool pkg-config pkg-config
header zlib1g-dev zlib.h
header libbz2-dev bzlib.h
header liblz4-dev lz4.h
header libzstd-dev zstd.h
header libsnappy-dev snappy.h
header libgflags-dev gflags/gflags.h
header liburing-dev liburing.h
header libc6-dev stdlib.h
command -v ccache > /dev/null 2>&1 || helpful="$helpful ccache"
command -v mold > /dev/null 2>&1 || command -v ld.lld > /dev/null 2>&1 || helpful="$helpful mold"
[ -e /etc/ssl/certs/ca-certificates.crt ] || required="$required ca-certificates"

# cargo fetches upstream: only its download is used, once. Any cargo from 1.82 on will do;
# Debian 12's package "cargo" is older, its package "cargo-web" is not.
cargo_is_new() {
  for cargo in cargo /usr/bin/cargo; do
    version=$($cargo --version 2> /dev/null | sed -n 's/^cargo \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    # shellcheck disable=SC2086
    set -- $version
    if [ $# = 2 ] && { [ "$1" -gt 1 ] || [ "$2" -ge 82 ]; }; then
      return 0
    fi
  done
  return 1
}
have_upstream() {
  [ -z "${STRATA_UPSTREAM:-}" ] || return 0
  for dir in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate"/rocksdb; do
    [ ! -d "$dir" ] || return 0
  done
  return 1
}
if ! have_upstream && ! cargo_is_new; then
  required="$required cargo-web"
fi

[ -n "$required$helpful" ] || exit 0
packages=$(echo $required $helpful)
line="apt-get update && apt-get install -y --no-install-recommends $packages"
by_hand() {
  if [ -z "$required" ]; then
    echo "The build will be faster with: $packages"
    echo "    $line"
    exit 0
  fi
  echo "The build needs packages that are not installed. Please run, as root:" >&2
  echo "    $line" >&2
  exit 1
}
if [ "${1:-}" = --check ]; then
  by_hand
fi
if ! command -v apt-get > /dev/null 2>&1; then
  [ -n "$required" ] || exit 0
  echo "The build needs these, by their Debian names; please install them:$required" >&2
  exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
  if command -v sudo > /dev/null 2>&1 && sudo -n true 2> /dev/null; then
    sudo='sudo -n'
  else
    by_hand
  fi
fi
echo "installing: $packages"
export DEBIAN_FRONTEND=noninteractive
install() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; }
if ! { $sudo apt-get update -q && install $packages; }; then
  # Perhaps only a package that is not needed is the trouble.
  if [ -n "$required" ] && ! install $required; then
    echo "apt-get could not install what the build needs:" >&2
    echo "    $line" >&2
    exit 1
  fi
fi
