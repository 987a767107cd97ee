//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/manifest_files.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "db/path_layout/path_test_util.h"
#include "file/filename.h"
#include "port/stack_trace.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_checksum.h"
#include "rocksdb/metadata.h"
#include "utilities/merge_operators.h"

namespace ROCKSDB_NAMESPACE {

class ManifestFilesTest : public PathTestBase {
 public:
  // Type, number, path id, bytes.
  using File = std::tuple<FileType, uint64_t, uint32_t, uint64_t>;
  using Families = std::map<std::string, std::set<File>>;

  ManifestFilesTest() : PathTestBase("manifest_files_test") {}

  Status FlushFamily(int family) {
    return db_->Flush(FlushOptions(), Handle(family));
  }

  std::string Manifest() {
    std::string fname;
    EXPECT_OK(FindManifest(fs_.get(), dbname_, &fname));
    return fname;
  }

  Families Read(Status* s) {
    std::vector<ManifestFamily> families;
    *s = ReadManifestFiles(
        fs_.get(), Manifest(),
        [](const std::string&) { return BytewiseComparator(); }, &families);
    Families result;
    for (const ManifestFamily& family : families) {
      std::set<File>& files = result[family.name];
      for (const ManifestFamily::File& file : family.files) {
        EXPECT_TRUE(
            files.insert({file.type, file.number, file.path_id, file.size})
                .second);
      }
    }
    return result;
  }

  // Returns what the open database says.
  Families Live(const std::vector<Options>& options) {
    Families result;
    for (size_t i = 0; i < options.size(); ++i) {
      ColumnFamilyMetaData metadata;
      db_->GetColumnFamilyMetaData(handles_[i], &metadata);
      std::set<File>& files = result[metadata.name];
      const auto path_id = [&](const std::string& directory) {
        const auto& paths = options[i].cf_paths;
        const auto found = std::find_if(
            paths.begin(), paths.end(),
            [&](const DbPath& path) { return path.path == directory; });
        EXPECT_NE(found, paths.end()) << directory;
        return static_cast<uint32_t>(found - paths.begin());
      };
      for (const LevelMetaData& level : metadata.levels) {
        for (const SstFileMetaData& file : level.files) {
          files.insert({kTableFile, file.file_number, path_id(file.directory),
                        file.size});
        }
      }
      for (const BlobMetaData& file : metadata.blob_files) {
        files.insert({kBlobFile, file.blob_file_number,
                      path_id(file.blob_file_path), file.blob_file_size});
      }
      for (const DeltaMetaData& file : metadata.delta_files) {
        uint64_t number = 0;
        FileType type = kTempFile;
        EXPECT_TRUE(ParseFileName(file.relative_filename, &number, &type));
        files.insert({type, number, path_id(file.directory), file.size});
      }
    }
    return result;
  }

  void Compact(int family) {
    CompactRangeOptions options;
    options.bottommost_level_compaction = BottommostLevelCompaction::kForce;
    ASSERT_OK(db_->CompactRange(options, Handle(family), nullptr, nullptr));
    ASSERT_OK(db_->WaitForCompact(WaitForCompactOptions()));
  }
};

TEST_F(ManifestFilesTest, HasTheChecksumsOfFiles) {
  for (const bool has_checksums : {false, true}) {
    SCOPED_TRACE(has_checksums);
    DestroyAll();
    std::vector<Options> options = {PathOptions("a", 2, {0}, {1}),
                                    PathOptions("b", 2, {0}, {1})};
    options[0].enable_blob_files = false;
    options[0].enable_delta_separation = true;
    options[0].merge_operator = MergeOperators::CreateStringAppendOperator();
    options[1].enable_blob_address_map = true;
    if (has_checksums) {
      for (Options& family : options) {
        family.file_checksum_gen_factory = GetFileChecksumGenCrc32cFactory();
      }
    }
    OpenNew(options);
    PutRange(0, 0, 20);
    ASSERT_OK(db_->Merge(WriteOptions(), Handle(0), "operand", "m"));
    PutRange(1, 0, 20);
    for (int family = 0; family < 2; ++family) {
      ASSERT_OK(FlushFamily(family));
    }
    std::vector<ManifestFamily> families;
    ASSERT_OK(ReadManifestFiles(
        fs_.get(), Manifest(),
        [](const std::string&) { return BytewiseComparator(); }, &families));
    std::set<FileType> types;
    for (const ManifestFamily& family : families) {
      for (const ManifestFamily::File& file : family.files) {
        types.insert(file.type);
        EXPECT_EQ(file.checksum.size(), has_checksums ? 4u : 0u);
        EXPECT_EQ(file.checksum_func_name,
                  has_checksums ? kStandardDbFileChecksumFuncName : "");
      }
    }
    EXPECT_EQ(types, (std::set<FileType>{kTableFile, kBlobFile, kDeltaFile}));
  }
}

// What a file needs of Strata, and where its values are.
TEST_F(ManifestFilesTest, HasTheFeaturesOfFiles) {
  std::vector<Options> options = {PathOptions("a", 2, {0}, {1}),
                                  PathOptions("b", 2, {0}, {1}),
                                  PathOptions("c", 2, {0}, {0})};
  options[0].enable_blob_address_map = true;
  options[2].enable_blob_files = false;
  options[2].enable_delta_separation = true;
  options[2].merge_operator = MergeOperators::CreateStringAppendOperator();
  OpenNew(options);
  PutRange(0, 0, 20);
  PutRange(1, 0, 20);
  ASSERT_OK(db_->Merge(WriteOptions(), Handle(2), "operand", "m"));
  for (int family = 0; family < 3; ++family) {
    ASSERT_OK(FlushFamily(family));
  }
  const auto read = [&](const Comparator* comparator) {
    std::vector<ManifestFamily> families;
    EXPECT_OK(ReadManifestFiles(
        fs_.get(), Manifest(), [&](const std::string&) { return comparator; },
        &families));
    return families;
  };
  std::vector<ManifestFamily> families = read(BytewiseComparator());
  ASSERT_EQ(families.size(), 3u);
  for (size_t i = 0; i < families.size(); ++i) {
    EXPECT_EQ(families[i].has_deltas, i == 2) << families[i].name;
    for (const ManifestFamily::File& file : families[i].files) {
      EXPECT_EQ(file.is_mapped, i == 0) << families[i].name << file.number;
      EXPECT_FALSE(file.is_hot);
      EXPECT_EQ(file.entries, file.type == kBlobFile    ? 20u
                              : file.type == kDeltaFile ? 1u
                                                        : 0u);
      EXPECT_EQ(file.blob_path_mask, file.type == kTableFile && i < 2 ? 2u : 0u)
          << families[i].name << file.number;
    }
  }
  // Without a comparator it is not known.
  families = read(nullptr);
  EXPECT_FALSE(families[0].has_deltas);
  EXPECT_TRUE(families[2].has_deltas);
  // The last delta file has become a value.
  options[2].enable_delta_separation = false;
  ASSERT_OK(Open(options, /*create_families=*/false));
  Compact(2);
  families = read(BytewiseComparator());
  EXPECT_FALSE(families[2].has_deltas);
}

// Files are added, moved and removed, by all kinds of jobs.
TEST_F(ManifestFilesTest, NamesTheFilesOfTheLastVersions) {
  std::vector<Options> options = {
      PathOptions("a", 2, {0, 1}, {1, 0}), PathOptions("b", 2, {1, 0}, {0}),
      PathOptions("c", 2, {1}, {}), PathOptions("d", 1, {}, {})};
  options[0].enable_blob_garbage_collection = true;
  options[0].blob_garbage_collection_age_cutoff = 1;
  options[1].enable_blob_address_map = true;
  options[2].enable_blob_files = false;
  options[2].enable_delta_separation = true;
  options[2].merge_operator = MergeOperators::CreateStringAppendOperator();
  OpenNew(options);
  Status s;
  const auto check = [&] {
    // A background job may commit between the two calls.
    Families read;
    Families live;
    for (int i = 0; i < 1000; ++i) {
      read = Read(&s);
      live = Live(options);
      if (read == live) {
        break;
      }
      env_->SleepForMicroseconds(1000);
    }
    ASSERT_EQ(read, live);
    ASSERT_OK(s);
  };
  check();
  for (int round = 0; round < 4; ++round) {
    for (int family = 0; family < 4; ++family) {
      SCOPED_TRACE(std::to_string(round) + " " + std::to_string(family));
      PutRange(family, round * 5, round * 5 + 20, round);
      ASSERT_OK(FlushFamily(family));
      if (family == 2) {
        for (int i = 0; i < 10; ++i) {
          ASSERT_OK(db_->Merge(WriteOptions(), Handle(2), KeyOf(i), "m"));
        }
        ASSERT_OK(FlushFamily(family));
      }
      check();
      if (round % 2 == 1) {
        Compact(family);
        check();
      }
    }
  }
  const Families before = Read(&s);
  for (const FileType type : {kTableFile, kBlobFile, kDeltaFile}) {
    EXPECT_TRUE(std::any_of(before.begin(), before.end(), [&](const auto& f) {
      return std::any_of(
          f.second.begin(), f.second.end(),
          [&](const File& file) { return std::get<0>(file) == type; });
    })) << type;
  }
  // An open writes a new MANIFEST, and delta files in a form of their own.
  ASSERT_OK(Open(options, /*create_families=*/false));
  check();

  ASSERT_OK(db_->DropColumnFamily(Handle(3)));
  Families after = Read(&s);
  ASSERT_OK(s);
  EXPECT_EQ(after.count("cf3"), 0u);
  EXPECT_EQ(after.size(), 3u);
}

TEST_F(ManifestFilesTest, DamageLeavesWhatIsBeforeIt) {
  const Options options = PathOptions("a", 2, {1}, {0});
  OpenNew({options});
  PutRange(0, 0, 20);
  ASSERT_OK(FlushFamily(0));
  Status s;
  const Families before = Read(&s);
  ASSERT_OK(s);
  ASSERT_EQ(before.at(kDefaultColumnFamilyName).size(), 2u);
  std::string contents;
  ASSERT_OK(ReadFileToString(env_, Manifest(), &contents));
  const size_t size = contents.size();
  PutRange(0, 0, 20, 1);
  ASSERT_OK(FlushFamily(0));
  Close();
  ASSERT_OK(ReadFileToString(env_, Manifest(), &contents));
  ASSERT_GT(contents.size(), size + 20);
  contents[size + 15] ^= 1;
  ASSERT_OK(WriteStringToFile(env_, contents, Manifest()));
  EXPECT_EQ(Read(&s), before);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
}

TEST_F(ManifestFilesTest, ManifestIsFoundWithoutCurrent) {
  OpenNew({PathOptions("a", 1, {}, {})});
  ASSERT_OK(Open({PathOptions("a", 1, {}, {})}, /*create_families=*/false));
  Close();
  const std::string manifest = Manifest();
  ASSERT_OK(WriteStringToFile(env_, "no name", CurrentFileName(dbname_)));
  EXPECT_EQ(Manifest(), manifest);
  ASSERT_OK(env_->DeleteFile(CurrentFileName(dbname_)));
  EXPECT_EQ(Manifest(), manifest);
  ASSERT_OK(WriteStringToFile(env_, "", DescriptorFileName(dbname_, 1000)));
  EXPECT_EQ(Manifest(), DescriptorFileName(dbname_, 1000));
  ASSERT_OK(env_->DeleteFile(DescriptorFileName(dbname_, 1000)));
  ASSERT_OK(env_->DeleteFile(manifest));
  std::string fname;
  EXPECT_TRUE(FindManifest(fs_.get(), dbname_, &fname).IsNotFound());
  EXPECT_TRUE(FindManifest(fs_.get(), dbname_ + "/none", &fname).IsNotFound());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
