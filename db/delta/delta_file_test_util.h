//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/dbformat.h"
#include "db/delta/delta_file_builder.h"
#include "db/delta/delta_file_description.h"
#include "db/delta/delta_file_reader.h"
#include "db/delta/delta_table_factory.h"
#include "env/mock_env.h"
#include "file/filename.h"
#include "options/cf_options.h"
#include "rocksdb/cache.h"
#include "rocksdb/options.h"
#include "rocksdb/table.h"
#include "table/unique_id_impl.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/testharness.h"
#include "util/vector_iterator.h"

namespace ROCKSDB_NAMESPACE {
namespace delta_test {

struct Operand {
  std::string key;
  SequenceNumber seq;
  std::string value;
};

struct Anchor {
  std::string key;
  SequenceNumber seq;
};

struct RangeAnchor {
  std::string start;
  std::string end;
  SequenceNumber seq;
};

// The operands of one key.
using Values = std::vector<std::pair<SequenceNumber, std::string>>;

// Provides a column family in memory, without a DB, and its delta files.
class DeltaFileTestBase : public testing::Test {
 protected:
  using Kind = DeltaFileDescription::Kind;
  using Tier = DeltaFileDescription::Tier;

  DeltaFileTestBase()
      : env_(MockEnv::Create(Env::Default())),
        dir_(test::PerThreadDBPath(env_.get(), "delta_file_test")) {
    EXPECT_OK(env_->CreateDirIfMissing(dir_));
    options_.env = env_.get();
    options_.cf_paths.emplace_back(dir_, 0);
    options_.compression = kNoCompression;
    ResetTableOptions();
    Reopen();
  }

  // Callbacks use members of the fixture.
  void TearDown() override { DisableCallBacks(); }

  // Gives the next Reopen() a block cache of its own.
  void ResetTableOptions() {
    BlockBasedTableOptions table_options = table_options_;
    table_options.block_cache = NewLRUCache(size_t{1} << 20);
    options_.table_factory.reset(NewBlockBasedTableFactory(table_options));
  }

  DeltaTableFamily TableFamily() const {
    DeltaTableFamily family{ImmutableOptions(options_)};
    family.id = 3;
    family.name = "family";
    family.db_session_id = EncodeSessionId(1234, 5678);
    return family;
  }
  void Reopen() {
    tables_ = std::make_unique<DeltaTableFactory>(TableFamily(),
                                                  MutableCFOptions(options_));
  }

  DeltaFileBuilder::Options BuilderOptions(Kind kind,
                                           Tier tier = Tier::kFlushed) {
    DeltaFileBuilder::Options options;
    options.number = ++last_number_;
    options.kind = kind;
    options.tier = tier;
    if (tier != Tier::kSorted) {
      options.first_epoch = 7;
      options.last_epoch = tier == Tier::kMerged ? 9 : 7;
    }
    options.db_id = "the DB";
    options.reason = TableFileCreationReason::kFlush;
    return options;
  }

  std::unique_ptr<DeltaFileBuilder> NewBuilder(
      const DeltaFileBuilder::Options& options) {
    std::unique_ptr<DeltaFileBuilder> builder;
    EXPECT_OK(DeltaFileBuilder::Create(*tables_, options, &builder));
    return builder;
  }
  std::unique_ptr<DeltaFileBuilder> NewBuilder(Kind kind,
                                               Tier tier = Tier::kFlushed) {
    return NewBuilder(BuilderOptions(kind, tier));
  }

  static Status Add(const Operand& operand, DeltaFileBuilder* builder) {
    const InternalKey key(operand.key, operand.seq, kTypeMerge);
    return builder->AddOperand(key.Encode(), operand.value);
  }

  // REQUIRES: `operands` are sorted.
  DeltaFileDescription WriteOperands(const std::vector<Operand>& operands) {
    const auto builder = NewBuilder(Kind::kOperands);
    for (const Operand& operand : operands) {
      EXPECT_OK(Add(operand, builder.get()));
    }
    DeltaFileDescription description;
    EXPECT_OK(builder->Finish(&description));
    return description;
  }
  // REQUIRES: `anchors` and `ranges` are sorted.
  DeltaFileDescription WriteAnchors(const std::vector<Anchor>& anchors,
                                    const std::vector<RangeAnchor>& ranges) {
    const auto builder = NewBuilder(Kind::kAnchors);
    for (const Anchor& anchor : anchors) {
      EXPECT_OK(builder->AddAnchor(anchor.key, anchor.seq));
    }
    for (const RangeAnchor& range : ranges) {
      EXPECT_OK(builder->AddRangeAnchor(range.start, range.end, range.seq));
    }
    DeltaFileDescription description;
    EXPECT_OK(builder->Finish(&description));
    return description;
  }

  Status Open(const DeltaFileDescription& description,
              std::unique_ptr<DeltaFileReader>* reader) {
    return DeltaFileReader::Open(*tables_, ReadOptions(), description, reader);
  }
  std::unique_ptr<DeltaFileReader> MustOpen(
      const DeltaFileDescription& description) {
    std::unique_ptr<DeltaFileReader> reader;
    EXPECT_OK(Open(description, &reader));
    return reader;
  }

  static Status Collect(const DeltaFileReader& reader, const std::string& key,
                        SequenceNumber read_seq, Values* values) {
    values->clear();
    DeltaOperands operands;
    const Status s =
        reader.CollectOperands(ReadOptions(), key, read_seq, &operands);
    for (const DeltaOperands::Operand& operand : operands) {
      values->emplace_back(operand.seq, operand.value.ToString());
    }
    return s;
  }
  static Values MustCollect(const DeltaFileReader& reader,
                            const std::string& key,
                            SequenceNumber read_seq = kMaxSequenceNumber) {
    Values values;
    EXPECT_OK(Collect(reader, key, read_seq, &values));
    return values;
  }
  static SequenceNumber MustFindAnchor(
      const DeltaFileReader& reader, const std::string& key,
      SequenceNumber read_seq = kMaxSequenceNumber) {
    SequenceNumber seq = 0;
    EXPECT_OK(reader.NewestAnchor(ReadOptions(), key, read_seq, &seq));
    return seq;
  }

  std::string FileName(const DeltaFileDescription& description) const {
    return DeltaFileName(dir_, description.number);
  }
  // Returns the number of files in the directory.
  size_t NumFiles() {
    std::vector<std::string> names;
    EXPECT_OK(env_->GetChildren(dir_, &names));
    return std::count_if(
        names.begin(), names.end(),
        [](const std::string& name) { return name != "." && name != ".."; });
  }

  const std::unique_ptr<Env> env_;
  const std::string dir_;
  Options options_;
  BlockBasedTableOptions table_options_;
  std::unique_ptr<DeltaTableFactory> tables_;
  uint64_t last_number_ = 10;
};

}  // namespace delta_test
}  // namespace ROCKSDB_NAMESPACE
