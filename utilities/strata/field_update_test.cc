//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "utilities/strata/field_update.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/statistics.h"
#include "rocksdb/utilities/object_registry.h"
#include "rocksdb/utilities/options_util.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"
#include "util/random.h"

namespace ROCKSDB_NAMESPACE {

namespace {

// The model gives records and operands their meaning.
using Fields = std::vector<std::string>;
using Updates = std::map<uint32_t, std::string>;

void Apply(const Updates& updates, Fields* fields) {
  for (const auto& [field, bytes] : updates) {
    if (field >= fields->size()) {
      fields->resize(field + 1);
    }
    (*fields)[field] = bytes;
  }
}

std::string Encode(const Fields& fields) {
  std::string value;
  for (const std::string& bytes : fields) {
    AppendField(bytes, &value);
  }
  return value;
}

std::string Encode(const Updates& updates) {
  std::string operand;
  for (const auto& [field, bytes] : updates) {
    AppendFieldUpdate(field, bytes, &operand);
  }
  return operand;
}

// These decoders work byte by byte, and the cursors are compared with them.

std::optional<uint32_t> DecodeVarint(const std::string& bytes,
                                     size_t* position) {
  uint64_t number = 0;
  for (int i = 0; i < 5 && *position < bytes.size(); ++i) {
    const uint64_t byte = static_cast<unsigned char>(bytes[(*position)++]);
    number |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      return static_cast<uint32_t>(number);
    }
  }
  return std::nullopt;
}

std::optional<std::string> DecodeBytes(const std::string& bytes,
                                       size_t* position) {
  const std::optional<uint32_t> length = DecodeVarint(bytes, position);
  if (!length || *length > bytes.size() - *position) {
    return std::nullopt;
  }
  *position += *length;
  return bytes.substr(*position - *length, *length);
}

std::optional<Fields> DecodeFields(const std::string& value) {
  Fields fields;
  size_t position = 0;
  while (position < value.size()) {
    std::optional<std::string> bytes = DecodeBytes(value, &position);
    if (!bytes || fields.size() == 65536) {
      return std::nullopt;
    }
    fields.push_back(std::move(*bytes));
  }
  return fields;
}

std::optional<Updates> DecodeUpdates(const std::string& operand) {
  Updates updates;
  size_t position = 0;
  while (position < operand.size()) {
    const std::optional<uint32_t> field = DecodeVarint(operand, &position);
    if (!field || *field > 65535 ||
        (!updates.empty() && *field <= updates.rbegin()->first)) {
      return std::nullopt;
    }
    std::optional<std::string> bytes = DecodeBytes(operand, &position);
    if (!bytes) {
      return std::nullopt;
    }
    updates[*field] = std::move(*bytes);
  }
  return updates;
}

// Bytes on the heap with nothing around them, so that a sanitizer reports a
// read beyond them.
class ExactCopy {
 public:
  explicit ExactCopy(const std::string& bytes)
      : size_(bytes.size()), data_(new char[bytes.size()]) {
    std::copy(bytes.begin(), bytes.end(), data_.get());
  }

  Slice slice() const { return Slice(data_.get(), size_); }

 private:
  size_t size_;
  std::unique_ptr<char[]> data_;
};

// These functions return what a cursor reads of `bytes`, and whether it found
// all of it sound.

std::pair<Fields, bool> ReadFields(const std::string& bytes) {
  const ExactCopy copy(bytes);
  Fields fields;
  FieldCursor cursor(copy.slice());
  while (cursor.Next()) {
    EXPECT_EQ(cursor.field(), fields.size());
    fields.push_back(cursor.bytes().ToString());
    EXPECT_EQ(cursor.count(), fields.size());
  }
  const bool ok = cursor.ok();
  EXPECT_FALSE(cursor.Next());
  EXPECT_EQ(cursor.ok(), ok);
  EXPECT_EQ(cursor.count(), fields.size());
  return {fields, ok};
}

std::pair<Updates, bool> ReadUpdates(const std::string& bytes) {
  const ExactCopy copy(bytes);
  Updates updates;
  FieldUpdateCursor cursor(copy.slice());
  while (cursor.Next()) {
    EXPECT_TRUE(
        updates.emplace(cursor.field(), cursor.bytes().ToString()).second);
  }
  const bool ok = cursor.ok();
  EXPECT_FALSE(cursor.Next());
  EXPECT_EQ(cursor.ok(), ok);
  return {updates, ok};
}

std::string RandomBytes(Random* random) {
  // The encoded lengths have one to three bytes.
  const int max_size = random->OneIn(200)  ? 20000
                       : random->OneIn(20) ? 300
                                           : 20;
  std::string bytes(random->Uniform(max_size + 1), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random->Next());
  }
  return bytes;
}

Fields RandomFields(Random* random) {
  Fields fields(random->Uniform(12));
  for (std::string& bytes : fields) {
    bytes = RandomBytes(random);
  }
  return fields;
}

Updates RandomUpdates(Random* random) {
  Updates updates;
  const int count = random->OneIn(10) ? 0 : 1 + random->Uniform(4);
  for (int i = 0; i < count; ++i) {
    const uint32_t max_field = random->OneIn(30) ? 400 : 12;
    updates[random->Uniform(max_field)] = RandomBytes(random);
  }
  return updates;
}

// Returns bytes that are often a value or an operand, and about as often are
// not.
std::string RandomCandidate(Random* random) {
  std::string bytes(random->Uniform(14), '\0');
  for (char& byte : bytes) {
    switch (random->Uniform(8)) {
      case 0:
        byte = static_cast<char>(random->Next());
        break;
      case 1:
        byte = static_cast<char>(0x80 | random->Uniform(4));
        break;
      default:
        byte = static_cast<char>(random->Uniform(5));
    }
  }
  return bytes;
}

// Keeps the logged lines.
class LineLogger : public Logger {
 public:
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[500];
    vsnprintf(line, sizeof(line), format, arguments);
    lines.emplace_back(line);
  }

  std::vector<std::string> lines;
};

// A FieldUpdateOperator that counts its merges.
class CountingOperator : public FieldUpdateOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& merge_in,
                   MergeOperationOutput* merge_out) const override {
    ++full_merges;
    return FieldUpdateOperator::FullMergeV2(merge_in, merge_out);
  }

  bool PartialMergeMulti(const Slice& key,
                         const std::deque<Slice>& operand_list,
                         std::string* new_value,
                         Logger* logger) const override {
    ++partial_merges;
    return FieldUpdateOperator::PartialMergeMulti(key, operand_list, new_value,
                                                  logger);
  }

  mutable std::atomic<int> full_merges{0};
  mutable std::atomic<int> partial_merges{0};
};

}  // namespace

class FieldUpdateTest : public testing::Test {
 public:
  FieldUpdateTest() : random_(test::RandomSeed()) {}

 protected:
  // Returns the merged value, or nothing if the merge fails.
  std::optional<std::string> FullMerge(
      const std::optional<std::string>& base,
      const std::vector<std::string>& operands) {
    std::vector<ExactCopy> copies;
    std::vector<Slice> operand_list;
    copies.reserve(operands.size());
    for (const std::string& operand : operands) {
      copies.emplace_back(operand);
      operand_list.push_back(copies.back().slice());
    }
    const ExactCopy base_copy(base.value_or(""));
    const Slice base_slice = base_copy.slice();
    const Slice key("key");
    const MergeOperator::MergeOperationInput input(
        key, base ? &base_slice : nullptr, operand_list, logger_);
    std::string new_value("replaced");
    Slice existing_operand(nullptr, 0);
    MergeOperator::MergeOperationOutput output(new_value, existing_operand);
    const bool merged = operator_.FullMergeV2(input, &output);
    EXPECT_EQ(existing_operand.data(), nullptr);
    failure_scope_ = output.op_failure_scope;
    return merged ? std::optional(new_value) : std::nullopt;
  }

  // Returns the merged operand, or nothing if the merge fails. Two operands are
  // merged by PartialMerge(), too.
  std::optional<std::string> PartialMerge(
      const std::vector<std::string>& operands) {
    const std::deque<Slice> operand_list(operands.begin(), operands.end());
    std::string new_value("untouched");
    const bool merged =
        operator_.PartialMergeMulti("key", operand_list, &new_value, logger_);
    if (operands.size() == 2) {
      std::string value_of_two("untouched");
      EXPECT_EQ(operator_.PartialMerge("key", operands[0], operands[1],
                                       &value_of_two, logger_),
                merged);
      EXPECT_EQ(value_of_two, new_value);
    }
    if (!merged) {
      EXPECT_EQ(new_value, "untouched");
      return std::nullopt;
    }
    return new_value;
  }

  Random random_;
  const FieldUpdateOperator operator_;
  Logger* logger_ = nullptr;
  MergeOperator::OpFailureScope failure_scope_ =
      MergeOperator::OpFailureScope::kDefault;
};

TEST_F(FieldUpdateTest, EncodingsHaveTheFormat) {
  const std::string value = Encode(Fields{"ab", "", std::string(130, 'x')});
  ASSERT_EQ(value, std::string("\x02"
                               "ab"
                               "\x00"
                               "\x82\x01",
                               6) +
                       std::string(130, 'x'));
  const std::string operand = Encode(Updates{{0, ""}, {1, "ab"}, {300, "c"}});
  ASSERT_EQ(operand, std::string("\x00\x00"
                                 "\x01\x02"
                                 "ab"
                                 "\xac\x02\x01"
                                 "c",
                                 10));
  ASSERT_EQ(ReadFields("").second, true);
  ASSERT_EQ(ReadUpdates("").second, true);
  FieldCursor no_value{Slice(nullptr, 0)};
  ASSERT_FALSE(no_value.Next());
  ASSERT_TRUE(no_value.ok());
  ASSERT_EQ(no_value.count(), 0);
}

TEST_F(FieldUpdateTest, CursorsReadWhatWasEncoded) {
  for (int i = 0; i < 1000; ++i) {
    const Fields fields = RandomFields(&random_);
    ASSERT_EQ(ReadFields(Encode(fields)), std::make_pair(fields, true));
    const Updates updates = RandomUpdates(&random_);
    ASSERT_EQ(ReadUpdates(Encode(updates)), std::make_pair(updates, true));
  }
}

TEST_F(FieldUpdateTest, TruncationIsNoticed) {
  const std::string sizes[] = {"", "a",  std::string(200, 'b'),
                               "", "cd", std::string(20000, 'e')};
  std::string value;
  std::string operand;
  std::set<size_t> value_ends{0};
  std::set<size_t> operand_ends{0};
  uint32_t field = 0;
  for (const std::string& bytes : sizes) {
    AppendField(bytes, &value);
    value_ends.insert(value.size());
    AppendFieldUpdate(field, bytes, &operand);
    operand_ends.insert(operand.size());
    field = field * 5 + 1;
  }
  const auto wholes = [](const std::set<size_t>& ends, size_t size) {
    return static_cast<size_t>(
        std::distance(ends.begin(), ends.upper_bound(size)) - 1);
  };
  const Fields all_fields = *DecodeFields(value);
  for (size_t size = 0; size <= value.size(); ++size) {
    const auto [fields, ok] = ReadFields(value.substr(0, size));
    ASSERT_EQ(ok, value_ends.count(size) == 1) << size;
    ASSERT_EQ(fields.size(), wholes(value_ends, size)) << size;
    ASSERT_TRUE(std::equal(fields.begin(), fields.end(), all_fields.begin()));
  }
  const Updates all_updates = *DecodeUpdates(operand);
  for (size_t size = 0; size <= operand.size(); ++size) {
    const auto [updates, ok] = ReadUpdates(operand.substr(0, size));
    ASSERT_EQ(ok, operand_ends.count(size) == 1) << size;
    ASSERT_EQ(updates.size(), wholes(operand_ends, size)) << size;
    ASSERT_TRUE(
        std::equal(updates.begin(), updates.end(), all_updates.begin()));
  }
}

// Cursors and merges accept what the decoders of this test accept, and nothing
// else.
TEST_F(FieldUpdateTest, CursorsAndMergesAgreeWithTheModel) {
  int values = 0;
  int operands = 0;
  int merges = 0;
  constexpr int kRounds = 30000;
  for (int i = 0; i < kRounds; ++i) {
    const std::string value = RandomCandidate(&random_);
    const std::optional<Fields> fields = DecodeFields(value);
    const auto [fields_read, value_ok] = ReadFields(value);
    ASSERT_EQ(value_ok, fields.has_value());
    if (fields) {
      ASSERT_EQ(fields_read, *fields);
      ++values;
    }

    std::vector<std::string> operand_list;
    bool all_ok = true;
    Fields merged = fields.value_or(Fields());
    Updates updates_merged;
    for (uint32_t n = 1 + random_.Uniform(3); n > 0; --n) {
      operand_list.push_back(RandomCandidate(&random_));
      const std::optional<Updates> updates = DecodeUpdates(operand_list.back());
      const auto [updates_read, ok] = ReadUpdates(operand_list.back());
      ASSERT_EQ(ok, updates.has_value());
      if (!updates) {
        all_ok = false;
        continue;
      }
      ASSERT_EQ(updates_read, *updates);
      ++operands;
      Apply(*updates, &merged);
      for (const auto& [field, bytes] : *updates) {
        updates_merged[field] = bytes;
      }
    }

    const std::optional<std::string> partial = PartialMerge(operand_list);
    ASSERT_EQ(partial.has_value(), all_ok);
    if (partial) {
      ASSERT_EQ(*partial, Encode(updates_merged));
    }
    const std::optional<std::string> full = FullMerge(value, operand_list);
    ASSERT_EQ(full.has_value(), all_ok && fields.has_value());
    if (full) {
      // This may differ from Encode(merged), since fields that stay keep
      // lengths that were written in more bytes than they need.
      ASSERT_EQ(DecodeFields(*full), merged);
      ++merges;
    }
  }
  // Many candidates are valid, and not all of them.
  ASSERT_GT(values, kRounds / 20);
  ASSERT_LT(values, kRounds);
  ASSERT_GT(operands, kRounds / 20);
  ASSERT_GT(merges, kRounds / 200);
}

TEST_F(FieldUpdateTest, FullMergeReplacesAndExtendsFields) {
  const Fields abc{"a", "b", "c"};
  struct {
    std::optional<Fields> base;
    std::vector<Updates> operands;
    Fields expected;
  } const cases[] = {
      // Fields are replaced: the first, the middle, the last, all; by other
      // sizes.
      {abc, {{{0, "xyz"}}}, {"xyz", "b", "c"}},
      {abc, {{{1, ""}}}, {"a", "", "c"}},
      {abc, {{{2, "xyz"}}}, {"a", "b", "xyz"}},
      {abc, {{{0, "x"}, {1, "y"}, {2, "z"}}}, {"x", "y", "z"}},
      // The newest update of each field wins.
      {abc, {{{0, "1"}, {1, "1"}}, {{1, "2"}}}, {"1", "2", "c"}},
      {abc, {{{1, "1"}}, {{1, ""}}}, {"a", "", "c"}},
      // The value is extended, with and without fields that are skipped.
      {abc, {{{3, "d"}}}, {"a", "b", "c", "d"}},
      {abc, {{{5, "f"}}}, {"a", "b", "c", "", "", "f"}},
      {abc, {{{4, "e"}}, {{3, "d"}}}, {"a", "b", "c", "d", "e"}},
      // All fields of the base are covered before the operand that extends it.
      {abc,
       {{{4, "e"}}, {{0, "x"}, {1, "y"}, {2, "z"}}},
       {"x", "y", "z", "", "e"}},
      // Operands change nothing.
      {abc, {{}}, {"a", "b", "c"}},
      {abc, {{}, {{0, "x"}}, {}}, {"x", "b", "c"}},
      // There is no base, or an empty one.
      {std::nullopt, {{}}, {}},
      {std::nullopt, {{{0, "x"}}}, {"x"}},
      {std::nullopt, {{{2, "z"}}, {{1, "y"}}}, {"", "y", "z"}},
      {Fields(), {{{1, "y"}}}, {"", "y"}},
  };
  for (const auto& c : cases) {
    std::vector<std::string> operands;
    for (const Updates& updates : c.operands) {
      operands.push_back(Encode(updates));
    }
    SCOPED_TRACE(&c - cases);
    ASSERT_EQ(FullMerge(c.base ? std::optional(Encode(*c.base)) : std::nullopt,
                        operands),
              Encode(c.expected));
  }
}

TEST_F(FieldUpdateTest, PartialMergeKeepsTheNewestUpdates) {
  ASSERT_EQ(PartialMerge({Encode(Updates{{0, "a"}, {7, "b"}}),
                          Encode(Updates{{3, "c"}, {7, ""}})}),
            Encode(Updates{{0, "a"}, {3, "c"}, {7, ""}}));
  ASSERT_EQ(PartialMerge({"", ""}), "");
  ASSERT_EQ(PartialMerge({"", Encode(Updates{{65535, "a"}})}),
            Encode(Updates{{65535, "a"}}));
}

TEST_F(FieldUpdateTest, FieldsBeyondTheLimitAreRefused) {
  // The highest field is accepted.
  const std::string highest = Encode(Updates{{65535, "x"}});
  Fields most(65536);
  most[65535] = "x";
  ASSERT_EQ(FullMerge(std::nullopt, {highest}), Encode(most));
  ASSERT_EQ(FullMerge(Encode(most), {Encode(Updates{{0, "y"}}), highest}),
            Encode([&] {
              Fields fields = most;
              fields[0] = "y";
              return fields;
            }()));
  // A higher field is refused.
  const std::string beyond("\x80\x80\x04\x01x", 5);
  ASSERT_EQ(ReadUpdates(beyond), std::make_pair(Updates(), false));
  ASSERT_EQ(FullMerge(std::nullopt, {beyond}), std::nullopt);
  ASSERT_EQ(PartialMerge({beyond, highest}), std::nullopt);
  const std::string far_beyond("\xff\xff\xff\xff\x0f\x01x", 7);
  ASSERT_EQ(FullMerge(std::nullopt, {far_beyond}), std::nullopt);
  Fields too_many(65537);
  ASSERT_EQ(ReadFields(Encode(too_many)), std::make_pair(Fields(65536), false));
  ASSERT_EQ(FullMerge(Encode(too_many), {""}), std::nullopt);
}

TEST_F(FieldUpdateTest, CorruptOperandsAndBasesFailTheMerge) {
  const std::string good = Encode(Updates{{0, "x"}, {1, "y"}});
  const std::string base = Encode(Fields{"a", "b"});
  const std::string bad_operands[] = {
      std::string("\x00", 1),                          // no length
      std::string("\x00\x02x", 3),                     // not all bytes
      std::string("\x01\x00\x00\x00", 4),              // fields descend
      std::string("\x01\x00\x01\x00", 4),              // a field twice
      std::string("\x80\x80\x80\x80\x80\x00\x00", 7),  // no varint32
      good + std::string("\x02", 1),
  };
  LineLogger logger;
  logger_ = &logger;
  for (const std::string& bad : bad_operands) {
    for (int at = 0; at < 3; ++at) {
      // The operand is checked also below operands that cover all fields.
      std::vector<std::string> operands(3, good);
      operands[at] = bad;
      failure_scope_ = MergeOperator::OpFailureScope::kDefault;
      logger.lines.clear();
      ASSERT_EQ(FullMerge(base, operands), std::nullopt);
      ASSERT_EQ(failure_scope_, MergeOperator::OpFailureScope::kMustMerge);
      ASSERT_EQ(logger.lines.size(), 1);
      ASSERT_NE(
          logger.lines[0].find("operand " + std::to_string(at + 1) + " of 3"),
          std::string::npos)
          << logger.lines[0];
      ASSERT_EQ(PartialMerge(operands), std::nullopt);
      ASSERT_EQ(PartialMerge({operands[0], operands[1]}).has_value(), at == 2);
      ASSERT_EQ(logger.lines.size(), 1);
    }
  }
  for (const std::string bad_base : {"\x02z", "\x01z\x80", "\x80"}) {
    for (const std::string& operand : {std::string(), good}) {
      failure_scope_ = MergeOperator::OpFailureScope::kDefault;
      logger.lines.clear();
      ASSERT_EQ(FullMerge(bad_base, {operand}), std::nullopt);
      ASSERT_EQ(failure_scope_, MergeOperator::OpFailureScope::kMustMerge);
      ASSERT_EQ(logger.lines.size(), 1);
      ASSERT_NE(logger.lines[0].find("base value"), std::string::npos);
    }
  }
  // The merge fails without a logger, too.
  logger_ = nullptr;
  ASSERT_EQ(FullMerge(base, {bad_operands[0]}), std::nullopt);
  ASSERT_EQ(FullMerge("\x02z", {good}), std::nullopt);
}

// The bytes are the same however a history is divided into merges.
TEST_F(FieldUpdateTest, MergesAreAssociative) {
  for (int round = 0; round < 400; ++round) {
    std::optional<std::string> base;
    Fields fields;
    if (!random_.OneIn(4)) {
      fields = RandomFields(&random_);
      base = Encode(fields);
    }
    std::vector<std::string> operands;
    Updates all;
    for (uint32_t n = 2 + random_.Uniform(30); n > 0; --n) {
      const Updates updates = RandomUpdates(&random_);
      operands.push_back(Encode(updates));
      Apply(updates, &fields);
      for (const auto& [field, bytes] : updates) {
        all[field] = bytes;
      }
    }
    const std::string expected = Encode(fields);
    ASSERT_EQ(FullMerge(base, operands), expected);
    ASSERT_EQ(PartialMerge(operands), Encode(all));

    // Random numbers of neighbours are merged in random order, until one
    // operand is left.
    std::vector<std::string> rest = operands;
    while (rest.size() > 1) {
      const size_t begin = random_.Uniform(static_cast<int>(rest.size() - 1));
      const size_t most = std::min<size_t>(rest.size() - begin, 5);
      const size_t count = 2 + random_.Uniform(static_cast<int>(most - 1));
      const auto first = rest.begin() + begin;
      const std::optional<std::string> merged =
          PartialMerge(std::vector<std::string>(first, first + count));
      ASSERT_TRUE(merged.has_value());
      *first = *merged;
      rest.erase(first + 1, first + count);
      ASSERT_EQ(FullMerge(base, rest), expected);
    }
    ASSERT_EQ(rest[0], Encode(all));

    // The oldest are merged into the base first.
    std::optional<std::string> value = base;
    for (size_t begin = 0; begin < operands.size();) {
      const size_t most = operands.size() - begin;
      const size_t count = 1 + random_.Uniform(static_cast<int>(most));
      const auto first = operands.begin() + begin;
      value = FullMerge(value, std::vector<std::string>(first, first + count));
      ASSERT_TRUE(value.has_value());
      begin += count;
    }
    ASSERT_EQ(*value, expected);
  }
}

class FieldUpdateRegistryTest : public testing::Test {
 public:
  FieldUpdateRegistryTest() {
    RegisterFieldUpdateOperator(*ObjectLibrary::Default());
  }

 protected:
  const ConfigOptions config_;
};

TEST_F(FieldUpdateRegistryTest, OperatorIsRegisteredOnce) {
  ObjectLibrary library("test");
  ASSERT_EQ(RegisterFieldUpdateOperator(library), 1);
  ASSERT_EQ(RegisterFieldUpdateOperator(library), 0);
  ASSERT_EQ(library.GetFactoryCount(MergeOperator::Type()), 1);

  // The operator is not registered again after the built-in operators.
  std::shared_ptr<MergeOperator> other;
  ASSERT_OK(MergeOperator::CreateFromString(config_, "put", &other));
  ASSERT_EQ(RegisterFieldUpdateOperator(*ObjectLibrary::Default()), 0);
  std::vector<std::string> names;
  ObjectLibrary::Default()->GetFactoryNames(MergeOperator::Type(), &names);
  ASSERT_EQ(std::count(names.begin(), names.end(), "FieldUpdateOperator"), 1);
}

TEST_F(FieldUpdateRegistryTest, OperatorIsCreatedByName) {
  for (const std::string name :
       {"fieldupdate", "FieldUpdateOperator", "id=fieldupdate"}) {
    SCOPED_TRACE(name);
    std::shared_ptr<MergeOperator> created;
    ASSERT_OK(MergeOperator::CreateFromString(config_, name, &created));
    ASSERT_NE(created, nullptr);
    ASSERT_STREQ(created->Name(), "FieldUpdateOperator");
    ASSERT_TRUE(created->IsInstanceOf("fieldupdate"));
    ASSERT_TRUE(created->IsInstanceOf("FieldUpdateOperator"));
    std::string merged;
    ASSERT_TRUE(created->PartialMerge("key", Encode(Updates{{1, "a"}}),
                                      Encode(Updates{{0, "b"}}), &merged,
                                      nullptr));
    ASSERT_EQ(merged, Encode(Updates{{0, "b"}, {1, "a"}}));
  }
}

TEST_F(FieldUpdateRegistryTest, OptionStringKeepsTheOperator) {
  ColumnFamilyOptions options;
  ASSERT_OK(GetColumnFamilyOptionsFromString(
      config_, ColumnFamilyOptions(), "merge_operator=fieldupdate", &options));
  ASSERT_NE(options.merge_operator, nullptr);
  std::string text;
  ASSERT_OK(GetStringFromColumnFamilyOptions(config_, options, &text));
  ColumnFamilyOptions read;
  ASSERT_OK(GetColumnFamilyOptionsFromString(config_, ColumnFamilyOptions(),
                                             text, &read));
  ASSERT_NE(read.merge_operator, nullptr);
  ASSERT_STREQ(read.merge_operator->Name(), "FieldUpdateOperator");
}

class FieldUpdateDBTest : public FieldUpdateTest {
 public:
  FieldUpdateDBTest() : path_(test::PerThreadDBPath("field_update_test")) {
    RegisterFieldUpdateOperator(*ObjectLibrary::Default());
    options_.create_if_missing = true;
    options_.merge_operator = counting_;
    EXPECT_OK(DestroyDB(path_, options_));
  }

  ~FieldUpdateDBTest() override {
    ReleaseAll();
    db_.reset();
    if (!HasFailure()) {
      EXPECT_OK(DestroyDB(path_, options_));
    }
  }

 protected:
  using Model = std::map<std::string, Fields>;

  struct View {
    const Snapshot* snapshot;
    Model model;
  };

  void Open() {
    db_.reset();
    ASSERT_OK(DB::Open(options_, path_, &db_));
  }

  void ReleaseAll() {
    for (const View& view : views_) {
      db_->ReleaseSnapshot(view.snapshot);
    }
    views_.clear();
  }

  Status Merge(const std::string& key, const Updates& updates) {
    return db_->Merge(WriteOptions(), key, Encode(updates));
  }

  std::string Get(const std::string& key) {
    std::string value;
    const Status status = db_->Get(ReadOptions(), key, &value);
    return status.ok() ? value : status.ToString();
  }

  std::vector<std::string> GetMergeOperands(const std::string& key) {
    std::vector<PinnableSlice> slices(10);
    GetMergeOperandsOptions operand_options;
    operand_options.expected_max_number_of_operands = 10;
    int count = 0;
    EXPECT_OK(db_->GetMergeOperands(ReadOptions(), db_->DefaultColumnFamily(),
                                    key, slices.data(), &operand_options,
                                    &count));
    std::vector<std::string> operands;
    for (int i = 0; i < count; ++i) {
      operands.push_back(slices[i].ToString());
    }
    return operands;
  }

  Status CompactAll() {
    CompactRangeOptions compact_options;
    compact_options.bottommost_level_compaction =
        BottommostLevelCompaction::kForce;
    return db_->CompactRange(compact_options, nullptr, nullptr);
  }

  static std::string Key(int number) { return "key" + std::to_string(number); }

  // Checks that every kind of read sees the model.
  void Check(const Snapshot* snapshot, const Model& model, int num_keys) {
    ReadOptions read_options;
    read_options.snapshot = snapshot;

    std::vector<std::string> keys;
    for (int i = 0; i < num_keys; ++i) {
      keys.push_back(Key(i));
    }
    const std::vector<Slice> key_slices(keys.begin(), keys.end());
    std::vector<PinnableSlice> values(keys.size());
    std::vector<Status> statuses(keys.size());
    db_->MultiGet(read_options, db_->DefaultColumnFamily(), keys.size(),
                  key_slices.data(), values.data(), statuses.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      SCOPED_TRACE(keys[i]);
      std::string value;
      const Status status = db_->Get(read_options, keys[i], &value);
      const auto expected = model.find(keys[i]);
      if (expected == model.end()) {
        ASSERT_TRUE(status.IsNotFound()) << status.ToString();
        ASSERT_TRUE(statuses[i].IsNotFound()) << statuses[i].ToString();
      } else {
        ASSERT_OK(status);
        ASSERT_EQ(value, Encode(expected->second));
        ASSERT_OK(statuses[i]);
        ASSERT_EQ(values[i], Encode(expected->second));
      }
    }

    const std::unique_ptr<Iterator> iterator(db_->NewIterator(read_options));
    iterator->SeekToFirst();
    for (const auto& [key, fields] : model) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
      ASSERT_EQ(iterator->key(), key);
      ASSERT_EQ(iterator->value(), Encode(fields));
      iterator->Next();
    }
    ASSERT_FALSE(iterator->Valid());
    ASSERT_OK(iterator->status());
    iterator->SeekToLast();
    for (auto entry = model.rbegin(); entry != model.rend(); ++entry) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
      ASSERT_EQ(iterator->key(), entry->first);
      ASSERT_EQ(iterator->value(), Encode(entry->second));
      iterator->Prev();
    }
    ASSERT_FALSE(iterator->Valid());
    ASSERT_OK(iterator->status());
  }

  const std::string path_;
  const std::shared_ptr<CountingOperator> counting_ =
      std::make_shared<CountingOperator>();
  Options options_;
  std::unique_ptr<DB> db_;
  std::list<View> views_;
};

enum class Setting { kDefault, kBlobs, kSuccessiveMerges, kUniversal };

class FieldUpdateHistoryTest : public FieldUpdateDBTest,
                               public testing::WithParamInterface<Setting> {};

INSTANTIATE_TEST_CASE_P(Settings, FieldUpdateHistoryTest,
                        testing::Values(Setting::kDefault, Setting::kBlobs,
                                        Setting::kSuccessiveMerges,
                                        Setting::kUniversal));

TEST_P(FieldUpdateHistoryTest, RandomHistoriesMatchTheModel) {
  constexpr int kNumKeys = 12;
  constexpr int kNumSteps = 2500;
  options_.write_buffer_size = 64 << 10;
  options_.level0_file_num_compaction_trigger = 3;
  switch (GetParam()) {
    case Setting::kDefault:
      break;
    case Setting::kBlobs:
      options_.enable_blob_files = true;
      options_.enable_blob_garbage_collection = true;
      break;
    case Setting::kSuccessiveMerges:
      options_.max_successive_merges = 3;
      options_.allow_concurrent_memtable_write = false;
      break;
    case Setting::kUniversal:
      options_.compaction_style = kCompactionStyleUniversal;
      break;
  }
  Open();

  Model model;
  for (int step = 0; step < kNumSteps; ++step) {
    SCOPED_TRACE(step);
    const std::string key = Key(random_.Uniform(kNumKeys));
    const uint32_t choice = random_.Uniform(100);
    if (choice < 8) {
      model[key] = RandomFields(&random_);
      ASSERT_OK(db_->Put(WriteOptions(), key, Encode(model[key])));
    } else if (choice < 12) {
      model.erase(key);
      ASSERT_OK(db_->Delete(WriteOptions(), key));
    } else if (choice < 13) {
      const std::string end = Key(random_.Uniform(kNumKeys));
      if (key < end) {
        model.erase(model.lower_bound(key), model.lower_bound(end));
        ASSERT_OK(db_->DeleteRange(WriteOptions(), key, end));
      }
    } else {
      const Updates updates = RandomUpdates(&random_);
      Apply(updates, &model[key]);
      ASSERT_OK(Merge(key, updates));
    }

    if (random_.OneIn(60)) {
      ASSERT_OK(db_->Flush(FlushOptions()));
    }
    if (random_.OneIn(400)) {
      ASSERT_OK(CompactAll());
    }
    if (random_.OneIn(100)) {
      views_.push_back({db_->GetSnapshot(), model});
      if (views_.size() > 4) {
        const auto view = std::next(views_.begin(), random_.Uniform(5));
        ASSERT_NO_FATAL_FAILURE(Check(view->snapshot, view->model, kNumKeys));
        db_->ReleaseSnapshot(view->snapshot);
        views_.erase(view);
      }
    }
    if (random_.OneIn(1000)) {
      ReleaseAll();
      Open();
    }
    if (random_.OneIn(50) || step + 1 == kNumSteps) {
      ASSERT_NO_FATAL_FAILURE(Check(nullptr, model, kNumKeys));
      for (const View& view : views_) {
        ASSERT_NO_FATAL_FAILURE(Check(view.snapshot, view.model, kNumKeys));
      }
    }
  }
  ReleaseAll();
  ASSERT_OK(CompactAll());
  ASSERT_NO_FATAL_FAILURE(Check(nullptr, model, kNumKeys));
  ASSERT_GT(counting_->full_merges, 0);
  ASSERT_GT(counting_->partial_merges, 0);
}

TEST_F(FieldUpdateDBTest, MergesWithoutABaseMakeARecord) {
  Open();
  ASSERT_OK(Merge("new", {{1, "b"}}));
  ASSERT_EQ(Get("new"), Encode(Fields{"", "b"}));
  ASSERT_OK(Merge("empty", {}));
  ASSERT_EQ(Get("empty"), "");
  ASSERT_OK(db_->Put(WriteOptions(), "deleted", Encode(Fields{"a", "b", "c"})));
  ASSERT_OK(db_->Delete(WriteOptions(), "deleted"));
  ASSERT_OK(Merge("deleted", {{1, "b"}}));
  ASSERT_EQ(Get("deleted"), Encode(Fields{"", "b"}));
  ASSERT_OK(CompactAll());
  ASSERT_EQ(Get("new"), Encode(Fields{"", "b"}));
  ASSERT_EQ(Get("empty"), "");
  ASSERT_EQ(Get("deleted"), Encode(Fields{"", "b"}));
}

TEST_F(FieldUpdateDBTest, GetMergeOperandsReturnsMergedOperands) {
  Open();
  const std::string base = Encode(Fields{"a", "b"});
  ASSERT_OK(db_->Put(WriteOptions(), "key", base));
  ASSERT_OK(db_->Flush(FlushOptions()));
  const Updates updates[] = {{{1, "1"}, {2, "1"}}, {{2, "2"}}, {{0, ""}}};
  std::vector<std::string> expected{base};
  for (const Updates& update : updates) {
    ASSERT_OK(Merge("key", update));
    expected.push_back(Encode(update));
  }
  ASSERT_EQ(GetMergeOperands("key"), expected);
  // A flush does not see the base, so it merges the operands into one.
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_EQ(GetMergeOperands("key"),
            std::vector<std::string>(
                {base, Encode(Updates{{0, ""}, {1, "1"}, {2, "2"}})}));
  ASSERT_EQ(counting_->partial_merges, 1);
  ASSERT_OK(CompactAll());
  ASSERT_EQ(GetMergeOperands("key"),
            std::vector<std::string>({Encode(Fields{"", "1", "2"})}));
}

TEST_F(FieldUpdateDBTest, ManyOperandsNeedOneMerge) {
  constexpr int kNumOperands = 50000;
  options_.statistics = CreateDBStatistics();
  Open();
  Fields fields(10, std::string(100, 'x'));
  const std::string base = Encode(fields);
  ASSERT_OK(db_->Put(WriteOptions(), "hot", base));
  ASSERT_OK(db_->Flush(FlushOptions()));
  for (int i = 0; i < kNumOperands; ++i) {
    // The field that extends the value is named by the oldest operand only.
    const uint32_t field = i == 0 ? 20 : random_.Uniform(10);
    const Updates updates{{field, "update " + std::to_string(i)}};
    Apply(updates, &fields);
    WriteOptions write_options;
    write_options.disableWAL = true;
    ASSERT_OK(db_->Merge(write_options, "hot", Encode(updates)));
  }
  ASSERT_EQ(Get("hot"), Encode(fields));
  // The read needs one merge.
  ASSERT_EQ(counting_->full_merges, 1);
  HistogramData operands;
  options_.statistics->histogramData(READ_NUM_MERGE_OPERANDS, &operands);
  ASSERT_EQ(operands.max, kNumOperands);

  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_EQ(GetMergeOperands("hot").size(), 2);
  ASSERT_EQ(counting_->partial_merges, 1);
  ASSERT_EQ(Get("hot"), Encode(fields));
  ASSERT_OK(CompactAll());
  ASSERT_EQ(Get("hot"), Encode(fields));
}

TEST_F(FieldUpdateDBTest, MergesChangeTheDefaultColumn) {
  Open();
  const std::string base = Encode(Fields{"a", "b"});
  const WideColumns with_record{{kDefaultWideColumnName, base},
                                {"colour", "red"}};
  const WideColumns without_record{{"colour", "blue"}};
  ColumnFamilyHandle* const family = db_->DefaultColumnFamily();
  ASSERT_OK(db_->PutEntity(WriteOptions(), family, "with", with_record));
  ASSERT_OK(db_->PutEntity(WriteOptions(), family, "without", without_record));
  ASSERT_OK(db_->Flush(FlushOptions()));
  for (const char* key : {"with", "without"}) {
    ASSERT_OK(Merge(key, {{1, "1"}}));
    ASSERT_OK(Merge(key, {{2, "2"}}));
  }
  const std::string with_merged = Encode(Fields{"a", "1", "2"});
  const std::string without_merged = Encode(Fields{"", "1", "2"});
  const WideColumns with_expected{{kDefaultWideColumnName, with_merged},
                                  {"colour", "red"}};
  const WideColumns without_expected{{kDefaultWideColumnName, without_merged},
                                     {"colour", "blue"}};
  for (bool compacted : {false, true}) {
    SCOPED_TRACE(compacted);
    if (compacted) {
      ASSERT_OK(CompactAll());
    }
    ASSERT_EQ(Get("with"), with_merged);
    ASSERT_EQ(Get("without"), without_merged);
    PinnableWideColumns columns;
    ASSERT_OK(db_->GetEntity(ReadOptions(), family, "with", &columns));
    ASSERT_EQ(columns.columns(), with_expected);
    columns.Reset();
    ASSERT_OK(db_->GetEntity(ReadOptions(), family, "without", &columns));
    ASSERT_EQ(columns.columns(), without_expected);
  }
}

TEST_F(FieldUpdateDBTest, CorruptKeysFailAndCanBeRepaired) {
  Open();
  const std::string good = Encode(Fields{"a", "b"});
  const std::string bad_operand("\x00\x05x", 3);
  const std::string bad_base("\x05x");
  ASSERT_OK(db_->Put(WriteOptions(), "bad base", bad_base));
  ASSERT_OK(db_->Put(WriteOptions(), "bad operand", good));
  ASSERT_OK(db_->Put(WriteOptions(), "good", good));
  // The operator does not see values that nothing is merged into.
  ASSERT_EQ(Get("bad base"), bad_base);
  ASSERT_OK(db_->Flush(FlushOptions()));
  ASSERT_OK(Merge("bad base", {{0, "x"}}));
  ASSERT_OK(db_->Merge(WriteOptions(), "bad operand", bad_operand));
  ASSERT_OK(Merge("bad operand", {{0, "x"}, {1, "y"}}));
  ASSERT_OK(Merge("good", {{0, "x"}}));

  for (const char* stage : {"in memory", "flushed", "compacted"}) {
    SCOPED_TRACE(stage);
    if (strcmp(stage, "flushed") == 0) {
      ASSERT_OK(db_->Flush(FlushOptions()));
    } else if (strcmp(stage, "compacted") == 0) {
      ASSERT_OK(CompactAll());
    }
    ASSERT_EQ(Get("good"), Encode(Fields{"x", "b"}));
    const Slice keys[] = {"bad base", "bad operand"};
    PinnableSlice values[2];
    Status statuses[2];
    db_->MultiGet(ReadOptions(), db_->DefaultColumnFamily(), 2, keys, values,
                  statuses);
    for (int i = 0; i < 2; ++i) {
      std::string value;
      const Status status = db_->Get(ReadOptions(), keys[i], &value);
      ASSERT_TRUE(status.IsCorruption()) << status.ToString();
      ASSERT_EQ(status.subcode(), Status::SubCode::kMergeOperatorFailed);
      ASSERT_TRUE(statuses[i].IsCorruption()) << statuses[i].ToString();
      const std::unique_ptr<Iterator> iterator(db_->NewIterator(ReadOptions()));
      iterator->Seek(keys[i]);
      ASSERT_FALSE(iterator->Valid());
      ASSERT_TRUE(iterator->status().IsCorruption());
    }
    // All operands can be read, for a repair by hand.
    ASSERT_EQ(GetMergeOperands("bad operand"),
              std::vector<std::string>(
                  {good, bad_operand, Encode(Updates{{0, "x"}, {1, "y"}})}));
  }

  // The DB takes writes, and new values repair the keys.
  for (const char* key : {"bad base", "bad operand"}) {
    ASSERT_OK(db_->Put(WriteOptions(), key, good));
    ASSERT_OK(Merge(key, {{1, "y"}}));
    ASSERT_EQ(Get(key), Encode(Fields{"a", "y"}));
  }
  ASSERT_OK(CompactAll());
  for (const char* key : {"bad base", "bad operand"}) {
    ASSERT_EQ(Get(key), Encode(Fields{"a", "y"}));
  }
}

TEST_F(FieldUpdateDBTest, OptionsFileKeepsTheOperator) {
  options_.merge_operator = nullptr;
  ASSERT_OK(MergeOperator::CreateFromString(ConfigOptions(), "fieldupdate",
                                            &options_.merge_operator));
  Open();
  ASSERT_OK(db_->Put(WriteOptions(), "key", Encode(Fields{"a", "b"})));
  ASSERT_OK(Merge("key", {{0, "x"}}));
  db_.reset();

  ConfigOptions config;
  config.ignore_unsupported_options = false;
  DBOptions db_options;
  std::vector<ColumnFamilyDescriptor> families;
  ASSERT_OK(LoadLatestOptions(config, path_, &db_options, &families));
  ASSERT_EQ(families.size(), 1);
  ASSERT_NE(families[0].options.merge_operator, nullptr);
  ASSERT_STREQ(families[0].options.merge_operator->Name(),
               "FieldUpdateOperator");
  options_ = Options(db_options, families[0].options);
  Open();
  ASSERT_EQ(Get("key"), Encode(Fields{"x", "b"}));
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
