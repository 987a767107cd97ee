// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// Databases on simulated devices have the contents that they have elsewhere.
// The clock of the devices goes on when a thread sleeps, so these tests do not
// wait, and say nothing about times.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "port/stack_trace.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test_util/mock_time_env.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "tools/workloads/simulated_device_fs.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

// direct: whether all files use direct I/O.
class SimulatedDeviceDBTest : public testing::TestWithParam<bool> {
 public:
  SimulatedDeviceDBTest()
      : clock_(SystemClock::Default()),
        dir_(test::PerThreadDBPath("simulated_device_db_test")) {
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
    EXPECT_OK(Env::Default()->CreateDirIfMissing(dir_));
    std::vector<PathDevice> devices;
    EXPECT_OK(
        ParsePathDevices(dir_ + "/fast:nvme," + dir_ + "/slow:sata", &devices));
    fs_ = std::make_shared<SimulatedDeviceFileSystem>(FileSystem::Default(),
                                                      devices, &clock_);
    env_ = NewCompositeEnv(fs_);
  }
  ~SimulatedDeviceDBTest() override {
    db_.reset();
    EXPECT_OK(DestroyDir(Env::Default(), dir_));
  }

 protected:
  // Keys are on the first device, values on the second one. The database's own
  // directory is on no device.
  Options DBOptions() {
    Options options;
    options.create_if_missing = true;
    options.env = env_.get();
    options.enable_blob_files = true;
    options.min_blob_size = 100;
    options.cf_paths = {{dir_ + "/fast", 0}, {dir_ + "/slow", 0}};
    options.level_sst_path_ids = {0};
    options.level_blob_path_ids = {1};
    options.write_buffer_size = 64 << 10;
    options.bytes_per_sync = 16 << 10;
    BlockBasedTableOptions table;
    table.no_block_cache = true;
    table.filter_policy.reset(NewBloomFilterPolicy(10));
    options.table_factory.reset(NewBlockBasedTableFactory(table));
    if (GetParam()) {
      options.use_direct_reads = true;
      options.use_direct_io_for_flush_and_compaction = true;
    }
    return options;
  }

  // Returns false if the file system of the tests has no direct I/O.
  bool Open() {
    const Status s = DB::Open(DBOptions(), dir_ + "/db", &db_);
    if (GetParam() && (s.IsNotSupported() || s.IsInvalidArgument())) {
      return false;
    }
    EXPECT_OK(s);
    return s.ok();
  }

  void Put(const std::string& key, size_t size) {
    std::string value = rnd_.RandomString(static_cast<int>(size));
    ASSERT_OK(db_->Put(WriteOptions(), key, value));
    model_[key] = std::move(value);
  }

  void Write(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 200; ++i) {
        Put("key" + std::to_string(rnd_.Uniform(500)), 10 + rnd_.Uniform(1000));
      }
      const std::string deleted = "key" + std::to_string(rnd_.Uniform(500));
      ASSERT_OK(db_->Delete(WriteOptions(), deleted));
      model_.erase(deleted);
      ASSERT_OK(db_->Flush(FlushOptions()));
    }
  }

  void Check(DB* db) {
    std::vector<Slice> keys;
    for (const auto& [key, value] : model_) {
      std::string found;
      ASSERT_OK(db->Get(ReadOptions(), key, &found)) << key;
      EXPECT_EQ(found, value) << key;
      keys.emplace_back(key);
    }
    std::string found;
    EXPECT_TRUE(db->Get(ReadOptions(), "none", &found).IsNotFound());

    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    for (const bool async_io : {false, true}) {
      ReadOptions options;
      options.async_io = async_io;
      for (PinnableSlice& value : values) {
        value.Reset();
      }
      db->MultiGet(options, db->DefaultColumnFamily(), keys.size(), keys.data(),
                   values.data(), statuses.data());
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_OK(statuses[i]);
        EXPECT_EQ(values[i].ToString(), model_[keys[i].ToString()]);
      }

      // Half of a scan, whose reads ahead are aborted, and a whole one.
      for (const size_t limit : {model_.size() / 2, model_.size()}) {
        std::unique_ptr<Iterator> iterator(db->NewIterator(options));
        auto expected = model_.begin();
        iterator->SeekToFirst();
        for (size_t i = 0; i < limit; ++i, ++expected, iterator->Next()) {
          ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
          EXPECT_EQ(iterator->key().ToString(), expected->first);
          EXPECT_EQ(iterator->value().ToString(), expected->second);
        }
        EXPECT_EQ(iterator->Valid(), limit < model_.size());
        EXPECT_OK(iterator->status());
      }
    }
  }

  DeviceReport Report(size_t device) const { return fs_->GetReports()[device]; }

  MockSystemClock clock_;
  const std::string dir_;
  std::shared_ptr<SimulatedDeviceFileSystem> fs_;
  std::unique_ptr<Env> env_;
  std::unique_ptr<DB> db_;
  Random rnd_{301};
  std::map<std::string, std::string> model_;
};

TEST_P(SimulatedDeviceDBTest, ContentsAreThoseThatWereWritten) {
  if (!Open()) {
    ROCKSDB_GTEST_BYPASS("no direct I/O");
    return;
  }
  Write(5);
  const SimulatedDevice::Stats keys = Report(0).stats;
  const SimulatedDevice::Stats values = Report(1).stats;
  EXPECT_GT(keys.write_bytes, 0u);
  EXPECT_GT(keys.syncs, 0u);
  EXPECT_GT(values.syncs, 0u);
  // Most of the data is values.
  EXPECT_GT(values.write_bytes, keys.write_bytes);

  Check(db_.get());
  EXPECT_GT(Report(0).stats.reads, keys.reads);
  // Each value is read at least once by each of the three kinds of reads.
  EXPECT_GT(Report(1).stats.reads, values.reads + model_.size() / 2);

  ASSERT_OK(db_->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  Write(2);
  Check(db_.get());

  db_.reset();
  ASSERT_TRUE(Open());
  Check(db_.get());
  for (const DeviceReport& report : fs_->GetReports()) {
    EXPECT_GE(report.stats.served_nanos, report.stats.busy_nanos);
    EXPECT_GT(report.stats.busy_nanos, 0u);
  }
}

TEST_P(SimulatedDeviceDBTest, CopiesToAnotherDeviceAreWhole) {
  if (!Open()) {
    ROCKSDB_GTEST_BYPASS("no direct I/O");
    return;
  }
  Write(3);
  Checkpoint* made = nullptr;
  ASSERT_OK(Checkpoint::Create(db_.get(), &made));
  const std::unique_ptr<Checkpoint> checkpoint(made);
  // The files cannot be linked there.
  ASSERT_OK(checkpoint->CreateCheckpoint(dir_ + "/copy"));
  Options options = DBOptions();
  options.cf_paths.clear();
  options.level_sst_path_ids.clear();
  options.level_blob_path_ids.clear();
  db_.reset();
  const uint64_t reads = Report(1).stats.reads;
  std::unique_ptr<DB> copy;
  ASSERT_OK(DB::Open(options, dir_ + "/copy", &copy));
  Check(copy.get());
  // The copy is on no device.
  EXPECT_EQ(Report(1).stats.reads, reads);
}

INSTANTIATE_TEST_CASE_P(SimulatedDeviceDBTest, SimulatedDeviceDBTest,
                        testing::Bool());

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
