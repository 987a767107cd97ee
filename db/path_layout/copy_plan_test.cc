//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "db/path_layout/copy_plan.h"

#include <memory>
#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class CopyPlanTest : public testing::Test {
 protected:
  using Ids = std::vector<uint32_t>;

  static CopyLayout::ColumnFamily Family(const std::vector<std::string>& paths,
                                         const Ids& sst, const Ids& blob,
                                         const Ids& path_map = {}) {
    CopyLayout::ColumnFamily family;
    for (const std::string& path : paths) {
      family.cf_paths.emplace_back(path, 0);
    }
    family.level_sst_path_ids = sst;
    family.level_blob_path_ids = blob;
    family.path_map = path_map;
    return family;
  }
  static FileInManifest Sst(int level, uint32_t path_id, uint8_t mask = 0,
                            uint64_t oldest = 0) {
    FileInManifest file;
    file.level = level;
    file.path_id = path_id;
    file.blob_path_mask = mask;
    file.oldest_blob_file = oldest;
    return file;
  }
  static FileInManifest Other(FileType type, uint32_t path_id) {
    FileInManifest file;
    file.type = type;
    file.path_id = path_id;
    return file;
  }

  static FileInManifest HotBlob(uint32_t path_id, uint32_t home) {
    FileInManifest file = Other(kBlobFile, path_id);
    file.hot = HotMark::WithHome(home);
    return file;
  }

  // Makes the plan for a copy in /copy.
  void Make(const CopyLayout& layout, const ManifestColumnFamilies& families) {
    plan_ = std::make_unique<CopyPlan>(layout, "/copy/", nullptr);
    ASSERT_OK(plan_->Validate());
    ASSERT_OK(plan_->Make(families));
    // The path id and the directory of each file are the same path.
    for (const auto& [id, family] : families) {
      const CopyLayout::ColumnFamily* const paths =
          plan_->LayoutOf(family.name);
      for (const auto& [number, file] : family.files) {
        EXPECT_TRUE(plan_->Has(number));
        const uint32_t path_id =
            plan_->PathIdsOf(id).OfFile(number, file.path_id);
        std::string directory;
        if (paths != nullptr && paths->cf_paths[path_id].path != "/copy") {
          directory = paths->cf_paths[path_id].path;
        }
        EXPECT_EQ(plan_->DirectoryOf(number), directory) << number;
      }
    }
  }
  uint32_t IdOf(uint64_t number, uint32_t family = 0) {
    return plan_->PathIdsOf(family).OfFile(number, /*id=*/3);
  }

  std::unique_ptr<CopyPlan> plan_;
};

TEST_F(CopyPlanTest, SstAndDeltaFilesGoByLevel) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  families[0].files = {{10, Sst(0, 1)},
                       {11, Sst(1, 0)},
                       {12, Sst(2, 0)},
                       {13, Sst(6, 3)},
                       {14, Other(kDeltaFile, 1)}};
  CopyLayout layout;
  layout.all = Family({"/copy", "/a", "/b"}, {1, 0, 2}, {});
  Make(layout, families);
  EXPECT_EQ(IdOf(10), 1U);
  EXPECT_EQ(IdOf(11), 0U);
  EXPECT_EQ(IdOf(12), 2U);
  EXPECT_EQ(IdOf(13), 2U);
  EXPECT_EQ(IdOf(14), 1U);
  EXPECT_EQ(plan_->DirectoryOf(10), "/a");
  EXPECT_EQ(plan_->DirectoryOf(11), "");
  EXPECT_EQ(plan_->other_directories(), (std::vector<std::string>{"/a", "/b"}));
  EXPECT_FALSE(plan_->Has(99));
  EXPECT_EQ(plan_->DirectoryOf(99), "");

  // Without ids for SST files, all go to path 0.
  layout.all = Family({"/a", "/b"}, {}, {1});
  Make(layout, families);
  for (uint64_t number = 10; number < 15; ++number) {
    EXPECT_EQ(IdOf(number), 0U);
  }
}

TEST_F(CopyPlanTest, SortedDeltaFilesHaveAPathOfTheirOwn) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  families[0].files = {
      {10, Sst(6, 0)}, {11, Other(kDeltaFile, 0)}, {12, Other(kDeltaFile, 1)}};
  families[0].files[12].is_sorted = true;
  CopyLayout layout;
  layout.all = Family({"/copy", "/a", "/b"}, {0, 1}, {});
  Make(layout, families);
  EXPECT_EQ(IdOf(10), 1U);
  EXPECT_EQ(IdOf(11), 0U);
  EXPECT_EQ(IdOf(12), 1U);
  layout.all.delta_sorted_path_id = 2;
  Make(layout, families);
  EXPECT_EQ(IdOf(10), 1U);
  EXPECT_EQ(IdOf(11), 0U);
  EXPECT_EQ(IdOf(12), 2U);
  EXPECT_EQ(plan_->DirectoryOf(12), "/b");
  // The id is a layout by itself.
  layout.all.level_sst_path_ids.clear();
  Make(layout, families);
  EXPECT_EQ(IdOf(10), 0U);
  EXPECT_EQ(IdOf(11), 0U);
  EXPECT_EQ(IdOf(12), 2U);
  layout.all.delta_sorted_path_id = 0;
  Make(layout, families);
  EXPECT_EQ(IdOf(12), 0U);
  // A map comes first.
  layout.all.path_map = {0, 1};
  Make(layout, families);
  EXPECT_EQ(IdOf(11), 0U);
  EXPECT_EQ(IdOf(12), 1U);
}

TEST_F(CopyPlanTest, BlobFilesGoByTheLevelsThatReferToThem) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  // Path 0: file 20 is the oldest one for a file on level 3, 21 for no file,
  // and 22 for files on the levels 0 and 1. Path 1: no SST file refers to file
  // 23, and 24 is the oldest one for a file on level 2.
  families[0].files = {{10, Sst(3, 0, 0b01, 20)}, {11, Sst(1, 0, 0b01, 22)},
                       {12, Sst(0, 0, 0b01, 22)}, {13, Sst(2, 0, 0b10, 24)},
                       {20, Other(kBlobFile, 0)}, {21, Other(kBlobFile, 0)},
                       {22, Other(kBlobFile, 0)}, {23, Other(kBlobFile, 1)},
                       {24, Other(kBlobFile, 1)}};
  CopyLayout layout;
  layout.all = Family({"/a", "/b", "/c", "/copy"}, {}, {0, 1, 2, 3});
  Make(layout, families);
  EXPECT_EQ(IdOf(20), 3U);
  EXPECT_EQ(IdOf(21), 3U);
  EXPECT_EQ(IdOf(22), 1U);
  EXPECT_EQ(IdOf(23), 0U);
  EXPECT_EQ(IdOf(24), 2U);

  // Mapped entries do not say which blob file they refer to.
  families[0].files = {
      {10, Sst(0, 0, 0b01)}, {11, Sst(1, 0, 0b01)}, {20, Other(kBlobFile, 0)}};
  Make(layout, families);
  EXPECT_EQ(IdOf(20), 1U);
}

TEST_F(CopyPlanTest, AMapComesFirst) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  families[0].files = {{10, Sst(0, 0)},
                       {11, Sst(0, 1)},
                       {12, Sst(1, 2)},
                       {20, Other(kBlobFile, 1)},
                       {30, Other(kDeltaFile, 0)}};
  CopyLayout layout;
  layout.all = Family({"/a", "/b", "/c"}, {0, 2}, {0}, {1, 0});
  Make(layout, families);
  EXPECT_EQ(IdOf(10), 1U);
  EXPECT_EQ(IdOf(11), 0U);
  // The map has no path 2.
  EXPECT_EQ(IdOf(12), 2U);
  EXPECT_EQ(IdOf(20), 0U);
  EXPECT_EQ(IdOf(30), 1U);
}

// The mask of an SST file has the paths of all blob files that it may refer to.
TEST_F(CopyPlanTest, MasksFollowTheBlobFiles) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  families[0].files = {{10, Sst(1, 0, 0b01, 20)},
                       {11, Sst(0, 0, 0b11, 22)},
                       {20, Other(kBlobFile, 0)},
                       {22, Other(kBlobFile, 0)},
                       {23, Other(kBlobFile, 1)}};
  CopyLayout layout;
  layout.all = Family({"/a", "/b", "/c"}, {}, {2, 1});
  Make(layout, families);
  EXPECT_EQ(IdOf(20), 1U);
  EXPECT_EQ(IdOf(22), 2U);
  EXPECT_EQ(IdOf(23), 2U);
  const PathIdMap& ids = plan_->PathIdsOf(0);
  EXPECT_EQ(ids.OfMask(0b01, 20), 0b110);
  EXPECT_EQ(ids.OfMask(0b01, 22), 0b100);
  EXPECT_EQ(ids.OfMask(0b11, 22), 0b100);
  EXPECT_EQ(ids.OfMask(0b01, 0), 0b110);
  // No blob file of the path is left.
  EXPECT_EQ(ids.OfMask(0b01, 24), 0b100);
  EXPECT_EQ(ids.OfMask(0, 20), 0);
}

// The mask of an SST file has the home of hot values, not their path.
TEST_F(CopyPlanTest, HotFilesGoHomeByLevel) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  families[0].files = {{10, Sst(1, 0, 0b10)},
                       {20, Other(kBlobFile, 1)},
                       {21, HotBlob(0, 1)},
                       {22, HotBlob(2, 1)}};
  CopyLayout layout;
  layout.all = Family({"/a", "/b", "/c"}, {}, {0, 1});
  Make(layout, families);
  for (uint64_t number = 20; number < 23; ++number) {
    EXPECT_EQ(IdOf(number), 1U);
    EXPECT_EQ(plan_->PathIdsOf(0).HomeOf(number, 1), number == 20 ? 0U : 1U);
  }
  EXPECT_EQ(plan_->PathIdsOf(0).OfMask(0b10), 0b10);

  // A map that has only the hot path keeps the place.
  layout.all = Family({"/a", "/b", "/c"}, {}, {0, 1}, {2});
  Make(layout, families);
  EXPECT_EQ(IdOf(20), 1U);
  EXPECT_EQ(IdOf(21), 2U);
  EXPECT_EQ(IdOf(22), 1U);
  EXPECT_EQ(plan_->PathIdsOf(0).HomeOf(21, 1), 1U);
  EXPECT_EQ(plan_->PathIdsOf(0).OfMask(0b10), 0b10);

  // A hot file of a path without an entry goes by level, and is hot there.
  layout.all = Family({"/a", "/b", "/c"}, {}, {0, 1}, {0, 2});
  Make(layout, families);
  EXPECT_EQ(IdOf(20), 2U);
  EXPECT_EQ(IdOf(21), 0U);
  EXPECT_EQ(IdOf(22), 1U);
  EXPECT_EQ(plan_->PathIdsOf(0).HomeOf(21, 1), 2U);
  EXPECT_EQ(plan_->PathIdsOf(0).HomeOf(22, 1), 2U);
  EXPECT_EQ(plan_->PathIdsOf(0).OfMask(0b10), 0b100);
}

TEST_F(CopyPlanTest, ColumnFamiliesHaveTheirOwnLayouts) {
  ManifestColumnFamilies families;
  families[0].name = "default";
  families[0].files = {{10, Sst(0, 2)}};
  families[4].name = "four";
  families[4].files = {{11, Sst(0, 2)}};
  families[5].name = "five";
  families[5].files = {{12, Sst(0, 2)}};
  CopyLayout layout;
  layout.all = Family({"/a", "/b"}, {1}, {});
  layout.column_families["four"] = Family({"/c/", "/copy/../copy/"}, {0}, {});
  layout.column_families["five"] = CopyLayout::ColumnFamily();
  plan_ = std::make_unique<CopyPlan>(layout, "/copy", nullptr);
  ASSERT_OK(plan_->Validate());
  ASSERT_OK(plan_->Make(families));
  EXPECT_EQ(IdOf(10, 0), 1U);
  EXPECT_EQ(IdOf(11, 4), 0U);
  EXPECT_EQ(IdOf(12, 5), 0U);
  EXPECT_EQ(plan_->DirectoryOf(10), "/b");
  EXPECT_EQ(plan_->DirectoryOf(11), "/c");
  EXPECT_EQ(plan_->DirectoryOf(12), "");
  EXPECT_EQ(plan_->LayoutOf("five"), nullptr);
  // A column family that was dropped.
  EXPECT_EQ(plan_->PathIdsOf(7).Of(2), 0U);
  EXPECT_EQ(plan_->other_directories(),
            (std::vector<std::string>{"/a", "/b", "/c"}));

  families.erase(5);
  const Status s = plan_->Make(families);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("five"), std::string::npos) << s.ToString();
}

TEST_F(CopyPlanTest, WrongLayouts) {
  const auto validate = [](const CopyLayout::ColumnFamily& family) {
    CopyLayout layout;
    layout.column_families["fam"] = family;
    const Status s = CopyPlan(layout, "/copy", nullptr).Validate();
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    return s.ToString();
  };
  const auto has = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(validate(Family({}, {0}, {})), "fam");
  has(validate(Family({}, {}, {}, {0})), "no cf_paths");
  has(validate(Family({"/a"}, {0}, {})), "1 paths");
  has(validate(Family({"/a", "/b", "/c", "/d", "/e"}, {0}, {})), "5 paths");
  has(validate(Family({"/a", "/b"}, {}, {}, {0})), "cf_paths without");
  const auto with_sorted = [](CopyLayout::ColumnFamily family, int32_t id) {
    family.delta_sorted_path_id = id;
    return family;
  };
  has(validate(with_sorted(Family({}, {}, {}), 0)), "no cf_paths");
  has(validate(with_sorted(Family({"/a", "/b"}, {}, {}), 2)),
      "delta_sorted_path_id");
  has(validate(with_sorted(Family({"/a", "/b"}, {0}, {}), -2)),
      "delta_sorted_path_id -2");
  has(validate(Family({"/a", ""}, {0}, {})), "empty");
  has(validate(Family({"/a", "/b"}, {0, 1, 2}, {})), "level_sst_path_ids");
  has(validate(Family({"/a", "/b"}, {0}, {2})), "level_blob_path_ids");
  has(validate(Family({"/a", "/b"}, {0}, {0}, {0, 2})), "path_map");
  has(validate(Family({"/a", "/b"}, {0}, {0}, {0, 1, 0, 1, 0})), "path_map");
  has(validate(Family({"/a", "/a/b"}, {0}, {0})), "/a/b");
  has(validate(Family({"/a", "/copy/b"}, {0}, {0})), "/copy");
  has(validate(Family({"/copy", "/"}, {0}, {0})), "/copy");

  // The directories of different families, too.
  CopyLayout layout;
  layout.all = Family({"/a", "/b"}, {0}, {});
  layout.column_families["fam"] = Family({"/b/c", "/d"}, {0}, {});
  EXPECT_TRUE(
      CopyPlan(layout, "/copy", nullptr).Validate().IsInvalidArgument());
  // One directory may serve several families and paths.
  layout.column_families["fam"] = Family({"/b", "/b"}, {0}, {});
  EXPECT_OK(CopyPlan(layout, "/copy", nullptr).Validate());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
