//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "test_util/strata/history_model_test_util.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace ROCKSDB_NAMESPACE {

bool HistoryModel::ParseMergeKind(const std::string& merge_operator,
                                  MergeKind* kind) {
  static const std::map<std::string, MergeKind> kKinds = {
      {"", MergeKind::kAppend},
      {"stringappend", MergeKind::kAppend},
      {"max", MergeKind::kMax},
      {"put", MergeKind::kLast}};
  const auto it = kKinds.find(merge_operator);
  if (it == kKinds.end()) {
    return false;
  }
  *kind = it->second;
  return true;
}

void HistoryModel::CreateFamily(const std::string& cf,
                                const std::string& merge_operator) {
  families_[cf];
  const bool is_known = ParseMergeKind(merge_operator, &merge_kinds_[cf]);
  assert(is_known);
  (void)is_known;
}

void HistoryModel::DropFamily(const std::string& cf) {
  families_.erase(cf);
  merge_kinds_.erase(cf);
  dropped_families_.insert(cf);
  for (Write& write : writes_) {
    write.ops.erase(std::remove_if(write.ops.begin(), write.ops.end(),
                                   [&cf](const Op& op) { return op.cf == cf; }),
                    write.ops.end());
  }
}

void HistoryModel::ApplyOperand(const std::string& cf,
                                const std::string& operand,
                                std::string* value) const {
  const auto kind = merge_kinds_.find(cf);
  assert(kind != merge_kinds_.end());
  switch (kind->second) {
    case MergeKind::kAppend:
      value->append(",").append(operand);
      break;
    case MergeKind::kMax:
      *value = std::max(*value, operand);
      break;
    case MergeKind::kLast:
      *value = operand;
      break;
  }
}

std::string HistoryModel::Merged(
    const std::string& cf, const std::vector<std::string>& operands) const {
  assert(!operands.empty());
  std::string value = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    ApplyOperand(cf, operands[i], &value);
  }
  return value;
}

void HistoryModel::Apply(const Op& op, Contents* contents) const {
  switch (op.kind) {
    case OpKind::kPut:
      (*contents)[op.key] = op.columns;
      break;
    case OpKind::kMerge: {
      const std::string& operand = op.columns.at("");
      const auto it = contents->find(op.key);
      if (it == contents->end()) {
        (*contents)[op.key][""] = operand;
      } else {
        ApplyOperand(op.cf, operand, &it->second[""]);
      }
      break;
    }
    case OpKind::kDelete:
      contents->erase(op.key);
      break;
    case OpKind::kDeleteRange:
      if (op.key < op.end) {
        contents->erase(contents->lower_bound(op.key),
                        contents->lower_bound(op.end));
      }
      break;
  }
}

HistoryModel::Contents HistoryModel::At(const std::string& cf,
                                        size_t position) const {
  assert(position <= writes_.size());
  Contents contents;
  for (size_t i = 0; i < position; ++i) {
    for (const Op& op : writes_[i].ops) {
      if (op.cf == cf && !writes_[i].has_failed) {
        Apply(op, &contents);
      }
    }
  }
  return contents;
}

void HistoryModel::ApplyTo(const std::vector<Op>& ops, const std::string& cf,
                           Contents* contents) const {
  for (const Op& op : ops) {
    if (op.cf == cf) {
      Apply(op, contents);
    }
  }
}

HistoryModel::Columns HistoryModel::FromWideColumns(const WideColumns& wide) {
  Columns columns;
  for (const WideColumn& column : wide) {
    columns[column.name().ToString()] = column.value().ToString();
  }
  return columns;
}

std::string HistoryModel::DefaultColumn(const Columns& columns) {
  const auto it = columns.find("");
  return it == columns.end() ? "" : it->second;
}

void HistoryModel::Clip(const std::string& from, const std::string& to,
                        Contents* contents) {
  contents->erase(contents->begin(), contents->lower_bound(from));
  contents->erase(contents->lower_bound(to), contents->end());
}

void HistoryModel::Blur(const std::string& cf, const std::string& from,
                        const std::string& to) {
  blurred_.push_back({cf, from, to, Position()});
}

void HistoryModel::Doubt(const std::string& cf, const std::string& from,
                         const std::string& to) {
  doubtful_.push_back({cf, from, to, Position()});
}

bool HistoryModel::IsDoubtful(const std::string& cf,
                              const std::string& key) const {
  if (doubtful_families_.count(cf) != 0) {
    return true;
  }
  return std::any_of(
      doubtful_.begin(), doubtful_.end(), [&](const BlurredRange& range) {
        return range.cf == cf && range.from <= key && key <= range.to;
      });
}

void HistoryModel::RemoveDoubtful(AllContents* all) const {
  for (auto& [cf, contents] : *all) {
    std::erase_if(contents, [&, &name = cf](const auto& entry) {
      return IsDoubtful(name, entry.first);
    });
  }
}

bool HistoryModel::IsBlurred(const std::string& cf, const std::string& key,
                             size_t position) const {
  if (IsDoubtful(cf, key)) {
    return true;
  }
  return std::any_of(blurred_.begin(), blurred_.end(),
                     [&](const BlurredRange& range) {
                       return range.cf == cf && position < range.position &&
                              range.from <= key && key <= range.to;
                     });
}

bool HistoryModel::HasBlurred(const std::string& cf, size_t position) const {
  const auto is_of_family = [&](const BlurredRange& range) {
    return range.cf == cf;
  };
  return doubtful_families_.count(cf) != 0 ||
         std::any_of(doubtful_.begin(), doubtful_.end(), is_of_family) ||
         std::any_of(blurred_.begin(), blurred_.end(),
                     [&](const BlurredRange& range) {
                       return is_of_family(range) && position < range.position;
                     });
}

void HistoryModel::RemoveBlurred(const std::string& cf, size_t position,
                                 Contents* contents) const {
  std::erase_if(*contents, [&](const auto& entry) {
    return IsBlurred(cf, entry.first, position);
  });
}

std::set<std::string> HistoryModel::Keys(const std::string& cf) const {
  std::set<std::string> keys;
  for (const Write& write : writes_) {
    for (const Op& op : write.ops) {
      if (op.cf == cf && op.kind != OpKind::kDeleteRange) {
        keys.insert(op.key);
      }
    }
  }
  return keys;
}

HistoryModel::AllContents HistoryModel::Replay(
    const std::vector<Write>& writes) const {
  AllContents all = families_;
  for (const Write& write : writes) {
    for (const Op& op : write.ops) {
      Apply(op, &all[op.cf]);
    }
  }
  return all;
}

namespace {

// Adds the parts of a value to the set. The merge operator has put a comma
// between them.
void AddParts(const std::string& value, std::set<std::string>* parts) {
  size_t begin = 0;
  for (size_t comma = value.find(','); comma != std::string::npos;
       comma = value.find(',', begin)) {
    parts->insert(value.substr(begin, comma - begin));
    begin = comma + 1;
  }
  parts->insert(value.substr(begin));
}

}  // namespace

bool HistoryModel::CouldHave(const std::string& cf, const std::string& key,
                             const Columns& columns) const {
  std::set<std::string> written;
  for (const Write& write : writes_) {
    for (const Op& op : write.ops) {
      if (op.cf == cf && op.key == key) {
        for (const auto& column : op.columns) {
          AddParts(column.second, &written);
        }
      }
    }
  }
  std::set<std::string> found;
  for (const auto& column : columns) {
    AddParts(column.second, &found);
  }
  return IsDoubtful(cf, key) || dropped_families_.count(cf) != 0 ||
         (!written.empty() && std::includes(written.begin(), written.end(),
                                            found.begin(), found.end()));
}

bool HistoryModel::HasMerge(const std::string& cf,
                            const std::string& key) const {
  return std::any_of(writes_.begin(), writes_.end(), [&](const Write& write) {
    return std::any_of(write.ops.begin(), write.ops.end(), [&](const Op& op) {
      return op.kind == OpKind::kMerge && op.cf == cf && op.key == key;
    });
  });
}

bool HistoryModel::Touches(const Write& write, const std::string& cf,
                           const std::string& from, const std::string& to) {
  return std::any_of(write.ops.begin(), write.ops.end(), [&](const Op& op) {
    const std::string& last = op.kind == OpKind::kDeleteRange ? op.end : op.key;
    return op.cf == cf && op.key <= to && from <= last;
  });
}

bool HistoryModel::IsWrittenSince(size_t position, const std::string& cf,
                                  const std::string& from,
                                  const std::string& to) const {
  return std::any_of(
      writes_.begin() + static_cast<std::ptrdiff_t>(position), writes_.end(),
      [&](const Write& write) { return Touches(write, cf, from, to); });
}

bool HistoryModel::MayLoseWritesBelow(const BlurredRange& range) const {
  for (size_t i = durable_; i < range.position; ++i) {
    if (!writes_[i].is_durable &&
        Touches(writes_[i], range.cf, range.from, range.to)) {
      return true;
    }
  }
  return false;
}

std::vector<std::set<size_t>> HistoryModel::FailedSurvivors(size_t n) const {
  std::vector<size_t> failed;
  for (size_t i = 0; i < writes_.size(); ++i) {
    if (writes_[i].has_failed && (i < n || writes_[i].is_durable)) {
      failed.push_back(i);
    }
  }
  std::vector<std::set<size_t>> sets;
  if (failed.size() <= kMaxFailed) {
    for (size_t bits = 0; bits < size_t{1} << failed.size(); ++bits) {
      sets.emplace_back();
      for (size_t i = 0; i < failed.size(); ++i) {
        if ((bits >> i & 1) != 0) {
          sets.back().insert(failed[i]);
        }
      }
    }
    return sets;
  }
  // A run of failed writes is most often what one error has caused. Its later
  // writes were not tried.
  sets.emplace_back();
  for (size_t i = 0; i < kMaxFailed; ++i) {
    sets.push_back(sets.back());
    sets.back().insert(failed[i]);
  }
  sets.emplace_back(failed.begin(), failed.end());
  return sets;
}

bool HistoryModel::Recover(const AllContents& found, bool is_crash,
                           bool is_flushed) {
  if (is_crash) {
    std::copy_if(blurred_.begin(), blurred_.end(),
                 std::back_inserter(doubtful_),
                 [this](const BlurredRange& range) {
                   return MayLoseWritesBelow(range);
                 });
  }
  blurred_.clear();
  AllContents compared = found;
  RemoveDoubtful(&compared);
  const size_t least = is_crash ? durable_ : writes_.size();
  for (size_t n = writes_.size() + 1; n-- > least;) {
    for (const std::set<size_t>& survivors : FailedSurvivors(n)) {
      std::vector<Write> history;
      size_t num_durable = 0;
      for (size_t i = 0; i < writes_.size(); ++i) {
        const bool survives = writes_[i].has_failed
                                  ? survivors.count(i) != 0
                                  : i < n || writes_[i].is_durable;
        if (survives) {
          history.push_back(writes_[i]);
          history.back().has_failed = false;
          num_durable += i < durable_ ? 1 : 0;
        }
      }
      AllContents expected = Replay(history);
      RemoveDoubtful(&expected);
      if (expected == compared) {
        writes_ = std::move(history);
        durable_ = is_crash || is_flushed ? writes_.size() : num_durable;
        return true;
      }
    }
  }
  return false;
}

}  // namespace ROCKSDB_NAMESPACE
