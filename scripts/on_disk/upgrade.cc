//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//
// The stations of upgrade.py. Linked once with RocksDB and once with Strata.
//
//   upgrade create --db=DIR --kind=KIND --model=FILE
//   upgrade work --db=DIR --kind=KIND --model=FILE --seed=N [--left=1]
//     [--crash=1] [OPTIONS]
//   upgrade dump --db=DIR --kind=KIND --out=FILE [--read_only=1] [OPTIONS]
//   upgrade off --db=DIR --kind=KIND [--drain=compact|jobs] [OPTIONS]
//
// "create" makes a database of a kind and saves what it holds as the model.
// "work" compares a database with the model, writes to it, runs jobs, and
// updates the model. With --left=1 there must be prepared transactions, which
// it ends first; with --crash=1 it does not close the database. "dump" writes
// what a database holds to a file of the form of the model, and verifies all
// checksums unless it reads only. "off" moves everything into RocksDB's own
// files.
//
// OPTIONS: --features=LIST (Strata only, see SetFeatures()), --blobs=1,
// --paths=2 (DIR and DIR.1), --layout=split|first (Strata only)

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contents.h"
#include "numbers.h"
#include "rocksdb/db.h"
#include "rocksdb/table_properties.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "station.h"

namespace ROCKSDB_NAMESPACE::on_disk {

namespace {

// The writes of a transaction: a key and what is put or merged, in turn.
std::vector<std::pair<std::string, std::string>> WritesOf(uint32_t i) {
  Numbers numbers(1000 + i);
  std::vector<std::pair<std::string, std::string>> writes;
  for (uint32_t n = 0; n < 20; ++n) {
    const std::string key =
        Key(i * kKeysOfTransaction + numbers.Below(kKeysOfTransaction));
    writes.emplace_back(key, numbers.Bytes(50 + numbers.Below(500)));
  }
  return writes;
}

bool WillCommit(uint32_t i) { return i % 2 == 0; }

// Leaves transactions that are prepared and neither committed nor rolled back.
void PrepareTransactions(Station* station) {
  for (uint32_t i = 0; i < kTransactions; ++i) {
    const std::unique_ptr<Transaction> transaction(
        station->transactions()->BeginTransaction(WriteOptions()));
    Check(transaction->SetName("transaction" + std::to_string(i)), "name");
    bool merges = false;
    for (const auto& [key, value] : WritesOf(i)) {
      Check(merges ? transaction->Merge(key, value)
                   : transaction->Put(key, value),
            "transaction");
      merges = !merges;
    }
    // The WAL keeps it. Its keys are locked only as long as this object lives,
    // so nothing else writes them.
    Check(transaction->Prepare(), "prepare");
  }
}

// Ends the transactions that an earlier process has left, if there are any.
// Returns their number.
size_t EndTransactions(Station* station) {
  std::vector<Transaction*> left;
  station->transactions()->GetAllPreparedTransactions(&left);
  for (Transaction* const transaction : left) {
    const uint32_t i = static_cast<uint32_t>(
        std::stoul(transaction->GetName().substr(strlen("transaction"))));
    if (!WillCommit(i)) {
      Check(transaction->Rollback(), "rollback");
    } else {
      Check(transaction->Commit(), "commit");
      bool merges = false;
      for (const auto& [key, value] : WritesOf(i)) {
        if (merges) {
          station->model.Merge(kDefaultColumnFamilyName, key, value);
        } else {
          station->model.Put(kDefaultColumnFamilyName, key, value);
        }
        merges = !merges;
      }
    }
    delete transaction;
  }
  return left.size();
}

// The operands in SST files.
uint64_t NumOperands(Station* station) {
  uint64_t sum = 0;
  for (ColumnFamilyHandle* const handle : station->handles()) {
    TablePropertiesCollection tables;
    Check(station->db()->GetPropertiesOfAllTables(handle, &tables), "tables");
    for (const auto& [name, properties] : tables) {
      sum += properties->num_merge_operands;
    }
  }
  return sum;
}

// Ends the process without closing the database, which leaves a WAL that is
// needed.
[[noreturn]] void Exit() {
  fflush(nullptr);
  _exit(0);
}

void Create(const Flags& flags) {
  const Setup setup(flags);
  Options options = MakeOptions(setup);
  options.disable_auto_compactions = setup.kind == "operands";
  std::vector<std::string> families = {kDefaultColumnFamilyName};
  if (setup.kind == "families") {
    families.insert(families.end(), {"one", "two"});
  }
  Station station(setup, options, families);
  for (int round = 0; round < 6; ++round) {
    station.Write(1500, setup.kind == "operands" ? 12 : 3);
    station.Flush();
    if (round == 2) {
      // Values are overwritten in what is compacted, and by what is not.
      station.Compact(nullptr, nullptr);
    }
  }
  station.Wait();
  if (setup.kind == "blobs" || setup.kind == "garbage") {
    Require(station.Number("rocksdb.num-blob-files") > 1, "blob files");
  }
  if (setup.kind == "garbage") {
    Require(station.Number("rocksdb.live-blob-file-garbage-size") > 0,
            "garbage in blob files");
  }
  if (setup.kind == "operands") {
    Require(NumOperands(&station) > 1000, "operands in SST files");
  }
  if (setup.transactions()) {
    PrepareTransactions(&station);
    station.Write(500, 3);
    station.model.Save(flags.Get("model"));
    Exit();
  }
  station.model.Save(flags.Get("model"));
  station.Close();
}

#ifdef WITH_STRATA
// Ends the program if a feature that is on has done nothing.
void RequireTraces(const Setup& setup, Station* station) {
  if (setup.Has("map")) {
    Require(station->Number("rocksdb.blob-address-map", "entries") > 0,
            "values in the address map");
    Require(station->Ticker(BLOB_MAP_GC_VALUES) > 0,
            "values moved by garbage collection");
  }
  if (setup.Has("deltas")) {
    Require(station->Number("rocksdb.delta-store", "files") > 0, "delta files");
    Require(station->Ticker(DELTA_OPERANDS_FLUSHED) > 0, "operands flushed");
    Require(station->Ticker(DELTA_OPERANDS_FOLDED) > 0, "operands folded");
  }
  if (setup.Has("merged_values")) {
    Require(station->Ticker(MERGED_VALUE_CACHE_HIT) > 0, "merged values");
  }
  if (setup.Has("writes")) {
    Require(station->Ticker(WAL_BUFFER_WRITES) > 0, "writes of the WAL buffer");
  }
  if (setup.layout == "split") {
    Require(station->Number("rocksdb.path-stats", "path1.sst-files") > 0 &&
                station->Number("rocksdb.path-stats", "path1.blob-files") > 0,
            "files on the second path");
  }
}
#endif

void Work(const Flags& flags) {
  const Setup setup(flags);
  Station station(setup, MakeOptions(setup));
  station.model.Load(flags.Get("model"));
  station.numbers = Numbers(std::stoull(flags.Get("seed")));
  if (flags.Get("left") == "1") {
    Require(EndTransactions(&station) == kTransactions,
            "all transactions are there");
  }
  station.Read().RequireEqual(station.model, "before the work");
  for (int round = 0; round < 12; ++round) {
    station.Write(600, 9);
    station.Flush();
    // Merged values are made by the first reads, and used by the others.
    if (round % 4 == 3) {
      station.Read().RequireEqual(station.model, "during the work");
    }
  }
  // A part stays as it was.
  const std::string begin = Key(kKeys / 4), end = Key(kKeys / 2);
  const Slice begin_slice = begin, end_slice = end;
  station.Compact(&begin_slice, &end_slice);
#ifdef WITH_STRATA
  if (setup.Has("map")) {
    for (ColumnFamilyHandle* const handle : station.handles()) {
      Check(
          station.db()->CollectBlobGarbage(CollectBlobGarbageOptions(), handle),
          "CollectBlobGarbage");
    }
  }
#endif
  station.Wait();
  station.Write(300, 9);
  station.Flush();
  station.Wait();
  station.Read().RequireEqual(station.model, "after the work");
#ifdef WITH_STRATA
  RequireTraces(setup, &station);
#endif
  if (flags.Get("crash") == "1") {
    station.Write(200, 9);
    station.model.Save(flags.Get("model"));
    Exit();
  }
  station.model.Save(flags.Get("model"));
  station.Close();
}

void Dump(const Flags& flags) {
  const Setup setup(flags);
  Station station(setup, MakeOptions(setup));
  station.Read().Save(flags.Get("out"));
  if (!setup.read_only) {
    Check(station.db()->VerifyChecksum(), "VerifyChecksum");
  }
  station.Close();
}

void Off(const Flags& flags) {
  const Setup setup(flags);
  Require(setup.features.empty(), "no feature is on");
  Station station(setup, MakeOptions(setup));
  if (flags.Get("drain") != "jobs") {
    station.Compact(nullptr, nullptr);
  }
  station.Wait();
  Require(station.Number("rocksdb.delta-store", "files") == 0,
          "all delta files are drained");
  if (setup.layout == "first") {
    for (const char* const files : {"sst", "blob", "delta"}) {
      Require(station.Number("rocksdb.path-stats",
                             std::string("path1.") + files + "-files") == 0,
              std::string("the second path has no files: ") + files);
    }
  }
  station.Close();
}

int Main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const std::map<std::string, void (*)(const Flags&)> commands = {
      {"create", Create}, {"work", Work}, {"dump", Dump}, {"off", Off}};
  const auto found = commands.find(command);
  if (found == commands.end()) {
    fprintf(stderr, "usage: %s create|work|dump|off --name=value...\n",
            argv[0]);
    return 2;
  }
  found->second(Flags(argc, argv));
  return 0;
}

}  // namespace

}  // namespace ROCKSDB_NAMESPACE::on_disk

int main(int argc, char** argv) {
  return ROCKSDB_NAMESPACE::on_disk::Main(argc, argv);
}
