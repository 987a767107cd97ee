//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// MapPointRead: at each way to end a search, entries that the map has got since
// the attempt began make the read start again, if the reader sees them. The
// tests make the calls of a lookup themselves, with changes of the database
// between them, or stop a Get() at the same places.

#include "db/address_map/map_point_read.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/address_map/address_map_store.h"
#include "db/address_map/mapped_blob_index.h"
#include "db/db_impl/db_impl.h"
#include "db/strata/db_strata.h"
#include "db/version_edit.h"
#include "db/version_set.h"
#include "port/stack_trace.h"
#include "test_util/strata/address_map_db_test_util.h"
#include "test_util/strata/sync_point_test_util.h"
#include "test_util/strata/test_threads_test_util.h"

namespace ROCKSDB_NAMESPACE {

class MapPointReadTest : public AddressMapDBTestBase {
 protected:
  using Action = MapPointRead::Action;

  MapPointReadTest() : AddressMapDBTestBase("map_point_read_test") {}

  // A lookup of the key "k" whose calls the test makes.
  class Lookup {
   public:
    explicit Lookup(MapPointReadTest* test)
        : test_(test),
          read_(test->Family(), "k", read_options_, /*bounds=*/nullptr) {}

    MapPointRead* operator->() { return &read_; }

    // Takes the current SuperVersion.
    void TakeSuperVersion() {
      DBImpl* const db = test_->dbfull();
      super_version_ = std::shared_ptr<SuperVersion>(
          test_->Family()->GetReferencedSuperVersion(db),
          [db](SuperVersion* sv) { db->CleanupSuperVersion(sv); });
    }
    // Reads at this sequence number. covering: sequence number of the newest
    // range deletion that covers the key, 0 if there is none.
    void Attach(SequenceNumber sequence, SequenceNumber covering = 0) {
      covering_ = covering;
      read_.Attach(super_version_.get(), sequence, /*callback=*/nullptr,
                   &covering_);
    }
    void TakeSuperVersionAndAttach() {
      TakeSuperVersion();
      Attach(test_->db_->GetLatestSequenceNumber());
    }
    Action OnEntry(ValueType type, SequenceNumber seq,
                   const std::string& value = "v") {
      return read_.OnEntry(ParsedInternalKey("k", seq, type), value);
    }
    // Finds an entry with the name of a value.
    Action OnName(SequenceNumber seq) {
      MappedBlobIndex index;
      index.mode = MappedBlobIndex::Mode::kVersioned;
      std::string encoded;
      index.EncodeTo(&encoded);
      return OnEntry(kTypeBlobIndex, seq, encoded);
    }

   private:
    MapPointReadTest* const test_;
    const ReadOptions read_options_;
    SequenceNumber covering_ = 0;
    std::shared_ptr<SuperVersion> super_version_;
    MapPointRead read_;
  };

  // Writes and flushes a value of "k" and returns its sequence number.
  SequenceNumber InsertDirect(int i) {
    EXPECT_OK(Put("k", Value(i)));
    const SequenceNumber seq = db_->GetLatestSequenceNumber();
    EXPECT_OK(Flush());
    WaitForJobs();
    SequenceNumber direct = 0;
    EXPECT_TRUE(Blobs()->map()->DirectSeq(Blobs()->HashOf("k"), &direct));
    EXPECT_EQ(direct, seq);
    return seq;
  }

  // Compacts all files. A new value of the key is flushed after the compaction
  // has written its outputs, and before it commits them.
  void CompactAndOverwrite(const std::string& key, const std::string& value) {
    const auto reached =
        EnableCallBackOnce("CompactionMapping::Publish", [&](void*) {
          OnAnotherThread([&] {
            EXPECT_OK(Put(key, value));
            EXPECT_OK(Flush());
          });
        });
    ASSERT_OK(ForceCompaction());
    WaitForJobs();
    EXPECT_TRUE(*reached);
  }

  // Commits an edit whose SuperVersion is not installed yet.
  void AppendVersion() {
    VersionEdit edit;
    edit.SetColumnFamily(Family()->GetID());
    InstrumentedMutexLock lock(dbfull()->mutex());
    ASSERT_OK(dbfull()->GetVersionSet()->LogAndApply(
        Family(), ReadOptions(), WriteOptions(), &edit, dbfull()->mutex(),
        /*dir_contains_current_file=*/nullptr));
  }
  // Installs the missing SuperVersion.
  void InstallSuperVersion() {
    InstrumentedMutexLock lock(dbfull()->mutex());
    dbfull()->strata()->InstallMissingSuperVersions();
  }

  // Reads the key with Get() and MultiGet(). Calls `change`, on another thread,
  // when the read has asked the map, and has not taken a SuperVersion.
  void CheckReadsBeside(const std::string& key,
                        const std::function<void()>& prepare,
                        const std::function<void()>& change,
                        const std::string& expected) {
    for (const bool multi_get : {false, true}) {
      SCOPED_TRACE(multi_get);
      prepare();
      const auto reached = EnableCallBackOnce(
          "MapPointRead::Start:LookedUp",
          [&](void*) { OnAnotherThread([&] { change(); }); });
      EXPECT_EQ(
          multi_get ? MultiGet(std::vector<std::string>{key})[0] : Get(key),
          expected);
      EXPECT_TRUE(*reached);
      DisableCallBacks();
    }
  }

  // Reads the key at a snapshot. Calls `change`, on another thread, as
  // CheckReadsBeside() does. When the read has found nothing, all files are
  // compacted, which takes the value of the key from those that are direct.
  void CheckSnapshotReadBeside(const std::string& key,
                               const std::function<void()>& prepare,
                               const std::function<void()>& change,
                               const std::string& expected) {
    for (const bool multi_get : {false, true}) {
      SCOPED_TRACE(key + (multi_get ? ", MultiGet" : ", Get"));
      prepare();
      const Snapshot* const snapshot = db_->GetSnapshot();
      const auto changed = EnableCallBackOnce(
          "MapPointRead::Start:LookedUp",
          [&](void*) { OnAnotherThread([&] { change(); }); });
      const auto compacted =
          EnableCallBackOnce("MapPointRead::ConfirmAbsence", [&](void*) {
            OnAnotherThread([&] {
              ASSERT_OK(Flush());
              // A second compaction would make the new value direct.
              ASSERT_OK(dbfull()->TEST_CompactRange(
                  /*level=*/0, nullptr, nullptr, Handle(),
                  /*disallow_trivial_move=*/true));
              WaitForJobs();
              EXPECT_FALSE(IsDirect(key));
            });
          });
      EXPECT_EQ(multi_get ? MultiGet(std::vector<std::string>{key}, snapshot)[0]
                          : Get(key, snapshot),
                expected);
      EXPECT_TRUE(*changed);
      EXPECT_TRUE(*compacted);
      DisableCallBacks();
      EXPECT_EQ(Get(key, snapshot), expected);
      db_->ReleaseSnapshot(snapshot);
    }
  }
};

// ---- The beginning of a search.

// Entries that are older than the direct one are not needed, but only if the
// reader sees the direct one.
TEST_F(MapPointReadTest, FloorIsThatOfAVisibleDirectEntry) {
  DestroyAndReopen(MapOptions());
  const SequenceNumber seq = InsertDirect(1);
  Lookup lookup(this);
  lookup->Begin();
  lookup.TakeSuperVersion();
  lookup.Attach(seq);
  EXPECT_EQ(lookup->floor(), seq + 1);
  lookup->Begin();
  lookup.Attach(seq - 1);
  ASSERT_EQ(lookup->floor(), 0u);
  EXPECT_TRUE(lookup->ConfirmAbsence());
}

// ---- A search that finds nothing.

TEST_F(MapPointReadTest, AbsenceIsNotConfirmedIfTheMapHasGotAValue) {
  // A read without restarts of its own is as much in need of it as others.
  for (const bool is_bounded : {false, true}) {
    SCOPED_TRACE(is_bounded);
    DestroyAndReopen(MapOptions());
    Lookup lookup(this);
    lookup->Begin(is_bounded);
    const SequenceNumber seq = InsertDirect(1);
    lookup.TakeSuperVersionAndAttach();
    EXPECT_EQ(lookup->floor(), 0u);
    EXPECT_FALSE(lookup->ConfirmAbsence());
    EXPECT_TRUE(lookup->NeedsRestart());
    // The next attempt finds it.
    lookup->Begin(is_bounded);
    lookup.TakeSuperVersionAndAttach();
    EXPECT_FALSE(lookup->stopped());
    EXPECT_EQ(lookup->floor(), seq + 1);
    EXPECT_EQ(lookup->TakeDirect(), Action::kReplaced);
    EXPECT_EQ(lookup->key().sequence, seq);
  }
}

TEST_F(MapPointReadTest, AbsenceIsConfirmedIfTheNewValueIsNotVisible) {
  DestroyAndReopen(MapOptions());
  Lookup lookup(this);
  for (const bool is_covered : {false, true}) {
    SCOPED_TRACE(is_covered);
    ASSERT_OK(Delete("k"));
    ASSERT_OK(Flush());
    Compact();
    lookup->Begin();
    const SequenceNumber seq = InsertDirect(1);
    lookup.TakeSuperVersion();
    if (is_covered) {
      lookup.Attach(seq + 1, /*covering=*/seq + 1);
    } else {
      lookup.Attach(seq - 1);
    }
    EXPECT_TRUE(lookup->ConfirmAbsence());
  }
}

// The flush of a value that is in the memtable when the read begins.
TEST_F(MapPointReadTest, ReadsFindAValueThatIsFlushedMeanwhile) {
  CheckReadsBeside(
      "k",
      [&] {
        DestroyAndReopen(MapOptions());
        ASSERT_OK(Put("k", Value(1)));
      },
      [&] {
        EXPECT_OK(Flush());
        EXPECT_TRUE(IsDirect("k"));
      },
      Value(1));
}

// A job may remove an entry that a newer one hides as soon as the edit with the
// newer one is committed. A reader whose SuperVersion is from before the edit
// has neither of them.
TEST_F(MapPointReadTest, AbsenceNeedsTheSuperVersionOfTheLastEdit) {
  DestroyAndReopen(MapOptions());
  Lookup lookup(this);
  lookup->Begin();
  lookup.TakeSuperVersionAndAttach();
  EXPECT_TRUE(lookup->ConfirmAbsence());
  AppendVersion();
  EXPECT_FALSE(lookup->ConfirmAbsence());
  EXPECT_TRUE(lookup->NeedsRestart());
  lookup->Begin();
  InstallSuperVersion();
  lookup.TakeSuperVersionAndAttach();
  EXPECT_TRUE(lookup->ConfirmAbsence());
}

// The same for an entry whose name is gone from the map.
TEST_F(MapPointReadTest, NameIsOnlyLostIfTheSuperVersionIsThatOfTheLastEdit) {
  DestroyAndReopen(MapOptions());
  // No job drops the blob file when "k" has left the map.
  ASSERT_OK(Put("other", Value(1)));
  const SequenceNumber seq = InsertDirect(1);
  Lookup lookup(this);
  ASSERT_TRUE(Blobs()->map()->Remove(MapName{lookup->hash(), seq, 0}));
  lookup->Begin();
  lookup.TakeSuperVersionAndAttach();
  AppendVersion();
  EXPECT_EQ(lookup.OnName(seq), Action::kStop);
  EXPECT_TRUE(lookup->NeedsRestart()) << lookup->status().ToString();
  InstallSuperVersion();
  lookup->Begin();
  lookup.TakeSuperVersionAndAttach();
  EXPECT_EQ(lookup.OnName(seq), Action::kStop);
  EXPECT_TRUE(lookup->status().IsCorruption()) << lookup->status().ToString();
}

// Jobs keep the entries of a reader with a registered sequence number, so it
// needs no current SuperVersion, unless a fold may have changed what the
// operands of its SuperVersion are merged with.
TEST_F(MapPointReadTest, FoldEndsTheProtectionOfOlderSuperVersions) {
  DestroyAndReopen(MapOptions());
  Lookup lookup(this);
  lookup->Begin(/*is_bounded=*/true);
  lookup.TakeSuperVersionAndAttach();
  ASSERT_OK(Put("x", Value(1)));
  ASSERT_OK(Flush());
  WaitForJobs();
  EXPECT_TRUE(lookup->ConfirmAbsence());
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Blobs()->folded_versions()->Begin();
  }
  EXPECT_FALSE(lookup->ConfirmAbsence());
  EXPECT_TRUE(lookup->NeedsRestart());
  {
    InstrumentedMutexLock lock(dbfull()->mutex());
    Blobs()->folded_versions()->End(Family()->current()->GetVersionNumber());
  }
  lookup->Begin(/*is_bounded=*/true);
  lookup.Attach(db_->GetLatestSequenceNumber());
  EXPECT_FALSE(lookup->ConfirmAbsence());
  EXPECT_TRUE(lookup->NeedsRestart());
  // The current SuperVersion has the folded values.
  lookup->Begin(/*is_bounded=*/true);
  lookup.TakeSuperVersionAndAttach();
  ASSERT_OK(Put("x", Value(2)));
  ASSERT_OK(Flush());
  WaitForJobs();
  EXPECT_TRUE(lookup->ConfirmAbsence());
}

// A compaction replaces the value that a reader with a snapshot needs by one
// that is not direct. The reader has passed over the old file, which had only
// direct entries, and must not take the value for absent.

TEST_F(MapPointReadTest, SnapshotReadFindsAChangedValue) {
  ActingFilter filter;
  for (const bool shortens : {false, true}) {
    const std::string key = shortens ? "short" : "change";
    Options options = MapOptions(/*min_blob_size=*/20);
    options.compaction_filter = &filter;
    CheckSnapshotReadBeside(
        key,
        [&] {
          DestroyAndReopen(options);
          ASSERT_OK(Put(key, Value(1)));
        },
        [&] {
          EXPECT_OK(Flush());
          WaitForJobs();
          EXPECT_TRUE(IsDirect(key));
        },
        shortens ? "s" : "changed " + Value(1));
  }
  Close();
}

TEST_F(MapPointReadTest, SnapshotReadFindsABaseThatIsMerged) {
  std::unique_ptr<EventCount> has_begun;
  std::unique_ptr<EventCount> may_go_on;
  CheckSnapshotReadBeside(
      "k",
      [&] {
        DestroyAndReopen(MapOptions());
        ASSERT_OK(Put("k", Value(1)));
        // The operand is in another memtable.
        has_begun = std::make_unique<EventCount>();
        may_go_on = std::make_unique<EventCount>();
        EnableCallBackOnce("FlushJob::WriteLevel0Table:num_memtables",
                           [&](void*) {
                             has_begun->Add();
                             EXPECT_TRUE(may_go_on->WaitFor(1));
                           });
        FlushOptions flush_options;
        flush_options.wait = false;
        ASSERT_OK(db_->Flush(flush_options));
        ASSERT_TRUE(has_begun->WaitFor(1));
        ASSERT_OK(db_->Merge(WriteOptions(), "k", "m"));
      },
      [&] {
        may_go_on->Add();
        WaitForJobs();
        EXPECT_TRUE(IsDirect("k"));
      },
      Value(1) + ",m");
}

// ---- Entries that are used as they are.

TEST_F(MapPointReadTest, EntryWithoutANameGivesWayToANewerDirectOne) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("x", Value(1)));
  const SequenceNumber old = db_->GetLatestSequenceNumber();
  Lookup lookup(this);
  for (const ValueType type :
       {kTypeValue, kTypeDeletion, kTypeBlobIndex, kTypeMerge}) {
    SCOPED_TRACE(static_cast<int>(type));
    ASSERT_OK(Delete("k"));
    ASSERT_OK(Flush());
    Compact();
    lookup->Begin();
    const SequenceNumber seq = InsertDirect(1);
    lookup.TakeSuperVersion();
    // A merge operand does not end the search.
    lookup.Attach(seq);
    const bool restarts = type != kTypeMerge;
    EXPECT_EQ(lookup.OnEntry(type, old),
              restarts ? Action::kStop : Action::kAsIs);
    EXPECT_EQ(lookup->NeedsRestart(), restarts);
    // A covered entry ends it, whatever its type is.
    ASSERT_OK(Delete("k"));
    ASSERT_OK(Flush());
    Compact();
    lookup->Begin();
    const SequenceNumber next = InsertDirect(2);
    lookup.TakeSuperVersion();
    lookup.Attach(next, /*covering=*/next - 1);
    EXPECT_EQ(lookup.OnEntry(type, old), Action::kStop);
    EXPECT_TRUE(lookup->NeedsRestart());
  }
}

TEST_F(MapPointReadTest, EntryStaysIfTheNewDirectOneIsNotVisible) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("x", Value(1)));
  const SequenceNumber old = db_->GetLatestSequenceNumber();
  Lookup lookup(this);
  lookup->Begin();
  const SequenceNumber seq = InsertDirect(1);
  lookup.TakeSuperVersion();
  lookup.Attach(seq - 1);
  EXPECT_EQ(lookup.OnEntry(kTypeValue, old), Action::kAsIs);
  EXPECT_FALSE(lookup->stopped());
}

// A range deletion hides the entry and the newer direct one. A restart would
// have the same result.
TEST_F(MapPointReadTest, CoveredEntryStaysIfTheNewDirectOneIsCoveredToo) {
  DestroyAndReopen(MapOptions());
  ASSERT_OK(Put("x", Value(1)));
  const SequenceNumber old = db_->GetLatestSequenceNumber();
  Lookup lookup(this);
  lookup->Begin();
  const SequenceNumber seq = InsertDirect(1);
  lookup.TakeSuperVersion();
  lookup.Attach(seq + 1, /*covering=*/seq + 1);
  for (const ValueType type : {kTypeValue, kTypeBlobIndex, kTypeMerge}) {
    EXPECT_EQ(lookup.OnEntry(type, old), Action::kAsIs);
    EXPECT_FALSE(lookup->stopped());
  }
}

// An ingested file can have a value and a range deletion with one sequence
// number. The value is above the range deletion then.
TEST_F(MapPointReadTest, DirectValueIsAboveARangeDeletionOfItsNumber) {
  for (const bool is_absent : {false, true}) {
    SCOPED_TRACE(is_absent);
    DestroyAndReopen(MapOptions());
    ASSERT_OK(Put("x", Value(1)));
    const SequenceNumber old = db_->GetLatestSequenceNumber();
    Lookup lookup(this);
    lookup->Begin();
    const SequenceNumber seq = InsertDirect(1);
    lookup.TakeSuperVersion();
    lookup.Attach(seq, /*covering=*/seq);
    if (is_absent) {
      EXPECT_FALSE(lookup->ConfirmAbsence());
    } else {
      EXPECT_EQ(lookup.OnEntry(kTypeValue, old), Action::kStop);
    }
    EXPECT_TRUE(lookup->NeedsRestart());
  }
}

// During the read the value is flushed, a compaction filter shortens it, so
// that it is not direct any more, and meanwhile a newer value is flushed.
// Readers skip the file of the newer value, but not that of the short one.
TEST_F(MapPointReadTest, ShortenedValueDoesNotHideANewDirectOne) {
  ActingFilter filter;
  Options options = MapOptions(/*min_blob_size=*/20);
  options.compaction_filter = &filter;
  CheckReadsBeside(
      "short",
      [&] {
        DestroyAndReopen(options);
        ASSERT_OK(Put("short", Value(1)));
      },
      [&] {
        ASSERT_OK(Flush());
        WaitForJobs();
        CompactAndOverwrite("short", Value(2));
        EXPECT_TRUE(IsDirect("short"));
        CheckMap(1);
      },
      Value(2));
  Close();
}

// ---- Entries with names.

// During the read the value is flushed, its file is merged with a file whose
// entries are not direct, and meanwhile a newer value is flushed. Readers skip
// the file of the newer value, but not the merged file.
TEST_F(MapPointReadTest, OlderNameDoesNotHideANewDirectValue) {
  CheckReadsBeside(
      "k",
      [&] {
        DestroyAndReopen(MapOptions(/*min_blob_size=*/20));
        ASSERT_OK(Put("x", "short"));
        ASSERT_OK(Flush());
      },
      [&] {
        InsertDirect(1);
        CompactAndOverwrite("k", Value(2));
        EXPECT_TRUE(IsDirect("k"));
        CheckMap(1);
      },
      Value(2));
}

TEST_F(MapPointReadTest, NameGivesWayToANewerDirectEntry) {
  DestroyAndReopen(MapOptions());
  Lookup lookup(this);
  lookup->Begin();
  const SequenceNumber first = InsertDirect(1);
  const SequenceNumber second = InsertDirect(2);
  lookup.TakeSuperVersionAndAttach();
  EXPECT_EQ(lookup.OnName(first), Action::kStop);
  EXPECT_TRUE(lookup->NeedsRestart()) << lookup->status().ToString();
  lookup->Begin();
  lookup.TakeSuperVersionAndAttach();
  EXPECT_EQ(lookup.OnName(second), Action::kReplaced);
  EXPECT_EQ(lookup->key().sequence, second);
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
