//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_read_steps_test_util.h"

#include <cstddef>
#include <memory>
#include <string>

#include "rocksdb/wide_columns.h"
#include "test_util/strata/history_read_options_test_util.h"
#include "test_util/strata/history_text_test_util.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Columns = HistoryModel::Columns;
using Contents = HistoryModel::Contents;
using View = HistoryDb::View;

constexpr char kNotFound[] = "(not found)";

void TakeSnapshot(HistoryCall& c) {
  auto& snapshots = c.state().snapshots();
  if (c.args().size() != 1 || snapshots.count(c.args()[0]) != 0) {
    c.Usage();
    return;
  }
  snapshots[c.args()[0]] = {c.db()->GetSnapshot(), c.model().Position()};
}

void ReleaseSnapshot(HistoryCall& c) {
  auto& snapshots = c.state().snapshots();
  const auto it =
      c.args().size() == 1 ? snapshots.find(c.args()[0]) : snapshots.end();
  if (it == snapshots.end()) {
    c.Usage();
    return;
  }
  c.db()->ReleaseSnapshot(it->second.snapshot);
  snapshots.erase(it);
}

ReadOptions OptionsOf(const View& view) {
  ReadOptions read_options;
  read_options.snapshot = view.snapshot;
  return read_options;
}

// Prints the answer to a read of a key. Returns false if it is an error.
bool PrintAnswer(HistoryCall& c, const Status& s, const std::string& shown) {
  if (s.IsNotFound()) {
    c.out().append(kNotFound).append("\n");
    return true;
  }
  if (c.Report(s)) {
    c.out().append(shown).append("\n");
  }
  return s.ok();
}

// Compares the answer to a read of a key, which is no error, with the contents.
// columns: what was found, unless the key was not found.
// what: stands ahead of the contradiction.
void CheckAnswer(HistoryCall& c, const std::string& cf, const View& view,
                 const Contents& contents, const std::string& key,
                 bool is_found, const Columns& columns,
                 const std::string& what) {
  const auto it = contents.find(key);
  const bool is_right =
      it == contents.end() ? !is_found : is_found && it->second == columns;
  if (!is_right && !c.model().IsBlurred(cf, key, view.position)) {
    c.Disagree(what + "must be: " +
               (it == contents.end() ? kNotFound
                                     : HistoryText::ShowColumns(it->second)));
  }
}

// Returns the contents with the default columns alone.
Contents DefaultColumnsOf(Contents contents) {
  for (auto& entry : contents) {
    entry.second = {{"", HistoryModel::DefaultColumn(entry.second)}};
  }
  return contents;
}

// Takes the arguments of a read of one key, the snapshot and the key. Returns
// false, and says what is expected, if they are others.
bool TakeKey(HistoryCall& c, View* view, std::string* key) {
  if (!c.TakeView(view)) {
    return false;
  }
  if (c.args().size() != 1) {
    c.Usage();
    return false;
  }
  *key = c.args()[0];
  return true;
}

void Get(HistoryCall& c) {
  View view;
  std::string key;
  if (!TakeKey(c, &view, &key)) {
    return;
  }
  std::string value;
  const Status s = c.db()->Get(OptionsOf(view), c.handle(), key, &value);
  if (PrintAnswer(c, s, HistoryText::ShowValue(value))) {
    CheckAnswer(c, c.cf(), view,
                DefaultColumnsOf(c.model().At(c.cf(), view.position)), key,
                s.ok(), {{"", value}}, "get " + key + ": " + c.out());
  }
}

void GetEntity(HistoryCall& c) {
  View view;
  std::string key;
  if (!TakeKey(c, &view, &key)) {
    return;
  }
  PinnableWideColumns wide;
  const Status s = c.db()->GetEntity(OptionsOf(view), c.handle(), key, &wide);
  const Columns columns = HistoryModel::FromWideColumns(wide.columns());
  if (PrintAnswer(c, s, HistoryText::ShowColumns(columns))) {
    CheckAnswer(c, c.cf(), view, c.model().At(c.cf(), view.position), key,
                s.ok(), columns, "getentity " + key + ": " + c.out());
  }
}

void MultiGet(HistoryCall& c) {
  View view;
  if (!c.TakeView(&view)) {
    return;
  }
  if (c.args().empty()) {
    c.Usage();
    return;
  }
  const std::vector<Slice> keys(c.args().begin(), c.args().end());
  std::vector<PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  c.db()->MultiGet(OptionsOf(view), c.handle(), keys.size(), keys.data(),
                   values.data(), statuses.data());
  const Contents contents =
      DefaultColumnsOf(c.model().At(c.cf(), view.position));
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& key = c.args()[i];
    const std::string value = values[i].ToString();
    c.out().append(key).append("=");
    if (PrintAnswer(c, statuses[i], HistoryText::ShowValue(value))) {
      CheckAnswer(c, c.cf(), view, contents, key, statuses[i].ok(),
                  {{"", value}}, "multiget, key " + key + " ");
    }
  }
}

// Reads the same keys in all families with one call.
void MultiGetAll(HistoryCall& c) {
  View view;
  if (!c.TakeView(&view)) {
    return;
  }
  if (c.args().empty()) {
    c.Usage();
    return;
  }
  std::vector<std::string> cfs;
  std::vector<ColumnFamilyHandle*> handles;
  std::vector<Slice> keys;
  for (const auto& [cf, family] : c.state().families()) {
    for (const std::string& key : c.args()) {
      cfs.push_back(cf);
      handles.push_back(family.handle);
      keys.emplace_back(key);
    }
  }
  std::vector<PinnableSlice> values(keys.size());
  std::vector<Status> statuses(keys.size());
  c.db()->MultiGet(OptionsOf(view), keys.size(), handles.data(), keys.data(),
                   values.data(), statuses.data());
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string key = keys[i].ToString();
    const std::string value = values[i].ToString();
    c.out().append(cfs[i]).append(" ").append(key).append("=");
    if (PrintAnswer(c, statuses[i], HistoryText::ShowValue(value))) {
      CheckAnswer(c, cfs[i], view,
                  DefaultColumnsOf(c.model().At(cfs[i], view.position)), key,
                  statuses[i].ok(), {{"", value}},
                  "multigetall, " + cfs[i] + " " + key + " ");
    }
  }
}

// Reads what the iterator shows into *found, and prints it.
void WalkAll(HistoryCall& c, bool reverse, Iterator* it, Contents* found) {
  std::string shown;
  std::string previous;
  reverse ? it->SeekToLast() : it->SeekToFirst();
  for (; it->Valid(); reverse ? it->Prev() : it->Next()) {
    const std::string key = it->key().ToString();
    const Columns columns = HistoryModel::FromWideColumns(it->columns());
    if (!found->empty() && (reverse ? key >= previous : key <= previous)) {
      c.Disagree("scan: " + key + " after " + previous);
    }
    if (it->value() != HistoryModel::DefaultColumn(columns)) {
      c.Disagree("scan: value and default column of " + key + " differ");
    }
    shown.append(key)
        .append("=")
        .append(HistoryText::ShowColumns(columns))
        .append("\n");
    (*found)[key] = columns;
    previous = key;
  }
  c.out().append(shown.empty() && it->status().ok() ? "(empty)\n" : shown);
}

void ScanRange(HistoryCall& c) {
  View view;
  if (!c.TakeView(&view)) {
    return;
  }
  const bool reverse = HistoryArguments::TakeWord(&c.args(), "reverse");
  ReadOptions read_options;
  const bool has_valid_options =
      HistoryReadOptions::Take(&c.args(), &read_options);
  const HistoryWords& bounds = c.args();
  if (!has_valid_options || (!bounds.empty() && bounds.size() != 2)) {
    c.Usage();
    return;
  }
  read_options.snapshot = view.snapshot;
  Slice lower;
  Slice upper;
  Contents expected = c.model().At(c.cf(), view.position);
  if (!bounds.empty()) {
    lower = bounds[0];
    upper = bounds[1];
    read_options.iterate_lower_bound = &lower;
    read_options.iterate_upper_bound = &upper;
    HistoryModel::Clip(bounds[0], bounds[1], &expected);
  }
  std::unique_ptr<Iterator> it(c.db()->NewIterator(read_options, c.handle()));
  Contents found;
  WalkAll(c, reverse, it.get(), &found);
  if (!c.Report(it->status())) {
    return;
  }
  c.model().RemoveBlurred(c.cf(), view.position, &expected);
  c.model().RemoveBlurred(c.cf(), view.position, &found);
  if (found != expected) {
    c.Disagree("scan must be:\n" +
               HistoryText::ShowContents(expected, reverse));
  }
}

// Reads all families with iterators that NewIterators() has made.
void ScanAll(HistoryCall& c) {
  View view;
  if (!c.TakeView(&view)) {
    return;
  }
  if (!c.args().empty()) {
    c.Usage();
    return;
  }
  std::vector<ColumnFamilyHandle*> handles;
  for (const auto& family : c.state().families()) {
    handles.push_back(family.second.handle);
  }
  std::vector<Iterator*> made;
  if (!c.Report(c.db()->NewIterators(OptionsOf(view), handles, &made))) {
    return;
  }
  const std::vector<std::unique_ptr<Iterator>> iterators(made.begin(),
                                                         made.end());
  size_t i = 0;
  for (const auto& family : c.state().families()) {
    const std::string& cf = family.first;
    Iterator* const it = iterators[i++].get();
    Contents found;
    c.out().append(cf).append(":\n");
    WalkAll(c, /*reverse=*/false, it, &found);
    if (!c.Report(it->status())) {
      continue;
    }
    Contents expected = c.model().At(cf, view.position);
    c.model().RemoveBlurred(cf, view.position, &expected);
    c.model().RemoveBlurred(cf, view.position, &found);
    if (found != expected) {
      c.Disagree("scanall, family " + cf + ", must be:\n" +
                 HistoryText::ShowContents(expected));
    }
  }
}

}  // namespace

const std::vector<HistoryStep>& HistoryReadSteps() {
  static const std::vector<HistoryStep> kSteps = {
      {"snapshot", TakeSnapshot, false, true, "snapshot NAME"},
      {"release", ReleaseSnapshot, false, true, "release NAME"},
      {"get", Get, false, true, "get KEY [@SNAPSHOT]"},
      {"getentity", GetEntity, false, true, "getentity KEY [@SNAPSHOT]"},
      {"multiget", MultiGet, false, true, "multiget KEY... [@SNAPSHOT]"},
      {"multigetall", MultiGetAll, false, true,
       "multigetall KEY... [@SNAPSHOT]"},
      {"scanall", ScanAll, false, true, "scanall [@SNAPSHOT]"},
      {"scan", ScanRange, false, true,
       "scan [@SNAPSHOT] [FROM TO] [reverse] [+OPTION...]"},
  };
  return kSteps;
}

}  // namespace ROCKSDB_NAMESPACE
