//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_interpreter_test_util.h"

#include <cassert>
#include <utility>

#include "test_util/strata/history_copy_steps_test_util.h"
#include "test_util/strata/history_fault_steps_test_util.h"
#include "test_util/strata/history_iterator_steps_test_util.h"
#include "test_util/strata/history_job_steps_test_util.h"
#include "test_util/strata/history_open_steps_test_util.h"
#include "test_util/strata/history_read_steps_test_util.h"
#include "test_util/strata/history_show_steps_test_util.h"
#include "test_util/strata/history_transaction_steps_test_util.h"
#include "test_util/strata/history_verifier_test_util.h"
#include "test_util/strata/history_write_steps_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

void Verify(HistoryCall& c) {
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  HistoryVerifier(&c.state(), &c.findings()).VerifyAll();
}

}  // namespace

const std::map<std::string, HistoryStep>& HistoryInterpreter::Steps() {
  static const std::map<std::string, HistoryStep> kSteps = [] {
    const std::vector<HistoryStep> verify = {
        {"verify", Verify, false, true, "verify"}};
    std::map<std::string, HistoryStep> steps;
    for (const std::vector<HistoryStep>& group :
         {HistoryOpenSteps(), HistoryWriteSteps(), HistoryReadSteps(),
          HistoryIteratorSteps(), HistoryJobSteps(), HistoryFaultSteps(),
          HistoryShowSteps(), HistoryCopySteps(), HistoryTransactionSteps(),
          verify}) {
      for (const HistoryStep& step : group) {
        const bool is_new = steps.emplace(step.name, step).second;
        assert(is_new);
        (void)is_new;
      }
    }
    return steps;
  }();
  return kSteps;
}

HistoryInterpreter::HistoryInterpreter(
    const std::string& root, const std::vector<HistoryOptionList>& overrides)
    : db_(root, overrides) {}

void HistoryInterpreter::Run(const HistoryWords& words,
                             const std::string& place, Output* output) {
  assert(!words.empty());
  findings_.SetPlace(place);
  std::string cf = kDefaultColumnFamilyName;
  HistoryWords args = words;
  HistoryArguments::TakeFamily(&args, &cf);
  if (args.empty()) {
    findings_.Mistake("a command must follow \"cf=\"");
    return;
  }
  const auto it = Steps().find(args[0]);
  if (it == Steps().end()) {
    findings_.Mistake("unknown command \"" + args[0] + "\"");
    return;
  }
  const HistoryStep& step = it->second;
  args.erase(args.begin());
  HistoryCall call(&step, cf, std::move(args), &db_, &findings_);
  if (step.needs_db && !db_.is_open()) {
    call.out() = "error: the DB is closed\n";
  } else if (step.needs_db && db_.families().count(cf) == 0) {
    findings_.Mistake("no column family \"" + cf + "\"");
  } else {
    step.run(call);
  }
  output->kind = call.output_kind();
  output->text = std::move(call.out());
}

void HistoryInterpreter::Finish(const std::string& place) {
  if (!db_.is_open()) {
    return;
  }
  findings_.SetPlace(place);
  db_.faults().ClearRules();
  HistoryVerifier verifier(&db_, &findings_);
  verifier.VerifyAll();
  db_.Close();
  const Status reopened = db_.Open();
  if (reopened.ok()) {
    verifier.CheckRecovered(/*is_crash=*/false);
    verifier.VerifyAll();
  } else {
    findings_.Disagree("reopen at the end: " + reopened.ToString());
  }
}

}  // namespace ROCKSDB_NAMESPACE
