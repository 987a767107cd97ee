//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "numbers.h"
#include "rocksdb/db.h"

namespace ROCKSDB_NAMESPACE::on_disk {

// What a database holds: column family -> key -> value. It takes the writes
// that the database gets, as the model of it, and it is what ReadAll() finds.
// Operands are appended with a comma in between (StringAppendOperator).
//
// Not thread-safe.
class Contents {
 public:
  using Family = std::map<std::string, std::string>;

  std::map<std::string, Family> families;

  void Put(const std::string& family, const std::string& key,
           const std::string& value) {
    families[family][key] = value;
  }
  void Merge(const std::string& family, const std::string& key,
             const std::string& operand) {
    const auto [it, is_new] = families[family].emplace(key, operand);
    if (!is_new) {
      it->second += "," + operand;
    }
  }
  void Delete(const std::string& family, const std::string& key) {
    families[family].erase(key);
  }
  // The range begins with begin and ends before end.
  void DeleteRange(const std::string& family, const std::string& begin,
                   const std::string& end) {
    Family& all = families[family];
    all.erase(all.lower_bound(begin), all.lower_bound(end));
  }

  // The file has a line for each key: column family, key and value, in
  // hexadecimal digits. Equal contents make equal files.
  void Save(const std::string& path) const {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    for (const auto& [family, all] : families) {
      for (const auto& [key, value] : all) {
        file << ToHex(family) << ' ' << ToHex(key) << ' ' << ToHex(value)
             << '\n';
      }
    }
    file.close();
    Require(file.good(), "writing " + path);
  }

  // REQUIRES: Save() has written the file, and no name, key or value is empty.
  void Load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Require(file.good(), "opening " + path);
    families.clear();
    std::string family, key, value;
    while (file >> family >> key >> value) {
      families[FromHex(family)][FromHex(key)] = FromHex(value);
    }
  }

  // Ends the program if the contents are others than those of a model.
  void RequireEqual(const Contents& model, const std::string& what) const {
    for (const auto& [family, all] : model.families) {
      const auto found = families.find(family);
      const Family none;
      const Family& ours = found == families.end() ? none : found->second;
      for (const auto& [key, value] : all) {
        const auto it = ours.find(key);
        Require(it != ours.end(), what + ": " + key + " is there");
        Require(it->second == value, what + ": the value of " + key);
      }
      Require(ours.size() == all.size(), what + ": the number of keys");
    }
  }

 private:
  static std::string ToHex(const std::string& bytes) {
    static const char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (const char c : bytes) {
      hex.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
      hex.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
    }
    return hex;
  }
  static std::string FromHex(const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      bytes.push_back(
          static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    return bytes;
  }
};

// Reads all column families forwards, backwards, with Get() and with
// MultiGet(). Ends the program if the four do not agree.
inline Contents ReadAll(DB* db,
                        const std::vector<ColumnFamilyHandle*>& handles) {
  constexpr size_t kBatch = 64;
  const ReadOptions options;
  Contents contents;
  for (ColumnFamilyHandle* const handle : handles) {
    Contents::Family all;
    const std::unique_ptr<Iterator> it(db->NewIterator(options, handle));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      all.emplace(it->key().ToString(), it->value().ToString());
    }
    Check(it->status(), "a scan forwards");
    size_t backwards = 0;
    for (it->SeekToLast(); it->Valid(); it->Prev()) {
      const auto found = all.find(it->key().ToString());
      Require(found != all.end() && found->second == it->value(),
              "a scan backwards finds the same: " + it->key().ToString());
      ++backwards;
    }
    Check(it->status(), "a scan backwards");
    Require(backwards == all.size(), "a scan backwards finds all keys");
    std::vector<std::string> names;
    for (const auto& [key, value] : all) {
      std::string got;
      Check(db->Get(options, handle, key, &got), "Get");
      Require(got == value, "Get finds the same: " + key);
      names.push_back(key);
    }
    for (size_t begin = 0; begin < names.size(); begin += kBatch) {
      const size_t n = std::min(kBatch, names.size() - begin);
      const std::vector<Slice> keys(names.begin() + begin,
                                    names.begin() + begin + n);
      std::vector<PinnableSlice> values(n);
      std::vector<Status> statuses(n);
      db->MultiGet(options, handle, n, keys.data(), values.data(),
                   statuses.data());
      for (size_t i = 0; i < n; ++i) {
        Check(statuses[i], "MultiGet");
        Require(values[i] == all[names[begin + i]],
                "MultiGet finds the same: " + names[begin + i]);
      }
    }
    contents.families[handle->GetName()] = std::move(all);
  }
  return contents;
}

}  // namespace ROCKSDB_NAMESPACE::on_disk
