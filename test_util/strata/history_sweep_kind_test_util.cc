//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_kind_test_util.h"

#include "test_util/strata/history_words_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Effect = HistoryInjector::Effect;
using Ending = HistorySweepKind::Ending;
using Op = HistoryFileOp;
using Ops = std::vector<Op>;

HistorySweepKind Failure(const char* name, const Ops& ops, Effect effect) {
  HistorySweepKind kind;
  kind.name = name;
  kind.ops = ops;
  kind.effect = effect;
  return kind;
}

// A sync that is silently not done, before a crash.
HistorySweepKind LostSync(const char* name, Op op) {
  HistorySweepKind kind = Failure(name, {op}, Effect::kNotDone);
  kind.ending = Ending::kCrash;
  kind.loses_durable = true;
  kind.may_refuse = true;
  return kind;
}

HistorySweepKind Crash(const char* name) {
  HistorySweepKind kind =
      Failure(name,
              {Op::kWrite, Op::kSync, Op::kDirSync, Op::kCreate, Op::kDelete,
               Op::kRename, Op::kLink},
              Effect::kCrash);
  kind.ending = Ending::kCrash;
  return kind;
}

std::vector<HistorySweepKind> Crashes() {
  // Files without contents, such as an empty WAL.
  HistorySweepKind entries = Crash("crash-entries");
  entries.crash.keeps_entries = true;
  // Later blocks without earlier ones. A MANIFEST with a hole may be refused.
  HistorySweepKind blocks = Crash("crash-blocks");
  blocks.crash.keeps_entries = true;
  blocks.crash.survivors = HistoryUnsynced::Survivors::kRandomBlocks;
  blocks.may_refuse = true;
  return {Crash("crash"), entries, blocks};
}

HistorySweepKind Flip() {
  HistorySweepKind kind = Failure("flip", {}, Effect::kError);
  kind.ending = Ending::kFlip;
  kind.may_refuse = true;
  return kind;
}

}  // namespace

const std::vector<HistorySweepKind>& HistorySweepKinds() {
  static const std::vector<HistorySweepKind> kKinds = [] {
    const Ops read = {Op::kOpen, Op::kRead};
    const Ops write = {Op::kWrite};
    const Ops sync = {Op::kSync};
    const Ops dir_sync = {Op::kDirSync};
    const Ops create = {Op::kCreate, Op::kLink};
    const Ops space = {Op::kWrite, Op::kSync, Op::kCreate};
    std::vector<HistorySweepKind> kinds = {
        Failure("read", read, Effect::kError),
        Failure("read-retryable", read, Effect::kRetryable),
        Failure("write", write, Effect::kError),
        Failure("write-retryable", write, Effect::kRetryable),
        Failure("short-write", write, Effect::kShortWrite),
        Failure("late-write", write, Effect::kLate),
        Failure("no-space", space, Effect::kNoSpace),
        Failure("no-space-retryable", space, Effect::kRetryableNoSpace),
        Failure("sync", sync, Effect::kError),
        Failure("sync-retryable", sync, Effect::kRetryable),
        Failure("dirsync", dir_sync, Effect::kError),
        Failure("dirsync-retryable", dir_sync, Effect::kRetryable),
        Failure("create", create, Effect::kError),
        Failure("create-retryable", create, Effect::kRetryable),
        Failure("delete", {Op::kDelete}, Effect::kError),
        Failure("rename", {Op::kRename}, Effect::kError),
        Failure("rename-retryable", {Op::kRename}, Effect::kRetryable),
        Failure("late-rename", {Op::kRename}, Effect::kLate),
        LostSync("lost-sync", Op::kSync),
        LostSync("lost-dirsync", Op::kDirSync),
    };
    for (const HistorySweepKind& crash : Crashes()) {
      kinds.push_back(crash);
    }
    kinds.push_back(Flip());
    return kinds;
  }();
  return kKinds;
}

std::string HistorySweepPoint::ToString() const {
  return std::string(kind->name) + ":" + std::to_string(n);
}

bool HistorySweepPoint::Parse(const std::string& text,
                              HistorySweepPoint* point) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos ||
      !HistoryArguments::ParseNumber(text.substr(colon + 1), &point->n) ||
      point->n == 0) {
    return false;
  }
  for (const HistorySweepKind& kind : HistorySweepKinds()) {
    if (text.compare(0, colon, kind.name) == 0) {
      point->kind = &kind;
      return true;
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
