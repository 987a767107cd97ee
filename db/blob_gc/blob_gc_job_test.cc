//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Tests of the job alone: it reads the files of a DB, but its outputs are never
// added to the DB.

#include "db/blob_gc/blob_gc_job.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/blob_gc/blob_live_records.h"
#include "db/blob_v2/blob_file_v2_test_util.h"
#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "db/column_family.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/advanced_compression.h"
#include "rocksdb/cache.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_system.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"
#include "util/compression.h"
#include "util/random.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// Once a given number of reads or writes of blob files have succeeded, all
// further ones fail.
class FaultyFS : public FileSystemWrapper {
 public:
  static constexpr int kNever = -1;

  explicit FaultyFS(const std::shared_ptr<FileSystem>& target)
      : FileSystemWrapper(target) {}
  const char* Name() const override { return "FaultyFS"; }

  IOStatus NewRandomAccessFile(const std::string& name,
                               const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result,
                               IODebugContext* dbg) override {
    if (!IsBlobFile(name)) {
      return target()->NewRandomAccessFile(name, options, result, dbg);
    }
    IOStatus s = Take(&reads_left);
    if (s.ok()) {
      s = target()->NewRandomAccessFile(name, options, result, dbg);
    }
    if (s.ok()) {
      *result = std::make_unique<ReadFile>(this, std::move(*result));
    }
    return s;
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result,
                           IODebugContext* dbg) override {
    if (!IsBlobFile(name)) {
      return target()->NewWritableFile(name, options, result, dbg);
    }
    IOStatus s = Take(&writes_left);
    if (s.ok()) {
      s = target()->NewWritableFile(name, options, result, dbg);
    }
    if (s.ok()) {
      *result = std::make_unique<WrittenFile>(this, std::move(*result));
    }
    return s;
  }

  std::atomic<int> reads_left{kNever};
  std::atomic<int> writes_left{kNever};
  std::atomic<size_t> longest_read{0};
  // Reads wait for others to begin, until there were that many at a time.
  std::atomic<int> awaited_reads{0};
  std::atomic<int> most_reads{0};  // at a time

 private:
  class ReadFile : public FSRandomAccessFileOwnerWrapper {
   public:
    ReadFile(FaultyFS* fs, std::unique_ptr<FSRandomAccessFile>&& file)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), fs_(fs) {}
    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options,
                  Slice* result, char* scratch,
                  IODebugContext* dbg) const override {
      const int reads = ++fs_->num_reads_;
      Raise(&fs_->most_reads, reads);
      for (int i = 0; i < 1000 && fs_->most_reads < fs_->awaited_reads; ++i) {
        Env::Default()->SleepForMicroseconds(100);
      }
      IOStatus s = Take(&fs_->reads_left);
      Raise(&fs_->longest_read, n);
      if (s.ok()) {
        s = FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result,
                                                 scratch, dbg);
      }
      --fs_->num_reads_;
      return s;
    }

   private:
    FaultyFS* const fs_;
  };

  class WrittenFile : public FSWritableFileOwnerWrapper {
   public:
    WrittenFile(FaultyFS* fs, std::unique_ptr<FSWritableFile>&& file)
        : FSWritableFileOwnerWrapper(std::move(file)), fs_(fs) {}
    IOStatus Append(const Slice& data, const IOOptions& options,
                    IODebugContext* dbg) override {
      const IOStatus s = Take(&fs_->writes_left);
      return s.ok() ? FSWritableFileOwnerWrapper::Append(data, options, dbg)
                    : s;
    }
    IOStatus Append(const Slice& data, const IOOptions& options,
                    const DataVerificationInfo& info,
                    IODebugContext* dbg) override {
      const IOStatus s = Take(&fs_->writes_left);
      return s.ok()
                 ? FSWritableFileOwnerWrapper::Append(data, options, info, dbg)
                 : s;
    }
    IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
      const IOStatus s = Take(&fs_->writes_left);
      return s.ok() ? FSWritableFileOwnerWrapper::Sync(options, dbg) : s;
    }
    IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
      const IOStatus s = Take(&fs_->writes_left);
      return s.ok() ? FSWritableFileOwnerWrapper::Fsync(options, dbg) : s;
    }

   private:
    FaultyFS* const fs_;
  };

  static bool IsBlobFile(const std::string& name) {
    return name.ends_with(".blob");
  }
  static IOStatus Take(std::atomic<int>* left) {
    int n = left->load();
    while (n > 0 && !left->compare_exchange_weak(n, n - 1)) {
    }
    return n == 0 ? IOStatus::IOError("not today") : IOStatus::OK();
  }
  template <typename T>
  static void Raise(std::atomic<T>* most, T n) {
    for (T m = most->load(); m < n && !most->compare_exchange_weak(m, n);) {
    }
  }

  std::atomic<int> num_reads_{0};
};

// One record of a blob file.
struct Record {
  std::string key;
  SequenceNumber seq = 0;
  uint64_t birth = 0;
  bool direct = false;
  std::string stored;  // the value as stored in the file
  MapAddress address;
};

// The content of a blob file, decoded without the readers under test.
struct BlobFile {
  BlobHeaderV2 header;
  BlobFooterV2 footer;
  uint64_t size = 0;
  uint64_t index_offset = 0;
  std::vector<Record> records;
};

struct Result {
  Status status;
  std::vector<BlobFileAddition> additions;
  std::vector<MappedBlobFile> outputs;
  std::vector<MapAddress> sources;
  std::vector<uint32_t> key_sizes;
  std::vector<BlobGcPicker::KeyRange> key_ranges;
  BlobGcJob::Stats stats;
  bool reached_limit = false;
  std::set<uint64_t> failed_files;
};

std::string Uncompressed(CompressionType type, const std::string& stored) {
  if (type == kNoCompression) {
    return stored;
  }
  const auto decompressor = GetBuiltinV2CompressionManager()->GetDecompressor();
  Decompressor::Args args;
  args.compression_type = type;
  args.compressed_data = stored;
  EXPECT_OK(decompressor->ExtractUncompressedSize(args));
  std::string value(args.uncompressed_size, '\0');
  EXPECT_OK(decompressor->DecompressBlock(args, value.data()));
  return value;
}

std::vector<CompressionType> CompressionTypes() {
  std::vector<CompressionType> types;
  for (const CompressionType type :
       {kNoCompression, kSnappyCompression, kZlibCompression, kZSTD}) {
    if (type == kNoCompression || CompressionTypeSupported(type)) {
      types.push_back(type);
    }
  }
  return types;
}

uint64_t RecordBytes(const std::vector<Record>& records) {
  uint64_t size = 0;
  for (const Record& record : records) {
    size += record.address.size;
  }
  return size;
}

}  // namespace

class BlobGcJobTest : public AddressMapDBTestBase {
 protected:
  BlobGcJobTest()
      : AddressMapDBTestBase("blob_gc_job_test"),
        fs_(std::make_shared<FaultyFS>(env_->GetFileSystem())),
        faulty_env_(NewCompositeEnv(fs_)),
        rnd_(301) {}
  ~BlobGcJobTest() override {
    Unpin();
    Close();  // while its Env exists
  }

  // No compaction or garbage collection starts by itself.
  Options MapOptions() {
    Options options = AddressMapDBTestBase::MapOptions(/*min_blob_size=*/100);
    options.env = faulty_env_.get();
    options.blob_file_size = 4 << 20;
    return options;
  }
  void Open(const Options& options) {
    Unpin();
    DestroyAndReopen(options);
    values_.clear();
  }

  // ---- Input.

  // The keys are ordered like i and differ in size.
  static std::string KeyOf(int i) {
    return Key(i) + std::string(static_cast<size_t>(i) % 7, 'k');
  }
  void PutValue(int i, const std::string& value) {
    ASSERT_OK(Put(KeyOf(i), value));
    values_[{KeyOf(i), db_->GetLatestSequenceNumber()}] = value;
  }
  void PutRandom(int i) {
    PutValue(i, rnd_.RandomString(static_cast<int>(900 + rnd_.Uniform(200))));
  }
  // Waits until the overwritten values are garbage, too.
  void FlushAndWait() {
    ASSERT_OK(Flush());
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
  }
  // Writes the values to a new blob file.
  void FlushValues(int begin, int end, int step = 1) {
    for (int i = begin; i < end; i += step) {
      PutRandom(i);
    }
    FlushAndWait();
  }

  // Checks that the DB still returns the newest value of every key.
  void CheckValues() {
    for (auto it = values_.begin(); it != values_.end(); ++it) {
      const auto next = std::next(it);
      if (next == values_.end() || next->first.first != it->first.first) {
        ASSERT_EQ(it->second, Get(it->first.first));
      }
    }
  }

  std::string PathOf(uint64_t number) { return BlobFileName(dbname_, number); }

  void ReadBlobFile(uint64_t number, BlobFile* file) {
    std::string content;
    ASSERT_OK(ReadFileToString(env_, PathOf(number), &content));
    file->size = content.size();
    ASSERT_GT(content.size(), BlobHeaderV2::kSize + BlobFooterV2::kSize);
    ASSERT_OK(
        file->header.DecodeFrom(Slice(content.data(), BlobHeaderV2::kSize)));
    ASSERT_OK(file->footer.DecodeFrom(
        Slice(content.data() + content.size() - BlobFooterV2::kSize,
              BlobFooterV2::kSize)));
    file->index_offset =
        content.size() - BlobFooterV2::kSize - file->footer.index_size;
    uint64_t offset = BlobHeaderV2::kSize;
    while (offset < file->index_offset) {
      BlobRecordV2 header;
      ASSERT_OK(header.DecodeHeaderFrom(
          Slice(content.data() + offset, BlobRecordV2::kHeaderSize)));
      ASSERT_LE(header.record_size(), file->index_offset - offset);
      Record record;
      record.key =
          content.substr(offset + BlobRecordV2::kHeaderSize, header.key_size);
      record.stored =
          content.substr(offset + BlobRecordV2::kHeaderSize + header.key_size,
                         header.value_size);
      ASSERT_OK(header.CheckBlob(record.key, record.stored));
      record.seq = header.seq;
      record.birth = header.birth;
      record.direct = header.direct;
      record.address.slot = Blobs()->file_table().Find(number);
      record.address.offset = static_cast<uint32_t>(offset);
      record.address.size = static_cast<uint32_t>(header.record_size());
      file->records.push_back(record);
      offset += header.record_size();
    }
    ASSERT_EQ(file->index_offset, offset);
    ASSERT_EQ(file->footer.blob_count, file->records.size());
  }
  // Changes the content of a file without the knowledge of the DB.
  void Edit(uint64_t number, const std::function<void(std::string*)>& edit) {
    std::string content;
    ASSERT_OK(ReadFileToString(env_, PathOf(number), &content));
    edit(&content);
    ASSERT_OK(WriteStringToFile(env_, content, PathOf(number)));
  }
  void Flip(uint64_t number, uint64_t offset) {
    Edit(number, [&](std::string* content) {
      ASSERT_LT(offset, content->size());
      (*content)[offset] ^= 0x20;
    });
  }

  // ---- Jobs.

  void Pin(const std::set<uint64_t>& files, bool backwards = false) {
    Unpin();
    std::vector<uint64_t> numbers(files.begin(), files.end());
    if (backwards) {
      std::reverse(numbers.begin(), numbers.end());
    }
    InstrumentedMutexLock lock(dbfull()->mutex());
    storage_ = std::make_unique<BlobGcStorage>(Blobs(), numbers);
    ASSERT_EQ(numbers.size(), storage_->files().size());
  }
  void Unpin() {
    if (storage_ != nullptr) {
      InstrumentedMutexLock lock(dbfull()->mutex());
      storage_.reset();
    }
  }

  BlobGcJob::Context NewContext() {
    BlobGcJob::Context context;
    context.cfd = Family();
    context.versions = dbfull()->GetVersionSet();
    context.db_options = &dbfull()->immutable_db_options();
    context.dbname = dbname_;
    {
      InstrumentedMutexLock lock(dbfull()->mutex());
      context.mutable_cf_options = Family()->GetLatestMutableCFOptions();
    }
    EXPECT_OK(db_->GetDbIdentity(context.db_id));
    EXPECT_OK(db_->GetDbSessionId(context.db_session_id));
    context.check = [] { return Status::OK(); };
    return context;
  }
  // Runs a job on the pinned files.
  Result RunJob(const BlobGcJob::Context& context) {
    files_before_ = FilesOnDisk(kBlobFile);
    Result result;
    BlobGcJob job(context, storage_->files(), /*path_id=*/0);
    result.status = job.Run();
    result.additions = job.additions();
    result.outputs = job.TakeOutputs();
    result.sources = job.TakeSources();
    result.key_sizes = job.TakeKeySizes();
    result.key_ranges = job.TakeKeyRanges();
    result.stats = job.stats();
    result.reached_limit = job.reached_limit();
    result.failed_files = job.failed_files();
    return result;
  }

  // Returns the records that a job should copy, in the expected order: the
  // records of the pinned files that the map names now.
  std::vector<Record> LiveRecords() {
    std::vector<Record> live;
    for (const BlobGcStorage::File& input : storage_->files()) {
      BlobFile file;
      ReadBlobFile(input.number, &file);
      for (Record& record : file.records) {
        const AddressMap::Lookup found = Blobs()->map()->FindByName(
            MapName{Blobs()->HashOf(record.key), record.seq, record.birth},
            /*pin=*/false);
        if (found.found && found.entry.address == record.address) {
          record.direct = found.entry.mode != MapMode::kVersioned;
          live.push_back(record);
        }
      }
    }
    const Comparator* const comparator = Family()->user_comparator();
    std::sort(live.begin(), live.end(), [&](const Record& a, const Record& b) {
      const int order = comparator->Compare(a.key, b.key);
      return order != 0 ? order < 0 : a.seq > b.seq;
    });
    return live;
  }

  // Checks that the outputs hold exactly the copies of these records, and that
  // the additions, the record indexes and the statistics agree with the files.
  void CheckOutputs(const Result& result, const std::vector<Record>& expected,
                    CompressionType compression = kNoCompression) {
    ASSERT_OK(result.status);
    ASSERT_EQ(expected.size(), result.sources.size());
    const bool has_blob_cache = Family()->ioptions().blob_cache != nullptr;
    ASSERT_EQ(has_blob_cache ? expected.size() : 0, result.key_sizes.size());
    ASSERT_EQ(expected.size(), result.stats.values_copied);
    ASSERT_EQ(0u, result.stats.values_left);
    if (result.reached_limit) {
      ASSERT_LE(result.stats.files_read, storage_->files().size());
    } else {
      ASSERT_EQ(storage_->files().size(), result.stats.files_read);
    }
    ASSERT_TRUE(result.failed_files.empty());
    ASSERT_EQ(result.outputs.size(), result.additions.size());
    std::set<uint64_t> on_disk = files_before_;
    size_t i = 0;
    uint64_t bytes_written = 0;
    for (size_t o = 0; o < result.outputs.size(); ++o) {
      const MappedBlobFile& output = result.outputs[o];
      const BlobFileAddition& addition = result.additions[o];
      BlobFile file;
      ReadBlobFile(output.number, &file);
      if (HasFatalFailure()) {
        return;
      }
      ASSERT_TRUE(on_disk.insert(output.number).second);
      ASSERT_FALSE(file.records.empty());
      ASSERT_EQ(Blobs()->hash_seed(), file.header.hash_seed);
      ASSERT_EQ(Family()->GetID(), file.header.column_family_id);
      ASSERT_EQ(compression, file.header.compression);
      ASSERT_EQ(compression, output.compression);
      ASSERT_EQ(0u, output.path_id);
      ASSERT_EQ(file.size, output.size);
      bytes_written += file.size;
      ASSERT_EQ(output.number, addition.GetBlobFileNumber());
      ASSERT_EQ(file.records.size(), addition.GetTotalBlobCount());
      ASSERT_EQ(RecordBytes(file.records), addition.GetTotalBlobBytes());
      ASSERT_EQ(output.index.size(), addition.GetIndexBytes());
      ASSERT_EQ(0u, addition.GetPathId());

      RecordIndexReader reader(output.index, output.footer, file.index_offset,
                               "output");
      blob_v2_test::Records listed;
      ASSERT_OK(blob_v2_test::ReadAll(&reader, &listed));
      ASSERT_EQ(file.records.size(), listed.size());
      for (size_t n = 0; n < listed.size(); ++n, ++i) {
        const Record& copy = file.records[n];
        ASSERT_LT(i, expected.size());
        const Record& old = expected[i];
        ASSERT_EQ(old.key, copy.key) << i;
        ASSERT_EQ(old.seq, copy.seq) << i;
        ASSERT_EQ(old.birth, copy.birth) << i;
        ASSERT_EQ(old.direct, copy.direct) << i;
        ASSERT_EQ(values_.at({old.key, old.seq}),
                  Uncompressed(compression, copy.stored))
            << i;
        ASSERT_TRUE(old.address == result.sources[i]) << i;
        if (has_blob_cache) {
          ASSERT_EQ(old.key.size(), result.key_sizes[i]) << i;
        }
        ASSERT_TRUE(Blobs()->HashOf(copy.key) == listed[n].name.key) << i;
        ASSERT_EQ(copy.seq, listed[n].name.seq) << i;
        ASSERT_EQ(copy.birth, listed[n].name.birth) << i;
        ASSERT_EQ(copy.direct, listed[n].direct) << i;
        ASSERT_EQ(copy.address.offset, listed[n].offset) << i;
        ASSERT_EQ(copy.address.size, listed[n].size) << i;
      }
    }
    ASSERT_EQ(expected.size(), i);
    ASSERT_EQ(bytes_written, result.stats.bytes_written);
    // No other file was written.
    ASSERT_EQ(on_disk, FilesOnDisk(kBlobFile));
  }
  void CheckNothingWritten(const Result& result) {
    ASSERT_EQ(files_before_, FilesOnDisk(kBlobFile));
    ASSERT_TRUE(result.additions.empty());
    ASSERT_TRUE(result.outputs.empty());
    ASSERT_TRUE(result.sources.empty());
    ASSERT_TRUE(result.key_sizes.empty());
    ASSERT_EQ(0u, result.stats.bytes_written);
  }
  // Checks that the status names the place of the damage and that no output is
  // left.
  void CheckCorruption(const Result& result, const std::string& place) {
    ASSERT_TRUE(result.status.IsCorruption()) << result.status.ToString();
    ASSERT_NE(std::string::npos, result.status.ToString().find(place))
        << result.status.ToString() << " does not name " << place;
    CheckNothingWritten(result);
  }

  const std::shared_ptr<FaultyFS> fs_;
  const std::unique_ptr<Env> faulty_env_;
  Random rnd_;
  // All values that were ever written, by key and sequence number.
  std::map<std::pair<std::string, SequenceNumber>, std::string> values_;
  std::unique_ptr<BlobGcStorage> storage_;
  std::set<uint64_t> files_before_;  // before the last job
};

// ---- Selection and order of the copied records.

TEST_F(BlobGcJobTest, CopiesInKeyOrder) {
  Open(MapOptions());
  constexpr int kFiles = 5;
  constexpr int kValues = 150;
  // Each file but the last has keys from the whole range.
  for (int file = 0; file < kFiles - 1; ++file) {
    FlushValues(file, kValues, kFiles - 1);
  }
  FlushValues(kValues, kValues + 10);
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  ASSERT_EQ(size_t{kFiles}, files.size());
  for (const bool backwards : {false, true}) {
    Pin(files, backwards);
    const std::vector<Record> live = LiveRecords();
    ASSERT_EQ(size_t{kValues + 10}, live.size());
    for (int i = 0; i < kValues + 10; ++i) {
      ASSERT_EQ(KeyOf(i), live[static_cast<size_t>(i)].key);
    }
    const Result result = RunJob(NewContext());
    CheckOutputs(result, live);
    ASSERT_EQ(1u, result.outputs.size());
    ASSERT_EQ(RecordBytes(live), result.stats.bytes_read);
  }
  // The job does not change the map.
  ASSERT_EQ(size_t{kValues + 10}, LiveRecords().size());
  CheckValues();
}

TEST_F(BlobGcJobTest, CopiesInTheOrderOfTheComparator) {
  Options options = MapOptions();
  options.comparator = ReverseBytewiseComparator();
  Open(options);
  for (int file = 0; file < 3; ++file) {
    FlushValues(file, 60, 3);
  }
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(60u, live.size());
  ASSERT_EQ(KeyOf(59), live.front().key);
  ASSERT_EQ(KeyOf(0), live.back().key);
  CheckOutputs(RunJob(NewContext()), live);
}

// Several threads read ahead for all runs, over the ends of files, too.
TEST_F(BlobGcJobTest, ConcurrentReadsCopyTheSame) {
  Open(MapOptions());
  constexpr int kRuns = 6;
  constexpr int kFilesOfRun = 3;
  constexpr int kValues = 300;
  for (int part = 0; part < kFilesOfRun; ++part) {
    for (int run = 0; run < kRuns; ++run) {
      FlushValues(part * kValues + run, (part + 1) * kValues, kRuns);
    }
  }
  const std::set<uint64_t> numbers = FilesOnDisk(kBlobFile);
  ASSERT_EQ(size_t{kRuns * kFilesOfRun}, numbers.size());
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.blob_compaction_readahead_size = 4000;
  context.runs.resize(kRuns);
  size_t i = 0;
  for (const uint64_t number : numbers) {
    context.runs[i++ % kRuns].push_back(number);
  }
  // A file has one live value, and another one is a run of its own.
  for (int value = kValues + 2 + kRuns; value < 2 * kValues; value += kRuns) {
    PutRandom(value);
  }
  FlushAndWait();
  context.runs[1].pop_back();
  Pin(numbers);
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(size_t{kRuns * kFilesOfRun - 1} * kValues / kRuns + 1, live.size());

  for (const int max_reads : {1, 2, 4}) {
    SCOPED_TRACE(max_reads);
    context.max_reads = static_cast<size_t>(max_reads);
    fs_->most_reads = 0;
    fs_->awaited_reads = max_reads;
    const Result result = RunJob(context);
    fs_->awaited_reads = 0;
    CheckOutputs(result, live);
    EXPECT_EQ(RecordBytes(live), result.stats.bytes_read);
    EXPECT_EQ(fs_->most_reads, max_reads);
  }
}

// The versions of a key are copied newest first, as in SST files.
TEST_F(BlobGcJobTest, CopiesVersionsNewestFirst) {
  Open(MapOptions());
  constexpr int kKeys = 20;
  std::vector<const Snapshot*> snapshots;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      PutRandom(i);
    }
    snapshots.push_back(db_->GetSnapshot());
    // Some keys have two versions in one file.
    for (int i = 0; i < kKeys; i += 2) {
      PutRandom(i);
    }
    snapshots.push_back(db_->GetSnapshot());
    FlushAndWait();
  }
  for (const bool backwards : {false, true}) {
    Pin(FilesOnDisk(kBlobFile), backwards);
    const std::vector<Record> live = LiveRecords();
    ASSERT_EQ(size_t{kKeys * 6}, live.size());
    for (size_t i = 1; i < live.size(); ++i) {
      ASSERT_TRUE(
          live[i - 1].key < live[i].key ||
          (live[i - 1].key == live[i].key && live[i - 1].seq > live[i].seq));
    }
    CheckOutputs(RunJob(NewContext()), live);
    Unpin();
    // Delete the outputs: they must not be inputs of the next job.
    for (const uint64_t number : FilesOnDisk(kBlobFile)) {
      if (files_before_.count(number) == 0) {
        ASSERT_OK(env_->DeleteFile(PathOf(number)));
      }
    }
  }
  for (const Snapshot* const snapshot : snapshots) {
    db_->ReleaseSnapshot(snapshot);
  }
}

TEST_F(BlobGcJobTest, CopiesOnlyLiveRecordsOfItsFiles) {
  Open(MapOptions());
  FlushValues(0, 90, 3);
  FlushValues(1, 90, 3);
  FlushValues(2, 90, 3);
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  // Every other value of the first two files becomes garbage.
  for (int i = 0; i < 90; i += 6) {
    PutRandom(i);
    PutRandom(i + 1);
  }
  FlushAndWait();

  Pin(files);
  std::vector<Record> live = LiveRecords();
  ASSERT_EQ(60u, live.size());
  Result result = RunJob(NewContext());
  CheckOutputs(result, live);
  // Garbage between live records is read along with them, but not garbage at
  // the ends of a file.
  uint64_t bytes_read = 0;
  for (const uint64_t number : files) {
    uint64_t begin = kMaxBlobRecordOffset;
    uint64_t end = 0;
    for (const Record& record : live) {
      if (Blobs()->file_table().Number(record.address.slot) == number) {
        begin = std::min<uint64_t>(begin, record.address.offset);
        end = std::max(end,
                       uint64_t{record.address.offset} + record.address.size);
      }
    }
    bytes_read += end - begin;
  }
  ASSERT_EQ(bytes_read, result.stats.bytes_read);
  ASSERT_GT(bytes_read, RecordBytes(live));

  // Records of files that are not pinned are not copied.
  Pin({*files.begin()});
  live = LiveRecords();
  ASSERT_EQ(15u, live.size());
  result = RunJob(NewContext());
  CheckOutputs(result, live);
  CheckValues();
}

TEST_F(BlobGcJobTest, WritesNothingWithoutLiveRecords) {
  Open(MapOptions());
  FlushValues(0, 20);
  const uint64_t dead = *FilesOnDisk(kBlobFile).begin();
  Pin({dead});  // otherwise it would be dropped
  FlushValues(0, 20);
  ASSERT_EQ(2u, FilesOnDisk(kBlobFile).size());
  ASSERT_TRUE(LiveRecords().empty());
  Result result = RunJob(NewContext());
  ASSERT_OK(result.status);
  CheckNothingWritten(result);
  ASSERT_EQ(1u, result.stats.files_read);
  ASSERT_EQ(0u, result.stats.bytes_read);
  ASSERT_EQ(0u, result.stats.values_copied);
  ASSERT_EQ(0u, result.stats.values_left);

  // A file without live values together with one that has some.
  const std::set<uint64_t> both = FilesOnDisk(kBlobFile);
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    auto storage = std::make_unique<BlobGcStorage>(
        Blobs(), std::vector<uint64_t>(both.begin(), both.end()));
    storage_.swap(storage);
  }
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(20u, live.size());
  result = RunJob(NewContext());
  CheckOutputs(result, live);
  ASSERT_EQ(2u, result.stats.files_read);
  ASSERT_EQ(RecordBytes(live), result.stats.bytes_read);

  // A job without files.
  Pin({});
  result = RunJob(NewContext());
  ASSERT_OK(result.status);
  CheckNothingWritten(result);
  ASSERT_EQ(0u, result.stats.files_read);
}

// A copied record has the mode that the map has now, not the one that the old
// record has.
TEST_F(BlobGcJobTest, CopiesModesFromTheMap) {
  for (const bool bypass : {true, false}) {
    SCOPED_TRACE(bypass);
    Options options = MapOptions();
    options.enable_lsm_bypass = bypass;
    Open(options);
    FlushValues(0, 30, 2);
    FlushValues(1, 30, 2);
    Pin(FilesOnDisk(kBlobFile));
    for (const Record& record : LiveRecords()) {
      ASSERT_EQ(bypass, record.direct);
    }
    for (int i = 0; i < 30; i += 3) {
      const Record record = LiveRecords()[static_cast<size_t>(i)];
      const MapName name{Blobs()->HashOf(record.key), record.seq, record.birth};
      if (bypass) {
        ASSERT_TRUE(Blobs()->map()->Demote(name));
      } else {
        ASSERT_EQ(AddressMap::RenameResult::kRenamed,
                  Blobs()->map()->Rename(name));
      }
    }
    const std::vector<Record> live = LiveRecords();
    ASSERT_EQ(30u, live.size());
    for (size_t i = 0; i < 30; ++i) {
      ASSERT_EQ(i % 3 == 0 ? !bypass : bypass, live[i].direct);
    }
    CheckOutputs(RunJob(NewContext()), live);
  }
}

// A copy keeps the birth of its value although its file has another number.
TEST_F(BlobGcJobTest, KeepsBirths) {
  Options options = MapOptions();
  options.merge_operator = MergeOperators::CreateStringAppendOperator(',');
  Open(options);
  for (int file = 0; file < 2; ++file) {
    for (int i = file; i < 30; i += 2) {
      PutRandom(i);
      if (i % 3 == 0) {
        // The flush merges the value and the operand into a new value, whose
        // birth is the number of its file.
        const std::string value =
            values_.at({KeyOf(i), db_->GetLatestSequenceNumber()});
        ASSERT_OK(Merge(KeyOf(i), "operand"));
        values_[{KeyOf(i), db_->GetLatestSequenceNumber()}] =
            value + ",operand";
      }
    }
    FlushAndWait();
  }
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(30u, live.size());
  for (size_t i = 0; i < live.size(); ++i) {
    ASSERT_EQ(
        i % 3 == 0 ? Blobs()->file_table().Number(live[i].address.slot) : 0u,
        live[i].birth);
  }
  CheckOutputs(RunJob(NewContext()), live);
}

// ---- Outputs.

TEST_F(BlobGcJobTest, JobOfRunsEndsAtItsLimits) {
  Open(MapOptions());
  FlushValues(0, 50, 2);
  FlushValues(1, 50, 2);
  FlushValues(50, 100, 2);
  FlushValues(51, 100, 2);
  FlushValues(100, 120);
  const std::set<uint64_t> numbers = FilesOnDisk(kBlobFile);
  const std::vector<uint64_t> files(numbers.begin(), numbers.end());
  ASSERT_EQ(5u, files.size());
  Pin(numbers);
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(120u, live.size());
  BlobGcJob::Context context = NewContext();
  // The last file is not listed and thus a run of its own.
  context.runs = {{files[0], files[2]}, {files[1], 999999, files[3]}};
  Result result = RunJob(context);
  CheckOutputs(result, live);
  ASSERT_FALSE(result.reached_limit);
  ASSERT_EQ(5u, result.stats.files_read);

  // The job ends with a full output once it has copied max_copied bytes.
  context.mutable_cf_options.blob_file_size = 10000;
  for (const uint64_t max_copied : {1, 15000, 25000, 10000000}) {
    SCOPED_TRACE(max_copied);
    context.max_copied = max_copied;
    result = RunJob(context);
    ASSERT_EQ(max_copied < 10000000, result.reached_limit);
    const size_t n = result.sources.size();
    ASSERT_EQ(result.reached_limit, n < live.size());
    CheckOutputs(result,
                 std::vector<Record>(live.begin(),
                                     live.begin() + static_cast<ptrdiff_t>(n)));
    uint64_t copied = 0;
    for (size_t i = 0; i < n; ++i) {
      copied += live[i].address.size;
    }
    if (result.reached_limit) {
      ASSERT_GE(copied, max_copied);
      ASSERT_LT(copied, max_copied + 3 * 10000);
      for (const MappedBlobFile& output : result.outputs) {
        ASSERT_GE(output.size, 10000u);
      }
    }
  }
  context.max_copied = 0;

  // The run of even keys goes on after 48 with a file that the job does not
  // have. So the job ends after 48 and does not copy greater keys.
  Pin({files[0], files[1], files[3]});
  context.runs = {{files[0]}, {files[1], files[3]}};
  context.goes_on = {true, false};
  result = RunJob(context);
  ASSERT_TRUE(result.reached_limit);
  CheckOutputs(result, std::vector<Record>(live.begin(), live.begin() + 49));
  // The listed part of the run has no live value any more, so nothing may be
  // copied.
  for (int i = 0; i < 50; i += 2) {
    PutRandom(i);
  }
  FlushAndWait();
  result = RunJob(context);
  ASSERT_TRUE(result.reached_limit);
  ASSERT_TRUE(result.outputs.empty());
  CheckNothingWritten(result);
}

TEST_F(BlobGcJobTest, OutputsAreCutAtTheFileSize) {
  Options options = MapOptions();
  options.blob_cache = NewLRUCache(1 << 20);
  Open(options);
  FlushValues(0, 100, 2);
  FlushValues(1, 100, 2);
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(100u, live.size());
  BlobGcJob::Context context = NewContext();
  for (const uint64_t limit : {1, 10000, 30000, 10000000}) {
    SCOPED_TRACE(limit);
    context.mutable_cf_options.blob_file_size = limit;
    const Result result = RunJob(context);
    CheckOutputs(result, live);
    if (HasFatalFailure()) {
      return;
    }
    for (size_t o = 0; o < result.outputs.size(); ++o) {
      BlobFile file;
      ReadBlobFile(result.outputs[o].number, &file);
      const Record& last = file.records.back();
      ASSERT_LT(last.address.offset, std::max(limit, BlobHeaderV2::kSize + 1));
      if (o + 1 < result.outputs.size()) {
        ASSERT_GE(last.address.offset + last.address.size, limit);
      }
    }
    if (limit == 1) {
      ASSERT_EQ(live.size(), result.outputs.size());
    } else if (limit == 10000000) {
      ASSERT_EQ(1u, result.outputs.size());
    } else {
      ASSERT_GT(result.outputs.size(), 2u);
    }
  }
}

TEST_F(BlobGcJobTest, OutputsEndAtBounds) {
  Open(MapOptions());
  FlushValues(0, 100, 2);
  FlushValues(1, 100, 2);
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(100u, live.size());
  BlobGcJob::Context context = NewContext();
  // No value is before the first bound, or at or beyond the last one. A bound
  // between two others may have no value either.
  context.bounds = {"a",       KeyOf(25),       KeyOf(50),
                    KeyOf(75), KeyOf(75) + "x", KeyOf(75) + "y",
                    "zzzzzzzz"};
  const auto first_keys = [&](const Result& result) {
    std::vector<std::string> keys;
    for (const MappedBlobFile& output : result.outputs) {
      BlobFile file;
      ReadBlobFile(output.number, &file);
      keys.push_back(file.records.front().key);
    }
    return keys;
  };
  Result result = RunJob(context);
  CheckOutputs(result, live);
  ASSERT_EQ(first_keys(result),
            (std::vector<std::string>{KeyOf(0), KeyOf(25), KeyOf(50), KeyOf(75),
                                      KeyOf(76)}));
  // A quarter has about 25,000 bytes.
  context.min_piece = 35000;
  result = RunJob(context);
  CheckOutputs(result, live);
  ASSERT_EQ(first_keys(result),
            (std::vector<std::string>{KeyOf(0), KeyOf(50)}));
  // The size of a file counts, too.
  context.min_piece = 0;
  context.mutable_cf_options.blob_file_size = 20000;
  result = RunJob(context);
  CheckOutputs(result, live);
  const std::vector<std::string> keys = first_keys(result);
  for (const int i : {0, 25, 50, 75, 76}) {
    ASSERT_EQ(std::count(keys.begin(), keys.end(), KeyOf(i)), 1) << i;
  }
  ASSERT_GE(keys.size(), 8u);
}

TEST_F(BlobGcJobTest, OutputsAreEqualPieces) {
  Open(MapOptions());
  FlushValues(0, 100, 2);
  FlushValues(1, 100, 2);
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  BlobGcJob::Context context = NewContext();
  // Random bytes become no smaller, but the sizes that count are the old ones.
  for (const CompressionType compression : {kNoCompression, kLZ4Compression}) {
    if (compression != kNoCompression && !LZ4_Supported()) {
      continue;
    }
    context.mutable_cf_options.blob_compression_type = compression;
    for (const uint64_t num_pieces : {1, 2, 4, 7, 1000}) {
      SCOPED_TRACE(num_pieces);
      context.num_pieces = num_pieces;
      const Result result = RunJob(context);
      ASSERT_OK(result.status);
      const size_t expected = std::min(num_pieces, uint64_t{100});
      ASSERT_EQ(result.outputs.size(), expected);
      ASSERT_EQ(result.key_ranges.size(), expected);
      size_t num_records = 0;
      for (size_t i = 0; i < result.outputs.size(); ++i) {
        BlobFile file;
        ReadBlobFile(result.outputs[i].number, &file);
        num_records += file.records.size();
        ASSERT_GE(file.records.size(), 100 / expected - 4 / expected);
        ASSERT_LE(file.records.size(), 100 / expected + 4);
        ASSERT_EQ(result.key_ranges[i].smallest, file.records.front().key);
        ASSERT_EQ(result.key_ranges[i].largest, file.records.back().key);
      }
      ASSERT_EQ(num_records, live.size());
    }
  }
}

// Values below the current min_blob_size are copied, too: separated values stay
// separated.
TEST_F(BlobGcJobTest, CopiesValuesBelowMinBlobSize) {
  Open(MapOptions());
  for (int i = 0; i < 20; ++i) {
    PutValue(i, rnd_.RandomString(100 + i));
  }
  FlushAndWait();
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(20u, live.size());
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.min_blob_size = 1 << 20;
  CheckOutputs(RunJob(context), live);
}

TEST_F(BlobGcJobTest, OutputsWithoutAnEditAreDeletedAtOpen) {
  const Options options = MapOptions();
  Open(options);
  FlushValues(0, 40);
  Pin(FilesOnDisk(kBlobFile));
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.blob_file_size = 10000;
  CheckOutputs(RunJob(context), LiveRecords());
  ASSERT_GT(FilesOnDisk(kBlobFile).size(), 3u);
  Unpin();
  CheckValues();
  // This is the state after a crash before the job's edit: the next open
  // deletes the outputs.
  Reopen(options);
  ASSERT_OK(dbfull()->TEST_WaitForPurge());
  ASSERT_EQ(files_before_, FilesOnDisk(kBlobFile));
  CheckValues();
}

// ---- Compression.

TEST_F(BlobGcJobTest, CopiesHaveTheCurrentCompression) {
  constexpr int kValues = 20;
  for (const CompressionType from : CompressionTypes()) {
    Options options = MapOptions();
    options.blob_compression_type = from;
    Open(options);
    for (int i = 0; i < kValues; ++i) {
      PutValue(i, std::string(static_cast<size_t>(1000 + i), 'c') +
                      rnd_.RandomString(20));
    }
    FlushAndWait();
    Pin(FilesOnDisk(kBlobFile));
    const std::vector<Record> live = LiveRecords();
    ASSERT_EQ(size_t{kValues}, live.size());
    for (const CompressionType to : CompressionTypes()) {
      SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
      BlobGcJob::Context context = NewContext();
      ASSERT_EQ(from, context.mutable_cf_options.blob_compression_type);
      context.mutable_cf_options.blob_compression_type = to;
      HistogramData before;
      options.statistics->histogramData(BLOB_DB_COMPRESSION_MICROS, &before);
      const Result result = RunJob(context);
      HistogramData after;
      options.statistics->histogramData(BLOB_DB_COMPRESSION_MICROS, &after);
      CheckOutputs(result, live, to);
      if (HasFatalFailure()) {
        return;
      }
      ASSERT_EQ(to == from || to == kNoCompression ? 0u : uint64_t{kValues},
                after.count - before.count);
      ASSERT_EQ(1u, result.outputs.size());
      BlobFile file;
      ReadBlobFile(result.outputs[0].number, &file);
      for (size_t i = 0; i < live.size(); ++i) {
        const size_t size = file.records[i].stored.size();
        if (to == from) {
          ASSERT_EQ(live[i].stored, file.records[i].stored);
        } else if (to == kNoCompression) {
          ASSERT_GT(size, 1000u);
        } else {
          ASSERT_LT(size, 500u);
        }
      }
    }
  }
}

// A value that is compressed for the first time may become larger, and the job
// must not write more hot bytes than its inputs had. Compressible ones stay.
TEST_F(BlobGcJobTest, HotValuesThatGrowWhenCompressedGoHome) {
  if (!LZ4_Supported()) {
    ROCKSDB_GTEST_SKIP("needs LZ4");
    return;
  }
  constexpr int kValues = 20;
  for (const bool is_random : {true, false}) {
    SCOPED_TRACE(is_random);
    Open(MapOptions());
    for (int i = 0; i < kValues; ++i) {
      PutValue(i, is_random ? rnd_.RandomString(65536)
                            : std::string(300, 'c') + rnd_.RandomString(20));
    }
    FlushAndWait();
    Pin(FilesOnDisk(kBlobFile));
    uint64_t old_size = 0;
    for (const uint64_t number : FilesOnDisk(kBlobFile)) {
      BlobFile file;
      ReadBlobFile(number, &file);
      old_size += file.size;
    }
    BlobGcJob::Context context = NewContext();
    context.hot = HotMark::WithHome(0);
    context.mutable_cf_options.blob_compression_type = kLZ4Compression;
    const Result result = RunJob(context);
    ASSERT_OK(result.status);
    ASSERT_EQ(result.stats.values_copied, uint64_t{kValues});
    ASSERT_EQ(result.outputs.size(), result.additions.size());
    uint64_t hot_size = 0;
    uint64_t num_home = 0;
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const BlobFileAddition& file = result.additions[i];
      if (file.hot().is_hot()) {
        hot_size += result.outputs[i].size;
      } else {
        num_home += file.GetTotalBlobCount();
      }
    }
    EXPECT_GT(hot_size, 0u);
    EXPECT_LE(hot_size, old_size);
    // All values together grow by less than one of them.
    EXPECT_EQ(num_home, is_random ? 1u : 0u);
    Unpin();
  }
}

// The input files of one job may have different compression types.
TEST_F(BlobGcJobTest, MergesFilesOfSeveralCompressions) {
  const std::vector<CompressionType> types = CompressionTypes();
  const int num_types = static_cast<int>(types.size());
  Options options = MapOptions();
  Open(options);
  constexpr int kValues = 60;
  for (int t = 0; t < num_types; ++t) {
    options.blob_compression_type = types[static_cast<size_t>(t)];
    Reopen(options);
    for (int i = t; i < kValues; i += num_types) {
      PutValue(i, std::string(500, static_cast<char>('a' + t)) +
                      rnd_.RandomString(100));
    }
    FlushAndWait();
  }
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  ASSERT_EQ(types.size(), files.size());
  Pin(files);
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(size_t{kValues}, live.size());
  for (const CompressionType to : types) {
    SCOPED_TRACE(std::to_string(to));
    BlobGcJob::Context context = NewContext();
    context.mutable_cf_options.blob_compression_type = to;
    context.mutable_cf_options.blob_file_size = 3000;
    CheckOutputs(RunJob(context), live, to);
  }
}

// With an unchanged compression type, a value is copied without being decoded.
// With another type, a value that cannot be decompressed is reported as
// corruption.
TEST_F(BlobGcJobTest, ValueIsOnlyUncompressedToChangeItsCompression) {
  if (!Snappy_Supported()) {
    ROCKSDB_GTEST_SKIP("needs Snappy");
    return;
  }
  Options options = MapOptions();
  options.blob_compression_type = kSnappyCompression;
  Open(options);
  FlushValues(0, 20);
  const uint64_t number = *FilesOnDisk(kBlobFile).begin();
  Pin({number});
  BlobFile file;
  ReadBlobFile(number, &file);
  ASSERT_EQ(20u, file.records.size());
  const Record victim = file.records[13];
  // First the uncompressed size is wrong, then the data after it.
  for (const bool bad_length : {true, false}) {
    SCOPED_TRACE(bad_length);
    std::string garbage(victim.stored.size(), '\xff');
    if (!bad_length) {
      garbage[0] = 10;
    }
    Edit(number, [&](std::string* content) {
      BlobRecordV2 header;
      header.seq = victim.seq;
      header.birth = victim.birth;
      header.direct = victim.direct;
      std::string encoded;
      header.EncodeHeaderTo(victim.key, garbage, &encoded);
      const std::string record = encoded + victim.key + garbage;
      ASSERT_EQ(victim.address.size, record.size());
      content->replace(victim.address.offset, record.size(), record);
    });
    BlobGcJob::Context context = NewContext();
    Result result = RunJob(context);
    ASSERT_OK(result.status);
    ASSERT_EQ(1u, result.outputs.size());
    BlobFile copy;
    ReadBlobFile(result.outputs[0].number, &copy);
    ASSERT_EQ(20u, copy.records.size());
    for (size_t i = 0; i < 20; ++i) {
      ASSERT_EQ(i == 13 ? garbage : file.records[i].stored,
                copy.records[i].stored);
    }

    context.mutable_cf_options.blob_compression_type = kNoCompression;
    context.mutable_cf_options.blob_file_size = 3000;
    result = RunJob(context);
    CheckCorruption(result, PathOf(number) + " at offset " +
                                std::to_string(victim.address.offset));
  }
}

// A value may be too large for a record once its compression was changed. It
// stays in the old file. As such a value takes 4 GiB, the builder is given an
// empty value, which it does not write either.
TEST_F(BlobGcJobTest, ValueThatIsTooLargeStays) {
  Open(MapOptions());
  FlushValues(0, 20);
  FlushValues(20, 40);
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  Pin(files);
  std::vector<Record> live = LiveRecords();
  size_t copied = 0;
  EnableCallBack("BlobCopyWriter::Add:Converted", [&](void* value) {
    if (copied++ == 7) {
      *static_cast<Slice*>(value) = Slice();
    }
  });
  const Result result = RunJob(NewContext());
  DisableCallBacks();
  ASSERT_OK(result.status);
  ASSERT_EQ(live.size(), copied);
  ASSERT_EQ(1u, result.stats.values_left);
  ASSERT_EQ(live.size() - 1, result.stats.values_copied);
  ASSERT_EQ(live.size() - 1, result.sources.size());
  for (const MapAddress& source : result.sources) {
    ASSERT_FALSE(source == live[7].address);
  }
  ASSERT_EQ(1u, result.failed_files.size());
  ASSERT_EQ(1u, files.count(*result.failed_files.begin()));
}

// ---- Jobs that end early.

TEST_F(BlobGcJobTest, CheckStopsTheJob) {
  Options options = MapOptions();
  options.blob_cache = NewLRUCache(1 << 20);
  Open(options);
  constexpr int kValues = 60;
  FlushValues(0, kValues, 2);
  FlushValues(1, kValues, 2);
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.blob_file_size = 5000;
  int calls = 0;
  context.check = [&] {
    ++calls;
    return Status::OK();
  };
  Result result = RunJob(context);
  CheckOutputs(result, live);
  // The check is called at least once per value.
  ASSERT_GE(calls, kValues);
  ASSERT_GT(result.outputs.size(), 8u);

  // The first two calls come before the first record.
  for (const int stop_at : {1, 4, kValues / 2, calls}) {
    SCOPED_TRACE(stop_at);
    int asked = 0;
    size_t outputs = 0;
    context.check = [&] {
      if (++asked < stop_at) {
        return Status::OK();
      }
      outputs = FilesOnDisk(kBlobFile).size() - files_before_.size();
      return Status::Incomplete(Status::SubCode::kManualCompactionPaused);
    };
    result = RunJob(context);
    ASSERT_TRUE(result.status.IsManualCompactionPaused())
        << result.status.ToString();
    // Unless the job stopped at the first call, it had to delete outputs.
    if (stop_at == 1) {
      ASSERT_EQ(0u, outputs);
    } else {
      ASSERT_GE(outputs, 1u);
    }
    if (stop_at >= kValues / 2) {
      ASSERT_GT(outputs, 3u);
    }
    CheckNothingWritten(result);
  }
  // The canceled jobs have no effect on the next one.
  context.check = [] { return Status::OK(); };
  CheckOutputs(RunJob(context), live);
  CheckValues();
}

TEST_F(BlobGcJobTest, FailedReadLeavesNoOutputs) {
  Open(MapOptions());
  FlushValues(0, 60, 2);
  FlushValues(1, 60, 2);
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.blob_file_size = 8000;
  // Read the files in many small pieces.
  context.mutable_cf_options.blob_compaction_readahead_size = 4000;
  for (const int max_reads : {1, 4}) {
    SCOPED_TRACE(max_reads);
    context.max_reads = static_cast<size_t>(max_reads);
    // The first reads of a job are slow, so that there are several threads.
    fs_->most_reads = 0;
    fs_->awaited_reads = std::min(max_reads, 2);
    for (int reads = 0;; ++reads) {
      SCOPED_TRACE(reads);
      ASSERT_LT(reads, 1000);
      fs_->reads_left = reads;
      const Result result = RunJob(context);
      fs_->reads_left = FaultyFS::kNever;
      if (result.status.ok()) {
        CheckOutputs(result, live);
        ASSERT_GT(reads, 20);
        break;
      }
      ASSERT_TRUE(result.status.IsIOError()) << result.status.ToString();
      ASSERT_EQ(1u, result.failed_files.size());
      CheckNothingWritten(result);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  fs_->awaited_reads = 0;
  CheckValues();
}

TEST_F(BlobGcJobTest, RunsShareTheReadMemory) {
  constexpr int kFiles = 4;
  constexpr int kValues = 8000;
  Open(MapOptions());
  for (int file = 0; file < kFiles; ++file) {
    FlushValues(file, kValues, kFiles);
  }
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  const uint64_t file_size = RecordBytes(live) / kFiles;
  BlobGcJob::Context context = NewContext();
  for (const size_t memory :
       {size_t{1} << 30, kFiles * (size_t{100} << 10), size_t{1}}) {
    SCOPED_TRACE(memory);
    const size_t limit = std::min(BlobLiveRecords::Options().read_size,
                                  std::max(memory / kFiles, size_t{64} << 10));
    context.max_read_memory = memory;
    fs_->longest_read = 0;
    const Result result = RunJob(context);
    CheckOutputs(result, live);
    EXPECT_LE(fs_->longest_read, limit);
    EXPECT_GT(fs_->longest_read, std::min(uint64_t{limit}, file_size) / 2);
    ASSERT_GT(file_size, 2 * (size_t{64} << 10));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(BlobGcJobTest, FailedWriteLeavesNoOutputs) {
  Open(MapOptions());
  FlushValues(0, 40, 2);
  FlushValues(1, 40, 2);
  Pin(FilesOnDisk(kBlobFile));
  const std::vector<Record> live = LiveRecords();
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.blob_file_size = 8000;
  for (int writes = 0;; ++writes) {
    SCOPED_TRACE(writes);
    ASSERT_LT(writes, 1000);
    fs_->writes_left = writes;
    const Result result = RunJob(context);
    fs_->writes_left = FaultyFS::kNever;
    if (result.status.ok()) {
      CheckOutputs(result, live);
      ASSERT_GT(result.outputs.size(), 3u);
      ASSERT_GT(writes, 3 * 3);
      break;
    }
    ASSERT_TRUE(result.status.IsIOError()) << result.status.ToString();
    CheckNothingWritten(result);
    if (HasFatalFailure()) {
      return;
    }
  }
  CheckValues();
}

TEST_F(BlobGcJobTest, LiveDamagedRecordFailsTheJob) {
  Open(MapOptions());
  FlushValues(0, 40);
  const uint64_t number = *FilesOnDisk(kBlobFile).begin();
  FlushValues(100, 110);
  // Every fourth value is garbage.
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  FlushValues(1, 40, 4);
  Pin(files);
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(40u, live.size());
  BlobFile file;
  ReadBlobFile(number, &file);
  ASSERT_EQ(40u, file.records.size());
  BlobGcJob::Context context = NewContext();
  context.mutable_cf_options.blob_file_size = 5000;

  const MapAddress victim = file.records[20].address;
  ASSERT_EQ(KeyOf(20), file.records[20].key);
  // Sizes, sequence number, birth, both checksums, key and value.
  for (const uint32_t at : {0u, 5u, 9u, 16u, 25u, 29u, 33u, victim.size - 1}) {
    SCOPED_TRACE(at);
    Flip(number, victim.offset + at);
    CheckCorruption(RunJob(context), PathOf(number) + " at offset " +
                                         std::to_string(victim.offset));
    Flip(number, victim.offset + at);
    if (HasFatalFailure()) {
      return;
    }
  }

  // Damage in a record that is garbage does not matter.
  Flip(number, file.records[21].address.offset + 50);
  CheckOutputs(RunJob(context), live);
}

TEST_F(BlobGcJobTest, JobSurvivesADamagedIndexOnly) {
  Open(MapOptions());
  FlushValues(0, 40, 2);
  FlushValues(1, 40, 2);
  const std::set<uint64_t> files = FilesOnDisk(kBlobFile);
  Pin(files);
  const std::vector<Record> live = LiveRecords();
  ASSERT_EQ(40u, live.size());
  const BlobGcJob::Context context = NewContext();
  for (const uint64_t number : files) {
    SCOPED_TRACE(number);
    const std::string path = PathOf(number);
    BlobFile file;
    ReadBlobFile(number, &file);
    std::string intact;
    ASSERT_OK(ReadFileToString(env_, path, &intact));
    // Damage in the header and in the footer.
    for (const uint64_t offset : {uint64_t{0}, uint64_t{16}, file.size - 1}) {
      SCOPED_TRACE(offset);
      Flip(number, offset);
      CheckCorruption(RunJob(context), path);
      Flip(number, offset);
    }
    // Truncated file.
    for (const uint64_t size :
         {uint64_t{0}, uint64_t{20}, file.index_offset, file.size - 1}) {
      SCOPED_TRACE(size);
      Edit(number, [&](std::string* content) { content->resize(size); });
      CheckCorruption(RunJob(context), path);
      Edit(number, [&](std::string* content) { *content = intact; });
    }
    // Missing file.
    ASSERT_OK(env_->RenameFile(path, path + ".away"));
    const Result result = RunJob(context);
    ASSERT_OK(env_->RenameFile(path + ".away", path));
    ASSERT_TRUE(result.status.IsPathNotFound()) << result.status.ToString();
    ASSERT_NE(std::string::npos, result.status.ToString().find(path));
    ASSERT_TRUE(result.additions.empty());
    ASSERT_TRUE(result.outputs.empty());
    ASSERT_EQ(files, FilesOnDisk(kBlobFile));
    if (HasFatalFailure()) {
      return;
    }
    // A damaged record index is rebuilt from the records.
    Flip(number, file.index_offset + 20);
  }
  CheckOutputs(RunJob(context), live);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
