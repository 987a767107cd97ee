//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "file/file_util.h"
#include "options/strata/option_values_test_util.h"
#include "port/stack_trace.h"
#include "rocksdb/c.h"
#include "rocksdb/comparator.h"
#include "rocksdb/env.h"
#include "rocksdb/options.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

class CStrataTest : public testing::Test {
 protected:
  CStrataTest() : options_(rocksdb_options_create()) {
    paths_[0] = rocksdb_dbpath_create("/fast", 5);
    paths_[1] = rocksdb_dbpath_create("/slow", 7);
  }
  ~CStrataTest() override {
    rocksdb_dbpath_destroy(paths_[0]);
    rocksdb_dbpath_destroy(paths_[1]);
    rocksdb_options_destroy(options_);
  }

  const rocksdb_dbpath_t** Paths() {
    return const_cast<const rocksdb_dbpath_t**>(paths_);
  }

  std::string Path(size_t i, uint64_t* target_size) {
    char* path = rocksdb_options_get_cf_path(options_, i, target_size);
    const std::string result = path == nullptr ? "(null)" : path;
    rocksdb_free(path);
    return result;
  }

  // Sets an option to another value than its default, and back.
  template <typename CType, typename T>
  void CheckOption(const char* name, void (*set)(rocksdb_options_t*, CType),
                   CType (*get)(const rocksdb_options_t*),
                   const T& default_value) {
    EXPECT_EQ(get(options_), static_cast<CType>(default_value)) << name;
    const auto other = static_cast<CType>(OtherOptionValue(default_value));
    set(options_, other);
    EXPECT_EQ(get(options_), other) << name;
    set(options_, static_cast<CType>(default_value));
    EXPECT_EQ(get(options_), static_cast<CType>(default_value)) << name;
  }

  rocksdb_options_t* options_;
  rocksdb_dbpath_t* paths_[2];
};

TEST_F(CStrataTest, Layout) {
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, nullptr, 0), 0);
  const uint32_t sst[] = {0, 1, 2};
  const uint32_t blob[] = {3};
  rocksdb_options_set_level_sst_path_ids(options_, sst, 3);
  rocksdb_options_set_level_blob_path_ids(options_, blob, 1);

  uint32_t ids[4] = {9, 9, 9, 9};
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, ids, 2), 3);
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 1);
  EXPECT_EQ(ids[2], 9);  // beyond max_ids
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, ids, 4), 3);
  EXPECT_EQ(ids[2], 2);
  EXPECT_EQ(ids[3], 9);
  EXPECT_EQ(rocksdb_options_get_level_blob_path_ids(options_, ids, 4), 1);
  EXPECT_EQ(ids[0], 3);

  rocksdb_options_set_level_sst_path_ids(options_, nullptr, 0);
  EXPECT_EQ(rocksdb_options_get_level_sst_path_ids(options_, ids, 4), 0);
  EXPECT_EQ(rocksdb_options_get_level_blob_path_ids(options_, ids, 4), 1);
}

TEST_F(CStrataTest, PathPrices) {
  EXPECT_EQ(rocksdb_options_get_path_prices(options_, nullptr, 0), 0);
  const double prices[] = {0.25, 0.02};
  rocksdb_options_set_path_prices(options_, prices, 2);
  double copy[3] = {9, 9, 9};
  EXPECT_EQ(rocksdb_options_get_path_prices(options_, copy, 1), 2);
  EXPECT_EQ(copy[0], 0.25);
  EXPECT_EQ(copy[1], 9);  // beyond max_prices
  EXPECT_EQ(rocksdb_options_get_path_prices(options_, copy, 3), 2);
  EXPECT_EQ(copy[1], 0.02);
  EXPECT_EQ(copy[2], 9);
  rocksdb_options_set_path_prices(options_, nullptr, 0);
  EXPECT_EQ(rocksdb_options_get_path_prices(options_, copy, 3), 0);
}

// Goes through the table of options, so that no option can be without its
// functions.
TEST_F(CStrataTest, EachOptionHasASetterAndAGetter) {
  const Options defaults;
#define STRATA_CHECK(kind, name, ...) STRATA_CHECK_##kind(name)
#define STRATA_CHECK_VALUE(name)                                             \
  CheckOption(#name, rocksdb_options_set_##name, rocksdb_options_get_##name, \
              defaults.name);
#define STRATA_CHECK_bool STRATA_CHECK_VALUE
#define STRATA_CHECK_int32 STRATA_CHECK_VALUE
#define STRATA_CHECK_uint32 STRATA_CHECK_VALUE
#define STRATA_CHECK_uint64 STRATA_CHECK_VALUE
#define STRATA_CHECK_size STRATA_CHECK_VALUE
#define STRATA_CHECK_double STRATA_CHECK_VALUE
// The tests Layout and PathPrices are for these.
#define STRATA_CHECK_path_ids(name)
#define STRATA_CHECK_prices(name)
  STRATA_IMMUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_MUTABLE_CF_OPTIONS(STRATA_CHECK)
  STRATA_IMMUTABLE_DB_OPTIONS(STRATA_CHECK)
#undef STRATA_CHECK
#undef STRATA_CHECK_VALUE
#undef STRATA_CHECK_bool
#undef STRATA_CHECK_int32
#undef STRATA_CHECK_uint32
#undef STRATA_CHECK_uint64
#undef STRATA_CHECK_size
#undef STRATA_CHECK_double
#undef STRATA_CHECK_path_ids
#undef STRATA_CHECK_prices
}

TEST_F(CStrataTest, BlobPrefetchCount) {
  rocksdb_readoptions_t* const read_options = rocksdb_readoptions_create();
  EXPECT_EQ(rocksdb_readoptions_get_blob_prefetch_count(read_options),
            SIZE_MAX);
  rocksdb_readoptions_set_blob_prefetch_count(read_options, 7);
  EXPECT_EQ(rocksdb_readoptions_get_blob_prefetch_count(read_options), 7);
  rocksdb_readoptions_destroy(read_options);
}

TEST_F(CStrataTest, CollectBlobGarbage) {
  const std::string path = test::PerThreadDBPath("c_strata_test");
  char* error = nullptr;
  rocksdb_destroy_db(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr);
  rocksdb_options_set_create_if_missing(options_, 1);
  rocksdb_options_set_enable_blob_files(options_, 1);
  rocksdb_options_set_enable_blob_address_map(options_, 1);
  rocksdb_t* const db = rocksdb_open(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_collect_blob_garbage_cf(db, nullptr, 1.0, 1, &error);
  EXPECT_EQ(error, nullptr) << error;
  rocksdb_column_family_handle_t* const family =
      rocksdb_get_default_column_family_handle(db);
  rocksdb_collect_blob_garbage_cf(db, family, 0.5, 0, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("space_amp_limit"), std::string::npos);
  rocksdb_free(error);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);
}

// A comparator in C, of keys in descending order of their bytes.
int CompareDescending(void* /*state*/, const char* a, size_t a_size,
                      const char* b, size_t b_size) {
  return Slice(b, b_size).compare(Slice(a, a_size));
}

const char* NameOfDescending(void* /*state*/) { return "descending"; }

void DestroyNothing(void* /*state*/) {}

// The address map, delta separation and the merged-value cache accept a
// comparator in C once it promises to tell all bytes apart, and refuse it with
// advice before that.
TEST_F(CStrataTest, Comparator) {
  const std::string path = test::PerThreadDBPath("c_strata_comparator_test");
  char* error = nullptr;
  rocksdb_destroy_db(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr);
  rocksdb_comparator_t* const descending = rocksdb_comparator_create(
      nullptr, DestroyNothing, CompareDescending, NameOfDescending);
  rocksdb_options_set_create_if_missing(options_, 1);
  rocksdb_options_set_comparator(options_, descending);
  rocksdb_options_set_uint64add_merge_operator(options_);
  rocksdb_options_set_enable_blob_files(options_, 1);
  rocksdb_options_set_min_blob_size(options_, 8);

  using Setter = void (*)(rocksdb_options_t*, unsigned char);
  const Setter features[] = {rocksdb_options_set_enable_blob_address_map,
                             rocksdb_options_set_enable_delta_separation,
                             rocksdb_options_set_enable_merged_value_cache};
  EXPECT_EQ(rocksdb_comparator_get_different_bytes_never_equal(descending), 0);
  for (const Setter feature : features) {
    feature(options_, 1);
    ASSERT_EQ(rocksdb_open(options_, path.c_str(), &error), nullptr);
    ASSERT_NE(error, nullptr);
    EXPECT_NE(std::string(error).find(
                  "rocksdb_comparator_set_different_bytes_never_equal()"),
              std::string::npos)
        << error;
    rocksdb_free(error);
    error = nullptr;
    feature(options_, 0);
  }

  rocksdb_comparator_set_different_bytes_never_equal(descending, 1);
  EXPECT_EQ(rocksdb_comparator_get_different_bytes_never_equal(descending), 1);
  for (const Setter feature : features) {
    feature(options_, 1);
  }
  rocksdb_t* db = rocksdb_open(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_writeoptions_t* const write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* const read = rocksdb_readoptions_create();
  rocksdb_flushoptions_t* const flush = rocksdb_flushoptions_create();
  constexpr uint64_t kKeys = 50;
  const auto key_of = [](uint64_t i) {
    return "key" + std::to_string(100 + i);
  };
  // Values, then operands above them in a flush of their own.
  for (const bool merge : {false, true}) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = key_of(i);
      const char* const number = reinterpret_cast<const char*>(&i);
      (merge ? rocksdb_merge : rocksdb_put)(db, write, key.data(), key.size(),
                                            number, sizeof(i), &error);
      ASSERT_EQ(error, nullptr) << error;
    }
    rocksdb_flush(db, flush, &error);
    ASSERT_EQ(error, nullptr) << error;
  }
  for (const bool reopened : {false, true}) {
    if (reopened) {
      rocksdb_close(db);
      db = rocksdb_open(options_, path.c_str(), &error);
      ASSERT_EQ(error, nullptr) << error;
      rocksdb_compact_range(db, nullptr, 0, nullptr, 0);
    }
    for (uint64_t i = 0; i < kKeys; ++i) {
      const std::string key = key_of(i);
      size_t size = 0;
      char* const value =
          rocksdb_get(db, read, key.data(), key.size(), &size, &error);
      ASSERT_EQ(error, nullptr) << error;
      ASSERT_NE(value, nullptr) << key;
      ASSERT_EQ(size, sizeof(uint64_t));
      uint64_t number = 0;
      memcpy(&number, value, size);
      EXPECT_EQ(number, 2 * i);
      rocksdb_free(value);
    }
    rocksdb_iterator_t* const iterator = rocksdb_create_iterator(db, read);
    rocksdb_iter_seek_to_first(iterator);
    for (uint64_t i = kKeys; i-- > 0; rocksdb_iter_next(iterator)) {
      ASSERT_TRUE(rocksdb_iter_valid(iterator));
      size_t size = 0;
      const char* const key = rocksdb_iter_key(iterator, &size);
      EXPECT_EQ(std::string(key, size), key_of(i));
    }
    EXPECT_FALSE(rocksdb_iter_valid(iterator));
    rocksdb_iter_destroy(iterator);
  }
  rocksdb_flushoptions_destroy(flush);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_close(db);
  rocksdb_comparator_destroy(descending);
}

// A program makes the metadata of an export again, as one that has stored it
// does. The two files are given each other's epoch numbers, so that level 0 is
// in another order than that of the sequence numbers, as after a fold of delta
// files. Without epoch numbers it is ordered by sequence number.
TEST_F(CStrataTest, EpochNumbersOfImportedFiles) {
  const std::string path = test::PerThreadDBPath("c_strata_import_test");
  const std::string export_path = path + "_export";
  for (const std::string& directory : {path, export_path}) {
    ASSERT_OK(DestroyDir(Env::Default(), directory));
  }
  rocksdb_options_set_create_if_missing(options_, 1);
  rocksdb_options_set_disable_auto_compactions(options_, 1);
  char* error = nullptr;
  rocksdb_t* const db = rocksdb_open(options_, path.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_writeoptions_t* const write = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* const read = rocksdb_readoptions_create();
  rocksdb_flushoptions_t* const flush = rocksdb_flushoptions_create();
  for (const char* const value : {"older", "newer"}) {
    rocksdb_put(db, write, "k", 1, value, 5, &error);
    ASSERT_EQ(error, nullptr) << error;
    rocksdb_flush(db, flush, &error);
    ASSERT_EQ(error, nullptr) << error;
  }
  rocksdb_checkpoint_t* const checkpoint =
      rocksdb_checkpoint_object_create(db, &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_column_family_handle_t* const family =
      rocksdb_get_default_column_family_handle(db);
  rocksdb_export_import_files_metadata_t* const exported =
      rocksdb_checkpoint_export_column_family(checkpoint, family,
                                              export_path.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_livefiles_t* const files =
      rocksdb_export_import_files_metadata_get_files(exported);
  ASSERT_EQ(rocksdb_livefiles_count(files), 2);
  EXPECT_GT(rocksdb_livefiles_epoch_number(files, 1), 0);
  EXPECT_GT(rocksdb_livefiles_epoch_number(files, 0),
            rocksdb_livefiles_epoch_number(files, 1));

  rocksdb_import_column_family_options_t* const import_options =
      rocksdb_import_column_family_options_create();
  for (const bool has_epochs : {false, true}) {
    SCOPED_TRACE(has_epochs);
    rocksdb_livefiles_t* const made = rocksdb_livefiles_create();
    for (int i = 0; i < 2; ++i) {
      rocksdb_livefile_t* const file = rocksdb_livefile_create();
      rocksdb_livefile_set_level(file, rocksdb_livefiles_level(files, i));
      rocksdb_livefile_set_name(file, rocksdb_livefiles_name(files, i));
      rocksdb_livefile_set_directory(file, export_path.c_str());
      rocksdb_livefile_set_size(file, rocksdb_livefiles_size(files, i));
      rocksdb_livefile_set_smallest_key(file, "k", 1);
      rocksdb_livefile_set_largest_key(file, "k", 1);
      rocksdb_livefile_set_smallest_seqno(
          file, rocksdb_livefiles_smallest_seqno(files, i));
      rocksdb_livefile_set_largest_seqno(
          file, rocksdb_livefiles_largest_seqno(files, i));
      if (has_epochs) {
        rocksdb_livefile_set_epoch_number(
            file, rocksdb_livefiles_epoch_number(files, 1 - i));
      }
      rocksdb_livefiles_add(made, file);
      EXPECT_EQ(rocksdb_livefiles_epoch_number(made, i),
                has_epochs ? rocksdb_livefiles_epoch_number(files, 1 - i) : 0);
    }
    rocksdb_export_import_files_metadata_t* const metadata =
        rocksdb_export_import_files_metadata_create();
    rocksdb_export_import_files_metadata_set_db_comparator_name(
        metadata, BytewiseComparator()->Name());
    rocksdb_export_import_files_metadata_set_files(metadata, made);
    rocksdb_column_family_handle_t* const imported =
        rocksdb_create_column_family_with_import(
            db, options_, has_epochs ? "with" : "without", import_options,
            metadata, &error);
    ASSERT_EQ(error, nullptr) << error;
    size_t size = 0;
    char* const value =
        rocksdb_get_cf(db, read, imported, "k", 1, &size, &error);
    ASSERT_EQ(error, nullptr) << error;
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(std::string(value, size), has_epochs ? "older" : "newer");
    rocksdb_free(value);
    rocksdb_column_family_handle_destroy(imported);
    rocksdb_export_import_files_metadata_destroy(metadata);
  }
  rocksdb_import_column_family_options_destroy(import_options);
  rocksdb_livefiles_destroy(files);
  rocksdb_export_import_files_metadata_destroy(exported);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_readoptions_destroy(read);
  rocksdb_writeoptions_destroy(write);
  rocksdb_close(db);
  for (const std::string& directory : {path, export_path}) {
    EXPECT_OK(DestroyDir(Env::Default(), directory));
  }
}

TEST_F(CStrataTest, CfPaths) {
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 0);
  EXPECT_EQ(rocksdb_options_get_cf_path(options_, 0, nullptr), nullptr);
  rocksdb_options_set_cf_paths(options_, Paths(), 2);
  ASSERT_EQ(rocksdb_options_get_num_cf_paths(options_), 2);
  uint64_t target_size = 0;
  EXPECT_EQ(Path(0, nullptr), "/fast");
  EXPECT_EQ(Path(1, &target_size), "/slow");
  EXPECT_EQ(target_size, 7);
  EXPECT_EQ(rocksdb_options_get_cf_path(options_, 2, nullptr), nullptr);
}

TEST_F(CStrataTest, OverrideCfPaths) {
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_options_t* families[] = {plain, options_};
  const uint32_t ids[] = {0, 1};
  rocksdb_options_set_level_sst_path_ids(options_, ids, 2);

  char* error = nullptr;
  rocksdb_options_override_cf_paths(2, families, Paths(), 1, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("level_sst_path_ids"), std::string::npos);
  rocksdb_free(error);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 0);

  error = nullptr;
  rocksdb_options_override_cf_paths(2, families, Paths(), 2, &error);
  ASSERT_EQ(error, nullptr);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 2);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(plain), 0);
  rocksdb_options_destroy(plain);
}

// Options that the new paths do not fit are reset with them.
TEST_F(CStrataTest, OverrideCfPathsResetsWhatDoesNotFit) {
  const double prices[] = {0.39, 0.19};
  rocksdb_options_set_cf_paths(options_, Paths(), 2);
  rocksdb_options_set_path_prices(options_, prices, 2);
  rocksdb_options_set_blob_hot_bytes(options_, 1000);
  rocksdb_options_set_blob_hot_path_id(options_, 1);
  rocksdb_options_t* families[] = {options_};
  char* error = nullptr;
  rocksdb_options_override_cf_paths(1, families, Paths(), 1, &error);
  ASSERT_EQ(error, nullptr);
  EXPECT_EQ(rocksdb_options_get_num_cf_paths(options_), 1);
  EXPECT_EQ(rocksdb_options_get_path_prices(options_, nullptr, 0), 0);
  EXPECT_EQ(rocksdb_options_get_blob_hot_bytes(options_), 0);
}

TEST_F(CStrataTest, MigratePaths) {
  const std::string name = test::PerThreadDBPath("c_strata_migration");
  const std::string second = name + "_second";
  ASSERT_OK(DestroyDir(Env::Default(), name));
  ASSERT_OK(DestroyDir(Env::Default(), second));
  rocksdb_dbpath_t* paths[] = {rocksdb_dbpath_create(name.c_str(), 0),
                               rocksdb_dbpath_create(second.c_str(), 0)};
  rocksdb_options_set_cf_paths(options_,
                               const_cast<const rocksdb_dbpath_t**>(paths), 2);
  rocksdb_options_set_create_if_missing(options_, 1);
  // A compaction in the background would move the file first.
  rocksdb_options_set_disable_auto_compactions(options_, 1);
  char* error = nullptr;
  rocksdb_t* const db = rocksdb_open(options_, name.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_writeoptions_t* const write = rocksdb_writeoptions_create();
  rocksdb_put(db, write, "a", 1, "b", 1, &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_writeoptions_destroy(write);
  rocksdb_flushoptions_t* const flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_flushoptions_destroy(flush);

  rocksdb_migrate_paths_options_t* move =
      rocksdb_migrate_paths_options_create();
  rocksdb_migrate_paths_cf(db, nullptr, move, nullptr, nullptr, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("level_sst_path_ids"), std::string::npos)
      << error;
  rocksdb_free(error);
  error = nullptr;

  const uint32_t ids[] = {1};
  rocksdb_migrate_paths_options_set_level_sst_path_ids(move, ids, 1);
  rocksdb_migrate_paths_options_set_level_blob_path_ids(move, ids, 1);
  rocksdb_migrate_paths_options_set_delta_sorted_path_id(move, -1);
  rocksdb_migrate_paths_options_set_max_bytes_per_second(move, 1 << 20);
  rocksdb_migrate_paths_options_cancel(move);
  uint64_t moved = 9;
  uint64_t left = 0;
  rocksdb_migrate_paths_cf(db, nullptr, move, &moved, &left, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("canceled"), std::string::npos) << error;
  rocksdb_free(error);
  error = nullptr;
  EXPECT_EQ(moved, 0);
  EXPECT_GT(left, 0);
  // The next call with the same options may run.
  rocksdb_migrate_paths_options_set_canceled(move, 0);
  rocksdb_migrate_paths_cf(db, nullptr, move, &moved, &left, &error);
  ASSERT_EQ(error, nullptr) << error;
  EXPECT_GT(moved, 0);
  EXPECT_EQ(left, 0);
  rocksdb_migrate_paths_options_set_canceled(move, 1);
  rocksdb_migrate_paths_cf(db, nullptr, move, nullptr, nullptr, &error);
  ASSERT_NE(error, nullptr);
  rocksdb_free(error);
  error = nullptr;
  rocksdb_migrate_paths_options_destroy(move);

  // The layout is set.
  move = rocksdb_migrate_paths_options_create();
  rocksdb_column_family_handle_t* const family =
      rocksdb_get_default_column_family_handle(db);
  rocksdb_migrate_paths_cf(db, family, move, nullptr, &left, &error);
  ASSERT_EQ(error, nullptr) << error;
  EXPECT_EQ(left, 0);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_migrate_paths_options_destroy(move);
  uint64_t misplaced = 9;
  EXPECT_EQ(rocksdb_property_int(db, "rocksdb.misplaced-bytes", &misplaced), 0);
  EXPECT_EQ(misplaced, 0);
  std::vector<std::string> files;
  ASSERT_OK(Env::Default()->GetChildren(second, &files));
  EXPECT_TRUE(std::any_of(files.begin(), files.end(), [](const auto& file) {
    return Slice(file).ends_with(".sst");
  }));
  rocksdb_close(db);
  rocksdb_dbpath_destroy(paths[0]);
  rocksdb_dbpath_destroy(paths[1]);
  EXPECT_OK(DestroyDir(Env::Default(), name));
  EXPECT_OK(DestroyDir(Env::Default(), second));
}

TEST_F(CStrataTest, CopiesInSeveralDirectories) {
  const std::string name = test::PerThreadDBPath("c_strata_copies");
  const auto directory = [&](const char* suffix) { return name + suffix; };
  for (const char* const suffix :
       {"", "_backup", "_checkpoint", "_second", "_restored", "_third"}) {
    ASSERT_OK(DestroyDir(Env::Default(), directory(suffix)));
  }
  rocksdb_options_set_create_if_missing(options_, 1);
  char* error = nullptr;
  rocksdb_t* db = rocksdb_open(options_, name.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_put(db, write, "a", 1, "b", 1, &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_writeoptions_destroy(write);

  const auto layout_of = [](const std::string& first, const std::string& second,
                            const char* family, uint32_t id) {
    rocksdb_dbpath_t* paths[] = {rocksdb_dbpath_create(first.c_str(), 0),
                                 rocksdb_dbpath_create(second.c_str(), 0)};
    rocksdb_copy_layout_t* layout = rocksdb_copy_layout_create();
    rocksdb_copy_layout_set(
        layout, family, const_cast<const rocksdb_dbpath_t**>(paths), 2, &id, 1,
        nullptr, 0, /*delta_sorted_path_id=*/0, nullptr, 0);
    rocksdb_dbpath_destroy(paths[0]);
    rocksdb_dbpath_destroy(paths[1]);
    return layout;
  };
  const auto count_tables = [](const std::string& in) {
    std::vector<std::string> files;
    Env::Default()->GetChildren(in, &files).PermitUncheckedError();
    size_t tables = 0;
    for (const std::string& file : files) {
      tables += Slice(file).ends_with(".sst") ? 1 : 0;
    }
    return tables;
  };

  // An error.
  rocksdb_copy_layout_t* layout = layout_of(
      directory("_checkpoint"), directory("_second"), "no such family", 1);
  rocksdb_checkpoint_create_with_layout(db, directory("_checkpoint").c_str(), 0,
                                        layout, &error);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("no such family"), std::string::npos)
      << error;
  rocksdb_free(error);
  error = nullptr;
  rocksdb_copy_layout_destroy(layout);

  layout =
      layout_of(directory("_checkpoint"), directory("_second"), nullptr, 1);
  rocksdb_checkpoint_create_with_layout(db, directory("_checkpoint").c_str(), 0,
                                        layout, &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_copy_layout_destroy(layout);
  EXPECT_EQ(count_tables(directory("_checkpoint")), 0);
  EXPECT_EQ(count_tables(directory("_second")), 1);

  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_backup_engine_t* backups =
      rocksdb_backup_engine_open(plain, directory("_backup").c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_backup_engine_create_new_backup(backups, db, &error);
  ASSERT_EQ(error, nullptr) << error;
  rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
  layout = layout_of(directory("_restored"), directory("_third"), "default", 1);
  rocksdb_restore_options_set_layout(restore, layout);
  rocksdb_copy_layout_destroy(layout);
  rocksdb_backup_engine_restore_db_from_latest_backup(
      backups, directory("_restored").c_str(), directory("_restored").c_str(),
      restore, &error);
  ASSERT_EQ(error, nullptr) << error;
  EXPECT_EQ(count_tables(directory("_restored")), 0);
  EXPECT_EQ(count_tables(directory("_third")), 1);
  rocksdb_restore_options_set_layout(restore, nullptr);
  rocksdb_restore_options_destroy(restore);
  rocksdb_backup_engine_close(backups);
  rocksdb_options_destroy(plain);
  rocksdb_close(db);
  for (const char* const suffix :
       {"", "_backup", "_checkpoint", "_second", "_restored", "_third"}) {
    EXPECT_OK(DestroyDir(Env::Default(), directory(suffix)));
  }
}

TEST_F(CStrataTest, PrometheusProperty) {
  const std::string name = test::PerThreadDBPath("c_strata_prometheus");
  rocksdb_options_set_create_if_missing(options_, 1);
  char* error = nullptr;
  rocksdb_t* const db = rocksdb_open(options_, name.c_str(), &error);
  ASSERT_EQ(error, nullptr) << error;
  char* const text = rocksdb_property_value(db, "rocksdb.strata-prometheus");
  ASSERT_NE(text, nullptr);
  EXPECT_TRUE(Slice(text).starts_with("# HELP rocksdb_")) << text;
  EXPECT_NE(std::string(text).find(
                "\nrocksdb_cf_num_live_versions{cf=\"default\"} 1\n"),
            std::string::npos)
      << text;
  rocksdb_free(text);
  rocksdb_close(db);
  EXPECT_OK(DestroyDir(Env::Default(), name));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
