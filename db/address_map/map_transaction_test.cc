//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/map_transaction.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/db_impl/db_impl.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_db_test_util.h"

namespace ROCKSDB_NAMESPACE {

class MapTransactionTest : public AddressMapDBTestBase {
 protected:
  MapTransactionTest() : AddressMapDBTestBase("map_transaction_test") {}

  // Returns a file with one value, which is not written to the disk.
  MappedBlobFile FileOf(const std::string& key, SequenceNumber seq) {
    blob_v2_test::FileMaker maker(Blobs()->hash_seed());
    maker.Add(key, Value(1), seq, /*birth=*/0, /*direct=*/true);
    EXPECT_OK(maker.status());
    maker.Finish();
    MappedBlobFile file;
    file.number = dbfull()->GetVersionSet()->NewFileNumber();
    file.size = maker.bytes().size();
    file.footer = maker.layout().footer;
    file.index = maker.bytes().substr(maker.index_offset(), maker.index_size());
    return file;
  }

  bool Has(const std::string& key, SequenceNumber seq) {
    return Blobs()
        ->map()
        ->FindByName(MapName{Blobs()->HashOf(key), seq, /*birth=*/0},
                     /*pin=*/false)
        .found;
  }
};

// If the values of one of several files cannot be inserted, Publish() returns
// the error and inserts nothing more. Settle() then removes the values that
// Publish() has inserted.
TEST_F(MapTransactionTest, FailedInsertionEndsThePublication) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("a", Value(0)));
  ASSERT_OK(Flush());
  WaitForJobs();
  std::vector<MappedBlobFile> files;
  files.push_back(FileOf("a", 1000));
  files.push_back(FileOf("b", 1001));
  files.back().index[files.back().index.size() / 2] ^= 1;
  const std::string damaged = std::to_string(files.back().number);
  files.push_back(FileOf("c", 1002));

  InstrumentedMutex* const mutex = dbfull()->mutex();
  mutex->Lock();
  auto transaction = std::make_unique<MapTransaction>(
      Blobs(), /*sst_number=*/uint64_t{1} << 40, /*when_present=*/true);
  mutex->Unlock();
  const Status s = transaction->Publish(std::move(files));
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
  EXPECT_NE(s.ToString().find(damaged), std::string::npos) << s.ToString();
  EXPECT_TRUE(Has("a", 1000));
  EXPECT_FALSE(Has("c", 1002));
  CheckMap(2);
  mutex->Lock();
  transaction->Close();
  EXPECT_FALSE(transaction->committed());
  mutex->Unlock();
  transaction->Settle();
  mutex->Lock();
  transaction.reset();
  mutex->Unlock();
  EXPECT_FALSE(Has("a", 1000));
  CheckMap(1);
  EXPECT_EQ(Get("a"), Value(0));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
