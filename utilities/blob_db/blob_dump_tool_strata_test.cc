//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// What blob_dump prints of blob files of an address map.

#include <string>
#include <vector>

#include "db/blob/blob_file_meta.h"
#include "db/blob/blob_log_format.h"
#include "db/blob_v2/blob_format_v2.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/testharness.h"
#include "util/compression.h"
#include "utilities/blob_db/blob_dump_tool.h"

namespace ROCKSDB_NAMESPACE::blob_db {

using Display = BlobDumpTool::DisplayType;

class BlobDumpToolStrataTest : public AddressMapDBTestBase {
 protected:
  static constexpr int kKeys = 20;

  BlobDumpToolStrataTest() : AddressMapDBTestBase("blob_dump_tool_test") {}

  std::string ValueOf(int key) const {
    return "value" + std::to_string(key) + std::string(100, 'v');
  }
  // Makes a DB with one blob file, and closes it. All values are versioned but
  // the oldest one, which a snapshot sees.
  void MakeFile(CompressionType compression) {
    Options options = MapOptions();
    options.blob_compression_type = compression;
    DestroyAndReopen(options);
    ASSERT_OK(Put(Key(0), ValueOf(0)));
    const Snapshot* const snapshot = db_->GetSnapshot();
    for (int key = 0; key < kKeys; ++key) {
      ASSERT_OK(Put(Key(key), ValueOf(key)));
    }
    ASSERT_OK(Flush());
    db_->ReleaseSnapshot(snapshot);
    const std::vector<BlobMetaData> files = BlobFiles();
    ASSERT_EQ(files.size(), 1u);
    file_ = BlobFileName(dbname_, files[0].blob_file_number);
    Close();
  }
  Status Dump(Display key, Display blob, Display raw, bool summary) {
    testing::internal::CaptureStdout();
    BlobDumpTool tool;
    const Status s = tool.Run(file_, key, blob, raw, summary);
    printed_ = testing::internal::GetCapturedStdout();
    return s;
  }
  bool HasPrinted(const std::string& text) const {
    return printed_.find(text) != std::string::npos;
  }
  size_t CountPrinted(const std::string& text) const {
    size_t count = 0;
    for (size_t at = printed_.find(text); at != std::string::npos;
         at = printed_.find(text, at + 1)) {
      ++count;
    }
    return count;
  }
  // Changes one byte of the file.
  void Damage(size_t offset) {
    std::string contents;
    ASSERT_OK(ReadFileToString(env_, file_, &contents));
    ASSERT_LT(offset, contents.size());
    contents[offset] ^= 0x55;
    ASSERT_OK(WriteStringToFile(env_, contents, file_, /*should_sync=*/false));
  }
  // Returns the number behind the label.
  uint64_t NumberOf(const std::string& label) const {
    const size_t at = printed_.find(label);
    EXPECT_NE(at, std::string::npos) << label;
    return at == std::string::npos
               ? 0
               : std::stoull(printed_.substr(at + label.size()));
  }

  std::string file_;
  std::string printed_;
};

TEST_F(BlobDumpToolStrataTest, PrintsHeaderRecordsAndSummary) {
  ASSERT_NO_FATAL_FAILURE(MakeFile(kNoCompression));
  ASSERT_OK(Dump(Display::kRaw, Display::kRaw, Display::kNone, true));
  EXPECT_EQ(NumberOf("Version          : "), kBlobFileVersion2);
  EXPECT_TRUE(HasPrinted("Column Family ID : 0\n"));
  EXPECT_TRUE(HasPrinted("Compression      : kNoCompression\n"));
  EXPECT_EQ(NumberOf("Blob count       : "), uint64_t{kKeys + 1});
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_TRUE(HasPrinted("key        : " + Key(key) + "\n"));
    EXPECT_TRUE(HasPrinted("blob       : " + ValueOf(key) + "\n"));
  }
  EXPECT_EQ(CountPrinted("Record at offset"), size_t{kKeys + 1});
  EXPECT_EQ(CountPrinted("mode       : versioned"), size_t{kKeys});
  EXPECT_EQ(CountPrinted("mode       : direct"), 1u);
  EXPECT_EQ(NumberOf("total records: "), uint64_t{kKeys + 1});
  EXPECT_EQ(NumberOf("written as direct: "), 1u);
  uint64_t blob_size = ValueOf(0).size();
  for (int key = 0; key < kKeys; ++key) {
    blob_size += ValueOf(key).size();
  }
  EXPECT_EQ(NumberOf("total key size: "), Key(0).size() * (kKeys + 1));
  EXPECT_EQ(NumberOf("total blob size: "), blob_size);
  EXPECT_FALSE(HasPrinted("total raw blob size"));
}

TEST_F(BlobDumpToolStrataTest, PrintsWhatIsAskedFor) {
  ASSERT_NO_FATAL_FAILURE(MakeFile(kNoCompression));
  ASSERT_OK(Dump(Display::kNone, Display::kNone, Display::kNone, false));
  EXPECT_TRUE(HasPrinted("Blob file footer:"));
  EXPECT_FALSE(HasPrinted("Record at offset"));
  EXPECT_FALSE(HasPrinted("Summary:"));
  ASSERT_OK(Dump(Display::kNone, Display::kNone, Display::kNone, true));
  EXPECT_FALSE(HasPrinted("Record at offset"));
  EXPECT_EQ(NumberOf("total records: "), uint64_t{kKeys + 1});
  ASSERT_OK(Dump(Display::kHex, Display::kNone, Display::kNone, false));
  EXPECT_TRUE(HasPrinted(
      "key        : " + Slice(Key(3)).ToString(/*hex=*/true) + "\n"));
  EXPECT_FALSE(HasPrinted("blob       : "));
}

TEST_F(BlobDumpToolStrataTest, UncompressesValues) {
  if (!LZ4_Supported()) {
    ROCKSDB_GTEST_SKIP("needs LZ4");
    return;
  }
  ASSERT_NO_FATAL_FAILURE(MakeFile(kLZ4Compression));
  ASSERT_OK(Dump(Display::kRaw, Display::kHex, Display::kRaw, true));
  EXPECT_TRUE(HasPrinted("Compression      : kLZ4Compression\n"));
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_TRUE(HasPrinted("raw blob   : " + ValueOf(key) + "\n"));
  }
  EXPECT_LT(NumberOf("total blob size: "), NumberOf("total raw blob size: "));
}

TEST_F(BlobDumpToolStrataTest, NamesADamagedRecord) {
  ASSERT_NO_FATAL_FAILURE(MakeFile(kNoCompression));
  Damage(BlobLogHeader::kSize + BlobRecordV2::kHeaderSize + Key(0).size());
  const Status s = Dump(Display::kNone, Display::kNone, Display::kNone, true);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_TRUE(HasPrinted("Bad record at offset " +
                         std::to_string(BlobLogHeader::kSize) + "\n"))
      << printed_;
}

TEST_F(BlobDumpToolStrataTest, RestoresADamagedIndex) {
  ASSERT_NO_FATAL_FAILURE(MakeFile(kNoCompression));
  ASSERT_OK(Dump(Display::kNone, Display::kNone, Display::kNone, false));
  Damage(NumberOf("Index offset     : ") + NumberOf("Index size       : ") / 2);
  ASSERT_OK(Dump(Display::kRaw, Display::kNone, Display::kNone, true));
  EXPECT_TRUE(HasPrinted("1 blocks of the index are damaged"));
  EXPECT_EQ(CountPrinted("Record at offset"), size_t{kKeys + 1});
}

TEST_F(BlobDumpToolStrataTest, RefusesADamagedHeader) {
  ASSERT_NO_FATAL_FAILURE(MakeFile(kNoCompression));
  Damage(BlobLogHeader::kSize - 1);
  const Status s = Dump(Display::kRaw, Display::kRaw, Display::kNone, true);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_FALSE(HasPrinted("Record at offset"));
}

}  // namespace ROCKSDB_NAMESPACE::blob_db

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
