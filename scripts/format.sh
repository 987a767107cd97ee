#!/bin/sh
# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Usage: format.sh [--all]
# Formats Strata's own C++ files with upstream's style: those that differ from the last
# commit, or all. Upstream's files are not touched; format the lines you edit by hand.
set -eu
cd "$(dirname "$0")/.."
if ! command -v clang-format > /dev/null; then
  echo 'clang-format is not installed: apt-get install -y clang-format' >&2
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
    clang-format -i -style=file:build/src/.clang-format "$file"
    echo "formatted $file"
  fi
done
