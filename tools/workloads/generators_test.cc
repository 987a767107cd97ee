// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/generators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "port/stack_trace.h"
#include "test_util/testharness.h"
#include "test_util/testutil.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

constexpr uint64_t kSeed = 20241121;
constexpr int kDraws = 500000;
constexpr uint64_t kTenBillion = 10000000000;
constexpr double kExponents[] = {0.5, 0.8, 0.99, 1.0, 1.2};

// A correct generator exceeds this with a probability of 1e-6: 4.753 is that
// quantile of the normal distribution. The seeds are fixed, so a test that has
// passed always passes, and a failure means that the distribution is wrong.
constexpr double kQuantile = 4.753;

// Returns the same quantile of the chi-square distribution, by the
// approximation of Wilson and Hilferty. Its error is below 1 % for 3 degrees or
// more, which does not matter here, because a wrong distribution exceeds the
// limit by factors.
double ChiSquareLimit(size_t degrees) {
  const double d = static_cast<double>(degrees);
  const double root = 1 - 2 / (9 * d) + kQuantile * std::sqrt(2 / (9 * d));
  return d * root * root * root;
}

// Returns the distance of the counts from the probabilities, as a share of the
// limit: up to 1 is correct. Bins are joined until each expects 10 draws or
// more.
double Misfit(const std::vector<uint64_t>& counts,
              const std::vector<double>& probabilities) {
  EXPECT_EQ(counts.size(), probabilities.size());
  double draws = 0;
  for (uint64_t count : counts) {
    draws += static_cast<double>(count);
  }
  double chi_square = 0;
  size_t bins = 0;
  double probability = 0;
  double seen = 0;
  double probability_left = 1;
  for (size_t i = 0; i < counts.size(); ++i) {
    probability += probabilities[i];
    seen += static_cast<double>(counts[i]);
    const bool last = i + 1 == counts.size();
    if (!last && (probability * draws < 10 ||
                  (probability_left - probability) * draws < 10)) {
      continue;
    }
    const double expected = probability * draws;
    chi_square += (seen - expected) * (seen - expected) / expected;
    ++bins;
    probability_left -= probability;
    probability = 0;
    seen = 0;
  }
  EXPECT_NEAR(probability_left, 0, 1e-9);
  if (bins < 2) {
    return 0;
  }
  return chi_square / ChiSquareLimit(bins - 1);
}

// Returns the sum of k^-q for k in [first, last]. The first terms are added up;
// the rest is computed by the Euler-Maclaurin formula, whose next term is below
// 1e-12 for k of 100 or more.
double ZetaSum(uint64_t first, uint64_t last, double q) {
  double sum = 0;
  uint64_t k = first;
  for (; k <= last && k < 100; ++k) {
    sum += std::pow(static_cast<double>(k), -q);
  }
  if (k > last) {
    return sum;
  }
  const double a = static_cast<double>(k);
  const double b = static_cast<double>(last);
  const auto f = [q](double x) { return std::pow(x, -q); };
  const auto slope = [q](double x) { return -q * std::pow(x, -q - 1); };
  // This is (b^(1-q) - a^(1-q)) / (1-q), also next to q = 1.
  const double log_ratio = std::log(b / a);
  const double t = (1 - q) * log_ratio;
  const double integral =
      std::pow(a, 1 - q) * log_ratio * (t == 0 ? 1 : std::expm1(t) / t);
  return sum + integral + (f(a) + f(b)) / 2 + (slope(b) - slope(a)) / 12;
}

// Returns the limits of bins of ranks: each of the first 32 ranks has its own
// bin, and the widths of the others grow by half.
std::vector<uint64_t> BinLimits(uint64_t items) {
  std::vector<uint64_t> limits;
  for (uint64_t limit = 1; limit < items;
       limit = limit < 32 ? limit + 1 : limit + limit / 2) {
    limits.push_back(limit);
  }
  limits.push_back(items);
  return limits;
}

size_t BinOf(const std::vector<uint64_t>& limits, uint64_t rank) {
  return static_cast<size_t>(
      std::upper_bound(limits.begin(), limits.end(), rank) - limits.begin());
}

std::vector<double> ZipfianProbabilities(const std::vector<uint64_t>& limits,
                                         double exponent) {
  const double zeta = ZetaSum(1, limits.back(), exponent);
  std::vector<double> probabilities;
  uint64_t begin = 0;
  for (uint64_t limit : limits) {
    probabilities.push_back(ZetaSum(begin + 1, limit, exponent) / zeta);
    begin = limit;
  }
  return probabilities;
}

template <typename NextRank>
std::vector<uint64_t> CountBins(const std::vector<uint64_t>& limits,
                                const NextRank& next_rank) {
  std::vector<uint64_t> counts(limits.size());
  for (int i = 0; i < kDraws; ++i) {
    const size_t bin = BinOf(limits, next_rank());
    if (bin >= counts.size()) {
      ADD_FAILURE() << "too high a rank";
      break;
    }
    ++counts[bin];
  }
  return counts;
}

double ZipfianMisfit(uint64_t items, double exponent, double right_exponent) {
  Random64 rnd(kSeed);
  const ZipfianGenerator zipfian(items, exponent);
  const auto limits = BinLimits(items);
  const auto counts = CountBins(limits, [&]() { return zipfian.Next(&rnd); });
  return Misfit(counts, ZipfianProbabilities(limits, right_exponent));
}

// Checks that the share seen in n draws fits a probability.
void ExpectShare(uint64_t seen, double n, double probability) {
  const double deviation = std::sqrt(n * probability * (1 - probability));
  EXPECT_NEAR(static_cast<double>(seen), n * probability,
              kQuantile * deviation + 1);
}

// Counts how often numbers are drawn.
std::map<uint64_t, uint64_t> CountRecords(KeyChooser* chooser, uint64_t records,
                                          int draws) {
  Random64 rnd(kSeed);
  std::map<uint64_t, uint64_t> counts;
  for (int i = 0; i < draws; ++i) {
    ++counts[chooser->Next(&rnd, records)];
  }
  EXPECT_LT(counts.rbegin()->first, records);
  return counts;
}

}  // namespace

// These are the reference values of SplitMix64 with the seed 1234567.
TEST(MixTest, IsSplitMix64) {
  constexpr uint64_t kGamma = 0x9e3779b97f4a7c15;
  EXPECT_EQ(Mix64(1234567), 6457827717110365317u);
  EXPECT_EQ(Mix64(1234567 + kGamma), 3203168211198807973u);
  EXPECT_EQ(Mix64(1234567 + 2 * kGamma), 9817491932198370423u);
}

TEST(MixTest, UnmixIsTheInverse) {
  Random64 rnd(kSeed);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t x =
        i < 1000 ? static_cast<uint64_t>(i) - 500 : rnd.Next() >> (i % 64);
    ASSERT_EQ(Unmix64(Mix64(x)), x);
    ASSERT_EQ(Mix64(Unmix64(x)), x);
  }
}

TEST(FnvHashTest, HashesHaveKnownValues) {
  EXPECT_EQ(FnvHash64(0), 0xa8c7f832281a39c5);
  EXPECT_EQ(FnvHash64(1), 0x89cd31291d2aefa4);
  EXPECT_EQ(FnvHash64(123456789), 0xdf604ac5d726ce19);
  EXPECT_EQ(FnvHash64(~uint64_t{0}), 0x8cf51a8bfca3883d);
}

TEST(ZipfianTest, ZetaSumIsRight) {
  for (double exponent : kExponents) {
    double sum = 0;
    for (uint64_t k = 123456; k >= 1; --k) {
      sum += std::pow(static_cast<double>(k), -exponent);
    }
    EXPECT_NEAR(ZetaSum(1, 123456, exponent) / sum, 1, 1e-9);
  }
}

TEST(ZipfianTest, InvalidExponentsAreRefused) {
  for (double exponent : {1e-9, 0.99, 1.0, 100.0}) {
    EXPECT_OK(ZipfianGenerator::Validate(exponent));
  }
  for (double exponent : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(ZipfianGenerator::Validate(exponent).IsInvalidArgument());
  }
}

TEST(ZipfianTest, OneItemIsAlwaysDrawn) {
  Random64 rnd(kSeed);
  for (double exponent : kExponents) {
    const ZipfianGenerator zipfian(1, exponent);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(zipfian.Next(&rnd), 0u);
    }
  }
}

TEST(ZipfianTest, DrawsHaveTheDistribution) {
  for (double exponent : kExponents) {
    for (uint64_t items : {uint64_t{2}, uint64_t{10}, uint64_t{1000},
                           uint64_t{1000000}, kTenBillion}) {
      EXPECT_LT(ZipfianMisfit(items, exponent, exponent), 1)
          << items << " items, exponent " << exponent;
    }
  }
}

// The test above would notice an error of 2 % in the exponent.
TEST(ZipfianTest, WrongDistributionIsNoticed) {
  for (double exponent : kExponents) {
    for (uint64_t items : {uint64_t{1000}, uint64_t{1000000}, kTenBillion}) {
      EXPECT_GT(ZipfianMisfit(items, exponent, exponent * 1.02), 1)
          << items << " items, exponent " << exponent;
    }
  }
}

TEST(ZipfianTest, UnusualExponentsHaveTheDistribution) {
  for (double exponent : {1e-6, 0.01, 1 - 1e-12, 1 + 1e-12, 2.0, 5.0, 40.0}) {
    for (uint64_t items : {uint64_t{2}, uint64_t{1000}, uint64_t{1000000}}) {
      EXPECT_LT(ZipfianMisfit(items, exponent, exponent), 1)
          << items << " items, exponent " << exponent;
    }
  }
}

TEST(ZipfianTest, HottestOfTenBillionHasItsShare) {
  for (double exponent : kExponents) {
    Random64 rnd(kSeed + 1);
    const ZipfianGenerator zipfian(kTenBillion, exponent);
    uint64_t seen = 0;
    for (int i = 0; i < kDraws; ++i) {
      seen += zipfian.Next(&rnd) == 0;
    }
    ExpectShare(seen, kDraws, 1 / ZetaSum(1, kTenBillion, exponent));
  }
}

// A generator with changed items draws what a new one does.
TEST(ZipfianTest, ChangedItemsAreDrawnAsByANewGenerator) {
  ZipfianGenerator changed(7, 0.99);
  for (uint64_t items : {1000, 1001, 5, 5, 1000000}) {
    changed.SetItems(items);
    EXPECT_EQ(changed.items(), items);
    const ZipfianGenerator fresh(items, 0.99);
    Random64 rnd1(items);
    Random64 rnd2(items);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(changed.Next(&rnd1), fresh.Next(&rnd2));
    }
  }
}

TEST(ZipfianTest, RanksNeedFewDraws) {
  for (double exponent : kExponents) {
    Random64 rnd(kSeed);
    const ZipfianGenerator zipfian(1000000, exponent);
    for (int i = 0; i < kDraws; ++i) {
      zipfian.Next(&rnd);
    }
    // A second generator with the same seed needs as many draws to meet the
    // first one.
    const uint64_t next = rnd.Next();
    Random64 counter(kSeed);
    int draws = 0;
    while (counter.Next() != next) {
      ++draws;
      ASSERT_LT(draws, 2 * kDraws);
    }
    EXPECT_GE(draws, kDraws);
    EXPECT_LT(draws, kDraws * 1.1);
  }
}

TEST(UniformTest, DrawsHaveTheDistribution) {
  UniformGenerator uniform;
  constexpr uint64_t kRecords = 1000;
  const auto counts = CountRecords(&uniform, kRecords, kDraws);
  std::vector<uint64_t> seen(kRecords);
  for (const auto& [record, count] : counts) {
    seen[record] = count;
  }
  EXPECT_LT(Misfit(seen, std::vector<double>(kRecords, 1.0 / kRecords)), 1);
}

TEST(UniformTest, NewRecordsAreDrawn) {
  UniformGenerator uniform;
  Random64 rnd(kSeed);
  uint64_t highest = 0;
  for (uint64_t records = 1; records < 10000; ++records) {
    const uint64_t record = uniform.Next(&rnd, records);
    ASSERT_LT(record, records);
    highest = std::max(highest, record);
  }
  EXPECT_GT(highest, 9000u);
}

TEST(LatestTest, DrawsHaveTheDistribution) {
  for (double exponent : kExponents) {
    Random64 rnd(kSeed);
    LatestGenerator latest(1000, exponent);
    const auto limits = BinLimits(1000);
    const auto counts =
        CountBins(limits, [&]() { return 999 - latest.Next(&rnd, 1000); });
    EXPECT_LT(Misfit(counts, ZipfianProbabilities(limits, exponent)), 1);
  }
}

// The newest record is the hottest at all times.
TEST(LatestTest, NewestRecordIsTheHottest) {
  Random64 rnd(kSeed);
  LatestGenerator latest(1, 0.99);
  double newest_expected = 0;
  double variance = 0;
  uint64_t newest_seen = 0;
  double zeta = 0;
  for (uint64_t records = 1; records <= 100000; ++records) {
    zeta += std::pow(static_cast<double>(records), -0.99);
    const uint64_t record = latest.Next(&rnd, records);
    ASSERT_LT(record, records);
    newest_seen += record == records - 1;
    newest_expected += 1 / zeta;
    variance += 1 / zeta * (1 - 1 / zeta);
  }
  EXPECT_NEAR(static_cast<double>(newest_seen), newest_expected,
              kQuantile * std::sqrt(variance));
}

TEST(ScrambledZipfianTest, IsYcsbsFormula) {
  for (uint64_t records : {1, 2, 1000, 12345, 1048576}) {
    ScrambledZipfian scrambled(records, 0.99, 0);
    for (uint64_t rank = 0; rank < 1000; ++rank) {
      ASSERT_EQ(scrambled.RecordOf(rank, records), FnvHash64(rank) % records);
    }
  }
}

// Every record has the share of all of its ranks together.
TEST(ScrambledZipfianTest, RecordsHaveTheSharesOfTheirRanks) {
  constexpr uint64_t kRecords = 1000;
  for (uint64_t zipf_items : {uint64_t{0}, uint64_t{100}, uint64_t{1000000}}) {
    const uint64_t ranks = zipf_items == 0 ? kRecords : zipf_items;
    for (double exponent : {0.8, 0.99, 1.2}) {
      std::vector<double> shares(kRecords);
      const double zeta = ZetaSum(1, ranks, exponent);
      for (uint64_t rank = 0; rank < ranks; ++rank) {
        shares[FnvHash64(rank) % kRecords] +=
            std::pow(static_cast<double>(rank + 1), -exponent) / zeta;
      }
      ScrambledZipfian scrambled(kRecords, exponent, zipf_items);
      std::vector<uint64_t> seen(kRecords);
      for (const auto& [record, count] :
           CountRecords(&scrambled, kRecords, kDraws)) {
        seen[record] = count;
        ASSERT_GT(shares[record], 0);
      }
      EXPECT_LT(Misfit(seen, shares), 1) << exponent << " " << zipf_items;
    }
  }
}

// The share of the hottest record is right with as many ranks as records, and
// with YCSB's 10^10 ranks, where no other rank adds much to it.
TEST(ScrambledZipfianTest, HottestRecordHasItsShare) {
  constexpr uint64_t kRecords = 1000000;
  const uint64_t hottest = FnvHash64(0) % kRecords;
  double share = 0;
  for (uint64_t rank = 0; rank < kRecords; ++rank) {
    if (FnvHash64(rank) % kRecords == hottest) {
      share += std::pow(static_cast<double>(rank + 1), -0.99);
    }
  }
  share /= ZetaSum(1, kRecords, 0.99);
  ScrambledZipfian as_many(kRecords, 0.99, 0);
  ExpectShare(CountRecords(&as_many, kRecords, kDraws)[hottest], kDraws, share);

  ScrambledZipfian ten_billion(kRecords, 0.99, kTenBillion);
  auto counts = CountRecords(&ten_billion, kRecords, kDraws);
  ExpectShare(counts[hottest], kDraws, 1 / ZetaSum(1, kTenBillion, 0.99));
  for (const auto& [record, count] : counts) {
    EXPECT_LE(count, counts[hottest]) << record;
  }
}

TEST(ScrambledZipfianTest, HotRecordsAreScattered) {
  constexpr uint64_t kRecords = 1 << 20;
  ScrambledZipfian scrambled(kRecords, 0.99, 0);
  std::vector<uint64_t> seen(64);
  for (uint64_t rank = 0; rank < 64000; ++rank) {
    ++seen[scrambled.RecordOf(rank, kRecords) / (kRecords / 64)];
  }
  EXPECT_LT(Misfit(seen, std::vector<double>(64, 1.0 / 64)), 1);
}

TEST(ScrambledZipfianTest, GrowthMovesRanksOnlyToNewRecords) {
  constexpr uint64_t kRanks = 3000;
  ScrambledZipfian scrambled(100, 0.99, kRanks);
  std::vector<uint64_t> places(kRanks);
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    places[rank] = scrambled.RecordOf(rank, 100);
  }
  for (uint64_t records = 101; records <= 900; ++records) {
    for (uint64_t rank = 0; rank < kRanks; ++rank) {
      const uint64_t place = scrambled.RecordOf(rank, records);
      ASSERT_LT(place, records);
      if (place != places[rank]) {
        ASSERT_EQ(place, records - 1);
        places[rank] = place;
      }
    }
  }
  // The modulus has doubled from 100 to 800, which is that of a fresh
  // generator.
  std::vector<uint64_t> seen(900);
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    const uint64_t place = places[rank];
    ++seen[place];
    ASSERT_EQ(place % 800, FnvHash64(rank) % 800);
  }
  EXPECT_GT(std::count_if(seen.begin() + 100, seen.end(),
                          [](uint64_t n) { return n > 0; }),
            600);
}

// A jump in the number of records ends where single steps end.
TEST(ScrambledZipfianTest, GrowthInOneStepEqualsSingleSteps) {
  for (uint64_t records : {100, 101, 199, 200, 201, 777, 1600}) {
    ScrambledZipfian jumps(100, 0.99, 0);
    ScrambledZipfian steps(100, 0.99, 0);
    for (uint64_t n = 100; n < records; ++n) {
      steps.RecordOf(0, n);
    }
    for (uint64_t rank = 0; rank < 1000; ++rank) {
      ASSERT_EQ(jumps.RecordOf(rank, records), steps.RecordOf(rank, records));
    }
  }
}

TEST(ScrambledZipfianTest, FewerRecordsThanBeforeAreInRange) {
  ScrambledZipfian scrambled(1000, 0.99, 0);
  Random64 rnd(kSeed);
  for (uint64_t records : {1000, 10, 1, 3}) {
    for (int i = 0; i < 1000; ++i) {
      ASSERT_LT(scrambled.Next(&rnd, records), records);
    }
  }
}

TEST(KeyChooserTest, FactoryMakesTheDistributions) {
  WorkloadOptions options;
  options.records = 1000;
  options.zipfian_const = 1.2;
  options.zipfian_items = 50;
  const auto same = [&](KeyChooser* expected, Distribution distribution) {
    const auto chooser = NewKeyChooser(options, distribution);
    Random64 rnd1(kSeed);
    Random64 rnd2(kSeed);
    for (uint64_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(chooser->Next(&rnd1, 1000 + i),
                expected->Next(&rnd2, 1000 + i));
    }
  };
  UniformGenerator uniform;
  same(&uniform, Distribution::kUniform);
  LatestGenerator latest(1000, 1.2);
  same(&latest, Distribution::kLatest);
  ScrambledZipfian zipfian(1000, 1.2, 50);
  same(&zipfian, Distribution::kZipfian);
}

TEST(MovingPartTest, DrawsStayInOnePartAndMoveOn) {
  constexpr uint64_t kParts = 7;
  constexpr uint64_t kStay = 50;
  constexpr uint64_t kWidth = std::numeric_limits<uint64_t>::max() / kParts;
  Random64 rnd(kSeed);
  MovingPart positions(kParts, kStay);
  for (uint64_t draw = 0; draw < 2 * kParts * kStay; ++draw) {
    const uint64_t first = draw / kStay % kParts * kWidth;
    const uint64_t position = positions.Next(&rnd);
    ASSERT_GE(position, first) << draw;
    ASSERT_LT(position - first, kWidth) << draw;
  }
}

TEST(MovingPartTest, DrawsAreUniformWithinThePart) {
  constexpr int kCells = 10;
  std::vector<int> counts(kCells);
  Random64 rnd(kSeed);
  MovingPart positions(/*parts=*/1, /*stay=*/3);
  for (int draw = 0; draw < kDraws; ++draw) {
    ++counts[positions.Next(&rnd) /
             (std::numeric_limits<uint64_t>::max() / kCells + 1)];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, kDraws / kCells, 5 * std::sqrt(kDraws / kCells));
  }
}

TEST(InsertCounterTest, VisibleEndsAtTheFirstGap) {
  InsertCounter counter(5);
  EXPECT_EQ(counter.Visible(), 5u);
  for (uint64_t i = 5; i < 11; ++i) {
    EXPECT_EQ(counter.Start(), i);
  }
  EXPECT_EQ(counter.Visible(), 5u);
  counter.Done(7);
  counter.Done(6);
  EXPECT_EQ(counter.Visible(), 5u);
  counter.Done(5);
  EXPECT_EQ(counter.Visible(), 8u);
  counter.Done(10);
  EXPECT_EQ(counter.Visible(), 8u);
  counter.Done(8);
  EXPECT_EQ(counter.Visible(), 9u);
  counter.Done(9);
  EXPECT_EQ(counter.Visible(), 11u);
  EXPECT_EQ(counter.Start(), 11u);
}

// Visible() is right in all orders in which five inserts can be done.
TEST(InsertCounterTest, VisibleIsRightInAllOrders) {
  std::vector<uint64_t> order{0, 1, 2, 3, 4};
  do {
    InsertCounter counter(0);
    for (size_t i = 0; i < order.size(); ++i) {
      counter.Start();
    }
    std::set<uint64_t> missing(order.begin(), order.end());
    for (uint64_t number : order) {
      counter.Done(number);
      missing.erase(number);
      ASSERT_EQ(counter.Visible(),
                missing.empty() ? order.size() : *missing.begin());
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Readers find what writers wrote, without other synchronization.
// ThreadSanitizer would report a race, too.
TEST(InsertCounterTest, ReadersFindVisibleRecords) {
  constexpr uint64_t kFirst = 100;
  constexpr uint64_t kEnd = 200000;
  constexpr int kWriters = 4;
  constexpr int kReaders = 3;
  std::vector<uint64_t> written(kEnd);
  for (uint64_t i = 0; i < kFirst; ++i) {
    written[i] = Mix64(i);
  }
  InsertCounter counter(kFirst);
  std::atomic<uint64_t> wrong{0};
  std::vector<port::Thread> threads;
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i]() {
      Random64 rnd(static_cast<uint64_t>(i));
      // Some numbers are held back, so that others overtake them.
      std::vector<uint64_t> held;
      for (;;) {
        const uint64_t number = counter.Start();
        const bool last = number >= kEnd;
        if (!last) {
          written[number] = Mix64(number);
          held.push_back(number);
        }
        if (last || held.size() > rnd.Uniform(16)) {
          RandomShuffle(held.begin(), held.end(),
                        static_cast<uint32_t>(rnd.Next()));
          for (uint64_t done : held) {
            counter.Done(done);
          }
          held.clear();
        }
        if (last) {
          return;
        }
      }
    });
  }
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back([&]() {
      uint64_t checked = 0;
      while (checked < kEnd) {
        const uint64_t visible = counter.Visible();
        if (visible < checked || visible > kEnd) {
          ++wrong;
          return;
        }
        if (visible == checked) {
          std::this_thread::yield();
        }
        for (; checked < visible; ++checked) {
          wrong += written[checked] != Mix64(checked);
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong.load(), 0u);
  EXPECT_EQ(counter.Visible(), kEnd);
}

namespace {

// Returns the probabilities of sizes min, min + 1, ..., max and above.
std::vector<double> SizeProbabilities(double mean, double stddev, uint32_t min,
                                      uint32_t max) {
  const auto below = [&](double size) {
    return std::erfc((mean - size) / stddev / std::sqrt(2.0)) / 2;
  };
  std::vector<double> probabilities{below(min + 0.5)};
  for (uint32_t size = min + 1; size < max; ++size) {
    probabilities.push_back(below(size + 0.5) - below(size - 0.5));
  }
  probabilities.push_back(1 - below(max - 0.5));
  return probabilities;
}

template <typename NextSize>
void ExpectSizes(double mean, double stddev, uint32_t min, uint32_t max,
                 const NextSize& next_size) {
  std::vector<uint64_t> seen(max - min + 1);
  double sum = 0;
  double sum_of_squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t size = next_size();
    ASSERT_GE(size, min);
    ++seen[std::min(size, max) - min];
    sum += size;
    sum_of_squares += (size - mean) * (size - mean);
  }
  EXPECT_LT(Misfit(seen, SizeProbabilities(mean, stddev, min, max)), 1);
  if (min < mean - 6 * stddev) {
    // Rounding adds the variance of a uniform error.
    const double variance = stddev * stddev + 1.0 / 12;
    EXPECT_NEAR(sum / kDraws, mean, kQuantile * std::sqrt(variance / kDraws));
    EXPECT_NEAR(sum_of_squares / kDraws / variance, 1,
                kQuantile * std::sqrt(2.0 / kDraws));
  }
}

}  // namespace

TEST(NormalSizeTest, SizesHaveTheDistribution) {
  for (const auto& [mean, stddev, min] :
       {std::tuple<double, double, uint32_t>{10.45, 1.4, 8},
        {46.8, 11.6, 8},
        {1000, 100, 1},
        {5, 20, 3}}) {
    const NormalSize sizes(mean, stddev, min);
    EXPECT_EQ(sizes.min(), min);
    const uint32_t max = static_cast<uint32_t>(mean + 6 * stddev);
    Random64 rnd(kSeed);
    ExpectSizes(mean, stddev, min, max, [&]() { return sizes.Next(&rnd); });
    uint64_t seed = 0;
    ExpectSizes(mean, stddev, min, max, [&]() { return sizes.At(seed++); });
  }
}

TEST(NormalSizeTest, WithoutDeviationSizesAreTheMean) {
  Random64 rnd(kSeed);
  for (double mean : {0.0, 7.4, 7.6, 24.0, 4e9}) {
    const NormalSize sizes(mean, 0, 0);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(sizes.Next(&rnd), static_cast<uint32_t>(std::round(mean)));
    }
  }
}

// Sizes of consecutive seeds correlate neither in direction nor in how far they
// are from the mean.
TEST(NormalSizeTest, AtIsRepeatableAndIndependent) {
  const NormalSize sizes(1000, 100, 0);
  double of_deviations = 0;
  double of_squares = 0;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    ASSERT_EQ(sizes.At(seed), NormalSize(1000, 100, 0).At(seed));
    const double x = (sizes.At(seed) - 1000.0) / 100;
    const double y = (sizes.At(seed + 1) - 1000.0) / 100;
    of_deviations += x * y;
    of_squares += (x * x - 1) * (y * y - 1);
  }
  EXPECT_NEAR(of_deviations / kDraws, 0, kQuantile / std::sqrt(kDraws));
  // The square of a standard normal number has a variance of 2.
  EXPECT_NEAR(of_squares / kDraws, 0, kQuantile * 2 / std::sqrt(kDraws));
}

TEST(DiscreteChooserTest, ChoicesHaveTheirShares) {
  const std::vector<std::pair<char, uint32_t>> shares{
      {'a', 500000}, {'b', 0}, {'c', 489900}, {'d', 10000}, {'e', 100}};
  const DiscreteChooser<char> chooser(shares);
  Random64 rnd(kSeed);
  std::map<char, uint64_t> counts;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[chooser.Next(&rnd)];
  }
  EXPECT_EQ(counts.count('b'), 0u);
  std::vector<uint64_t> seen;
  std::vector<double> probabilities;
  for (const auto& [choice, share] : shares) {
    if (share != 0) {
      seen.push_back(counts[choice]);
      probabilities.push_back(share * 1e-6);
    }
  }
  EXPECT_LT(Misfit(seen, probabilities), 1);
}

TEST(DiscreteChooserTest, CertainChoiceIsAlwaysMade) {
  const DiscreteChooser<std::string> chooser(
      {{"never", 0}, {"always", kPartsPerMillion}, {"nor this", 0}});
  Random64 rnd(kSeed);
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(chooser.Next(&rnd), "always");
  }
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
