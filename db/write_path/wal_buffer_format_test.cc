//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/write_path/wal_buffer_format.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/strata/exit_child_test_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

class WalBufferFormatTest : public testing::Test {
 protected:
  static constexpr size_t kSize = WalBufferFormat::kMinSize;
  // The exit code of a child process that must not write to a page.
  static constexpr int kFaultCode = 7;

  char* memory() { return reinterpret_cast<char*>(memory_.data()); }
  std::string File() { return std::string(memory(), kSize); }

  Status Parse(const std::string& file) {
    return WalBufferFormat::Parse("WALBUFFER", file, &contents_, &is_torn_);
  }
  // Returns the bytes that a process would leave in the buffer if it ended now.
  std::string Left() {
    EXPECT_OK(Parse(File()));
    EXPECT_FALSE(is_torn_ || contents_.is_torn);
    return contents_.bytes;
  }

  std::vector<uint64_t> memory_ = std::vector<uint64_t>(kSize / 8);
  WalBufferFormat::Contents contents_;
  bool is_torn_ = false;
};

// The checksum of the header is right, but its fields are not.
TEST_F(WalBufferFormatTest, ImpossibleFieldsAreCorruption) {
  WalBufferFormat format(memory(), kSize);
  format.Start(0, 1000);
  format.Append("x");
  Status s = Parse(File());
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(s.ToString().find("WAL number 0, at offset 16"), std::string::npos)
      << s.ToString();
  format.Start(7, std::numeric_limits<uint64_t>::max() - 1);
  format.Append("x");
  ASSERT_OK(Parse(File()));
  format.Append("y");
  s = Parse(File());
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(s.ToString().find("no file has, at offset 24"), std::string::npos)
      << s.ToString();
}

TEST_F(WalBufferFormatTest, ParseReturnsTheAppendedBytes) {
  ASSERT_EQ("", Left());
  WalBufferFormat format(memory(), kSize);
  ASSERT_EQ("", Left());
  format.Start(7, 1000);
  ASSERT_EQ("", Left());
  const size_t room = kSize - WalBufferFormat::kHeaderSize;
  ASSERT_EQ(room, format.room());
  format.Append("first");
  ASSERT_EQ("first", Left());
  ASSERT_EQ(7, contents_.wal_number);
  ASSERT_EQ(1000, contents_.offset);
  ASSERT_EQ(0, contents_.previous_size);
  format.Append("second");
  ASSERT_EQ("firstsecond", Left());
  ASSERT_EQ("firstsecond", format.bytes());
  ASSERT_EQ(room - 11, format.room());
  format.Advance();
  ASSERT_EQ("", Left());
  ASSERT_EQ(room, format.room());
  format.Append("third");
  ASSERT_EQ("third", Left());
  ASSERT_EQ(7, contents_.wal_number);
  ASSERT_EQ(1011, contents_.offset);
  ASSERT_EQ(11, contents_.previous_size);
  ASSERT_EQ(crc32c::Value("firstsecond", 11), contents_.previous_crc);
  format.Start(8, 0);
  ASSERT_EQ("", Left());
  format.Append(std::string(room, 'x'));
  ASSERT_EQ(std::string(room, 'x'), Left());
  ASSERT_EQ(8, contents_.wal_number);
  ASSERT_EQ(0, contents_.offset);
  ASSERT_EQ(0, contents_.previous_size);
  ASSERT_EQ(0, format.room());
  format.Start(9, 100, "before");
  ASSERT_EQ("", Left());
  format.Append("x");
  ASSERT_EQ("x", Left());
  ASSERT_EQ(100, contents_.offset);
  ASSERT_EQ(6, contents_.previous_size);
  ASSERT_EQ(crc32c::Value("before", 6), contents_.previous_crc);
  // previous_size is limited to the size of the buffer.
  const std::string end(kSize, 'e');
  format.Start(10, 2 * kSize, "before" + end);
  format.Append("y");
  ASSERT_EQ("y", Left());
  ASSERT_EQ(kSize, contents_.previous_size);
  ASSERT_EQ(crc32c::Value(end.data(), end.size()), contents_.previous_crc);
}

TEST_F(WalBufferFormatTest, CutLeavesTheFirstBytes) {
  WalBufferFormat format(memory(), kSize);
  format.Start(7, 1000, "before");
  format.Append("first");
  const std::string first = File();
  format.Append("second");
  format.Cut(11);
  ASSERT_EQ("firstsecond", Left());
  format.Cut(7);
  ASSERT_EQ("firstse", Left());
  ASSERT_EQ("firstse", format.bytes());
  ASSERT_EQ(kSize - WalBufferFormat::kHeaderSize - 7, format.room());
  format.Append("third");
  ASSERT_EQ("firstsethird", Left());
  ASSERT_EQ(7, contents_.wal_number);
  ASSERT_EQ(1000, contents_.offset);
  ASSERT_EQ(6, contents_.previous_size);
  // The header and the state are as if the other bytes had never been there.
  format.Cut(5);
  ASSERT_EQ("first", Left());
  ASSERT_EQ(first.substr(0, WalBufferFormat::kHeaderSize + 5),
            File().substr(0, WalBufferFormat::kHeaderSize + 5));
  format.Cut(0);
  ASSERT_EQ("", Left());
  format.Append("new");
  ASSERT_EQ("new", Left());
  ASSERT_EQ(1000, contents_.offset);
  format.Advance();
  format.Append("x");
  ASSERT_EQ("x", Left());
  ASSERT_EQ(1003, contents_.offset);
  ASSERT_EQ(3, contents_.previous_size);
  ASSERT_EQ(crc32c::Value("new", 3), contents_.previous_crc);
}

// A process that ends in the middle of an append leaves the bytes before. Here
// it ends because the bytes that it appends belong to a page that it may not
// write.
TEST_F(WalBufferFormatTest, IncompleteAppendIsNotRead) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const mapped = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, /*fd=*/-1, 0);
  ASSERT_NE(MAP_FAILED, mapped);
  char* const buffer = static_cast<char*>(mapped);
  WalBufferFormat format(buffer, 2 * page);
  format.Start(7, 1000);
  const std::string first(page - WalBufferFormat::kHeaderSize, 'f');
  format.Append(first);
  const pid_t child = fork();
  ASSERT_LE(0, child);
  if (child == 0) {
    struct sigaction action = {};
    action.sa_handler = [](int) { ExitChild(kFaultCode); };
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    mprotect(buffer + page, page, PROT_READ);
    format.Append("second");
    ExitChild(0);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(kFaultCode, WEXITSTATUS(status));
  ASSERT_OK(Parse(std::string(buffer, 2 * page)));
  EXPECT_FALSE(is_torn_ || contents_.is_torn);
  EXPECT_EQ(first, contents_.bytes);
  munmap(mapped, 2 * page);
}

// The header has the layout of docs/formats.md, byte by byte.
TEST_F(WalBufferFormatTest, HeaderHasTheDocumentedLayout) {
  WalBufferFormat format(memory(), kSize);
  format.Start(3, 100);
  format.Append("abc");
  format.Advance();
  format.Append("de");
  std::string header = "STRATAWB";
  PutFixed32(&header, 1);
  PutFixed32(&header, 0);
  PutFixed64(&header, 3);
  PutFixed64(&header, 103);
  PutFixed32(&header, 3);
  PutFixed32(&header, crc32c::Mask(crc32c::Value("abc", 3)));
  const uint32_t crc = crc32c::Value(header.data(), header.size());
  PutFixed32(&header, crc32c::Mask(crc));
  PutFixed32(&header, 0);
  PutFixed32(&header, 2);
  PutFixed32(&header, crc32c::Mask(crc ^ crc32c::Value("de", 2)));
  PutFixed64(&header, 0);
  ASSERT_EQ(Slice(header).ToString(true),
            Slice(memory(), WalBufferFormat::kHeaderSize).ToString(true));
  ASSERT_EQ("dec", std::string(memory() + WalBufferFormat::kHeaderSize, 3));
}

TEST_F(WalBufferFormatTest, ShortFileIsEmptyOrCorrupt) {
  WalBufferFormat format(memory(), kSize);
  format.Start(7, 1000);
  format.Append("bytes");
  const std::string file = File();
  for (size_t size = 0; size < WalBufferFormat::kHeaderSize; ++size) {
    ASSERT_OK(Parse(file.substr(0, size)));
    ASSERT_EQ("", contents_.bytes);
  }
  ASSERT_OK(Parse(std::string(kSize, '\0')));
  ASSERT_EQ("", contents_.bytes);
  const Status s = Parse(file.substr(0, WalBufferFormat::kHeaderSize + 4));
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find("WALBUFFER"));
  ASSERT_NE(std::string::npos, s.ToString().find("offset 48"));
}

TEST_F(WalBufferFormatTest, ForeignFileAndNewerVersionAreRefused) {
  WalBufferFormat format(memory(), kSize);
  std::string file = File();
  file[3] ^= 1;
  Status s = Parse(file);
  ASSERT_TRUE(s.IsCorruption()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find("WALBUFFER"));
  ASSERT_NE(std::string::npos, s.ToString().find("offset 0"));
  file = File();
  file[8] = 2;
  s = Parse(file);
  ASSERT_TRUE(s.IsNotSupported()) << s.ToString();
  ASSERT_NE(std::string::npos, s.ToString().find("version 2"));
}

// A change of any bit is noticed, except in bytes that are not used.
TEST_F(WalBufferFormatTest, DamageIsNoticed) {
  WalBufferFormat format(memory(), kSize);
  format.Start(7, 1000);
  format.Append("before");
  format.Advance();
  format.Append("some bytes");
  const std::string file = File();
  for (size_t i = 0; i < WalBufferFormat::kHeaderSize + 10; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const Status s = Parse(damaged);
      const bool does_not_count =
          (i >= 44 && i < 48) || (i >= 56 && i < WalBufferFormat::kHeaderSize);
      if (does_not_count) {
        ASSERT_OK(s);
        ASSERT_EQ("some bytes", contents_.bytes);
      } else {
        ASSERT_TRUE(contents_.bytes.empty() || contents_.is_torn)
            << i << " " << bit;
        ASSERT_TRUE(!s.ok() || is_torn_ || contents_.is_torn)
            << i << " " << bit;
      }
    }
  }
}

// After a loss of power the file may have pages of different headers, which is
// noticed.
TEST_F(WalBufferFormatTest, PagesOfDifferentHeadersAreNoticed) {
  WalBufferFormat format(memory(), kSize);
  format.Start(7, 1000);
  format.Append("bytes");
  const std::string old = File();
  format.Start(8, 2000);
  format.Append("bytes");
  std::string mixed = File();
  mixed.replace(48, 8, old, 48, 8);
  ASSERT_OK(Parse(mixed));
  ASSERT_TRUE(contents_.is_torn);
  mixed = File();
  mixed[25] ^= 1;
  ASSERT_OK(Parse(mixed));
  ASSERT_TRUE(is_torn_);
  ASSERT_EQ("", contents_.bytes);
}

TEST_F(WalBufferFormatTest, ParseAcceptsRandomBytes) {
  Random rnd(301);
  for (int i = 0; i < 20000; ++i) {
    std::string file = rnd.RandomBinaryString(rnd.Uniform(200));
    if (rnd.OneIn(2)) {
      WalBufferFormat format(memory(), kSize);
      format.Start(rnd.Uniform(10), rnd.Uniform(1000));
      format.Append(rnd.RandomBinaryString(rnd.Uniform(50)));
      file = File();
      for (int n = rnd.Uniform(4); n > 0; --n) {
        file[rnd.Uniform(120)] = static_cast<char>(rnd.Uniform(256));
      }
      file.resize(rnd.Uniform(static_cast<int>(file.size()) + 1));
    }
    Parse(file).PermitUncheckedError();
    ASSERT_LE(contents_.bytes.size(), file.size());
  }
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
