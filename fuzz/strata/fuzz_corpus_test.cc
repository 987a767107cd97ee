//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Runs each fuzz target over its corpus (fuzz/strata/corpus/<target>), and over
// inputs that are made from it and from random numbers, without libFuzzer. So
// an input on which a target once failed is a regression test.
//
// A target ends the process if a promise is broken. The input is then printed
// in hexadecimal.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include "fuzz/strata/fuzz_input.h"
#include "fuzz/strata/fuzz_target.h"
#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/testharness.h"
#include "util/random.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace ROCKSDB_NAMESPACE {

using fuzz::FuzzInput;
using fuzz::FuzzTarget;
using fuzz::FuzzTargets;

namespace {

// Prints the input of a target in which the process dies.
//
// Not thread-safe. Report() is called by signal handlers, and only writes.
class InputReporter {
 public:
  // To be called after other handlers were installed, which are then called
  // after Report().
  static void Install() {
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      struct sigaction action = {};
      action.sa_handler = &HandleSignal;
      sigaction(kSignals[i], &action, &previous_[i]);
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_set_death_callback(&Report);
#endif
  }

  // Marks the input as the one that is running; nullptr: none is.
  static void SetRunning(const char* target, const std::string* input) {
    target_ = target;
    input_ = input;
  }

 private:
  static constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};

  static void Print(const char* text, size_t size) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, size);
  }
  static void Print(const char* text) { Print(text, strlen(text)); }

  static void Report() {
    if (input_ == nullptr) {
      return;
    }
    Print("The fuzz target ");
    Print(target_);
    Print(" failed. The input, for \"xxd -r -p\":\n");
    for (const char c : *input_) {
      const char* const digits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      const char hex[] = {digits[byte >> 4], digits[byte & 15]};
      Print(hex, sizeof(hex));
    }
    Print("\n");
    input_ = nullptr;
  }

  static void HandleSignal(int number) {
    Report();
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      if (kSignals[i] == number) {
        sigaction(number, &previous_[i], nullptr);
      }
    }
    // The signal is blocked until this function returns.
    raise(number);
  }

  static inline struct sigaction previous_[std::size(kSignals)];
  static inline const char* target_ = nullptr;
  static inline const std::string* input_ = nullptr;
};

// Returns n bytes. Those of Random::RandomBinaryString() are at most 126.
std::string RandomBytes(Random* rnd, size_t n) {
  std::string bytes(n, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(rnd->Uniform(256));
  }
  return bytes;
}

std::vector<std::string> Children(const std::string& directory) {
  std::vector<std::string> names;
  EXPECT_OK(Env::Default()->GetChildren(directory, &names));
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const std::string& name) {
                               return name == "." || name == "..";
                             }),
              names.end());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

namespace fuzz {

// GoogleTest calls it to show what a test is about.
inline void PrintTo(const FuzzTarget& target, std::ostream* os) {
  *os << target.name;
}

}  // namespace fuzz

class FuzzCorpusTest : public testing::Test,
                       public testing::WithParamInterface<FuzzTarget> {
 protected:
  // Limits of a corpus, so that it stays one of chosen inputs.
  static constexpr size_t kMaxInputs = 30;
  static constexpr size_t kMaxInputSize = 4095;
  // Made inputs of each target. More of them belong to "make fuzz".
  static constexpr int kNumMade = 4000;
  static constexpr size_t kMaxMadeSize = 8192;

  FuzzCorpusTest() {
    const std::string directory =
        std::string(STRATA_FUZZ_CORPUS) + "/" + GetParam().name;
    for (const std::string& name : Children(directory)) {
      std::string input;
      EXPECT_OK(
          ReadFileToString(Env::Default(), directory + "/" + name, &input));
      EXPECT_LE(input.size(), kMaxInputSize) << name;
      corpus_.push_back(input);
    }
    EXPECT_LE(corpus_.size(), kMaxInputs);
  }

  void Run(const std::string& input) const {
    InputReporter::SetRunning(GetParam().name, &input);
    FuzzInput fuzz_input(reinterpret_cast<const uint8_t*>(input.data()),
                         input.size());
    GetParam().run(&fuzz_input);
    InputReporter::SetRunning(nullptr, nullptr);
  }

  const std::string& AnyOfCorpus(Random* rnd) const {
    return corpus_[rnd->Uniform(static_cast<int>(corpus_.size()))];
  }

  // Changes one place of *input.
  void Mutate(Random* rnd, std::string* input) const {
    const size_t at = rnd->Uniform(static_cast<int>(input->size()) + 1);
    const size_t n = 1 + rnd->Skewed(6);
    switch (rnd->Uniform(6)) {
      case 0:
        input->replace(at, 1, 1, static_cast<char>(rnd->Uniform(256)));
        break;
      case 1:
        if (at < input->size()) {
          (*input)[at] =
              static_cast<char>((*input)[at] ^ (1 << rnd->Uniform(8)));
        }
        break;
      case 2:
        input->erase(at, n);
        break;
      case 3:
        input->insert(at, RandomBytes(rnd, n));
        break;
      case 4:
        input->insert(at,
                      input->substr(rnd->Uniform(static_cast<int>(at) + 1), n));
        break;
      default: {
        const std::string& other = AnyOfCorpus(rnd);
        input->replace(at, std::string::npos, other,
                       rnd->Uniform(static_cast<int>(other.size()) + 1),
                       other.size());
        break;
      }
    }
  }

  std::string MakeInput(Random* rnd) const {
    std::string input;
    switch (rnd->Uniform(4)) {
      case 0:
        return RandomBytes(rnd, rnd->Uniform(600));
      case 1:
        input = RandomBytes(rnd, rnd->Uniform(300));
        // Small numbers are more often valid.
        for (char& c : input) {
          c = rnd->OneIn(4) ? c : static_cast<char>(rnd->Uniform(24));
        }
        return input;
      default:
        input = AnyOfCorpus(rnd);
        for (int n = 1 + rnd->Uniform(8); n > 0; --n) {
          Mutate(rnd, &input);
        }
        input.resize(std::min(input.size(), kMaxMadeSize));
        return input;
    }
  }

  std::vector<std::string> corpus_;
};

// The targets of this program, and the folders of corpora, are those that
// exist.
TEST(FuzzCorporaTest, EachTargetHasACorpus) {
  std::vector<std::string> targets;
  for (const FuzzTarget& target : FuzzTargets()) {
    targets.emplace_back(target.name);
  }
  std::sort(targets.begin(), targets.end());
  ASSERT_EQ(targets, Children(STRATA_FUZZ_CORPUS));
}

TEST_P(FuzzCorpusTest, TheCorpusPasses) {
  ASSERT_FALSE(corpus_.empty());
  for (const std::string& input : corpus_) {
    Run(input);
  }
}

TEST_P(FuzzCorpusTest, MadeInputsPass) {
  ASSERT_FALSE(corpus_.empty());
  Random rnd(301);
  for (int i = 0; i < kNumMade; ++i) {
    Run(MakeInput(&rnd));
  }
}

INSTANTIATE_TEST_CASE_P(
    Targets, FuzzCorpusTest, ::testing::ValuesIn(FuzzTargets()),
    [](const ::testing::TestParamInfo<FuzzTarget>& param_info) {
      return std::string(param_info.param.name);
    });

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ROCKSDB_NAMESPACE::InputReporter::Install();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
