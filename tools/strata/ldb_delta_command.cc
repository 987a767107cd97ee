//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_delta_command.h"

#include <cassert>
#include <cinttypes>
#include <cstdio>
#include <memory>

#include "db/column_family.h"
#include "db/db_impl/db_impl.h"
#include "db/delta/delta_file_probe.h"
#include "db/delta/delta_verifier.h"
#include "db/version_set.h"
#include "file/filename.h"
#include "rocksdb/comparator.h"
#include "rocksdb/file_checksum.h"
#include "util/cast_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

const char* const kThreads = "threads";

std::string Text(const Slice& text, bool hex) {
  return hex ? "0x" + text.ToString(/*hex=*/true) : text.ToString();
}

void Print(const std::string& line) { fprintf(stdout, "%s\n", line.c_str()); }

}  // namespace

//======== dump_delta

DumpDeltaCommand::DumpDeltaCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/true,
                 BuildCmdLineOptions({ARG_PATH, ARG_HEX, ARG_KEY_HEX,
                                      ARG_VALUE_HEX, ARG_MAX_KEYS})) {
  const auto path = options.find(ARG_PATH);
  if (path != options.end()) {
    path_ = path->second;
  }
  if (!params.empty() || path_.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, but --" + ARG_PATH +
        "=<a .delta file>");
    return;
  }
  if (ParseIntOption(options, ARG_MAX_KEYS, max_keys_, exec_state_) &&
      max_keys_ < 0) {
    exec_state_ = LDBCommandExecuteResult::Failed("--" + ARG_MAX_KEYS +
                                                  " must not be negative");
  }
}

void DumpDeltaCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" --" + ARG_PATH + "=<path_to_a_delta_file>");
  ret.append(" [--" + ARG_HEX + "]");
  ret.append(" [--" + ARG_KEY_HEX + "]");
  ret.append(" [--" + ARG_VALUE_HEX + "]");
  ret.append(" [--" + ARG_MAX_KEYS + "=<N>]");
  ret.append("\n");
}

Status DumpDeltaCommand::UseComparator(const std::string& name) {
  if (name == options_.comparator->Name()) {
    return Status::OK();
  }
  ConfigOptions config_options;
  config_options.env = options_.env;
  const Comparator* comparator = nullptr;
  if (Comparator::CreateFromString(config_options, name, &comparator).ok() &&
      comparator != nullptr) {
    options_.comparator = comparator;
    return Status::OK();
  }
  if (!db_path_.empty()) {
    // Uses the comparator of the column family in --column_family.
    PrepareOptions();
    for (const ColumnFamilyDescriptor& family : column_families_) {
      if (family.name == column_family_name_) {
        options_.comparator = family.options.comparator;
      }
    }
    if (name == options_.comparator->Name()) {
      return Status::OK();
    }
  }
  return Status::NotSupported("The comparator is not known: " + name);
}

void DumpDeltaCommand::DoCommand() {
  const size_t slash = path_.find_last_of('/');
  const std::string directory =
      slash == std::string::npos ? "." : path_.substr(0, slash);
  const std::string name =
      slash == std::string::npos ? path_ : path_.substr(slash + 1);
  uint64_t number = 0;
  FileType type = kTempFile;
  if (!ParseFileName(name, &number, &type) || type != kDeltaFile) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        "Not the name of a delta file: " + name);
    return;
  }
  DeltaFileProbe file;
  Status s = DeltaFileProbe::Read(ImmutableOptions(options_), FileOptions(),
                                  directory, number, &file);
  if (s.ok()) {
    s = UseComparator(file.comparator_name);
  }
  if (!s.ok()) {
    exec_state_ = LDBCommandExecuteResult::Failed(s.ToString());
    return;
  }

  const DeltaFileDescription& description = file.description;
  Print("Delta file " + path_);
  Print("  " + file.properties.ToString());
  if (file.properties.operands_number != 0) {
    Print("  beside delta file #" +
          std::to_string(file.properties.operands_number));
  }
  Print("  column family " + std::to_string(file.column_family_id) + " \"" +
        file.column_family_name + "\", " + file.comparator_name);
  Print("  " + std::to_string(description.size) + " bytes, " +
        std::to_string(description.num_entries) + " entries, " +
        std::to_string(description.num_range_anchors) + " ranges, " +
        std::to_string(description.raw_bytes) + " bytes of keys and operands");
  if (description.has_global_seq) {
    Print("  all sequence numbers are one that the MANIFEST has");
  }
  for (const DeltaFileProperties::Bucket& bucket : file.properties.buckets) {
    Print("  bucket from '" + Text(bucket.lower_bound, is_key_hex_) +
          "' floor " + std::to_string(bucket.floor_epoch));
  }
  if (file.properties.end.has_value()) {
    Print("  to '" + Text(*file.properties.end, is_key_hex_) + "'");
  }

  int left = max_keys_;
  const auto tables = file.NewTables(ImmutableOptions(options_),
                                     MutableCFOptions(options_), FileOptions());
  s = file.Scan(*tables, [&](const Slice& key, SequenceNumber seq,
                             const Slice& value, const Slice* end) {
    if (left == 0) {
      return;
    }
    left -= left > 0 ? 1 : 0;
    const std::string text = "'" + Text(key, is_key_hex_) + "'";
    const std::string at = " @ " + std::to_string(seq);
    if (end != nullptr) {
      Print("[" + text + ", '" + Text(*end, is_key_hex_) + "')" + at);
    } else if (description.kind == DeltaFileDescription::Kind::kAnchors) {
      Print(text + at);
    } else {
      Print(text + at + " : " + Text(value, is_value_hex_));
    }
  });
  exec_state_ = s.ok() ? LDBCommandExecuteResult::Succeed("")
                       : LDBCommandExecuteResult::Failed(s.ToString());
}

//======== verify_delta_store

VerifyDeltaStoreCommand::VerifyDeltaStoreCommand(
    const std::vector<std::string>& params,
    const std::map<std::string, std::string>& options,
    const std::vector<std::string>& flags)
    : LDBCommand(options, flags, /*is_read_only=*/true,
                 BuildCmdLineOptions({kThreads})) {
  if (!params.empty()) {
    exec_state_ = LDBCommandExecuteResult::Failed(
        Name() + " takes no parameters, only --" + kThreads);
    return;
  }
  if (ParseIntOption(options, kThreads, num_threads_, exec_state_) &&
      num_threads_ < 1) {
    exec_state_ = LDBCommandExecuteResult::Failed(std::string("--") + kThreads +
                                                  " must be at least 1");
  }
}

void VerifyDeltaStoreCommand::Help(std::string& ret) {
  ret.append("  ");
  ret.append(Name());
  ret.append(" [--");
  ret.append(kThreads);
  ret.append("=<int,e.g.:4>]\n");
}

void VerifyDeltaStoreCommand::OverrideBaseOptions() {
  LDBCommand::OverrideBaseOptions();
  // Otherwise a database that has lost a delta file does not open.
  options_.paranoid_checks = false;
}

void VerifyDeltaStoreCommand::DoCommand() {
  if (db_ == nullptr) {
    assert(GetExecuteState().IsFailed());
    return;
  }
  DBImpl* const db = static_cast_with_check<DBImpl>(db_->GetRootDB());
  std::shared_ptr<FileChecksumGenFactory> checksum_factory =
      options_.file_checksum_gen_factory != nullptr
          ? options_.file_checksum_gen_factory
          : GetFileChecksumGenCrc32cFactory();
  DeltaVerifier::Options options;
  options.num_threads = num_threads_;
  options.checksum_factory = checksum_factory.get();
  // cf_handles_ is empty if there is only one column family.
  std::map<std::string, ColumnFamilyHandle*> handles = cf_handles_;
  handles.emplace(kDefaultColumnFamilyName, db_->DefaultColumnFamily());
  uint64_t errors = 0;
  for (const auto& [name, handle] : handles) {
    ColumnFamilyData* const cfd =
        static_cast_with_check<ColumnFamilyHandleImpl>(handle)->cfd();
    SuperVersion* const sv = cfd->GetReferencedSuperVersion(db);
    const auto& delta = sv->current->storage_info()->delta();
    if (delta != nullptr) {
      DeltaTableFamily family(cfd->ioptions());
      family.id = cfd->GetID();
      family.name = cfd->GetName();
      family.file_options = FileOptions(db->GetDBOptions());
      const auto tables =
          NewUncachedDeltaTables(family, sv->mutable_cf_options);
      DeltaVerifier::Result result;
      DeltaVerifier::Verify(
          *tables, *delta, options,
          [&name = name](const std::string& line) {
            Print("[" + name + "] " + line);
          },
          &result);
      fprintf(stdout,
              "[%s] %" PRIu64 " delta files, %" PRIu64 " bytes, %" PRIu64
              " entries; %" PRIu64 " keys have %" PRIu64 " operands; %" PRIu64
              " errors\n",
              name.c_str(), result.files.load(), result.bytes.load(),
              result.entries.load(), result.keys, result.operands,
              result.errors.load());
      errors += result.errors.load();
    }
    db->CleanupSuperVersion(sv);
  }
  if (errors > 0) {
    exec_state_ = LDBCommandExecuteResult::Failed(std::to_string(errors) +
                                                  " errors in delta files");
    return;
  }
  Print("OK");
}

}  // namespace ROCKSDB_NAMESPACE
