//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_fault_steps_test_util.h"

#include <map>
#include <string>

#include "test_util/strata/failing_devices_fs_test_util.h"
#include "test_util/strata/history_fault_fs_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void Fail(HistoryCall& c) {
  HistoryFaultFS::Rule rule;
  std::string value;
  rule.retryable = HistoryArguments::TakeWord(&c.args(), "retryable");
  bool is_valid = true;
  if (HistoryArguments::TakeNamed(&c.args(), "skip", &value)) {
    is_valid = HistoryArguments::ParseNumber(value, &rule.skip);
  }
  if (HistoryArguments::TakeNamed(&c.args(), "count", &value)) {
    is_valid = is_valid && HistoryArguments::ParseNumber(value, &rule.count);
  }
  if (!is_valid || c.args().size() != 2 ||
      !ParseHistoryFileOp(c.args()[0], &rule.op)) {
    c.Usage();
    return;
  }
  rule.pattern = c.args()[1];
  c.state().faults().AddRule(rule);
}

void Device(HistoryCall& c) {
  using Fault = FailingDevicesFS::Fault;
  static const std::map<std::string, Fault> kFaults = {
      {"readonly", Fault::kReadOnly},
      {"lost", Fault::kLost},
      {"missing", Fault::kMissing},
      {"back", Fault::kNone}};
  const auto fault =
      c.args().size() == 2 ? kFaults.find(c.args()[1]) : kFaults.end();
  if (fault == kFaults.end()) {
    c.Usage();
    return;
  }
  c.state().faults().SetDevice(c.args()[0], fault->second);
}

void Unfail(HistoryCall& c) { c.state().faults().ClearRules(); }

void Resume(HistoryCall& c) { c.Report(c.db()->Resume()); }

}  // namespace

const std::vector<HistoryStep>& HistoryFaultSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"fail", Fail, false, false,
       "fail OPEN|READ|WRITE|SYNC|DIRSYNC|CREATE|DELETE|RENAME|LINK PATTERN "
       "[skip=N] [count=N] [retryable]"},
      {"device", Device, false, false,
       "device DIRECTORY readonly|lost|missing|back"},
      {"unfail", Unfail, false, false, "unfail"},
      {"resume", Resume, false, true, "resume"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
