//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/delta/delta_verifier.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_file_properties.h"
#include "db/delta/delta_file_reader.h"
#include "db/range_tombstone_fragmenter.h"
#include "file/file_util.h"
#include "file/filename.h"
#include "port/port.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/table.h"
#include "table/internal_iterator.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Kind = DeltaFileDescription::Kind;
using Tier = DeltaFileDescription::Tier;

constexpr size_t kVerifyReadahead = size_t{2} << 20;
// Maximum number of reports of one kind of error in one file.
constexpr uint64_t kMaxReported = 10;

std::string Hex(const Slice& key) { return "0x" + key.ToString(/*hex=*/true); }

class Verifier {
 public:
  Verifier(const DeltaTableFactory& tables, const DeltaVersion& delta,
           const DeltaVerifier::Options& options,
           const DeltaVerifier::Report& report, DeltaVerifier::Result* result)
      : tables_(tables),
        settings_(tables.settings()),
        delta_(delta),
        options_(options),
        report_(report),
        result_(result) {
    read_options_.verify_checksums = true;
    read_options_.fill_cache = false;
    read_options_.total_order_seek = true;
    delta.ForEachFile([this](const DeltaVersion::FilePtr& file) {
      files_.push_back(&file->description());
    });
    readers_.resize(files_.size());
  }

  void Run() {
    std::atomic<size_t> next{0};
    const auto check = [&] {
      for (;;) {
        const size_t i = next.fetch_add(1);
        if (i >= files_.size()) {
          return;
        }
        CheckFile(i);
      }
    };
    std::vector<port::Thread> threads;
    for (int i = 1; i < options_.num_threads; ++i) {
      threads.emplace_back(check);
    }
    check();
    for (port::Thread& thread : threads) {
      thread.join();
    }
    CheckBuckets();
    CheckKeys();
  }

 private:
  // A sorted file and its properties.
  struct SortedFile {
    const DeltaFileReader* reader = nullptr;
    DeltaFileProperties properties;
  };

  const Comparator* ucmp() const { return settings_->ucmp(); }

  void Error(const DeltaFileDescription& file, const std::string& what) {
    ErrorLine("Delta file #" + std::to_string(file.number) + ": " + what);
  }
  void ErrorLine(const std::string& line) {
    result_->errors.fetch_add(1);
    std::lock_guard<std::mutex> lock(mutex_);
    report_(line);
  }

  void CheckFile(size_t i) {
    const DeltaFileDescription& file = *files_[i];
    result_->files.fetch_add(1);
    result_->bytes.fetch_add(file.size);
    result_->entries.fetch_add(file.num_entries + file.num_range_anchors);
    CheckFileChecksum(file);
    std::unique_ptr<DeltaFileReader> reader;
    Status s = DeltaFileReader::Open(tables_, read_options_, file, &reader);
    if (!s.ok()) {
      Error(file, s.ToString());
      return;
    }
    s = reader->VerifyChecksum(read_options_);
    if (!s.ok()) {
      Error(file, s.ToString());
      return;
    }
    SortedFile sorted;
    if (file.tier == Tier::kSorted) {
      sorted.reader = reader.get();
      s = DeltaFileProperties::Read(*reader->GetTableProperties(),
                                    &sorted.properties);
      if (!s.ok()) {
        Error(file, s.ToString());
        return;
      }
    }
    CheckEntries(file, *reader, sorted.properties);
    std::lock_guard<std::mutex> lock(mutex_);
    if (sorted.reader != nullptr) {
      sorted_.emplace(file.number, std::move(sorted));
    }
    readers_[i] = std::move(reader);
  }

  void CheckFileChecksum(const DeltaFileDescription& file) {
    if (options_.checksum_factory == nullptr ||
        file.file_checksum == kUnknownFileChecksum ||
        file.file_checksum_func_name == kUnknownFileChecksumFuncName) {
      return;
    }
    // The checksum cannot be checked with another function.
    FileChecksumGenContext context;
    context.requested_checksum_func_name = file.file_checksum_func_name;
    if (options_.checksum_factory->CreateFileChecksumGenerator(context) ==
        nullptr) {
      return;
    }
    const ImmutableOptions& ioptions = settings_->ioptions();
    const std::string name =
        DeltaFileName(ioptions.cf_paths, file.number, file.path_id);
    FileOptions file_options = settings_->family->file_options;
    file_options.file_checksum = file.file_checksum;
    file_options.file_checksum_func_name = file.file_checksum_func_name;
    std::shared_ptr<IOTracer> io_tracer = settings_->family->io_tracer;
    std::string checksum;
    std::string function;
    const Status s = GenerateOneFileChecksum(
        ioptions.fs.get(), name, options_.checksum_factory,
        file.file_checksum_func_name, &checksum, &function, kVerifyReadahead,
        ioptions.allow_mmap_reads, io_tracer, ioptions.rate_limiter.get(),
        read_options_, ioptions.stats, ioptions.clock, file_options);
    if (!s.ok()) {
      Error(file, name + ": " + s.ToString());
    } else if (checksum != file.file_checksum) {
      Error(file, name + " does not have the checksum in the MANIFEST");
    }
  }

  // Returns true if the key is in the range of the buckets.
  bool IsInRange(const DeltaFileProperties& properties,
                 const Slice& key) const {
    if (properties.buckets.empty()) {
      return true;
    }
    const std::string& first = properties.buckets.front().lower_bound;
    return (first.empty() || ucmp()->Compare(key, first) >= 0) &&
           (!properties.end.has_value() ||
            ucmp()->Compare(key, *properties.end) < 0);
  }

  // Counts errors of one kind in a file and reports them in one line.
  class Wrong {
   public:
    void Note(const char* what, const Slice& key) {
      if (count_++ == 0) {
        first_ = std::string(what) + ", first at key " + Hex(key);
      }
    }
    void Report(Verifier* verifier, const DeltaFileDescription& file) const {
      if (count_ > 0) {
        verifier->Error(file, std::to_string(count_) + " times " + first_);
      }
    }

   private:
    uint64_t count_ = 0;
    std::string first_;
  };

  // What the entries of a file are, and what is wrong with them.
  struct Contents {
    Wrong order;
    Wrong entry;
    Wrong seq;
    Wrong filter;
    Wrong range;
    uint64_t num_entries = 0;
    uint64_t raw_bytes = 0;
    SequenceNumber smallest_seq = kMaxSequenceNumber;
    SequenceNumber largest_seq = 0;
    // User keys, as in the description of the file.
    std::string smallest;
    std::string largest;
    bool has_ranges = false;

    void NoteSeq(const DeltaFileDescription& file, SequenceNumber s,
                 const Slice& key) {
      smallest_seq = std::min(smallest_seq, s);
      largest_seq = std::max(largest_seq, s);
      if (s < file.smallest_seq || s > file.largest_seq) {
        seq.Note("a sequence number that the MANIFEST excludes", key);
      }
    }
    void Report(Verifier* verifier, const DeltaFileDescription& file) const {
      order.Report(verifier, file);
      entry.Report(verifier, file);
      seq.Report(verifier, file);
      filter.Report(verifier, file);
      range.Report(verifier, file);
    }
  };

  void CheckEntries(const DeltaFileDescription& file,
                    const DeltaFileReader& reader,
                    const DeltaFileProperties& properties) {
    Contents contents;
    const Status s = ReadPoints(file, reader, properties, &contents);
    if (!s.ok()) {
      Error(file, s.ToString());
      return;
    }
    ReadRanges(file, reader, &contents);
    contents.Report(this, file);
    CompareContents(file, contents);
  }

  Status ReadPoints(const DeltaFileDescription& file,
                    const DeltaFileReader& reader,
                    const DeltaFileProperties& properties,
                    Contents* contents) const {
    const ValueType type =
        file.kind == Kind::kOperands ? kTypeMerge : kTypeDeletion;
    std::string last_key;  // internal key
    const std::unique_ptr<InternalIterator> iter(reader.NewIterator(
        read_options_, TableReaderCaller::kUserVerifyChecksum,
        /*arena=*/nullptr, kVerifyReadahead));
    for (iter->SeekToFirst(); iter->Valid(); iter->Next()) {
      const Slice key = iter->key();
      ParsedInternalKey parsed;
      if (!ParseInternalKey(key, &parsed, /*log_err_key=*/false).ok()) {
        contents->entry.Note("an entry without an internal key", key);
        continue;
      }
      const bool is_first = contents->num_entries == 0;
      const bool is_new =
          is_first || !ucmp()->Equal(ExtractUserKey(last_key), parsed.user_key);
      if (is_first) {
        contents->smallest = parsed.user_key.ToString();
      } else if (settings_->icmp().Compare(last_key, key) >= 0) {
        contents->order.Note("entries out of order", parsed.user_key);
      }
      if (parsed.type != type) {
        contents->entry.Note("an entry of another kind", parsed.user_key);
      }
      contents->NoteSeq(file, parsed.sequence, parsed.user_key);
      if (is_new && !reader.MayHaveKey(read_options_, parsed.user_key)) {
        contents->filter.Note("a key that its filter does not have",
                              parsed.user_key);
      }
      // The key of an anchor that hides nothing is arbitrary: see DeltaGcJob.
      if (is_new && parsed.sequence > 0 &&
          !IsInRange(properties, parsed.user_key)) {
        contents->range.Note("a key outside of its buckets", parsed.user_key);
      }
      last_key.assign(key.data(), key.size());
      ++contents->num_entries;
      contents->raw_bytes += parsed.user_key.size() + iter->value().size();
    }
    if (contents->num_entries > 0) {
      contents->largest = ExtractUserKey(last_key).ToString();
    }
    return iter->status();
  }

  // REQUIRES: ReadPoints() has read the point entries.
  void ReadRanges(const DeltaFileDescription& file,
                  const DeltaFileReader& reader, Contents* contents) const {
    const std::unique_ptr<FragmentedRangeTombstoneIterator> ranges =
        reader.NewRangeAnchorIterator(kMaxSequenceNumber);
    if (ranges == nullptr) {
      return;
    }
    contents->has_ranges = true;
    bool is_first = contents->num_entries == 0;
    for (ranges->SeekToFirst(); ranges->Valid(); ranges->Next()) {
      const Slice start = ranges->start_key();
      const Slice end = ranges->end_key();
      if (ucmp()->Compare(start, end) >= 0) {
        contents->order.Note("an empty range", start);
      }
      if (is_first || ucmp()->Compare(start, contents->smallest) < 0) {
        contents->smallest = start.ToString();
      }
      if (is_first || ucmp()->Compare(end, contents->largest) > 0) {
        contents->largest = end.ToString();
      }
      is_first = false;
      contents->NoteSeq(file, ranges->seq(), start);
    }
  }

  // Compares the entries with the description of the file in the MANIFEST.
  void CompareContents(const DeltaFileDescription& file,
                       const Contents& contents) {
    if (contents.num_entries != file.num_entries) {
      Error(file, "has " + std::to_string(contents.num_entries) +
                      " point entries instead of " +
                      std::to_string(file.num_entries));
    }
    // Overlapping ranges are read in other fragments than they were written.
    if (!contents.has_ranges && contents.raw_bytes != file.raw_bytes) {
      Error(file, "has " + std::to_string(contents.raw_bytes) +
                      " bytes of keys and operands instead of " +
                      std::to_string(file.raw_bytes));
    }
    if (contents.smallest != file.smallest ||
        contents.largest != file.largest) {
      Error(file, "its keys go from " + Hex(contents.smallest) + " to " +
                      Hex(contents.largest) + " instead of from " +
                      Hex(file.smallest) + " to " + Hex(file.largest));
    }
    if (contents.smallest_seq != file.smallest_seq ||
        contents.largest_seq != file.largest_seq) {
      Error(file, "its sequence numbers go from " +
                      std::to_string(contents.smallest_seq) + " to " +
                      std::to_string(contents.largest_seq) +
                      " instead of from " + std::to_string(file.smallest_seq) +
                      " to " + std::to_string(file.largest_seq));
    }
  }

  // Compares the buckets of the Version with those of the files.
  void CheckBuckets() {
    const Status s = delta_.CheckConsistency();
    if (!s.ok()) {
      ErrorLine(s.ToString());
    }
    const DeltaBucketTable& buckets = delta_.Buckets();
    for (auto p = buckets.Begin(); p != buckets.End(); p = buckets.Next(p)) {
      const auto next = buckets.Next(p);
      std::optional<Slice> end;
      if (next != buckets.End()) {
        end = buckets.LowerBound(next);
      }
      const DeltaBucketState& state = buckets.State(p);
      for (uint64_t number : {state.extent_number, state.anchors_number}) {
        // Files that could not be opened were reported.
        const auto file = sorted_.find(number);
        if (file != sorted_.end()) {
          CheckBucket(buckets.LowerBound(p), end, state.floor, file->second);
        }
      }
    }
  }

  void CheckBucket(const Slice& lower_bound, const std::optional<Slice>& end,
                   uint64_t floor, const SortedFile& file) {
    const DeltaFileDescription& description = file.reader->description();
    const DeltaFileProperties& properties = file.properties;
    if (properties.buckets.empty()) {
      return;
    }
    const std::string& first = properties.buckets.front().lower_bound;
    const bool begins_inside =
        first.empty() ||
        (!lower_bound.empty() && ucmp()->Compare(lower_bound, first) >= 0);
    const bool ends_inside =
        !properties.end.has_value() ||
        (end.has_value() && ucmp()->Compare(*end, *properties.end) <= 0);
    if (!begins_inside || !ends_inside) {
      Error(description, "the bucket from " + Hex(lower_bound) +
                             " names it, but it was written for others");
      return;
    }
    // The last bucket that begins at or before the lower bound of this one.
    auto bucket = std::upper_bound(
        properties.buckets.begin() + 1, properties.buckets.end(), lower_bound,
        [this](const Slice& key, const DeltaFileProperties::Bucket& b) {
          return key.empty() || ucmp()->Compare(key, b.lower_bound) < 0;
        });
    --bucket;
    // The floor may have been raised since, when recent files had nothing for
    // the bucket; or a repair may have lowered it to an equivalent one.
    for (const auto& recent : delta_.RecentFiles(description.kind)) {
      const uint64_t epoch = recent->description().last_epoch;
      if (floor < epoch && epoch <= bucket->floor_epoch) {
        Error(description, "the bucket from " + Hex(lower_bound) +
                               " names it, which includes delta file #" +
                               std::to_string(recent->number()) +
                               ", but sees that file as well");
      }
    }
  }

  // A file of operands in the merge of all files.
  struct Source {
    const DeltaFileDescription* file = nullptr;
    std::unique_ptr<InternalIterator> iter;
    // Order of the file: the newest first, sorted files last.
    size_t rank = 0;
  };

  // Opens the files with operands.
  std::vector<Source> OpenSources() const {
    std::vector<Source> sources;
    for (size_t i = 0; i < files_.size(); ++i) {
      // Recent files come first, the newest one at the front.
      if (readers_[i] == nullptr || files_[i]->kind != Kind::kOperands) {
        continue;
      }
      Source& source = sources.emplace_back();
      source.file = files_[i];
      source.rank = sources.size();
      source.iter.reset(readers_[i]->NewIterator(
          read_options_, TableReaderCaller::kUserVerifyChecksum,
          /*arena=*/nullptr, kVerifyReadahead));
    }
    return sources;
  }

  void CheckKeys() {
    std::vector<Source> sources = OpenSources();
    const InternalKeyComparator& icmp = settings_->icmp();
    const auto is_later = [&icmp](const Source* a, const Source* b) {
      const int order = icmp.Compare(a->iter->key(), b->iter->key());
      return order != 0 ? order > 0 : a->rank > b->rank;
    };
    std::priority_queue<Source*, std::vector<Source*>, decltype(is_later)> heap(
        is_later);
    for (Source& source : sources) {
      source.iter->SeekToFirst();
      if (source.iter->Valid()) {
        heap.push(&source);
      }
    }

    std::string key;
    bool has_key = false;
    SequenceNumber last_seq = 0;
    const Source* last = nullptr;  // last source that readers of the key see
    uint64_t reported = 0;
    while (!heap.empty()) {
      Source* const source = heap.top();
      heap.pop();
      ParsedInternalKey parsed;
      // Invalid keys were reported.
      if (ParseInternalKey(source->iter->key(), &parsed,
                           /*log_err_key=*/false)
              .ok()) {
        if (!has_key || !ucmp()->Equal(parsed.user_key, key)) {
          key = parsed.user_key.ToString();
          has_key = true;
          last = nullptr;
        }
        if (IsSeen(*source->file, key)) {
          ++result_->operands;
          if (last == nullptr) {
            ++result_->keys;
          } else if ((last_seq <= parsed.sequence ||
                      last->rank > source->rank) &&
                     reported++ < kMaxReported) {
            Error(*source->file,
                  "operand " + std::to_string(parsed.sequence) + " of key " +
                      Hex(key) + " is not older than operand " +
                      std::to_string(last_seq) + " of delta file #" +
                      std::to_string(last->file->number));
          }
          last_seq = parsed.sequence;
          last = source;
        }
      }
      source->iter->Next();
      if (source->iter->Valid()) {
        heap.push(source);
      }
    }
    for (const Source& source : sources) {
      if (!source.iter->status().ok()) {
        Error(*source.file, source.iter->status().ToString());
      }
    }
  }

  // Returns true if readers of the key see the file.
  bool IsSeen(const DeltaFileDescription& file, const Slice& key) const {
    const DeltaBucketTable& buckets = delta_.Buckets();
    if (buckets.empty()) {
      return file.tier != Tier::kSorted;
    }
    const DeltaBucketState& state = buckets.State(buckets.Find(key, ucmp()));
    return file.tier == Tier::kSorted ? state.extent_number == file.number
                                      : file.last_epoch > state.floor;
  }

  const DeltaTableFactory& tables_;
  const std::shared_ptr<const DeltaTableSettings> settings_;
  const DeltaVersion& delta_;
  const DeltaVerifier::Options& options_;
  const DeltaVerifier::Report& report_;
  DeltaVerifier::Result* const result_;
  ReadOptions read_options_;
  std::vector<const DeltaFileDescription*> files_;

  // Guards the calls of report_, and the following members while threads run.
  std::mutex mutex_;
  // Readers of files_, in the same order.
  std::vector<std::unique_ptr<DeltaFileReader>> readers_;
  std::map<uint64_t, SortedFile> sorted_;
};

}  // namespace

std::unique_ptr<DeltaTableFactory> NewUncachedDeltaTables(
    const DeltaTableFamily& family, const MutableCFOptions& options) {
  BlockBasedTableOptions table_options;
  const BlockBasedTableOptions* const of_family =
      options.table_factory != nullptr
          ? options.table_factory->GetOptions<BlockBasedTableOptions>()
          : nullptr;
  if (of_family != nullptr) {
    table_options = *of_family;
  }
  table_options.no_block_cache = true;
  table_options.block_cache.reset();
  table_options.cache_usage_options = CacheUsageOptions();
  table_options.persistent_cache.reset();
  MutableCFOptions uncached = options;
  uncached.table_factory.reset(NewBlockBasedTableFactory(table_options));
  return std::make_unique<DeltaTableFactory>(family, uncached);
}

void DeltaVerifier::Verify(const DeltaTableFactory& tables,
                           const DeltaVersion& delta, const Options& options,
                           const Report& report, Result* result) {
  Verifier(tables, delta, options, report, result).Run();
}

}  // namespace ROCKSDB_NAMESPACE
