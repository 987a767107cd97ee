//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// The options that Strata adds to RocksDB's. RocksDB's option structs inherit
// these, so an application sets them as members of DBOptions,
// ColumnFamilyOptions and ReadOptions.
//
// With every option here at its default, the library is RocksDB.
//
// A program that does not set them can get them, and options of RocksDB, from a
// file that the environment variable STRATA_CONFIG names:
// docs/options-without-code.md.
//
// The library can choose the value of merged_value_cache_size, delta_cache_size
// and ReadOptions::blob_prefetch_count. One number asks each of them for that:
// the largest one of the type (UINT64_MAX, kAutoBlobPrefetchCount). With 0,
// there is no delta cache and no value is read ahead. For
// merged_value_cache_size, which enable_merged_value_cache turns off, 0 is the
// default and asks for the library's choice, too.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rocksdb/rocksdb_namespace.h"

namespace ROCKSDB_NAMESPACE {

// A base of DBOptions.
struct StrataDBOptions {
  // The number of write groups in a row that one thread may write. With 1, the
  // leader of a write group hands over to the next writer that waits, and that
  // writer's thread writes the next group: all that a write touches (memtable,
  // WAL buffer) moves from core to core, often for a write or two. With more,
  // the leader also writes up to this many groups of waiting writers, whose
  // threads wait as members of a group do. Small writes of several threads
  // become faster, by about a fifth with four threads. Twice the number of
  // writing threads is a good value.
  //
  // Cost: a thread that leads returns from its own write later, by the time
  // that the other groups take. The leader therefore hands over
  // * to a writer with WriteOptions::sync, a rate_limiter_priority, a callback
  //   that does not allow write batching, or a batch that becomes a memtable
  //   (IngestWriteBatchWithIndex());
  // * after a failed write, while writes are delayed or stopped, when a
  //   memtable or the WAL is full, and when the leader has memory to free or
  //   listeners to notify.
  // A no_slowdown writer never leads for others. Groups that are led for others
  // are not written to memtables by several threads
  // (allow_concurrent_memtable_write), and a memtable error fails every writer
  // of such a group. The leading thread may call the WriteCallbacks and
  // UserWriteCallbacks of the writers that it leads. The work of a leader
  // counts for its own PerfContext and IOStatsContext, except for
  // write_pre_and_post_process_time.
  //
  // From 1 to 1024. Open returns InvalidArgument for a value above 1 together
  // with enable_pipelined_write or unordered_write. The ticker
  // WRITE_GROUPS_KEPT counts the groups that were led for others.
  //
  // Source: flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat Combining
  // and the Synchronization-Parallelism Tradeoff", SPAA 2010).
  //
  // Default: 1
  uint32_t max_write_groups_per_leader = 1;

  // The size in bytes of a buffer that takes the data of a WAL first; 0: no
  // buffer. The buffer is the file WALBUFFER beside the WALs, mapped to memory.
  // A write then needs no system call for its WAL and survives the end of the
  // process as before: the next open of the DB moves the buffer's data to the
  // WAL. Writes that were not synced may be lost when power is lost, as without
  // a buffer.
  //
  // The buffer is written to the WAL when it is full, by WriteOptions::sync,
  // SyncWAL(), FlushWAL() and LockWAL(), every wal_bytes_per_sync bytes, before
  // WALs are listed or copied, by GetUpdatesSince(), and before the next WAL
  // takes data. A TransactionLogIterator and a secondary instance therefore see
  // the newest writes later than without a buffer. A read-only open sees them,
  // but cannot list or copy WALs then, beside a writer or after a crash
  // (NotSupported). A device error may concern earlier writes: they stay in the
  // buffer until the next operation or open that needs them. A write that
  // has failed is taken back, and is not there after Resume(); the next open
  // may find it if the process ends before. With two_write_queues, a failed
  // sync of a write that others follow in the WAL is a fatal background error.
  // While the buffer may hold data, the MANIFEST has a mark that makes RocksDB
  // refuse the DB.
  //
  // The buffer is for small writes of several threads, together with
  // max_write_groups_per_leader: 64 KiB make them about a tenth faster. Cost:
  // the memory, in the page cache, and a copy. As with every mapped file,
  // SIGBUS ends the process if the device fails under a page of the buffer. All
  // blocks of the buffer are written at open, so a full device is no such
  // failure, unless the file system never writes in place (btrfs, ZFS).
  //
  // From 4096 to 67108864 (64 MiB), rounded up to pages. Open returns
  // InvalidArgument together with recycle_log_file_num, whose WALs do not end
  // where their files end, and with manual_wal_flush, which keeps writes in
  // memory itself; NotSupported with a file system that does not map files as
  // they are (encryption, not POSIX). The ticker WAL_BUFFER_WRITES counts the
  // writes of the buffer to a WAL.
  //
  // Default: 0
  size_t wal_mmap_buffer_size = 0;
};

// A base of AdvancedColumnFamilyOptions.
struct StrataColumnFamilyOptions {
  // ---- Per-level paths. See docs/per-level-paths.md.

  // The path of the SST files of each level: entry i is an index into cf_paths
  // (or db_paths if cf_paths is empty) for level i; the last entry serves every
  // deeper level. Levels are absolute: with
  // level_compaction_dynamic_level_bytes the levels that are skipped keep their
  // entries. For example {0, 1} keeps level 0 on cf_paths[0] and everything
  // below it on cf_paths[1]. While the option is set the target_size of the
  // paths plays no part in placement.
  //
  // A flush, compaction, ingestion or import writes its SST files where the
  // output level's entry says. When the value changes, new files follow it at
  // once, and compaction moves files that lie elsewhere
  // (CompactionReason::kMisplacedFiles); CompactRange() moves all of its range,
  // and MigratePaths() (rocksdb/utilities/path_migration.h) moves all files at
  // a given rate.
  //
  // At most four paths can be named (ids 0 to 3). An id without a path is
  // refused with InvalidArgument at open, at CreateColumnFamily() and by
  // SetOptions(). FIFO compaction, a compaction_service (remote compaction) and
  // follower instances are NotSupported. Checkpoint and BackupEngine copy a DB
  // with several paths into one directory, without paths, or into several: see
  // rocksdb/utilities/copy_layout.h.
  //
  // Source: "Tiered key-value separation" (vertical, horizontal and selective
  // placement).
  //
  // Default: empty (placement by the target_size of the paths, as in RocksDB)
  //
  // Dynamically changeable through the SetOptions() API
  std::vector<uint32_t> level_sst_path_ids;

  // The path of the blob files of each level: entry i is the index into
  // cf_paths for a blob file whose entries go to level i. Has an effect only on
  // blob files, see enable_blob_files. A compaction that moves entries to a
  // level whose blob files belong elsewhere rewrites their values there, also
  // when enable_blob_garbage_collection is off. For example level_sst_path_ids
  // = {0} with level_blob_path_ids = {1} keeps all keys on cf_paths[0] and all
  // separated values on cf_paths[1].
  //
  // Once a blob file lies on a path other than cf_paths[0], RocksDB refuses the
  // DB. To go back: make this option empty, call CompactRange() with
  // BottommostLevelCompaction::kForce, which moves all values to cf_paths[0],
  // and reopen once, which writes a MANIFEST without the other paths.
  //
  // Limits, errors and source are those of level_sst_path_ids.
  //
  // Default: empty (all blob files on cf_paths[0])
  //
  // Dynamically changeable through the SetOptions() API
  std::vector<uint32_t> level_blob_path_ids;

  // The cost of storage on each path: entry i is the price of a GiB
  // (1073741824 bytes) on cf_paths[i] (or db_paths[i] if cf_paths is empty), in
  // any currency, for any period. With prices, the property
  // "rocksdb.path-stats" has the cost of each path's files, the sum, the sum if
  // all files were on the dearest path, and the ratio of the two; `ldb
  // path_cost` takes them as a default. The option has no effect on where files
  // go.
  //
  // Either empty or one price for each path. Another number, or a price that is
  // negative, infinite or NaN, is refused with InvalidArgument at open, at
  // CreateColumnFamily() and by SetOptions(). With prices, OPTIONS files have
  // cf_paths as with a layout. A checkpoint or a restored backup, whose
  // directories are others, has no prices. To open the DB with more or fewer
  // paths, change the prices, too.
  //
  // Cost: "rocksdb.path-stats" asks all versions of the column family for
  // their files, with the DB mutex held.
  //
  // Source: "Tiered key-value separation" (section 6.2.4, storage financial
  // cost).
  //
  // Default: empty (no prices)
  //
  // Dynamically changeable through the SetOptions() API
  std::vector<double> path_prices;

  // ---- The blob address map. See docs/address-map.md.

  // Keeps the addresses of separated values in a map in memory instead of in
  // the LSM-tree: SST files hold the key alone. A point read of a value that
  // has no other version costs one read of a blob file and no access to an SST
  // file (see enable_lsm_bypass), and blob files give space back without a
  // compaction.
  //
  // Memory: about 32 bytes per key whose value is separated (min_blob_size),
  // charged to the block cache of the table factory, unless its
  // cache_usage_options say otherwise of CacheEntryRole::kBlobAddressMap. A
  // full cache stops no flush, not even with strict_capacity_limit. The open of
  // the DB rebuilds the map: from a file of its own after a clean close, else
  // from the keys of all SST files and the indexes of all blob files.
  //
  // Once a file with such entries was written, RocksDB refuses the DB. The
  // option may be switched on and off by reopening; old files stay readable and
  // compactions convert them. docs/address-map.md says how to get back to a DB
  // that RocksDB opens.
  //
  // enable_blob_garbage_collection and its two parameters have no effect: see
  // blob_gc_space_amp_limit, which bounds the old files of BlobDB, too.
  //
  // Needs enable_blob_files (InvalidArgument at open otherwise). Open returns
  // NotSupported together with: enable_blob_direct_write,
  // inplace_update_support, experimental_mempurge_threshold, FIFO compaction,
  // ingest behind, user-defined timestamps, a comparator for which different
  // bytes can be equal, table formats other than the block-based one, secondary
  // and follower instances. experimental_mempurge_threshold, FIFO compaction,
  // ingest behind, user-defined timestamps, secondary and follower instances
  // are also refused, with or without this option, while the map has values. A
  // DB that has direct values (enable_lsm_bypass) is refused with NotSupported
  // together with write-prepared and write-unprepared transactions and
  // unordered_write.
  //
  // Source: "Wayfinder" (blob address map) and "KV-Tandem" (direct and
  // versioned entries).
  //
  // Default: false
  //
  // Not dynamically changeable through the SetOptions() API.
  bool enable_blob_address_map = false;

  // With enable_blob_address_map: a read finds a value that is the only version
  // of its key through the map by the key alone, and the filters of SST files
  // leave such keys out, so the read skips every file whose filter does not
  // hold its key. If false, each read searches the LSM-tree first.
  //
  // Source: "KV-Tandem" (LSM bypass).
  //
  // Default: true
  //
  // Not dynamically changeable through the SetOptions() API.
  bool enable_lsm_bypass = true;

  // With enable_blob_address_map: closing the DB writes the map to a file in
  // the DB's directory, 22 bytes per value. The next open reads the file and
  // deletes it. Without the file, the open builds the map from the keys of all
  // SST files and the record indexes of all blob files, as it does after a
  // crash. The file is not synced; a file that is damaged or does not match the
  // MANIFEST is ignored. Set this to false where the close must be short and
  // the next open need not be.
  //
  // Default: true
  //
  // Dynamically changeable through the SetOptions() API
  bool save_blob_address_map = true;

  // With enable_blob_address_map: the limit of the space that the blob files of
  // the column family take up, as a multiple of their size without garbage
  // (values that were overwritten or deleted and that no snapshot sees).
  // Before it is reached, background jobs copy the live values of files with
  // much garbage to new files and delete the old ones. The jobs run beside
  // flushes and compactions, in the threads of low priority: half of
  // max_background_jobs at the same time, at least one; three quarters of them
  // above the limit. The jobs read and write blob files and memory only, no SST
  // file.
  //
  // Everything on disk counts as space, including the copies of a running job;
  // so jobs begin a bit below the limit. If they cannot keep up, writes are
  // slowed down as they are for pending compaction bytes, but never stopped.
  // Files that are still read, or kept by DisableFileDeletions(), are deleted
  // later.
  //
  // Cost: the lower the limit, the more is copied. Under uniform overwrites the
  // process writes 6.05 bytes for each byte that is put at 1.1, 3.87 at 1.2 and
  // 2.10 at 1.5, the WAL among them (the experiment gc-uniform, see
  // bench/results/gc-uniform/table.md).
  //
  // 0: no jobs; only files without a live value are deleted, and the
  // application can call DB::CollectBlobGarbage(). Otherwise from 1.01 to 1000,
  // or InvalidArgument.
  //
  // Source: "Wayfinder" (Value Log GC).
  //
  // Default: 1.2
  //
  // Dynamically changeable through the SetOptions() API
  double blob_gc_space_amp_limit = 1.2;

  // Puts the values that scans read into the order of their keys.
  //
  // A scan that finds each value in another place reads a file once for each
  // value. The DB adds up what such scans have cost in each range of keys,
  // in bytes: 16 KiB for each place that sorted values would not have needed.
  // When the sum, times this option, reaches the bytes that sorting the range
  // reads and writes, a background job copies the values of the range to new
  // blob files, in key order. So at 1, sorting costs at most as much as scans
  // have lost before, and ranges that are not scanned are not sorted. Values
  // stay where they are if their neighbors are mostly in the same place
  // already. Iterators count, in both directions; point reads and values in the
  // blob cache do not.
  //
  // A seek also reads a block of each file of level 0, where files of keys wait
  // for the sake of writes (16 KiB each, if the block is not in the block
  // cache). When such reads, times this option, have cost as much as a
  // compaction of level 0 into the base level reads and writes, that compaction
  // takes place. (Level compaction only; not counted while the column family
  // has delta files, nor in threads whose IOStatsContext has disable_iostats
  // set.)
  //
  // Copied values are garbage in their old files until blob_gc_space_amp_limit
  // has them collected, and a range is not sorted while the limit leaves no
  // room for that: files of flushes are merged first, to files of few ranges.
  // With a limit of 0 the garbage stays until DB::CollectBlobGarbage() is
  // called, and each sort adds some.
  //
  // 0: never. Otherwise up to 1000, or InvalidArgument.
  //
  // Source: the rent-or-buy rule (Karlin et al., "Competitive snoopy caching",
  // 1988); no paper on key-value stores sorts by what scans pay.
  //
  // Default: 1
  //
  // Dynamically changeable through the SetOptions() API
  double blob_scan_sort_budget = 1.0;

  // Bytes that blob files with hot values may take up on
  // cf_paths[blob_hot_path_id]: values that point reads ask for often are moved
  // there in the background, whatever level_blob_path_ids says, and go back to
  // the path where they belong when others are read more often.
  //
  // Reads are counted in a sketch of fixed size that ages: only those of Get(),
  // MultiGet() and the like that need a blob file, i.e. neither those that the
  // blob cache answers nor those of iterators. A value that was read twice
  // lately is copied while there is room. When there is none, the least read
  // values of the oldest hot file make room. The old copies are garbage, which
  // counts for blob_gc_space_amp_limit. A value larger than an eighth of the
  // budget (before its compression, if blob_compression_type has changed) is
  // never hot, nor is one whose path is the hot path anyway. With a budget
  // below 1 KiB no value is.
  //
  // No edit of the MANIFEST makes the sum of the sizes of the hot files larger
  // than the budget. While a job copies, its output takes up space besides, and
  // files that were replaced stay until their last readers have gone. With a
  // smaller budget, or with another blob_hot_path_id, jobs move the values
  // back, or to the new path when they are read again. 0: no values are hot,
  // and those that are hot are moved back.
  //
  // Cost: memory of 1/128 to 1/64 of the budget (64 KiB to 64 MiB), and with a
  // blob cache one more lookup in it for each read. After a change from one
  // size of the sketch to another, the memory of both is kept until the DB is
  // closed.
  //
  // Has no effect without enable_blob_address_map. InvalidArgument if there is
  // only one path, or if blob_hot_path_id names none. With a budget, OPTIONS
  // files have cf_paths as with a layout. A checkpoint or a restored backup has
  // no blob_hot_bytes.
  //
  // Source: TinyLFU (Einziger et al., 2017) for the sketch. HotRAP, Mutant and
  // PrismDB move keys with their values between the levels of an LSM-tree; with
  // the map, a value moves alone.
  //
  // Default: 0 (off)
  //
  // Dynamically changeable through the SetOptions() API
  uint64_t blob_hot_bytes = 0;

  // Index into cf_paths (or db_paths if cf_paths is empty) of the path of hot
  // values. From 0 to 3, or InvalidArgument. Has no effect while blob_hot_bytes
  // is 0.
  //
  // Default: 0
  //
  // Dynamically changeable through the SetOptions() API
  uint32_t blob_hot_path_id = 0;

  // ---- The merged-value cache. See docs/merged-value-cache.md.

  // Keeps in memory the values that point reads have computed from merge
  // operands, so that a later read of the key merges only the operands that
  // were written since: the read asks no older memtable and no file.
  //
  // Get(), MultiGet(), GetEntity(), MultiGetEntity(), KeyMayExist(),
  // write-committed and optimistic transactions, and the reads of writes for
  // max_successive_merges use the cache. Iterators and GetMergeOperands() do
  // not, nor do reads with kPersistedTier, kMemtableTier,
  // ReadOptions::ignore_range_deletions or merge_operand_count_threshold.
  // ReadOptions::fill_cache is respected. Values that are wide columns are not
  // kept. A flush of newer operands merges them into the kept value; a flush of
  // any other newer entry of the key (or of a key with a similar hash) or of
  // range deletions drops it, unless it was read after the memtable was
  // switched. Ingestion of files, deletion of files and compaction filters that
  // change a value clear the cache.
  //
  // Memory: merged_value_cache_size.
  //
  // The merge operator must compute the same value from the same operands,
  // however many of them it is given at a time. An operator that overrides
  // ShouldMerge() to leave out old operands is not supported: the cache would
  // ask it with the operands since the last read.
  //
  // Needs a merge_operator (InvalidArgument at open otherwise). Open returns
  // NotSupported together with: unordered_write, inplace_update_support,
  // experimental_mempurge_threshold, user-defined timestamps, a comparator for
  // which different bytes can be equal, write-prepared and write-unprepared
  // transactions, secondary and follower instances.
  //
  // Source: after "KDSep" (its cache keeps operands; this cache keeps values).
  //
  // Default: false
  //
  // Not dynamically changeable through the SetOptions() API.
  bool enable_merged_value_cache = false;

  // With enable_merged_value_cache: the number of bytes that values and their
  // keys may take up. A table that says which of them are outdated comes on top
  // from the first value on: 16 bytes for each KiB of the size at open, which
  // is rounded down to a power of two for this (so 1/64 to 1/128 of the size),
  // but 64 KiB at least and 16 MiB at most. All is charged to the block cache
  // of the table factory, unless its cache_usage_options say otherwise of
  // CacheEntryRole::kMergedValueCache; if that cache is full and has a
  // strict_capacity_limit, fewer values are kept.
  // A value may take up all of the size; a larger one is not kept, and LOG has
  // a warning. Values of more than an eighth of a shard have half of it
  // together. There is one shard for each 512 KiB of the size at the open, but
  // the number of shards is a power of two, and at most 64.
  //
  // UINT64_MAX and 0 have the same meaning: a sixteenth of the block cache's
  // capacity when the column family is opened or the option changes, and 1 MiB
  // at least; 8 MiB without a block cache.
  //
  // Default: 0
  //
  // Dynamically changeable through the SetOptions() API
  uint64_t merged_value_cache_size = 0;

  // ---- Delta separation. See docs/delta-separation.md.

  // Keeps merge operands (deltas) out of the LSM-tree: a flush writes the
  // operands that it cannot merge into a value to delta files, ordered and with
  // a filter. Compactions do not rewrite them, and a reader finds the operands
  // of a key in few places, while it looks for the value.
  //
  // Cost: a flush that writes a value or tombstone of a key that may have older
  // operands in delta files, or a range deletion over such keys, writes a note
  // (an anchor) there, so a flush asks the filters of delta files about each
  // key that is no operand. Flushes of the column family run one after another.
  // Memory: filters and indexes of delta files, which stay in the block cache
  // of the table factory. Open files: delta files do not count for
  // max_open_files.
  //
  // The option may be switched on and off by reopening. With the option off,
  // background jobs merge the operands in delta files into values, and flushes
  // write to delta files only operands of keys that may have older ones there.
  // While there are delta files, RocksDB refuses the DB.
  //
  // Needs a merge_operator (InvalidArgument at open otherwise). Open returns
  // NotSupported together with: inplace_update_support,
  // experimental_mempurge_threshold, FIFO compaction, ingest behind,
  // user-defined timestamps, a comparator for which different bytes can be
  // equal, table formats other than the block-based one, write-prepared and
  // write-unprepared transactions, secondary and follower instances. All but
  // the merge_operator, inplace_update_support and the comparator are also
  // refused, with or without this option, while there are delta files. Point
  // reads of the column family do not use the row_cache.
  //
  // Source: "KDSep" (key-delta separation).
  //
  // Default: false
  //
  // Not dynamically changeable through the SetOptions() API.
  bool enable_delta_separation = false;

  // With enable_delta_separation: the number of bytes of operands that a bucket
  // is meant for. Buckets divide the keys into ranges whose operands lie
  // together, so this is about what a job reads and writes to collect the
  // garbage of one bucket. The smaller, the more buckets the same operands
  // need, see delta_max_buckets.
  //
  // From 4096 to 1073741824, or InvalidArgument.
  //
  // Source: "KDSep" (bucket capacity).
  //
  // Default: 262144 (256 KiB)
  //
  // Not dynamically changeable through the SetOptions() API.
  uint64_t delta_bucket_size = 262144;

  // With enable_delta_separation: the largest number of buckets, whose lowest
  // keys have at most 256 MiB. Each takes about 40 bytes of memory and its
  // lowest key. Together with delta_bucket_size it is the number of bytes of
  // operands that the store is meant for (8 GiB by default); when that is
  // reached, operands are merged into values instead.
  //
  // From 4 to 1048576, or InvalidArgument.
  //
  // Source: "KDSep" (N).
  //
  // Default: 32768
  //
  // Dynamically changeable through the SetOptions() API
  uint32_t delta_max_buckets = 32768;

  // With enable_delta_separation: the path of sorted delta files, which have
  // the operands that buckets have taken in; an index into cf_paths (or
  // db_paths if cf_paths is empty). Flushes, and merges of flushed delta files,
  // write recent delta files. Recent delta files lie on the path of the SST
  // files of level 0 by level_sst_path_ids, or on cf_paths[0] without that
  // option.
  //
  // When this option or level_sst_path_ids changes, new files follow it at
  // once, and background jobs move delta files that lie elsewhere, after all
  // other jobs of delta files; CompactRange() of all keys moves all of them. A
  // job reads and writes up to 32 MiB at a time.
  //
  // -1: the path of the SST files of the last level by level_sst_path_ids, or
  // cf_paths[0] without that option. Otherwise from 0 to 3; an id without a
  // path is refused with InvalidArgument at open, at CreateColumnFamily() and
  // by SetOptions(). With an id, OPTIONS files have cf_paths as with a layout.
  //
  // Source: "KDSep" (buckets) with "Tiered key-value separation" (horizontal
  // placement): recent operands on the fast device, sorted ones on the cheap
  // one.
  //
  // Default: -1
  //
  // Dynamically changeable through the SetOptions() API
  int32_t delta_sorted_path_id = -1;

  // With enable_delta_separation: a bucket that is still fuller than this share
  // of delta_bucket_size after its garbage was collected is split. With p for
  // the share, an operand is written about 1 / (1 - p) times until it is merged
  // into a value.
  //
  // From 0.1 to 1, or InvalidArgument.
  //
  // Source: "KDSep" (split threshold).
  //
  // Default: 0.8
  //
  // Dynamically changeable through the SetOptions() API
  double delta_bucket_split_ratio = 0.8;

  // With enable_delta_separation: the number of bytes that the delta cache may
  // take up. The cache keeps, key by key, the operands that point reads have
  // found in delta files, so that the next read of the key asks only newer
  // files. Flushes do not clear it, and jobs clear little of it: see
  // docs/delta-separation.md. ReadOptions::fill_cache is respected; iterators
  // do not use the cache.
  //
  // All is charged to the block cache of the table factory, unless its
  // cache_usage_options say otherwise of CacheEntryRole::kDeltaCache; if that
  // cache is full and has a strict_capacity_limit, fewer keys are kept. The
  // operands of a key are not kept if they are more than a 512th of the size.
  //
  // 0: there is no delta cache.
  //
  // Source: "KDSep" (KD cache).
  //
  // Default: UINT64_MAX, which stands for a 32nd of the block cache's capacity
  // when the column family is opened or the option changes, or 0 if that is
  // below the 256 KiB that it is charged in; 4 MiB without a block cache; 0
  // with enable_merged_value_cache, which would serve almost all its hits.
  //
  // Dynamically changeable through the SetOptions() API
  uint64_t delta_cache_size = UINT64_MAX;
};

// A base of ReadOptions.
struct StrataReadOptions {
  // The largest number of values that a scan, forward or backward, of a column
  // family with enable_blob_address_map reads ahead of its position; at most 4
  // MiB of values, too. A scan begins at its third value, with two reads at a
  // time, and doubles their number as long as it goes on. With
  // kAutoBlobPrefetchCount, if most scans of the column family come to the same
  // number of values, a scan begins with its first value, with that many reads
  // (128 at most), and stops there.
  //
  // Reads of neighbouring values are combined; others run at the same time: by
  // the file system's asynchronous reads (FSSupportedOps::kAsyncIO; for the
  // default file system io_uring, if RocksDbIOUringEnable() allows it), else
  // one on each of the threads that all databases of the process share for this
  // (32 at most). Values that a seek or the end of the iterator makes useless
  // were read for nothing. With kAutoBlobPrefetchCount, the scanning thread
  // reads the values itself while they come from the page cache. 0: the
  // iterator reads each value when it comes to it.
  //
  // A scan that turns begins again. Nothing is read ahead by tailing iterators
  // (they see what is written between steps), with allow_unprepared_value or a
  // read_tier other than kReadAllTier, or without a map. Reads ahead by other
  // threads do not count in the PerfContext of the scanning thread.
  //
  // Source: "KV-Tandem" (section 4.2.2: parallel reads of a scan's values).
  //
  // Default: kAutoBlobPrefetchCount, which is 64 at present
  static constexpr size_t kAutoBlobPrefetchCount =
      std::numeric_limits<size_t>::max();
  size_t blob_prefetch_count = kAutoBlobPrefetchCount;
};

// The argument of DB::CollectBlobGarbage().
struct CollectBlobGarbageOptions {
  // The space that the blob files of the column family may take up afterwards,
  // as a multiple of their size without garbage. From 1, which collects all
  // garbage, to 1000.
  double space_amp_limit = 1.0;

  // Also rewrites live values until the values of neighbouring keys lie in no
  // more than this many places (on each path): scans then read many of them in
  // one go. Blob files are sorted, and files that do not overlap form sorted
  // runs. The smallest runs are merged, up to 64 at a time; with 1, all values
  // of a database that has more runs are rewritten, more than once if there are
  // more than 64 runs.
  //
  // An old file is deleted when the last of its values was copied: meanwhile
  // the largest file of each run that is merged takes up space in addition.
  // With a blob_gc_space_amp_limit these files have half of the room that the
  // limit leaves, for which fewer runs are merged at a time if need be; beyond
  // the limit they are not counted.
  //
  // Values that are written while the call runs, and values that a background
  // job moves, stay where they are.
  //
  // 0: the order of values does not matter.
  uint32_t max_sorted_runs = 0;

  // Another thread sets *canceled to make the call return early with
  // Status::Incomplete (subcode kManualCompactionPaused). May be nullptr.
  std::atomic<bool>* canceled = nullptr;
};

}  // namespace ROCKSDB_NAMESPACE
