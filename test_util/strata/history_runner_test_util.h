//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/rocksdb_namespace.h"
#include "test_util/strata/history_fault_fs_test_util.h"
#include "test_util/strata/history_model_test_util.h"
#include "test_util/strata/history_script_test_util.h"
#include "utilities/fault_injection_fs.h"

namespace ROCKSDB_NAMESPACE {

// Options with which a script runs again. The results of reads must not depend
// on them, whereas the files of the DB do.
struct HistoryVariant {
  std::string name;
  // Override the options of the script, in "open" and in "setoptions".
  std::vector<std::pair<std::string, std::string>> options;
};

const std::vector<HistoryVariant>& HistoryVariants();

// Sets options as "open" in scripts does, without named sets and "paths".
// Options that are not listed, or have an empty value, are not changed.
Status SetHistoryOptions(
    const std::vector<std::pair<std::string, std::string>>& list, Env* env,
    Options* options);

// Runs a history script (see HistoryScript) on a DB of its own and compares
// every result of a read with a HistoryModel. docs/history-scripts.md lists the
// commands.
//
// Not thread-safe.
class HistoryRunner {
 public:
  struct Output {
    const HistoryCommand* command = nullptr;
    // The output depends on the options and is therefore not compared between
    // variants.
    bool is_structural = false;
    // Lines, each ending with '\n'; empty if there is no output.
    std::string text;
  };
  // The outputs of one block.
  using Outputs = std::vector<Output>;

  // variant: nullptr for the script's own options.
  // root: a directory that the runner creates and removes.
  // REQUIRES: script and *variant outlive this.
  HistoryRunner(const HistoryScript& script, const HistoryVariant* variant,
                const std::string& root);
  ~HistoryRunner();
  HistoryRunner(const HistoryRunner&) = delete;
  HistoryRunner& operator=(const HistoryRunner&) = delete;

  // Runs the whole script and adds one element to *outputs per block. Returns
  // an error only for a mistake in the script (the message names the line);
  // errors of the DB are part of the output. After the last block all contents
  // are verified, and again after a reopen.
  Status Run(std::vector<Outputs>* outputs);

  // Returns the results that contradict the model, each as "name:line: ...".
  const std::vector<std::string>& disagreements() const {
    return disagreements_;
  }

  // Returns the text of the outputs of a block, as in the script's file.
  static std::string Text(const Outputs& outputs);

 private:
  using Words = std::vector<std::string>;
  // Ordered: a later option overrides an earlier one.
  using OptionList = std::vector<std::pair<std::string, std::string>>;

  struct Family {
    OptionList options;
    ColumnFamilyHandle* handle = nullptr;
    std::vector<std::string> paths;  // cf_paths
  };

  struct NamedSnapshot {
    const Snapshot* snapshot = nullptr;
    size_t position = 0;  // in the model
  };

  struct NamedIterator;

  // Arguments of the command that is being run.
  struct Context {
    const HistoryCommand* command = nullptr;
    std::string cf;
    Words args;
    std::string out;
    bool is_structural = false;
  };

  struct Step {
    void (HistoryRunner::*run)(Context&);
    bool is_structural;
    bool needs_db;
    const char* usage;
  };
  static const std::map<std::string, Step>& Steps();

  // The state of the DB that a read sees.
  struct View {
    const Snapshot* snapshot = nullptr;
    size_t position = 0;
  };

  // A range of keys whose older versions DeleteFilesInRange may have changed.
  struct Blurred {
    std::string cf;
    std::string from;
    std::string to;  // inclusive
    size_t position;
  };

  void RunCommand(const HistoryCommand& command, Output* output);

  // Commands
  void DoOpen(Context& c);
  void DoReopen(Context& c);
  void DoCrash(Context& c);
  void DoClose(Context& c);
  void DoDestroy(Context& c);
  void DoFamily(Context& c);
  void DoWrite(Context& c);
  void DoBatch(Context& c);
  void DoFill(Context& c);
  void DoSyncWal(Context& c);
  void DoSnapshot(Context& c);
  void DoRelease(Context& c);
  void DoGet(Context& c);
  void DoGetEntity(Context& c);
  void DoMultiGet(Context& c);
  void DoScan(Context& c);
  void DoIterator(Context& c);
  void DoSeek(Context& c);
  void DoSeekForPrev(Context& c);
  void DoFirst(Context& c);
  void DoLast(Context& c);
  void DoNext(Context& c);
  void DoPrev(Context& c);
  void DoCloseIterator(Context& c);
  void DoFlush(Context& c);
  void DoCompact(Context& c);
  void DoCompactFiles(Context& c);
  void DoCompactLevel(Context& c);
  void DoSetOptions(Context& c);
  void DoIngest(Context& c);
  void DoDeleteFilesInRange(Context& c);
  void DoFail(Context& c);
  void DoUnfail(Context& c);
  void DoResume(Context& c);
  void WaitForCleanup();
  void DoFiles(Context& c);
  void DoBlobs(Context& c);
  void DoDeltas(Context& c);
  void DoLs(Context& c);
  void DoPathStats(Context& c);
  void DoWait(Context& c);
  void DoProperty(Context& c);
  void DoVerify(Context& c);

  // Helpers
  void Usage(Context& c);
  void Mistake(const Context& c, const std::string& what);
  void Disagree(const Context& c, const std::string& what);
  // Prints an error; nothing if OK. Returns s.ok().
  bool Report(Context& c, const Status& s);
  std::string Mask(const std::string& text) const;

  // Moves option words "name=value" of `words` to `options`; named sets are
  // expanded. Returns false and reports a mistake if one is malformed.
  bool TakeOptions(Context& c, const Words& words, OptionList* options);
  Status MakeOptions(const OptionList& own, Options* options,
                     std::vector<std::string>* paths) const;
  Status Open();
  void CloseDb();
  void CheckRecovered(Context& c, bool is_crash);
  // Returns the contents of the whole family, by an iterator.
  Status ReadAll(const std::string& cf, const ReadOptions& read_options,
                 HistoryModel::Contents* contents);
  Status ReadAllFamilies(HistoryModel::AllContents* all);
  void Verify(Context& c);
  void VerifyMaps(const Context& c);
  void VerifyDeltas(const Context& c);
  void VerifyView(Context& c, const std::string& cf, const View& view,
                  const std::string& what);

  ColumnFamilyHandle* Handle(const Context& c);
  bool TakeView(Context& c, View* view);
  // Parses one write ("put k v" and so on) into ops of the model; returns false
  // if it is none.
  bool ParseWrite(const Words& words, const std::string& cf,
                  std::vector<HistoryModel::Op>* ops, bool* is_single);
  void RunWrite(Context& c, const Words& words);
  void Commit(Context& c, const Status& s, HistoryModel::Write write,
              bool is_durable);
  bool IsBlurred(const std::string& cf, const std::string& key,
                 size_t position) const;
  void Unblur(const std::string& cf, size_t position,
              HistoryModel::Contents* contents) const;
  NamedIterator* FindIterator(Context& c);
  void ShowIterator(Context& c, NamedIterator* iterator);
  // Moves the iterator as often as the command says and shows each step.
  void MoveIterator(Context& c, void (*move)(NamedIterator* named));
  std::string FileName(char kind, uint64_t number);
  std::string PathName(const Context& c, const std::string& directory) const;
  bool IsUniversal(const Context& c);

  const HistoryScript& script_;
  const HistoryVariant* const variant_;
  const std::string root_;
  // Forgets directory entries that were not synced.
  std::shared_ptr<FaultInjectionTestFS> crash_fs_;
  std::shared_ptr<HistoryFaultFS> fault_fs_;
  std::unique_ptr<Env> env_;

  std::unique_ptr<DB> db_;
  std::map<std::string, Family> families_;
  std::map<std::string, NamedSnapshot> snapshots_;
  std::map<std::string, std::unique_ptr<NamedIterator>> iterators_;
  HistoryModel model_;
  std::vector<Blurred> blurred_;
  // File numbers in order of appearance, by kind.
  std::map<std::pair<char, uint64_t>, size_t> file_names_;
  std::map<char, size_t> num_file_names_;
  size_t num_ingested_ = 0;

  Status mistake_;
  std::vector<std::string> disagreements_;
};

// Tests a script: runs it with its own options and compares the outputs with
// the expected ones, then runs it with the variants and compares the results of
// reads. Returns the errors; none if the test passed. *rewritten is set to the
// text of the script with the actual outputs, if that differs.
std::vector<std::string> CheckHistoryScript(const HistoryScript& script,
                                            const std::string& root,
                                            std::string* rewritten);

// Returns the directory "testdata/history" of the project: below
// $STRATA_TESTDATA if that is set, otherwise below the closest parent directory
// of the test binary, or of the current directory, that has it. Empty if there
// is none.
std::string FindHistoryScripts();

}  // namespace ROCKSDB_NAMESPACE
