//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/address_map/address_map_checkpoint.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "db/dbformat.h"
#include "file/random_access_file_reader.h"
#include "file/sequence_file_reader.h"
#include "file/writable_file_writer.h"
#include "port/port.h"
#include "util/coding.h"
#include "util/crc32c.h"
#include "util/xxhash.h"

namespace ROCKSDB_NAMESPACE {

namespace {

constexpr char kMagic[8] = {'S', 'T', 'R', 'A', 'T', 'M', 'A', 'P'};
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderSize = 68;
constexpr size_t kFooterSize = 16;
constexpr size_t kBlockOverhead = 8;  // length, checksum
constexpr size_t kMaxPayload = (64 << 10) - kBlockOverhead;
// Upper bound for the size of a record in a block, in bytes.
constexpr size_t kMaxRecord = 64;
constexpr size_t kReadSize = 512 << 10;
// Lower bounds for the sizes of records, in bytes. They limit the memory that
// is reserved for the counts of a damaged file.
constexpr size_t kMinEntry = 8;
constexpr size_t kMinFileRecord = 6;

// A section contains the keys whose 10 highest hash bits equal its number.
constexpr uint32_t kPartShift = 54;
static_assert(AddressMap::kNumParts == 1 << (64 - kPartShift));

// Bits of an entry's first byte.
enum : uint8_t {
  kVersionedBit = 1,
  kSameKeyBit = 2,
  kBirthShift = 2,
  kBirthMask = 3 << kBirthShift,
  kAllBits = kVersionedBit | kSameKeyBit | kBirthMask,
};
enum : uint8_t { kBirthZero = 0, kBirthOwnFile = 1, kBirthExplicit = 2 };

// A record of the table of files. The first record of the table stands for lost
// values.
struct FileRecord {
  uint64_t number = 0;
  uint64_t size = 0;
  uint64_t live_count = 0;
  uint64_t live_bytes = 0;
  uint32_t path_id = 0;
  uint8_t compression = 0;
};

struct Section {
  uint32_t part = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t count = 0;
};

struct LoadedEntry {
  AddressMap::Record record;
  uint32_t slot = 0;
};

bool NameLess(const MapName& a, const MapName& b) {
  if (!(a.key == b.key)) {
    return a.key < b.key;
  }
  return a.seq != b.seq ? a.seq < b.seq : a.birth < b.birth;
}

FileOptions OpenOptions(const AddressMapCheckpoint::Io& io) {
  FileOptions options = io.file_options;
  options.io_options = io.io_options;
  return options;
}

// Returns the checksum of a block. It also covers the identity of the file and
// the offset of the block, so that a block that a lower layer has misplaced is
// detected.
uint32_t BlockChecksum(uint32_t file_checksum, uint64_t offset,
                       const Slice& length_and_payload) {
  char place[12];
  EncodeFixed32(place, file_checksum);
  EncodeFixed64(place + 4, offset);
  return crc32c::Mask(crc32c::Extend(crc32c::Value(place, sizeof(place)),
                                     length_and_payload.data(),
                                     length_and_payload.size()));
}

std::string EncodeHeader(const AddressMapCheckpoint::Header& header) {
  const AddressMapCheckpoint::Identity& id = header.identity;
  std::string out(kMagic, sizeof(kMagic));
  PutFixed32(&out, kFormatVersion);
  PutFixed32(&out, id.column_family_id);
  PutFixed64(&out, id.hash_seed);
  PutFixed64(&out, id.manifest_number);
  PutFixed64(&out, id.manifest_size);
  PutFixed64(&out, id.manifest_hash_low);
  PutFixed64(&out, id.manifest_hash_high);
  PutFixed64(&out, header.num_entries);
  PutFixed32(&out, crc32c::Mask(crc32c::Value(out.data(), out.size())));
  assert(out.size() == kHeaderSize);
  return out;
}

// ---- Writing

// Writes records in blocks.
class BlockWriter {
 public:
  BlockWriter(WritableFileWriter* file, const IOOptions& io_options,
              const std::string& header)
      : file_(file),
        io_options_(io_options),
        file_checksum_(DecodeFixed32(header.data() + kHeaderSize - 4)) {
    Append(header).PermitUncheckedError();
  }
  ~BlockWriter() { status_.PermitUncheckedError(); }

  // The payload of the current block, to which the next record is appended.
  // REQUIRES: StartsBlock() was called for this record.
  std::string* payload() { return &payload_; }
  // Ends the current block if it may not have room for another record. Returns
  // true if the next record is the first one of its block.
  bool StartsBlock() {
    if (payload_.size() + kMaxRecord > kMaxPayload) {
      EndBlock();
    }
    return payload_.empty();
  }
  void EndBlock() {
    if (!payload_.empty()) {
      assert(payload_.size() <= kMaxPayload);
      std::string block;
      block.reserve(payload_.size() + kBlockOverhead);
      PutFixed32(&block, static_cast<uint32_t>(payload_.size()));
      block += payload_;
      PutFixed32(&block, BlockChecksum(file_checksum_, offset_, block));
      Append(block).PermitUncheckedError();
      payload_.clear();
    }
  }

  Status Append(const Slice& data) {
    if (status_.ok()) {
      status_ = file_->Append(io_options_, data);
      offset_ += data.size();
    }
    return status_;
  }

  // The file offset of the current block, in bytes.
  uint64_t offset() const { return offset_; }
  // The first error; nothing is written after it.
  const Status& status() const { return status_; }

 private:
  WritableFileWriter* const file_;
  const IOOptions io_options_;
  const uint32_t file_checksum_;
  std::string payload_;
  uint64_t offset_ = 0;
  Status status_;
};

// Collects the records of the table of files: the record of lost values,
// followed by the live files in the order of their numbers.
// indexes: maps a slot to its index in *records; 0 for slots that no entry may
// refer to.
Status CollectFiles(const BlobFileSlotTable& table,
                    std::vector<FileRecord>* records,
                    std::vector<uint32_t>* indexes) {
  std::vector<BlobFileSlotTable::Info> files = table.GetAll();
  std::sort(
      files.begin(), files.end(),
      [](const BlobFileSlotTable::Info& a, const BlobFileSlotTable::Info& b) {
        return a.number < b.number;
      });
  records->emplace_back();
  records->back().live_count = table.LiveCount(BlobFileSlotTable::kLostSlot);
  records->back().live_bytes = table.LiveBytes(BlobFileSlotTable::kLostSlot);
  for (const BlobFileSlotTable::Info& f : files) {
    if (f.state == BlobFileSlotTable::State::kBuilding ||
        f.state == BlobFileSlotTable::State::kPending ||
        f.state == BlobFileSlotTable::State::kCopies) {
      return Status::Aborted("Address map checkpoint: blob file " +
                             std::to_string(f.number) + " is not committed");
    }
    if (f.state != BlobFileSlotTable::State::kLive) {
      continue;
    }
    if (f.slot >= indexes->size()) {
      indexes->resize(f.slot + 1);
    }
    (*indexes)[f.slot] = static_cast<uint32_t>(records->size());
    FileRecord& r = records->emplace_back();
    r.number = f.number;
    r.size = f.size;
    r.live_count = f.live_count;
    r.live_bytes = f.live_bytes;
    r.path_id = f.path_id;
    r.compression = static_cast<uint8_t>(f.compression);
  }
  return Status::OK();
}

void WriteFileTable(const std::vector<FileRecord>& files, BlockWriter* out) {
  for (const FileRecord& f : files) {
    out->StartsBlock();
    std::string* const p = out->payload();
    PutVarint64(p, f.number);
    PutVarint64(p, f.size);
    PutVarint32(p, f.path_id);
    p->push_back(static_cast<char>(f.compression));
    PutVarint64(p, f.live_count);
    PutVarint64(p, f.live_bytes);
  }
  out->EndBlock();
}

// Writes the sorted entries of one part and adds them to the live counts and
// bytes in *counted, which has one record per file.
Status WriteEntries(uint32_t part,
                    const std::vector<AddressMap::Entry>& entries,
                    const std::vector<uint32_t>& indexes,
                    const std::vector<FileRecord>& files,
                    std::vector<FileRecord>* counted, BlockWriter* out) {
  SequenceNumber min_seq = kMaxSequenceNumber;
  for (const AddressMap::Entry& e : entries) {
    min_seq = std::min(min_seq, e.name.seq);
  }
  MapKeyHash previous;
  for (const AddressMap::Entry& e : entries) {
    const uint32_t slot = e.address.slot;
    const uint32_t file = slot < indexes.size() ? indexes[slot] : 0;
    if (e.mode == MapMode::kSuperseded ||
        (file == 0 && slot != BlobFileSlotTable::kLostSlot)) {
      return Status::Aborted("Address map checkpoint: uncommitted entry, seq " +
                             std::to_string(e.name.seq));
    }
    ++(*counted)[file].live_count;
    (*counted)[file].live_bytes += e.address.size;

    const bool first = out->StartsBlock();
    std::string* const p = out->payload();
    if (first) {
      PutVarint64(p, min_seq);
      previous = MapKeyHash{uint64_t{part} << kPartShift, 0};
    }
    const bool same_key = !first && e.name.key == previous;
    const uint8_t birth = e.name.birth == 0                    ? kBirthZero
                          : e.name.birth == files[file].number ? kBirthOwnFile
                                                               : kBirthExplicit;
    p->push_back(
        static_cast<char>((e.mode == MapMode::kVersioned ? kVersionedBit : 0) |
                          (same_key ? kSameKeyBit : 0) | birth << kBirthShift));
    if (!same_key) {
      PutVarint64(p, e.name.key.hi - previous.hi);
      PutFixed32(p, e.name.key.lo);
      previous = e.name.key;
    }
    PutVarint64(p, e.name.seq - min_seq);
    PutVarint32(p, file);
    PutFixed32(p, e.address.offset);
    PutVarint32(p, e.address.size);
    if (birth == kBirthExplicit) {
      PutVarint64(p, e.name.birth);
    }
  }
  out->EndBlock();
  return out->status();
}

Status WriteImage(const AddressMapCheckpoint::Identity& identity,
                  const AddressMap& map, const IOOptions& io_options,
                  WritableFileWriter* file) {
  std::vector<FileRecord> files;
  std::vector<uint32_t> indexes;
  Status s = CollectFiles(*map.files(), &files, &indexes);
  if (!s.ok()) {
    return s;
  }
  const uint64_t num_entries = map.NumEntries();
  BlockWriter out(
      file, io_options,
      EncodeHeader(AddressMapCheckpoint::Header{identity, num_entries}));

  WriteFileTable(files, &out);
  std::string index;
  PutVarint64(&index, out.offset() - kHeaderSize);
  PutVarint64(&index, files.size());

  std::vector<FileRecord> counted(files.size());
  std::vector<AddressMap::Entry> entries;
  uint64_t total = 0;
  for (uint32_t part = 0; part < AddressMap::kNumParts && out.status().ok();
       ++part) {
    entries.clear();
    map.ForEachInPart(
        part, [&](const AddressMap::Entry& e) { entries.push_back(e); });
    if (entries.empty()) {
      continue;
    }
    std::sort(entries.begin(), entries.end(),
              [](const AddressMap::Entry& a, const AddressMap::Entry& b) {
                return NameLess(a.name, b.name);
              });
    const uint64_t begin = out.offset();
    s = WriteEntries(part, entries, indexes, files, &counted, &out);
    if (!s.ok()) {
      return s;
    }
    total += entries.size();
    PutVarint32(&index, part);
    PutVarint64(&index, out.offset() - begin);
    PutVarint64(&index, entries.size());
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (counted[i].live_count != files[i].live_count ||
        counted[i].live_bytes != files[i].live_bytes) {
      s = Status::Aborted("Address map checkpoint: live counts do not match");
    }
  }
  if (total != num_entries) {
    s = Status::Aborted("Address map checkpoint: the map changed");
  }
  if (!out.status().ok() || !s.ok()) {
    return out.status().ok() ? s : out.status();
  }

  const uint64_t index_offset = out.offset();
  *out.payload() = std::move(index);
  out.EndBlock();
  std::string footer;
  PutFixed64(&footer, index_offset);
  footer.append(kMagic, sizeof(kMagic));
  return out.Append(footer);
}

// ---- Reading

// An image that is open for reading. Thread-safe after Open().
class Source {
 public:
  Status Open(const AddressMapCheckpoint::Io& io, const std::string& path);
  // Reads n bytes. Returns Corruption if the file has fewer. *result may or may
  // not point into scratch.
  Status Read(uint64_t offset, size_t n, char* scratch, Slice* result) const;
  Status ReadHeader(AddressMapCheckpoint::Header* header);

  Status Corrupt(uint64_t offset, const std::string& what) const {
    return Status::Corruption("Address map checkpoint " + path_,
                              "offset " + std::to_string(offset) + ": " + what);
  }
  Status Mismatch(const std::string& what) const {
    return Status::Expired("Address map checkpoint " + path_, what);
  }
  uint64_t size() const { return size_; }
  uint32_t checksum() const { return checksum_; }

 private:
  std::string path_;
  IOOptions io_options_;
  std::unique_ptr<RandomAccessFileReader> reader_;
  uint64_t size_ = 0;
  uint32_t checksum_ = 0;  // of the header
};

Status Source::Open(const AddressMapCheckpoint::Io& io,
                    const std::string& path) {
  path_ = path;
  io_options_ = io.io_options;
  std::unique_ptr<FSRandomAccessFile> file;
  Status s = io.fs->NewRandomAccessFile(path, OpenOptions(io), &file, nullptr);
  if (s.ok()) {
    s = io.fs->GetFileSize(path, io_options_, &size_, nullptr);
  }
  if (s.ok()) {
    reader_ = std::make_unique<RandomAccessFileReader>(
        std::move(file), path, /*clock=*/nullptr, /*io_tracer=*/nullptr,
        /*stats=*/nullptr, Histograms::HISTOGRAM_ENUM_MAX,
        /*file_read_hist=*/nullptr, io.file_options.rate_limiter);
  }
  return s;
}

Status Source::Read(uint64_t offset, size_t n, char* scratch,
                    Slice* result) const {
  Status s = reader_->Read(io_options_, offset, n, result, scratch);
  if (s.ok() && result->size() != n) {
    s = Corrupt(offset + result->size(), "the file ends");
  }
  return s;
}

Status Source::ReadHeader(AddressMapCheckpoint::Header* header) {
  // Other temporary files have similar names; only the magic identifies an
  // image.
  char scratch[kHeaderSize];
  const size_t n =
      static_cast<size_t>(std::min<uint64_t>(size_, sizeof(scratch)));
  Slice in;
  Status s = Read(0, n, scratch, &in);
  if (!s.ok()) {
    return s;
  }
  if (!in.starts_with(Slice(kMagic, sizeof(kMagic)))) {
    return Mismatch("not a checkpoint of an address map");
  }
  if (n < kHeaderSize) {
    return Corrupt(n, "the file ends in the header");
  }
  const char* const p = in.data();
  const uint32_t version = DecodeFixed32(p + 8);
  if (version != kFormatVersion) {
    return Mismatch("format version " + std::to_string(version));
  }
  checksum_ = DecodeFixed32(p + kHeaderSize - 4);
  if (checksum_ != crc32c::Mask(crc32c::Value(p, kHeaderSize - 4))) {
    return Corrupt(0, "bad checksum of the header");
  }
  AddressMapCheckpoint::Identity& id = header->identity;
  id.column_family_id = DecodeFixed32(p + 12);
  id.hash_seed = DecodeFixed64(p + 16);
  id.manifest_number = DecodeFixed64(p + 24);
  id.manifest_size = DecodeFixed64(p + 32);
  id.manifest_hash_low = DecodeFixed64(p + 40);
  id.manifest_hash_high = DecodeFixed64(p + 48);
  header->num_entries = DecodeFixed64(p + 56);
  return s;
}

// Reads the blocks of a section sequentially.
class BlockReader {
 public:
  explicit BlockReader(const Source* source)
      : source_(source), scratch_(new char[kReadSize]) {}

  void Seek(uint64_t begin, uint64_t end) {
    assert(begin <= end && end <= source_->size());
    offset_ = begin;
    end_ = end;
    buffered_.clear();
    block_offset_ = begin;
  }
  bool AtEnd() const { return offset_ == end_; }
  // The offset of the block that Next() returned last, in bytes.
  uint64_t block_offset() const { return block_offset_; }

  // Reads and verifies the next block. *payload is valid until the next call.
  // REQUIRES: !AtEnd().
  Status Next(Slice* payload) {
    block_offset_ = offset_;
    if (!HasBlock()) {
      const size_t n =
          static_cast<size_t>(std::min<uint64_t>(kReadSize, end_ - offset_));
      Status s = source_->Read(offset_, n, scratch_.get(), &buffered_);
      if (!s.ok()) {
        return s;
      }
      if (!HasBlock()) {
        return source_->Corrupt(offset_, "bad length of a block");
      }
    }
    const uint32_t length = DecodeFixed32(buffered_.data());
    const size_t checked = length + sizeof(uint32_t);
    if (DecodeFixed32(buffered_.data() + checked) !=
        BlockChecksum(source_->checksum(), offset_,
                      Slice(buffered_.data(), checked))) {
      return source_->Corrupt(offset_, "bad checksum of a block");
    }
    *payload = Slice(buffered_.data() + sizeof(uint32_t), length);
    offset_ += length + kBlockOverhead;
    buffered_.remove_prefix(length + kBlockOverhead);
    return Status::OK();
  }

 private:
  bool HasBlock() const {
    return buffered_.size() >= kBlockOverhead &&
           DecodeFixed32(buffered_.data()) <= kMaxPayload &&
           DecodeFixed32(buffered_.data()) + kBlockOverhead <= buffered_.size();
  }

  const Source* const source_;
  const std::unique_ptr<char[]> scratch_;
  Slice buffered_;  // from offset_ on
  uint64_t offset_ = 0;
  uint64_t end_ = 0;
  uint64_t block_offset_ = 0;
};

// Reads the index. The first element of *sections is the table of files.
Status ReadIndex(const Source& source, uint64_t num_entries,
                 BlockReader* reader, std::vector<Section>* sections) {
  if (source.size() < kHeaderSize + kFooterSize) {
    return source.Corrupt(source.size(), "the file ends before the footer");
  }
  const uint64_t footer_offset = source.size() - kFooterSize;
  char scratch[kFooterSize];
  Slice footer;
  Status s = source.Read(footer_offset, kFooterSize, scratch, &footer);
  if (!s.ok()) {
    return s;
  }
  const uint64_t index_offset = DecodeFixed64(footer.data());
  if (!footer.ends_with(Slice(kMagic, sizeof(kMagic))) ||
      index_offset < kHeaderSize || index_offset > footer_offset) {
    return source.Corrupt(footer_offset, "bad footer");
  }
  reader->Seek(index_offset, footer_offset);
  Slice in;
  if (!reader->AtEnd()) {
    s = reader->Next(&in);
  }
  if (!s.ok()) {
    return s;
  }
  bool good = reader->AtEnd();

  uint64_t offset = kHeaderSize;
  uint64_t total = 0;
  while (good && !in.empty()) {
    Section section;
    uint64_t bytes = 0;
    // The table of files has no part number.
    good = (sections->empty() || GetVarint32(&in, &section.part)) &&
           GetVarint64(&in, &bytes) && GetVarint64(&in, &section.count) &&
           bytes != 0 && bytes <= index_offset - offset &&
           section.count <= bytes && section.part < AddressMap::kNumParts &&
           (sections->size() < 2 || section.part > sections->back().part);
    if (good) {
      section.begin = offset;
      offset += bytes;
      section.end = offset;
      total += sections->empty() ? 0 : section.count;
      sections->push_back(section);
    }
  }
  if (!good || sections->empty() || offset != index_offset ||
      total != num_entries) {
    return source.Corrupt(index_offset, "bad index");
  }
  return s;
}

Status ReadFileTable(const Source& source, const Section& section,
                     BlockReader* reader, std::vector<FileRecord>* files) {
  files->reserve(static_cast<size_t>(std::min<uint64_t>(
      section.count, (section.end - section.begin) / kMinFileRecord)));
  reader->Seek(section.begin, section.end);
  while (!reader->AtEnd()) {
    Slice in;
    Status s = reader->Next(&in);
    if (!s.ok()) {
      return s;
    }
    while (!in.empty()) {
      FileRecord f;
      bool good = GetVarint64(&in, &f.number) && GetVarint64(&in, &f.size) &&
                  GetVarint32(&in, &f.path_id) && !in.empty();
      if (good) {
        f.compression = static_cast<uint8_t>(in[0]);
        in.remove_prefix(1);
        good =
            GetVarint64(&in, &f.live_count) && GetVarint64(&in, &f.live_bytes);
      }
      good = good &&
             (files->empty() ? f.number == 0 : f.number > files->back().number);
      if (!good) {
        return source.Corrupt(reader->block_offset(), "bad table of files");
      }
      files->push_back(f);
    }
  }
  if (files->empty() || files->size() != section.count) {
    return source.Corrupt(section.begin, "wrong number of files");
  }
  return Status::OK();
}

// Parses one entry. Returns false if it is malformed.
// first: the entry is the first one of its block.
// key: the hash of the previous entry; set to the hash of this entry.
bool ParseEntry(Slice* in, bool first, uint64_t min_seq,
                const std::vector<FileRecord>& files,
                const std::vector<uint32_t>& slots, MapKeyHash* key,
                LoadedEntry* entry) {
  const uint8_t bits = static_cast<uint8_t>((*in)[0]);
  in->remove_prefix(1);
  if ((bits & ~kAllBits) != 0) {
    return false;
  }
  if ((bits & kSameKeyBit) != 0) {
    if (first) {
      return false;
    }
  } else {
    uint64_t delta = 0;
    if (!GetVarint64(in, &delta) || !GetFixed32(in, &key->lo)) {
      return false;
    }
    // If the sum wraps around, the hash is in another part, or out of order,
    // which the caller detects.
    const uint64_t hi = key->hi + delta;
    if (hi >> kPartShift != key->hi >> kPartShift) {
      return false;
    }
    key->hi = hi;
  }
  AddressMap::Record& r = entry->record;
  r.name.key = *key;
  uint64_t seq = 0;
  uint32_t file = 0;
  if (!GetVarint64(in, &seq) || !GetVarint32(in, &file) ||
      !GetFixed32(in, &r.offset) || !GetVarint32(in, &r.size) ||
      min_seq > kMaxSequenceNumber || seq > kMaxSequenceNumber - min_seq ||
      file >= files.size()) {
    return false;
  }
  r.name.seq = min_seq + seq;
  r.direct = (bits & kVersionedBit) == 0;
  entry->slot = slots[file];
  switch ((bits & kBirthMask) >> kBirthShift) {
    case kBirthZero:
      r.name.birth = 0;
      return true;
    case kBirthOwnFile:
      r.name.birth = files[file].number;
      return true;
    case kBirthExplicit:
      return GetVarint64(in, &r.name.birth);
    default:
      return false;
  }
}

Status ReadEntries(const Source& source, const Section& section,
                   const std::vector<FileRecord>& files,
                   const std::vector<uint32_t>& slots, BlockReader* reader,
                   std::vector<LoadedEntry>* entries) {
  entries->clear();
  entries->reserve(static_cast<size_t>(std::min<uint64_t>(
      section.count, (section.end - section.begin) / kMinEntry)));
  bool has_direct = false;  // the key of the last entry has a direct entry
  reader->Seek(section.begin, section.end);
  while (!reader->AtEnd()) {
    Slice in;
    Status s = reader->Next(&in);
    if (!s.ok()) {
      return s;
    }
    uint64_t min_seq = 0;
    bool good = GetVarint64(&in, &min_seq);
    MapKeyHash key{uint64_t{section.part} << kPartShift, 0};
    for (bool first = true; good && !in.empty(); first = false) {
      LoadedEntry e;
      good = ParseEntry(&in, first, min_seq, files, slots, &key, &e);
      if (good && !entries->empty()) {
        // Names are unique, and a key has at most one direct entry.
        const MapName& last = entries->back().record.name;
        good = NameLess(last, e.record.name);
        has_direct = has_direct && last.key == key;
      }
      good = good && !(has_direct && e.record.direct);
      has_direct = has_direct || e.record.direct;
      if (good) {
        entries->push_back(e);
      }
    }
    if (!good) {
      return source.Corrupt(reader->block_offset(), "bad entry in the block");
    }
  }
  if (entries->size() != section.count) {
    return source.Corrupt(section.begin, "wrong number of entries");
  }
  return Status::OK();
}

// Inserts the entries in an order that spreads them over the shard. A shard of
// the map starts small and grows. If it were filled in hash order, it would
// always be crowded at one end, and each insertion would go past the entries
// inserted before it, which takes quadratic time. With a step of 0.618 n, the
// first entries are spread evenly, however many of them are inserted.
Status InsertSpread(const std::vector<LoadedEntry>& entries, AddressMap* map) {
  const size_t n = entries.size();
  size_t step = static_cast<size_t>(static_cast<double>(n) * 0.618) + 1;
  while (std::gcd(step, n) > 1) {
    ++step;
  }
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    const LoadedEntry& e = entries[at];
    Status s = map->InsertBatch(e.slot, &e.record, 1);
    if (!s.ok()) {
      return s;
    }
    at = (at + step) % n;
  }
  return Status::OK();
}

// Inserts the entries of all sections, several sections in parallel.
// num_entries: in all sections.
Status LoadSections(const Source& source, const std::vector<Section>& sections,
                    const std::vector<FileRecord>& files,
                    const std::vector<uint32_t>& slots, uint64_t num_entries,
                    int num_threads, AddressMap* map) {
  std::atomic<size_t> next_section{1};
  std::mutex mutex;
  Status first_failure;
  const auto load_sections = [&] {
    BlockReader reader(&source);
    std::vector<LoadedEntry> entries;
    for (;;) {
      const size_t n = next_section.fetch_add(1, std::memory_order_relaxed);
      if (n >= sections.size()) {
        return;
      }
      Status load =
          ReadEntries(source, sections[n], files, slots, &reader, &entries);
      if (load.ok()) {
        load = InsertSpread(entries, map);
      }
      if (!load.ok()) {
        next_section.store(sections.size(), std::memory_order_relaxed);
        std::lock_guard<std::mutex> lock(mutex);
        if (first_failure.ok()) {
          first_failure = load;
        }
        return;
      }
    }
  };
  // A thread is started only if it gets at least this many entries.
  constexpr uint64_t kMinEntriesPerThread = 1 << 14;
  const uint64_t useful = std::min<uint64_t>(num_entries / kMinEntriesPerThread,
                                             AddressMap::kNumParts);
  std::vector<port::Thread> threads;
  for (int i = 1; i < num_threads && threads.size() + 1 < useful; ++i) {
    threads.emplace_back(load_sections);
  }
  load_sections();
  for (port::Thread& t : threads) {
    t.join();
  }
  return first_failure;
}

// Adds the files to the table. slots: for each record, also the first one.
Status AddFiles(const std::vector<FileRecord>& files, BlobFileSlotTable* table,
                std::vector<uint32_t>* slots) {
  slots->assign(1, BlobFileSlotTable::kLostSlot);
  for (size_t i = 1; i < files.size(); ++i) {
    const FileRecord& f = files[i];
    const uint32_t slot = table->Add(
        f.number, f.path_id, static_cast<CompressionType>(f.compression),
        BlobFileSlotTable::State::kLive, f.size);
    if (slot == BlobFileSlotTable::kLostSlot) {
      return Status::Aborted("Address map checkpoint: too many blob files");
    }
    slots->push_back(slot);
  }
  return Status::OK();
}

// Describes the first field that differs; empty if the identities are equal.
std::string Difference(const AddressMapCheckpoint::Identity& is,
                       const AddressMapCheckpoint::Identity& expected) {
  const auto differs = [](const char* what, uint64_t a, uint64_t b) {
    return a == b ? std::string()
                  : std::string(what) + " " + std::to_string(a) + ", not " +
                        std::to_string(b);
  };
  for (const std::string& d :
       {differs("column family", is.column_family_id,
                expected.column_family_id),
        differs("hash seed", is.hash_seed, expected.hash_seed),
        differs("MANIFEST", is.manifest_number, expected.manifest_number),
        differs("MANIFEST size", is.manifest_size, expected.manifest_size),
        differs("MANIFEST hash", is.manifest_hash_low,
                expected.manifest_hash_low),
        differs("MANIFEST hash", is.manifest_hash_high,
                expected.manifest_hash_high)}) {
    if (!d.empty()) {
      return d;
    }
  }
  return std::string();
}

}  // namespace

Status AddressMapCheckpoint::HashManifest(const Io& io,
                                          const std::string& manifest_path,
                                          Identity* identity) {
  std::unique_ptr<FSSequentialFile> file;
  Status s =
      io.fs->NewSequentialFile(manifest_path, OpenOptions(io), &file, nullptr);
  if (!s.ok()) {
    return s;
  }
  SequentialFileReader reader(std::move(file), manifest_path,
                              /*io_tracer=*/nullptr, /*listeners=*/{},
                              io.file_options.rate_limiter);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  const std::unique_ptr<char[]> scratch(new char[kReadSize]);
  uint64_t size = 0;
  for (;;) {
    Slice data;
    s = reader.Read(kReadSize, &data, scratch.get(),
                    io.io_options.rate_limiter_priority);
    if (!s.ok()) {
      return s;
    }
    if (data.empty()) {
      break;
    }
    XXH3_128bits_update(state.get(), data.data(), data.size());
    size += data.size();
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  identity->manifest_size = size;
  identity->manifest_hash_low = hash.low64;
  identity->manifest_hash_high = hash.high64;
  return s;
}

Status AddressMapCheckpoint::Write(const Io& io, const std::string& temp_path,
                                   const std::string& path,
                                   FSDirectory* directory,
                                   const Identity& identity,
                                   const AddressMap& map) {
  assert(temp_path != path);
  const FileOptions options = OpenOptions(io);
  std::unique_ptr<FSWritableFile> file;
  Status s = io.fs->NewWritableFile(temp_path, options, &file, nullptr);
  if (!s.ok()) {
    return s;
  }
  {
    WritableFileWriter writer(std::move(file), temp_path, options);
    s = WriteImage(identity, map, io.io_options, &writer);
    if (s.ok() && directory != nullptr) {
      s = writer.Sync(io.io_options, io.use_fsync);
    }
    const Status closed = writer.Close(io.io_options);
    if (s.ok()) {
      s = closed;
    }
    closed.PermitUncheckedError();
  }
  if (s.ok()) {
    s = io.fs->RenameFile(temp_path, path, io.io_options, nullptr);
  }
  if (!s.ok()) {
    io.fs->DeleteFile(temp_path, io.io_options, nullptr).PermitUncheckedError();
    return s;
  }
  return directory == nullptr
             ? s
             : directory->FsyncWithDirOptions(io.io_options, nullptr,
                                              DirFsyncOptions(path));
}

Status AddressMapCheckpoint::ReadHeader(const Io& io, const std::string& path,
                                        Header* header) {
  Source source;
  Status s = source.Open(io, path);
  return s.ok() ? source.ReadHeader(header) : s;
}

Status AddressMapCheckpoint::Load(const Io& io, const std::string& path,
                                  const Identity& expected, int num_threads,
                                  AddressMap* map) {
  assert(map->NumEntries() == 0 && map->files()->GetAll().empty());
  Source source;
  Status s = source.Open(io, path);
  Header header;
  if (s.ok()) {
    s = source.ReadHeader(&header);
  }
  if (!s.ok()) {
    return s;
  }
  const std::string difference = Difference(header.identity, expected);
  if (!difference.empty()) {
    return source.Mismatch(difference);
  }

  std::vector<Section> sections;
  std::vector<FileRecord> files;
  {
    BlockReader reader(&source);
    s = ReadIndex(source, header.num_entries, &reader, &sections);
    if (s.ok()) {
      s = ReadFileTable(source, sections[0], &reader, &files);
    }
  }
  std::vector<uint32_t> slots;
  if (s.ok()) {
    s = AddFiles(files, map->files(), &slots);
  }
  if (!s.ok()) {
    return s;
  }

  s = LoadSections(source, sections, files, slots, header.num_entries,
                   num_threads, map);
  if (!s.ok()) {
    return s;
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (map->files()->LiveCount(slots[i]) != files[i].live_count ||
        map->files()->LiveBytes(slots[i]) != files[i].live_bytes) {
      return source.Corrupt(
          sections[0].begin,
          "live counts of blob file " + std::to_string(files[i].number));
    }
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE
