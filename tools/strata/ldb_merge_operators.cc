//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/strata/ldb_merge_operators.h"

#include <memory>

#include "file/filename.h"
#include "options/strata/stored_merge_operators.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/options_util.h"
#include "utilities/merge_operators.h"
#include "utilities/strata/unknown_merge_operator.h"
#include "utilities/ttl/db_ttl_impl.h"

namespace ROCKSDB_NAMESPACE {

std::string LdbMergeOperators::Apply(
    const ConfigOptions& config_options, const std::string& db_path,
    bool reads_only, Options* options,
    std::vector<ColumnFamilyDescriptor>* families) {
  ConfigOptions config = config_options;
  config.env = options->env;
  // Else only an open of a DBWithTTL would make its operator known.
  DBWithTTLImpl::RegisterTtlClasses();
  StoredMergeOperators stored;
  // If the OPTIONS file cannot be parsed, the operators are unknown. A command
  // that writes then has none, and its jobs fail at a merge operand.
  stored.Load(config, db_path).PermitUncheckedError();
  const bool is_new =
      options->env->FileExists(CurrentFileName(db_path)).IsNotFound();
  const std::shared_ptr<MergeOperator> of_program = options->merge_operator;

  std::string unknown;
  const auto apply = [&](const std::string& family,
                         ColumnFamilyOptions* cf_options) {
    std::shared_ptr<MergeOperator>& op = cf_options->merge_operator;
    const std::string name = stored.NameOf(family);
    if (!name.empty() && !UnknownMergeOperator::Is(op.get())) {
      op = stored.Make(config, family, {op, of_program});
    }
    if (op == nullptr && (reads_only || is_new)) {
      op = MergeOperators::CreateStringAppendOperator(':');
    }
    if (UnknownMergeOperator::Is(op.get())) {
      unknown += (unknown.empty() ? "\"" : ", \"") + std::string(op->Name()) +
                 "\" of column family \"" + family + "\"";
    }
  };
  if (families->empty()) {
    apply(kDefaultColumnFamilyName, options);
  }
  for (ColumnFamilyDescriptor& family : *families) {
    apply(family.name, &family.options);
  }
  return unknown;
}

LDBCommandExecuteResult LdbMergeOperators::Refusal(const std::string& unknown) {
  return LDBCommandExecuteResult::Failed(
      "This command writes, and ldb does not have the merge operator " +
      unknown +
      ", which the OPTIONS file of the database names. Merge operands that it "
      "wrote would be lost. Run the command in a program that passes the "
      "operator to LDBTool::Run(). Without the operator, ldb can run all "
      "commands that only read (keys with merge operands excepted), and "
      "checkpoint, backup, repair and disable_address_map, which keep merge "
      "operands as they are, and disable_features, unless there are delta "
      "files");
}

Status RepairWithOwnOptions(const std::string& db_path, const Options& options,
                            const std::vector<ColumnFamilyDescriptor>& families,
                            bool needs_options_file) {
  if (needs_options_file) {
    std::string file;
    const Status s = GetLatestOptionsFileName(db_path, options.env, &file);
    if (!s.ok()) {
      return Status::InvalidArgument(
          db_path +
              " has no readable OPTIONS file, so the directories, comparators "
              "and merge operators of its column families are unknown; the "
              "open after a repair without them deletes the files that the "
              "repair did not find. Restore the OPTIONS file, or call "
              "RepairDB() with the options, or, if the database has all files "
              "in its own directory (or in --cf_paths) and the default "
              "comparator, run the command with --try_load_options=false",
          s.ToString());
    }
  }
  if (families.empty()) {
    return RepairDB(db_path, options);
  }
  // The operator of a column family that is only known from tables, such as one
  // that was dropped, is unknown.
  ColumnFamilyOptions unknown_family(options);
  if (unknown_family.merge_operator == nullptr) {
    unknown_family.merge_operator =
        std::make_shared<UnknownMergeOperator>("unknown", "");
  }
  return RepairDB(db_path, options, families, unknown_family);
}

}  // namespace ROCKSDB_NAMESPACE
