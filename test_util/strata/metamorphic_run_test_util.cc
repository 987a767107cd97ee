//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/metamorphic_run_test_util.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "file/file_util.h"
#include "rocksdb/env.h"
#include "test_util/strata/exit_child_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// What the process writes to its file, one after another: a letter, the size of
// the text, a newline, and the text.
constexpr char kOutput = 'o';
constexpr char kStructuralOutput = 's';
constexpr char kUndecidedOutput = 'u';
constexpr char kDisagreement = 'd';
constexpr char kMistake = 'm';
constexpr char kFinished = 'f';

char RecordKind(HistoryOutputKind kind) {
  switch (kind) {
    case HistoryOutputKind::kSame:
      return kOutput;
    case HistoryOutputKind::kStructural:
      return kStructuralOutput;
    case HistoryOutputKind::kUndecided:
      return kUndecidedOutput;
  }
  return kMistake;
}

class Recorder {
 public:
  explicit Recorder(const std::string& path) : file_(path, std::ios::binary) {}

  // The text is in the file when this returns, as the process may abort next.
  void Add(char kind, const std::string& text) {
    file_ << kind << text.size() << '\n' << text;
    file_.flush();
  }

 private:
  std::ofstream file_;
};

void Record(const HistoryFindings& findings, size_t* num_recorded,
            Recorder* recorder) {
  const std::vector<std::string>& all = findings.disagreements();
  for (; *num_recorded < all.size(); ++*num_recorded) {
    recorder->Add(kDisagreement, all[*num_recorded]);
  }
}

// The history, in the process of its own.
void RunSteps(const std::vector<HistoryWords>& steps,
              const std::vector<HistoryOptionList>& lists,
              const std::string& root,
              const std::function<void(HistoryInterpreter*)>& at_end,
              Recorder* recorder) {
  HistoryInterpreter interpreter(root, lists);
  const Status s = interpreter.Start();
  if (!s.ok()) {
    recorder->Add(kMistake, s.ToString());
    return;
  }
  size_t num_recorded = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    HistoryInterpreter::Output output;
    interpreter.Run(steps[i], "step " + std::to_string(i) + ": ", &output);
    recorder->Add(RecordKind(output.kind), output.text);
    Record(interpreter.findings(), &num_recorded, recorder);
  }
  interpreter.Finish("at the end: ");
  Record(interpreter.findings(), &num_recorded, recorder);
  if (!interpreter.findings().mistake().ok()) {
    recorder->Add(kMistake, interpreter.findings().mistake().getState());
  }
  at_end(&interpreter);
}

// REQUIRES: this is the child process
[[noreturn]] void RunChild(const std::vector<HistoryWords>& steps,
                           const std::vector<HistoryOptionList>& lists,
                           const std::string& root) {
  const int log =
      open((root + ".log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  MetamorphicRun::RunHere(steps, lists, root, root + ".out",
                          [](HistoryInterpreter*) {});
  ExitChild(0);
}

// Returns false if the process did not end in time.
bool WaitFor(pid_t child, int seconds, int* status) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (waitpid(child, status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Appends the stacks of the process to its log, if there is a debugger.
void LogStacks(pid_t child, const std::string& log) {
  const std::string command =
      "gdb -p " + std::to_string(child) +
      " -batch -ex 'thread apply all bt 30' </dev/null 2>/dev/null | "
      "grep -E '^(Thread|#)' >>'" +
      log + "'";
  [[maybe_unused]] const int result = std::system(command.c_str());
}

// Waits for the process. Returns how it ended; empty if that was exit code 0.
// log: what the process prints.
std::string Await(pid_t child, int timeout_seconds, const std::string& log,
                  bool* has_hung) {
  int status = 0;
  if (!WaitFor(child, timeout_seconds, &status)) {
    *has_hung = true;
    LogStacks(child, log);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return "no end after " + std::to_string(timeout_seconds) + " s";
  }
  if (WIFSIGNALED(status)) {
    return "signal " + std::to_string(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "exit code " + std::to_string(code);
}

std::string ReadAll(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

// Takes the next text from the front of *rest. Returns false at the end, or at
// a text that is cut off.
bool Take(std::string* rest, char* kind, std::string* text) {
  const size_t newline = rest->find('\n');
  if (newline == std::string::npos) {
    return false;
  }
  *kind = (*rest)[0];
  const size_t size = std::strtoull(rest->c_str() + 1, nullptr, 10);
  if (rest->size() - newline - 1 < size) {
    return false;
  }
  *text = rest->substr(newline + 1, size);
  rest->erase(0, newline + 1 + size);
  return true;
}

// Returns true if the process came to its end.
bool ReadRecords(const std::string& path, MetamorphicOutcome* outcome) {
  std::string rest = ReadAll(path);
  char kind = 0;
  std::string text;
  while (Take(&rest, &kind, &text)) {
    switch (kind) {
      case kOutput:
      case kStructuralOutput:
      case kUndecidedOutput:
        outcome->outputs.emplace_back();
        outcome->outputs.back().kind =
            kind == kOutput             ? HistoryOutputKind::kSame
            : kind == kStructuralOutput ? HistoryOutputKind::kStructural
                                        : HistoryOutputKind::kUndecided;
        outcome->outputs.back().text = text;
        break;
      case kDisagreement:
        outcome->disagreements.push_back(text);
        break;
      case kMistake:
        outcome->mistake = text;
        break;
      default:
        return kind == kFinished;
    }
  }
  return false;
}

// A child of a process with more threads has a copy of an Env whose background
// threads do not exist: the first flush would wait forever.
bool HasOneThread() {
  // The runtime of ThreadSanitizer has a thread of its own.
#if defined(__SANITIZE_THREAD__)
  constexpr size_t kNumThreads = 2;
#else
  constexpr size_t kNumThreads = 1;
#endif
  std::vector<std::string> threads;
  return Env::Default()->GetChildren("/proc/self/task", &threads).ok() &&
         threads.size() <= kNumThreads;
}

void RemoveAll(const std::string& root) {
  DestroyDir(Env::Default(), root).PermitUncheckedError();
  unlink((root + ".log").c_str());
  unlink((root + ".out").c_str());
}

}  // namespace

MetamorphicOutcome MetamorphicRun::Run(
    const std::vector<HistoryWords>& steps,
    const std::vector<HistoryOptionList>& lists, const std::string& root,
    int timeout_seconds) {
  constexpr size_t kMaxLastWords = 12000;
  RemoveAll(root);
  MetamorphicOutcome outcome;
  if (!HasOneThread()) {
    outcome.mistake = "the process has more than one thread";
    return outcome;
  }
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    RunChild(steps, lists, root);
  }
  if (child < 0) {
    outcome.mistake = "fork() failed";
    return outcome;
  }
  bool has_hung = false;
  const std::string how =
      Await(child, timeout_seconds, root + ".log", &has_hung);
  const bool is_finished = ReadRecords(root + ".out", &outcome) && how.empty();
  if (!is_finished) {
    outcome.end = has_hung ? MetamorphicOutcome::End::kHung
                           : MetamorphicOutcome::End::kDied;
    const std::string log = ReadAll(root + ".log");
    outcome.last_words =
        how + "\n" +
        log.substr(log.size() > kMaxLastWords ? log.size() - kMaxLastWords : 0);
  }
  RemoveAll(root);
  return outcome;
}

void MetamorphicRun::RunHere(
    const std::vector<HistoryWords>& steps,
    const std::vector<HistoryOptionList>& lists, const std::string& root,
    const std::string& record,
    const std::function<void(HistoryInterpreter*)>& at_end) {
  Recorder recorder(record);
  RunSteps(steps, lists, root, at_end, &recorder);
  recorder.Add(kFinished, "");
}

bool MetamorphicRun::ReadRecord(const std::string& record,
                                MetamorphicOutcome* outcome) {
  return ReadRecords(record, outcome);
}

}  // namespace ROCKSDB_NAMESPACE
