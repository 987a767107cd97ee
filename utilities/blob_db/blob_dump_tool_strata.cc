//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The part of blob_dump that dumps blob files of version 2, which are the files
// of an address map.

#include <cinttypes>
#include <cstdio>

#include "db/blob_v2/blob_format_v2.h"
#include "db/blob_v2/blob_record_index.h"
#include "file/random_access_file_reader.h"
#include "rocksdb/advanced_compression.h"
#include "rocksdb/convenience.h"
#include "utilities/blob_db/blob_dump_tool.h"

namespace ROCKSDB_NAMESPACE::blob_db {

namespace {

Status Uncompress(CompressionType compression, const Slice& data,
                  std::string* value) {
  const auto decompressor =
      GetBuiltinV2CompressionManager()->GetDecompressorOptimizeFor(compression);
  if (decompressor == nullptr) {
    return Status::NotSupported("Unsupported compression type");
  }
  Decompressor::Args args;
  args.compression_type = compression;
  args.compressed_data = data;
  Status s = decompressor->ExtractUncompressedSize(args);
  if (s.ok()) {
    value->resize(args.uncompressed_size);
    s = decompressor->DecompressBlock(args, value->data());
  }
  return s;
}

void PrintLayout(const BlobFileLayoutV2& layout) {
  std::string compression;
  if (!GetStringFromCompressionType(&compression, layout.header.compression)
           .ok()) {
    compression = "unknown";
  }
  fprintf(stdout, "Blob file header:\n");
  fprintf(stdout, "  Version          : %" PRIu32 "\n", kBlobFileVersion2);
  fprintf(stdout, "  Column Family ID : %" PRIu32 "\n",
          layout.header.column_family_id);
  fprintf(stdout, "  Compression      : %s\n", compression.c_str());
  fprintf(stdout, "  Hash seed        : 0x%" PRIx64 "\n",
          layout.header.hash_seed);
  fprintf(stdout, "Blob file footer:\n");
  fprintf(stdout, "  Blob count       : %" PRIu64 "\n",
          layout.footer.blob_count);
  fprintf(stdout, "  Index offset     : %" PRIu64 "\n", layout.index_offset);
  fprintf(stdout, "  Index size       : %" PRIu64 "\n",
          layout.footer.index_size);
}

// size: of the record, as the record index has it.
Status DecodeRecord(const Slice& data, uint32_t size, BlobRecordV2* record,
                    Slice* key, Slice* blob) {
  Status s =
      record->DecodeHeaderFrom(Slice(data.data(), BlobRecordV2::kHeaderSize));
  if (s.ok() && record->record_size() != size) {
    s = Status::Corruption("The record index has a different size");
  }
  if (s.ok()) {
    *key = Slice(data.data() + BlobRecordV2::kHeaderSize, record->key_size);
    *blob = Slice(key->data() + record->key_size, record->value_size);
    s = record->CheckBlob(*key, *blob);
  }
  return s;
}

void PrintRecordHeader(uint64_t offset, const BlobRecordV2& record) {
  fprintf(stdout, "Record at offset 0x%" PRIx64 " (%" PRIu64 "):\n", offset,
          offset);
  fprintf(stdout, "  key size   : %" PRIu32 "\n", record.key_size);
  fprintf(stdout, "  value size : %" PRIu32 "\n", record.value_size);
  fprintf(stdout, "  sequence   : %" PRIu64 "\n", record.seq);
  fprintf(stdout, "  birth      : %" PRIu64 "\n", record.birth);
  fprintf(stdout, "  mode       : %s\n",
          record.direct ? "direct" : "versioned");
}

// The totals of the records of a file.
struct RecordTotals {
  uint64_t records = 0;
  uint64_t direct = 0;
  uint64_t key_size = 0;
  uint64_t blob_size = 0;
  uint64_t raw_size = 0;

  void Add(const BlobRecordV2& record, size_t raw) {
    ++records;
    direct += record.direct ? 1 : 0;
    key_size += record.key_size;
    blob_size += record.value_size;
    raw_size += raw;
  }
  void Print(bool is_compressed) const {
    fprintf(stdout, "Summary:\n");
    fprintf(stdout, "  total records: %" PRIu64 "\n", records);
    fprintf(stdout, "  written as direct: %" PRIu64 "\n", direct);
    fprintf(stdout, "  total key size: %" PRIu64 "\n", key_size);
    fprintf(stdout, "  total blob size: %" PRIu64 "\n", blob_size);
    if (is_compressed) {
      fprintf(stdout, "  total raw blob size: %" PRIu64 "\n", raw_size);
    }
  }
};

}  // namespace

Status BlobDumpTool::RunV2(uint64_t file_size, DisplayType show_key,
                           DisplayType show_blob,
                           DisplayType show_uncompressed_blob,
                           bool show_summary) {
  BlobFileLayoutV2 layout;
  Status s =
      BlobFileLayoutV2::Read(reader_.get(), IOOptions(), file_size, &layout);
  if (!s.ok()) {
    return s;
  }
  PrintLayout(layout);

  RecordTotals totals;
  RecordIndexReader index(reader_.get(), IOOptions(), layout);
  std::vector<AddressMap::Record> records;
  do {
    s = index.Next(&records);
    for (size_t i = 0; s.ok() && i < records.size() &&
                       (show_key != DisplayType::kNone || show_summary);
         ++i) {
      const uint64_t offset = records[i].offset;
      Slice data;
      s = Read(offset, records[i].size, &data);
      BlobRecordV2 record;
      Slice key;
      Slice blob;
      if (s.ok()) {
        s = DecodeRecord(data, records[i].size, &record, &key, &blob);
      }
      std::string raw;
      if (s.ok() && layout.header.compression != kNoCompression &&
          (show_uncompressed_blob != DisplayType::kNone || show_summary)) {
        s = Uncompress(layout.header.compression, blob, &raw);
      }
      if (!s.ok()) {
        fprintf(stdout, "Bad record at offset %" PRIu64 "\n", offset);
        break;
      }
      totals.Add(record, raw.size());
      if (show_key == DisplayType::kNone) {
        continue;
      }
      PrintRecordHeader(offset, record);
      fprintf(stdout, "  key        : ");
      DumpSlice(key, show_key);
      if (show_blob != DisplayType::kNone) {
        fprintf(stdout, "  blob       : ");
        DumpSlice(blob, show_blob);
      }
      if (show_uncompressed_blob != DisplayType::kNone) {
        fprintf(stdout, "  raw blob   : ");
        DumpSlice(raw, show_uncompressed_blob);
      }
    }
  } while (s.ok() && !records.empty());
  if (index.NumRestoredBlocks() > 0) {
    fprintf(stdout,
            "%" PRIu64
            " blocks of the index are damaged, but could be "
            "restored from the records: %s\n",
            index.NumRestoredBlocks(), index.FirstDamage().ToString().c_str());
  }
  if (show_summary) {
    totals.Print(layout.header.compression != kNoCompression);
  }
  return s;
}

}  // namespace ROCKSDB_NAMESPACE::blob_db
