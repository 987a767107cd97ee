# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
#
# Strata's own sources. Written by scripts/overlay_sources.py, which every build runs;
# read by cmake/strata.cmake and included by src.mk.

STRATA_LIB = \
  db/arena_wrapped_db_iter_bound.cc \
  db/blob/address_map.cc \
  db/blob/address_map_checkpoint.cc \
  db/blob/address_map_recovery.cc \
  db/blob/address_map_stats.cc \
  db/blob/address_map_verifier.cc \
  db/blob/blob_file_path_registry.cc \
  db/blob/blob_file_runs.cc \
  db/blob/blob_format_v2.cc \
  db/blob/blob_gc_job.cc \
  db/blob/blob_gc_picker.cc \
  db/blob/blob_gc_storage.cc \
  db/blob/blob_key_bounds.cc \
  db/blob/blob_live_records.cc \
  db/blob/blob_read_group.cc \
  db/blob/blob_record_index.cc \
  db/blob/blob_record_reader.cc \
  db/blob/blob_record_walker.cc \
  db/blob/blob_relocation.cc \
  db/blob/blob_source_mapped.cc \
  db/blob/compaction_mapping.cc \
  db/blob/direct_mode_check.cc \
  db/blob/flush_mapping.cc \
  db/blob/map_file_table.cc \
  db/blob/map_images.cc \
  db/blob/map_iterators.cc \
  db/blob/map_memory_reservation.cc \
  db/blob/map_point_read.cc \
  db/blob/map_prefetch_iterator.cc \
  db/blob/map_publication.cc \
  db/blob/map_reads.cc \
  db/blob/map_side_store.cc \
  db/blob/map_tailing_iterator.cc \
  db/blob/map_value_iterator.cc \
  db/blob/mapped_blob_index.cc \
  db/blob/mapped_blob_writer.cc \
  db/blob/mapped_blobs.cc \
  db/blob/mapped_entries.cc \
  db/blob/mapped_file_removal.cc \
  db/blob/mapped_flow.cc \
  db/blob/mapped_key_scan.cc \
  db/blob/mapped_removals.cc \
  db/blob/mapped_row_cache.cc \
  db/blob/mapped_summary.cc \
  db/blob/range_deletion_queue.cc \
  db/blob/range_deletion_sweep.cc \
  db/blob/scan_lengths.cc \
  db/blob/spill_file.cc \
  db/compaction/blob_placement.cc \
  db/compaction/compaction_iterator_mapped.cc \
  db/compaction/level0_merge.cc \
  db/compaction/misplaced_files.cc \
  db/db_impl/db_impl_address_map.cc \
  db/db_impl/db_impl_blob_gc.cc \
  db/db_impl/db_impl_range_deletions.cc \
  db/map_flush_gate.cc \
  db/merged_value/change_noting_filter.cc \
  db/merged_value/merge_helper_merged_value.cc \
  db/merged_value/merged_value_cache.cc \
  db/merged_value/merged_value_read.cc \
  db/merged_value/merged_value_reads.cc \
  db/merged_value/merged_value_stats.cc \
  db/merged_value/version_edit_merged_values.cc \
  db/path_check.cc \
  db/path_layout.cc \
  db/path_stats.cc \
  db/path_sync.cc \
  db/read_bound_registry.cc \
  db/repair_paths.cc \
  db/table_cache_mapped.cc \
  db/version_set_mapped.cc \
  file/path_read_stats.cc \
  options/address_map_options.cc \
  options/merged_value_options.cc \
  options/omitted_at_default.cc \
  options/path_options.cc \
  table/block_based/mapped_table_property.cc \
  tools/ldb_map_command.cc \
  tools/ldb_path_flags.cc \
  util/path_list.cc \
  utilities/blob_db/blob_dump_tool_v2.cc \
  utilities/checkpoint/checkpoint_paths.cc \
  utilities/merge_operators/field_update.cc \

STRATA_TEST_LIB = \
  db/history_fault_fs_test_util.cc \
  db/history_model_test_util.cc \
  db/history_runner_test_util.cc \
  db/history_script_test_util.cc \
  db/path_test_util.cc \

STRATA_TEST_MAIN = \
  db/blob/address_map_checkpoint_fuzz_test.cc \
  db/blob/address_map_checkpoint_test.cc \
  db/blob/address_map_test.cc \
  db/blob/blob_file_path_registry_test.cc \
  db/blob/blob_file_path_test.cc \
  db/blob/blob_file_runs_test.cc \
  db/blob/blob_format_v2_test.cc \
  db/blob/blob_gc_job_test.cc \
  db/blob/blob_gc_picker_test.cc \
  db/blob/blob_gc_storage_test.cc \
  db/blob/blob_live_records_test.cc \
  db/blob/blob_read_group_test.cc \
  db/blob/blob_record_index_test.cc \
  db/blob/blob_record_walker_test.cc \
  db/blob/blob_relocation_test.cc \
  db/blob/db_address_map_crash_test.cc \
  db/blob/db_address_map_lifecycle_test.cc \
  db/blob/db_address_map_race_test.cc \
  db/blob/db_address_map_test.cc \
  db/blob/db_blob_gc_test.cc \
  db/blob/db_blob_path_test.cc \
  db/blob/map_file_table_test.cc \
  db/blob/map_iterators_test.cc \
  db/blob/map_memory_reservation_test.cc \
  db/blob/mapped_blob_index_test.cc \
  db/blob/mapped_entries_test.cc \
  db/blob/mapped_flow_test.cc \
  db/blob/mapped_removals_test.cc \
  db/blob/prefix_scope_test.cc \
  db/blob/range_deletion_queue_test.cc \
  db/blob/range_deletion_sweep_test.cc \
  db/blob/scan_lengths_test.cc \
  db/blob/spill_file_test.cc \
  db/c_strata_test.cc \
  db/compaction/level0_merge_test.cc \
  db/compaction/path_compaction_test.cc \
  db/history_script_test.cc \
  db/map_flush_gate_test.cc \
  db/merged_value/change_noting_filter_test.cc \
  db/merged_value/db_merged_value_test.cc \
  db/merged_value/merged_value_cache_test.cc \
  db/path_durability_test.cc \
  db/path_layout_test.cc \
  db/path_placement_test.cc \
  db/path_stats_test.cc \
  db/path_sync_test.cc \
  db/read_bound_registry_test.cc \
  db/refused_edit_test.cc \
  db/repair_paths_test.cc \
  options/address_map_options_test.cc \
  options/merged_value_options_test.cc \
  options/path_options_test.cc \
  table/block_based/bypass_filter_test.cc \
  tools/bench/active_clock_test.cc \
  tools/bench/generators_test.cc \
  tools/bench/latency_histogram_test.cc \
  tools/bench/process_stats_test.cc \
  tools/bench/record_test.cc \
  tools/bench/report_test.cc \
  tools/bench/workload_thread_test.cc \
  tools/ldb_map_command_test.cc \
  util/path_list_test.cc \
  utilities/merge_operators/field_update_test.cc \

STRATA_BENCH_LIB = \
  tools/bench/active_clock.cc \
  tools/bench/delete_range_workload.cc \
  tools/bench/generators.cc \
  tools/bench/latency_histogram.cc \
  tools/bench/load_workload.cc \
  tools/bench/mix_workload.cc \
  tools/bench/process_stats.cc \
  tools/bench/record.cc \
  tools/bench/record_shape.cc \
  tools/bench/report.cc \
  tools/bench/snapshot_workload.cc \
  tools/bench/verify_workload.cc \
  tools/bench/workload.cc \

STRATA_BENCH = \
  tools/db_bench_workloads.cc \

STRATA_STRESS = \
  db_stress_tool/db_stress_blob_gc.cc \
  db_stress_tool/db_stress_leak_check.cc \
  db_stress_tool/db_stress_map_flags.cc \
  db_stress_tool/db_stress_path_flags.cc \

LIB_SOURCES += $(STRATA_LIB)
TEST_LIB_SOURCES += $(STRATA_TEST_LIB)
BENCH_LIB_SOURCES += $(STRATA_BENCH_LIB)
BENCH_LIB_SOURCES += $(STRATA_BENCH)
STRESS_LIB_SOURCES += $(STRATA_STRESS)
