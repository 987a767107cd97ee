//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_sweep_judge_test_util.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "file/filename.h"
#include "rocksdb/db.h"
#include "test_util/strata/history_leaks_test_util.h"
#include "test_util/strata/history_model_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// A key that no script has.
constexpr char kProbeKey[] = "~judge";

bool IsInvalid(const Status& s) {
  return s.IsInvalidArgument() || s.IsNotSupported();
}

// Returns true if the contents may be older ones when the file is damaged: its
// end cannot be told from one that a crash has cut off.
bool HoldsHistory(FileType type) {
  return type == kWalFile || type == kWalBufferFile ||
         type == kDescriptorFile || type == kCurrentFile;
}

// Returns true if nothing is lost when the file is damaged.
bool IsDispensable(FileType type) {
  return type == kOptionsFile || type == kIdentityFile || type == kTempFile;
}

}  // namespace

bool HistorySweepJudge::NamesFile(const std::string& text) {
  if (text.find(" is missing: the directory /") != std::string::npos) {
    return true;
  }
  std::string word;
  for (const char ch : text + " ") {
    if (isalnum(static_cast<unsigned char>(ch)) != 0 || ch == '-' ||
        ch == '_' || ch == '.') {
      word.push_back(ch);
      continue;
    }
    // A sentence may end behind the name.
    while (!word.empty() && word.back() == '.') {
      word.pop_back();
    }
    uint64_t number = 0;
    FileType type = kTempFile;
    if (!word.empty() && ParseFileName(word, &number, &type)) {
      return true;
    }
    word.clear();
  }
  // "file #12"
  const size_t hash = text.find('#');
  return hash != std::string::npos && hash + 1 < text.size() &&
         isdigit(static_cast<unsigned char>(text[hash + 1])) != 0;
}

bool HistorySweepJudge::MayRefuseWal() const {
  for (const auto& family : db_.families()) {
    const std::string* const direct =
        HistoryOptions::Find(family.second.options, "enable_blob_direct_write");
    if (direct != nullptr && *direct == "true") {
      return true;
    }
  }
  return false;
}

HistorySweepOutcome HistorySweepJudge::JudgeRefusal(const Status& s,
                                                    bool may_refuse) {
  if (!MayRefuseWal()) {
    if (!may_refuse) {
      findings_.Disagree("the DB does not open: " + s.ToString());
    } else if (!NamesFile(s.ToString())) {
      findings_.Disagree("the DB does not open, and names no file: " +
                         s.ToString());
    }
  }
  return HistorySweepOutcome::kRefused;
}

Status HistorySweepJudge::WriteAndFlush() {
  HistoryModel::Write write;
  write.ops.emplace_back();
  HistoryModel::Op& op = write.ops.back();
  op.cf = kDefaultColumnFamilyName;
  op.key = kProbeKey;
  op.columns[""] = "judge" + std::to_string(++num_writes_);
  ColumnFamilyHandle* const handle =
      db_.families().at(kDefaultColumnFamilyName).handle;
  Status s = db_.db()->Put(WriteOptions(), handle, op.key, op.columns.at(""));
  write.has_failed = !s.ok();
  db_.model().Append(std::move(write));
  if (s.ok()) {
    s = db_.db()->Flush(FlushOptions(), handle);
  }
  if (s.ok() && db_.families().size() == 1) {
    db_.model().MarkDurable();
  }
  return s;
}

bool HistorySweepJudge::Works() {
  findings_.AllowErrors(true);
  const size_t errors_before = findings_.num_errors();
  verifier_.VerifyAll();
  return WriteAndFlush().ok() && findings_.num_errors() == errors_before;
}

HistorySweepOutcome HistorySweepJudge::JudgeAfterError(bool ends_openable) {
  db_.faults().ClearRules();
  db_.faults().injector().Disarm();
  if (db_.families().empty()) {
    return HistorySweepOutcome::kReopened;
  }
  if (!db_.is_open()) {
    if (ends_openable) {
      CheckReopen();
    }
    return HistorySweepOutcome::kReopened;
  }
  HistorySweepOutcome outcome = HistorySweepOutcome::kWentOn;
  if (!Works()) {
    // The error may not be one from which the DB can resume.
    db_.db()->Resume().PermitUncheckedError();
    outcome = Works() ? HistorySweepOutcome::kResumed
                      : HistorySweepOutcome::kReopened;
  }
  CheckReopen();
  return db_.is_open() ? outcome : HistorySweepOutcome::kRefused;
}

void HistorySweepJudge::CheckReopen() {
  db_.Close();
  const Status s = db_.Open();
  if (!s.ok()) {
    JudgeRefusal(s, /*may_refuse=*/false);
    return;
  }
  findings_.AllowErrors(false);
  verifier_.CheckRecovered(/*is_crash=*/false);
  CheckAll();
}

void HistorySweepJudge::CheckAll() {
  findings_.AllowErrors(false);
  verifier_.VerifyAll();
  Status s = WriteAndFlush();
  if (!s.ok()) {
    findings_.Disagree("the DB takes no writes after it was opened: " +
                       s.ToString());
  }
  std::vector<std::string> leaks;
  s = HistoryLeaks::Find(db_, &leaks);
  if (!s.ok()) {
    findings_.Disagree("listing files: " + s.ToString());
  }
  for (const std::string& leak : leaks) {
    findings_.Disagree("the DB does not know the file " + leak);
  }
}

HistorySweepOutcome HistorySweepJudge::JudgeAfterCrash(
    const HistorySweepKind& kind, bool is_destroying, bool may_be_invalid) {
  db_.faults().injector().Disarm();
  Status s = db_.Crash(kind.crash);
  if (!s.ok()) {
    findings_.Disagree("simulating the crash: " + s.ToString());
  }
  if (db_.families().empty()) {
    return HistorySweepOutcome::kReopened;
  }
  if (is_destroying) {
    s = db_.Destroy();
    if (!s.ok()) {
      findings_.Disagree("the DB cannot be destroyed after the crash: " +
                         s.ToString());
    }
    return HistorySweepOutcome::kReopened;
  }
  if (kind.loses_durable) {
    db_.DoubtAllFamilies();
  }
  s = db_.Open();
  if (!s.ok()) {
    return may_be_invalid && IsInvalid(s) ? HistorySweepOutcome::kRefused
                                          : JudgeRefusal(s, kind.may_refuse);
  }
  if (kind.loses_durable) {
    findings_.AllowErrors(true);
    verifier_.VerifyValuesWereWritten();
    return HistorySweepOutcome::kReopened;
  }
  findings_.AllowErrors(false);
  verifier_.CheckRecovered(/*is_crash=*/true);
  CheckAll();
  CheckReopen();
  return HistorySweepOutcome::kReopened;
}

HistorySweepOutcome HistorySweepJudge::JudgeAfterFlip(const HistoryFlip& flip) {
  db_.faults().injector().Disarm();
  if (HoldsHistory(flip.type)) {
    db_.DoubtAllFamilies();
  }
  const Status s = db_.Open();
  if (!s.ok()) {
    return JudgeRefusal(s, /*may_refuse=*/!IsDispensable(flip.type));
  }
  findings_.AllowErrors(!IsDispensable(flip.type));
  if (HoldsHistory(flip.type)) {
    verifier_.VerifyValuesWereWritten();
  } else {
    verifier_.VerifyAll();
  }
  return HistorySweepOutcome::kWentOn;
}

}  // namespace ROCKSDB_NAMESPACE
