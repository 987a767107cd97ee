//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_write_steps_test_util.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rocksdb/convenience.h"
#include "rocksdb/write_batch.h"
#include "test_util/strata/history_text_test_util.h"
#include "test_util/strata/history_write_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Op = HistoryModel::Op;
using OpKind = HistoryModel::OpKind;

// Appends a write to the model that the DB has answered with `s`.
void AppendToModel(HistoryCall& c, const Status& s, HistoryModel::Write write,
                   bool is_durable) {
  const bool has_failed = !c.Report(s);
  write.has_failed = has_failed;
  c.model().Append(std::move(write));
  if (is_durable && !has_failed) {
    c.model().MarkDurable();
  }
}

// Calls the function of the DB for this write.
Status WriteAlone(HistoryCall& c, const WriteOptions& options,
                  const HistoryWrite& write) {
  DB* const db = c.db();
  const Op& op = write.op;
  ColumnFamilyHandle* const handle = c.state().families().at(op.cf).handle;
  switch (op.kind) {
    case OpKind::kPut:
      return write.is_entity
                 ? db->PutEntity(options, handle, op.key,
                                 HistoryWrite::ToWideColumns(op.columns))
                 : db->Put(options, handle, op.key, op.columns.at(""));
    case OpKind::kMerge:
      return db->Merge(options, handle, op.key, op.columns.at(""));
    case OpKind::kDelete:
      return write.is_single_delete ? db->SingleDelete(options, handle, op.key)
                                    : db->Delete(options, handle, op.key);
    case OpKind::kDeleteRange:
      return db->DeleteRange(options, handle, op.key, op.end);
  }
  return Status::NotSupported();
}

Status AddToBatch(HistoryCall& c, const HistoryWrite& write,
                  WriteBatch* batch) {
  const Op& op = write.op;
  ColumnFamilyHandle* const handle = c.state().families().at(op.cf).handle;
  switch (op.kind) {
    case OpKind::kPut:
      return write.is_entity
                 ? batch->PutEntity(handle, op.key,
                                    HistoryWrite::ToWideColumns(op.columns))
                 : batch->Put(handle, op.key, op.columns.at(""));
    case OpKind::kMerge:
      return batch->Merge(handle, op.key, op.columns.at(""));
    case OpKind::kDelete:
      return write.is_single_delete ? batch->SingleDelete(handle, op.key)
                                    : batch->Delete(handle, op.key);
    case OpKind::kDeleteRange:
      return batch->DeleteRange(handle, op.key, op.end);
  }
  return Status::NotSupported();
}

// words: one write, or several with ";" between them. A single write uses its
// own function of the DB.
void RunWrite(HistoryCall& c, HistoryWords words) {
  WriteOptions write_options;
  write_options.sync = HistoryArguments::TakeWord(&words, "sync");
  const auto parts = HistoryArguments::SplitAtSemicolons(words);
  const bool is_lone = parts.size() == 1;
  WriteBatch batch;
  HistoryModel::Write model_write;
  Status s;
  for (const HistoryWords& part : parts) {
    HistoryWrite write;
    if (!HistoryWrite::Parse(c, part, &write)) {
      c.Usage();
      return;
    }
    s = is_lone ? WriteAlone(c, write_options, write)
                : AddToBatch(c, write, &batch);
    model_write.ops.push_back(std::move(write.op));
    if (!s.ok()) {
      break;
    }
  }
  if (s.ok() && !is_lone) {
    s = c.db()->Write(write_options, &batch);
  }
  AppendToModel(c, s, std::move(model_write), write_options.sync);
}

void Write(HistoryCall& c) {
  HistoryWords words = c.args();
  words.insert(words.begin(), c.step().name);
  RunWrite(c, std::move(words));
}

void Batch(HistoryCall& c) { RunWrite(c, c.args()); }

void Fill(HistoryCall& c) {
  const HistoryWords& args = c.args();
  uint64_t first = 0;
  uint64_t last = 0;
  if (args.size() != 4 || !HistoryArguments::ParseNumber(args[1], &first) ||
      !HistoryArguments::ParseNumber(args[2], &last) || first > last) {
    c.Usage();
    return;
  }
  const size_t width = args[2].size();
  for (uint64_t i = first; i <= last; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, width - number.size(), '0');
    const std::string key = args[0] + number;
    // If a generated value has no tag, the key becomes the tag.
    std::string value = args[3];
    if (value[0] == '@' && value.find(':') == std::string::npos) {
      value.append(":").append(key);
    }
    RunWrite(c, {"put", key, value});
  }
}

void SyncWal(HistoryCall& c) {
  if (c.Report(c.db()->SyncWAL())) {
    c.model().MarkDurable();
  }
}

Status AddToFile(const Op& op, SstFileWriter* writer) {
  switch (op.kind) {
    case OpKind::kPut:
      if (op.columns.size() == 1 && op.columns.begin()->first.empty()) {
        return writer->Put(op.key, op.columns.at(""));
      }
      return writer->PutEntity(op.key, HistoryWrite::ToWideColumns(op.columns));
    case OpKind::kMerge:
      return writer->Merge(op.key, op.columns.at(""));
    case OpKind::kDelete:
      return writer->Delete(op.key);
    case OpKind::kDeleteRange:
      return writer->DeleteRange(op.key, op.end);
  }
  return Status::NotSupported();
}

// Orders the operations as a file has them. All its entries have one sequence
// number, and a range tombstone does not cover entries with its own sequence
// number, so the model must apply it first.
void SortAsInFile(std::vector<Op>* ops) {
  std::stable_sort(ops->begin(), ops->end(), [](const Op& a, const Op& b) {
    const bool a_first = a.kind == OpKind::kDeleteRange;
    const bool b_first = b.kind == OpKind::kDeleteRange;
    return a_first != b_first ? a_first : a.key < b.key;
  });
}

void Ingest(HistoryCall& c) {
  IngestExternalFileOptions ingest_options;
  ingest_options.move_files = HistoryArguments::TakeWord(&c.args(), "move");
  HistoryModel::Write model_write;
  model_write.is_durable = true;
  for (const HistoryWords& part :
       HistoryArguments::SplitAtSemicolons(c.args())) {
    HistoryWrite write;
    if (!HistoryWrite::Parse(c, part, &write) || write.is_single_delete ||
        write.op.cf != c.cf()) {
      c.Usage();
      return;
    }
    model_write.ops.push_back(std::move(write.op));
  }
  SortAsInFile(&model_write.ops);
  const std::string path = c.state().NewFilePath();
  SstFileWriter writer(EnvOptions(), c.db()->GetOptions(c.handle()),
                       c.handle());
  Status s = writer.Open(path);
  for (const Op& op : model_write.ops) {
    if (!s.ok()) {
      break;
    }
    s = AddToFile(op, &writer);
  }
  if (s.ok()) {
    s = writer.Finish();
  }
  if (s.ok()) {
    s = c.db()->IngestExternalFile(c.handle(), {path}, ingest_options);
  }
  AppendToModel(c, s, std::move(model_write), /*is_durable=*/false);
}

// Returns true if the key had the value at any position of the model.
bool EverHad(const HistoryModel& model, const std::string& cf,
             const std::string& key, const HistoryModel::Columns& value) {
  for (size_t i = 0; i <= model.Position(); ++i) {
    const HistoryModel::Contents then = model.At(cf, i);
    const auto it = then.find(key);
    if (it != then.end() && it->second == value) {
      return true;
    }
  }
  return false;
}

// The files determine which older versions reappear and which keys stay. So
// the model takes from the DB what has changed, and checks that each value is
// one that the key had before. Operands can stay without what is below them,
// and then are merged to a value that the key never had.
void DeleteRangeOfFiles(HistoryCall& c) {
  if (c.args().size() != 2) {
    c.Usage();
    return;
  }
  const std::string& from = c.args()[0];
  const std::string& to = c.args()[1];
  const Slice begin(from);
  const Slice end(to);
  HistoryModel::Contents found;
  if (!c.Report(DeleteFilesInRange(c.db(), c.handle(), &begin, &end)) ||
      !c.Report(c.state().ReadAll(c.cf(), ReadOptions(), &found))) {
    if (c.findings().allows_errors()) {
      // Any file may have been deleted.
      c.model().Doubt(c.cf(), from, to);
    }
    return;
  }
  HistoryModel::Write write;
  write.is_durable = true;
  const auto add = [&](OpKind kind, const std::string& key) {
    write.ops.emplace_back();
    write.ops.back().kind = kind;
    write.ops.back().cf = c.cf();
    write.ops.back().key = key;
  };
  const auto is_within = [&](const std::string& key) {
    return from <= key && key <= to;
  };
  const HistoryModel::Contents before = c.model().Now(c.cf());
  for (const auto& entry : before) {
    if (is_within(entry.first) && found.count(entry.first) == 0) {
      add(OpKind::kDelete, entry.first);
    }
  }
  for (const auto& [key, columns] : found) {
    const auto entry = before.find(key);
    if (!is_within(key) ||
        (entry != before.end() && entry->second == columns)) {
      continue;
    }
    const bool is_right =
        c.findings().allows_errors() || c.model().HasMerge(c.cf(), key)
            ? c.model().CouldHave(c.cf(), key, columns)
            : EverHad(c.model(), c.cf(), key, columns);
    if (!is_right) {
      c.Disagree(key + " never had the value " +
                 HistoryText::ShowColumns(columns));
    }
    add(OpKind::kPut, key);
    write.ops.back().columns = columns;
  }
  if (c.findings().allows_errors() &&
      c.model().MayLoseWrites(c.cf(), from, to)) {
    // A crash may take a newer write, and what is below it is unknown.
    c.model().Doubt(c.cf(), from, to);
  }
  c.model().Append(std::move(write));
  c.model().Blur(c.cf(), from, to);
}

}  // namespace

const std::vector<HistoryStep>& HistoryWriteSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"put", Write, false, true, "put KEY VALUE [sync]"},
      {"merge", Write, false, true, "merge KEY OPERAND [sync]"},
      {"del", Write, false, true, "del KEY [sync]"},
      {"singledel", Write, false, true, "singledel KEY [sync]"},
      {"delrange", Write, false, true, "delrange FROM TO [sync]"},
      {"entity", Write, false, true, "entity KEY COLUMN=VALUE... [sync]"},
      {"batch", Batch, false, true, "batch WRITE ; WRITE... [sync]"},
      {"fill", Fill, false, true, "fill PREFIX FIRST LAST VALUE"},
      {"syncwal", SyncWal, false, true, "syncwal"},
      {"ingest", Ingest, false, true, "ingest [move] WRITE ; WRITE..."},
      {"deletefilesinrange", DeleteRangeOfFiles, false, true,
       "deletefilesinrange FROM TO"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
