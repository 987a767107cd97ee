#!/bin/sh
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Usage: install-style-tools.sh
# Installs clang-format and ruff, in the versions of requirements-style.txt, from PyPI in
# build/style-venv. Nothing outside of build/ changes, except as root on Debian: there the
# package python3-venv is installed if it is missing, and the package clang-format if PyPI
# cannot be reached. Exits with 1 and one line if the tools could not be installed. Builds and
# tests do not need them, so nothing but "make style-tools" runs this.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
venv=$here/../build/style-venv
PYTHON=${PYTHON:-python3}

# apt PACKAGE...: installs packages if that is possible without a question.
apt() {
  [ "${STRATA_DEPS:-1}" != 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null 2>&1 &&
    apt-get update -q &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}
# The venv is made again each time, so that it never holds half of what it should.
make_venv() { rm -rf "$venv" && "$PYTHON" -m venv "$venv" > /dev/null; }
# Without a network, pip would try for minutes.
fill_venv() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 15 \
    -r "$here/requirements-style.txt"
}

if "$PYTHON" -c 'import ensurepip, venv' 2> /dev/null || apt python3-venv; then
  if make_venv && fill_venv; then
    echo 'clang-format and ruff are in build/style-venv'
    exit 0
  fi
fi
rm -rf "$venv"
command -v clang-format > /dev/null 2>&1 || apt clang-format || true
echo 'style-tools: PyPI cannot be used: "make check-style" skips what it has no tool for' >&2
exit 1
