#!/bin/sh
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Usage: format.sh [--all]
# Formats Strata's own C++ files with upstream's style: those that differ from the last
# commit, or all. Upstream's files are not touched; format the lines you edit by hand.
# It uses clang-format only in the version of requirements-style.txt, because another one would
# also change what the change at hand does not touch, and "make check-style" would complain.
set -eu
cd "$(dirname "$0")/.."
wanted=$(sed -n 's/^clang-format==\([0-9]*\).*/\1/p' scripts/requirements-style.txt)
clang_format=
for tool in build/style-venv/bin/clang-format "clang-format-$wanted" clang-format; do
  if "$tool" --version 2> /dev/null | grep -q "version $wanted\."; then
    clang_format=$tool
    break
  fi
done
if [ -z "$clang_format" ]; then
  echo "clang-format $wanted is not installed: \"make style-tools\" installs it in build/" >&2
  exit 1
fi
if [ "${1:-}" = --all ]; then
  list='git ls-files -co --exclude-standard -z'
else
  list='git ls-files -mo --exclude-standard -z'
  if git rev-parse -q --verify HEAD > /dev/null; then
    list='{ git diff --name-only --diff-filter=d -z HEAD; git ls-files -o --exclude-standard -z; }'
  fi
fi
eval "$list" | tr '\0' '\n' | sort -u | grep -E '\.(cc|h)$' | while read -r file; do
  if [ -f "$file" ]; then
    "$clang_format" -i -style=file:build/src/.clang-format "$file"
    echo "formatted $file"
  fi
done
