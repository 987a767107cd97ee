/*  Copyright (c) The Strata Authors
    SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

    The functions that Strata adds to the C API. Part of rocksdb/c.h, which
    includes it; include that. The conventions are those of rocksdb/c.h. */

#pragma once

/* Per-level paths: see level_sst_path_ids and level_blob_path_ids in
   rocksdb/strata_options.h. The setters copy `ids`; num_ids == 0 removes the
   layout. */

extern ROCKSDB_LIBRARY_API void rocksdb_options_set_level_sst_path_ids(
    rocksdb_options_t* opt, const uint32_t* ids, size_t num_ids);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_level_blob_path_ids(
    rocksdb_options_t* opt, const uint32_t* ids, size_t num_ids);

/* Copy at most max_ids ids to `ids` (which may be NULL if max_ids is 0) and
   return how many there are. */
extern ROCKSDB_LIBRARY_API size_t rocksdb_options_get_level_sst_path_ids(
    const rocksdb_options_t* opt, uint32_t* ids, size_t max_ids);
extern ROCKSDB_LIBRARY_API size_t rocksdb_options_get_level_blob_path_ids(
    const rocksdb_options_t* opt, uint32_t* ids, size_t max_ids);

/* The prices of the paths: see path_prices in
   rocksdb/strata_options.h. The setter copies `prices`;
   num_prices == 0 removes them. The getter is like those above. */
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_path_prices(
    rocksdb_options_t* opt, const double* prices, size_t num_prices);
extern ROCKSDB_LIBRARY_API size_t rocksdb_options_get_path_prices(
    const rocksdb_options_t* opt, double* prices, size_t max_prices);

/* The number of paths that rocksdb_options_set_cf_paths() set. */
extern ROCKSDB_LIBRARY_API size_t
rocksdb_options_get_num_cf_paths(const rocksdb_options_t* opt);
/* The directory and target size of path i. The string is the caller's, to be
   given to rocksdb_free(). NULL if i is not a path. target_size may be NULL. */
extern ROCKSDB_LIBRARY_API char* rocksdb_options_get_cf_path(
    const rocksdb_options_t* opt, size_t i, uint64_t* target_size);

/* The blob address map: see enable_blob_address_map and enable_lsm_bypass in
   rocksdb/strata_options.h. */

extern ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_blob_address_map(
    rocksdb_options_t* opt, unsigned char value);
extern ROCKSDB_LIBRARY_API unsigned char
rocksdb_options_get_enable_blob_address_map(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_lsm_bypass(
    rocksdb_options_t* opt, unsigned char value);
extern ROCKSDB_LIBRARY_API unsigned char rocksdb_options_get_enable_lsm_bypass(
    const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_save_blob_address_map(
    rocksdb_options_t* opt, unsigned char value);
extern ROCKSDB_LIBRARY_API unsigned char
rocksdb_options_get_save_blob_address_map(const rocksdb_options_t* opt);

/* Values that reads have merged are kept in memory: see
   enable_merged_value_cache and merged_value_cache_size in
   rocksdb/strata_options.h. */
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_merged_value_cache(
    rocksdb_options_t* opt, unsigned char value);
extern ROCKSDB_LIBRARY_API unsigned char
rocksdb_options_get_enable_merged_value_cache(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_merged_value_cache_size(
    rocksdb_options_t* opt, uint64_t value);
extern ROCKSDB_LIBRARY_API uint64_t
rocksdb_options_get_merged_value_cache_size(const rocksdb_options_t* opt);

/* Merge operands lie in files of their own: see enable_delta_separation,
   delta_bucket_size, delta_max_buckets, delta_bucket_split_ratio,
   delta_cache_size and delta_sorted_path_id there. */
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_enable_delta_separation(
    rocksdb_options_t* opt, unsigned char value);
extern ROCKSDB_LIBRARY_API unsigned char
rocksdb_options_get_enable_delta_separation(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_delta_bucket_size(
    rocksdb_options_t* opt, uint64_t value);
extern ROCKSDB_LIBRARY_API uint64_t
rocksdb_options_get_delta_bucket_size(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_delta_max_buckets(
    rocksdb_options_t* opt, uint32_t value);
extern ROCKSDB_LIBRARY_API uint32_t
rocksdb_options_get_delta_max_buckets(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_delta_bucket_split_ratio(
    rocksdb_options_t* opt, double value);
extern ROCKSDB_LIBRARY_API double rocksdb_options_get_delta_bucket_split_ratio(
    const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_delta_cache_size(
    rocksdb_options_t* opt, uint64_t value);
extern ROCKSDB_LIBRARY_API uint64_t
rocksdb_options_get_delta_cache_size(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_delta_sorted_path_id(
    rocksdb_options_t* opt, int32_t value);
extern ROCKSDB_LIBRARY_API int32_t
rocksdb_options_get_delta_sorted_path_id(const rocksdb_options_t* opt);

/* How many write groups in a row one thread may write: see
   max_write_groups_per_leader in rocksdb/strata_options.h. */

extern ROCKSDB_LIBRARY_API void rocksdb_options_set_max_write_groups_per_leader(
    rocksdb_options_t* opt, uint32_t value);
extern ROCKSDB_LIBRARY_API uint32_t
rocksdb_options_get_max_write_groups_per_leader(const rocksdb_options_t* opt);

/* The size in bytes of the mapped file that takes the data of a WAL first: see
   wal_mmap_buffer_size in rocksdb/strata_options.h. */

extern ROCKSDB_LIBRARY_API void rocksdb_options_set_wal_mmap_buffer_size(
    rocksdb_options_t* opt, size_t value);
extern ROCKSDB_LIBRARY_API size_t
rocksdb_options_get_wal_mmap_buffer_size(const rocksdb_options_t* opt);

/* Garbage collection of blob files: see blob_gc_space_amp_limit there, and
   DB::CollectBlobGarbage() in rocksdb/db.h. */

extern ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_gc_space_amp_limit(
    rocksdb_options_t* opt, double value);
extern ROCKSDB_LIBRARY_API double rocksdb_options_get_blob_gc_space_amp_limit(
    const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_scan_sort_budget(
    rocksdb_options_t* opt, double value);
extern ROCKSDB_LIBRARY_API double rocksdb_options_get_blob_scan_sort_budget(
    const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_hot_bytes(
    rocksdb_options_t* opt, uint64_t value);
extern ROCKSDB_LIBRARY_API uint64_t
rocksdb_options_get_blob_hot_bytes(const rocksdb_options_t* opt);
extern ROCKSDB_LIBRARY_API void rocksdb_options_set_blob_hot_path_id(
    rocksdb_options_t* opt, uint32_t value);
extern ROCKSDB_LIBRARY_API uint32_t
rocksdb_options_get_blob_hot_path_id(const rocksdb_options_t* opt);
/* space_amp_limit: from 1, which collects all garbage, to 1000, or
   InvalidArgument. max_sorted_runs: 0 leaves the order of the values alone.
   column_family: NULL for the default one. */
extern ROCKSDB_LIBRARY_API void rocksdb_collect_blob_garbage_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family,
    double space_amp_limit, uint32_t max_sorted_runs, char** errptr);

/* ReadOptions::blob_prefetch_count. SIZE_MAX, the default, leaves the number to
   the library. */
extern ROCKSDB_LIBRARY_API void rocksdb_readoptions_set_blob_prefetch_count(
    rocksdb_readoptions_t* opt, size_t value);
extern ROCKSDB_LIBRARY_API size_t
rocksdb_readoptions_get_blob_prefetch_count(const rocksdb_readoptions_t* opt);

/* Declares whether a comparator may call two keys with different bytes equal
   (Comparator::CanKeysWithDifferentByteContentsBeEqual()). The address map,
   delta separation and the merged-value cache know a key by its bytes, and
   refuse a comparator that may do so.
   value: 1 if it never does so; 0, the default, if it may. With 1 for a
   comparator that does so, reads are wrong.
   REQUIRES: no DB has been opened with the comparator yet. */
extern ROCKSDB_LIBRARY_API void
rocksdb_comparator_set_different_bytes_never_equal(rocksdb_comparator_t* cmp,
                                                   unsigned char value);
extern ROCKSDB_LIBRARY_API unsigned char
rocksdb_comparator_get_different_bytes_never_equal(
    const rocksdb_comparator_t* cmp);

/* LiveFileMetaData::epoch_number, by which level 0 is ordered: the newest file
   has the largest one. A program needs the two functions if it stores the
   metadata of an export and makes it again with rocksdb_livefile_create() for
   rocksdb_create_column_family_with_import(). If a file has no epoch number (0,
   the default), the import orders level 0 by sequence number, which is wrong if
   the column family has had delta separation.
   index: a file of the list, as in rocksdb_livefiles_level(). */
extern ROCKSDB_LIBRARY_API void rocksdb_livefile_set_epoch_number(
    rocksdb_livefile_t* file, uint64_t epoch_number);
extern ROCKSDB_LIBRARY_API uint64_t
rocksdb_livefiles_epoch_number(const rocksdb_livefiles_t* files, int index);

/* For a DB whose directories have moved: replaces the cf_paths that
   rocksdb_load_latest_options() returned in every column family that has an
   option of paths (level_sst_path_ids, level_blob_path_ids,
   delta_sorted_path_id, path_prices or blob_hot_bytes); see
   rocksdb/utilities/cf_paths.h. */
extern ROCKSDB_LIBRARY_API void rocksdb_options_override_cf_paths(
    size_t num_column_families, rocksdb_options_t** column_family_options,
    const rocksdb_dbpath_t** paths, size_t num_paths, char** errptr);

/* The directories of a copy: see rocksdb/utilities/copy_layout.h. */

typedef struct rocksdb_copy_layout_t rocksdb_copy_layout_t;

extern ROCKSDB_LIBRARY_API rocksdb_copy_layout_t* rocksdb_copy_layout_create(
    void);
extern ROCKSDB_LIBRARY_API void rocksdb_copy_layout_destroy(
    rocksdb_copy_layout_t* layout);
/* Sets the layout of one column family, or, if column_family is NULL, that of
   all others. All arrays are copied, and may be NULL if they have no entries.
   delta_sorted_path_id is -1 if sorted delta files have no path of their own.
 */
extern ROCKSDB_LIBRARY_API void rocksdb_copy_layout_set(
    rocksdb_copy_layout_t* layout, const char* column_family,
    const rocksdb_dbpath_t** paths, size_t num_paths,
    const uint32_t* level_sst_path_ids, size_t num_level_sst_path_ids,
    const uint32_t* level_blob_path_ids, size_t num_level_blob_path_ids,
    int32_t delta_sorted_path_id, const uint32_t* path_map,
    size_t path_map_size);

/* Creates a checkpoint in several directories. `layout` may be destroyed
   afterwards. */
extern ROCKSDB_LIBRARY_API void rocksdb_checkpoint_create_with_layout(
    rocksdb_t* db, const char* checkpoint_dir, uint64_t log_size_for_flush,
    const rocksdb_copy_layout_t* layout, char** errptr);

/* RestoreOptions::layout. The layout is copied; NULL, the default, restores
   into one directory. */
extern ROCKSDB_LIBRARY_API void rocksdb_restore_options_set_layout(
    rocksdb_restore_options_t* opt, const rocksdb_copy_layout_t* layout);

/* Moves files to the paths of the layout: see
   rocksdb/utilities/path_migration.h. */

typedef struct rocksdb_migrate_paths_options_t rocksdb_migrate_paths_options_t;

extern ROCKSDB_LIBRARY_API rocksdb_migrate_paths_options_t*
rocksdb_migrate_paths_options_create(void);
extern ROCKSDB_LIBRARY_API void rocksdb_migrate_paths_options_destroy(
    rocksdb_migrate_paths_options_t* opt);
/* The new layout; an option that is not set here stays as it is. The setters
   copy `ids`. */
extern ROCKSDB_LIBRARY_API void
rocksdb_migrate_paths_options_set_level_sst_path_ids(
    rocksdb_migrate_paths_options_t* opt, const uint32_t* ids, size_t num_ids);
extern ROCKSDB_LIBRARY_API void
rocksdb_migrate_paths_options_set_level_blob_path_ids(
    rocksdb_migrate_paths_options_t* opt, const uint32_t* ids, size_t num_ids);
extern ROCKSDB_LIBRARY_API void
rocksdb_migrate_paths_options_set_delta_sorted_path_id(
    rocksdb_migrate_paths_options_t* opt, int32_t id);
extern ROCKSDB_LIBRARY_API void
rocksdb_migrate_paths_options_set_max_bytes_per_second(
    rocksdb_migrate_paths_options_t* opt, uint64_t value);
/* Ends a call that has these options, soon, and each later one: for another
   thread than that of the call. The options must not be destroyed before the
   call has ended. */
extern ROCKSDB_LIBRARY_API void rocksdb_migrate_paths_options_cancel(
    rocksdb_migrate_paths_options_t* opt);
/* 0: the next call with these options may run. To be set after
   rocksdb_migrate_paths_options_cancel(), and after
   rocksdb_disable_manual_compaction() has ended a call: it cancels these
   options, too. Not 0: the same as rocksdb_migrate_paths_options_cancel(). */
extern ROCKSDB_LIBRARY_API void rocksdb_migrate_paths_options_set_canceled(
    rocksdb_migrate_paths_options_t* opt, unsigned char canceled);

/* column_family: NULL for the default one. bytes_moved and bytes_left may be
   NULL; they are also set after an error. The property "rocksdb.path-migration"
   has the progress while the call runs. */
extern ROCKSDB_LIBRARY_API void rocksdb_migrate_paths_cf(
    rocksdb_t* db, rocksdb_column_family_handle_t* column_family,
    const rocksdb_migrate_paths_options_t* opt, uint64_t* bytes_moved,
    uint64_t* bytes_left, char** errptr);
