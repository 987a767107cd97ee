//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "options/strata/path_prices.h"

#include <limits>
#include <string>
#include <vector>

#include "options/options_parser.h"
#include "port/stack_trace.h"
#include "rocksdb/convenience.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Prices = std::vector<double>;

bool Mentions(const Status& s, const std::string& part) {
  return s.ToString().find(part) != std::string::npos;
}

}  // namespace

TEST(PathPricesTest, ListsAreParsed) {
  Prices prices = {7};
  ASSERT_OK(ParsePathPrices("0.25,0.02", &prices));
  EXPECT_EQ(prices, (Prices{0.25, 0.02}));
  ASSERT_OK(ParsePathPrices(" 1 : 2e-3:.5:0 ", &prices));
  EXPECT_EQ(prices, (Prices{1, 0.002, 0.5, 0}));
  ASSERT_OK(ParsePathPrices(" ", &prices));
  EXPECT_TRUE(prices.empty());
}

TEST(PathPricesTest, WrongPricesAreRefused) {
  for (const char* text :
       {"-1", "0.1,-0.2", "nan", "0.1,NaN", "inf", "-inf", "1e999", "0x10", "x",
        "0.1,", ",0.1", "0.1,,0.2", "1 2", "1.2.3", "--1", "e", "0.1;0.2"}) {
    Prices prices = {7};
    const Status s = ParsePathPrices(text, &prices);
    EXPECT_TRUE(s.IsInvalidArgument()) << text << ": " << s.ToString();
    EXPECT_TRUE(Mentions(s, "is not a price")) << s.ToString();
    EXPECT_EQ(prices, Prices{7}) << text;
  }
}

TEST(PathPricesTest, TextParsesToTheSameNumbers) {
  EXPECT_EQ(PathPricesToString({}), "");
  EXPECT_EQ(PathPricesToString({0.39, 0.19}), "0.39:0.19");
  const Prices prices = {1.0 / 3, 1e-12, 0, 123456789.125};
  Prices again;
  ASSERT_OK(ParsePathPrices(PathPricesToString(prices), &again));
  EXPECT_EQ(again, prices);
}

TEST(PathPricesTest, CheckNamesTheOptionAndTheReason) {
  EXPECT_OK(CheckPathPrices("path_prices", {}, 3));
  EXPECT_OK(CheckPathPrices("path_prices", {0}, 1));
  EXPECT_OK(CheckPathPrices("path_prices", {0.25, 0.02}, 2));
  Status s = CheckPathPrices("path_prices", {0.25, 0.02}, 3);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s,
                       "path_prices must have one price for each path, or "
                       "none: it has 2, but cf_paths (or db_paths) has 3"))
      << s.ToString();
  for (const double wrong : {-0.5, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    s = CheckPathPrices("--prices", {0.25, wrong}, 2);
    EXPECT_TRUE(s.IsInvalidArgument());
    EXPECT_TRUE(Mentions(s, "--prices: the price of path 1 is"))
        << s.ToString();
  }
}

TEST(PathPricesTest, FlagSetsTheOption) {
  ColumnFamilyOptions options;
  ASSERT_OK(ApplyPathPricesFlag("0.25,0.02", &options));
  EXPECT_EQ(options.path_prices, (Prices{0.25, 0.02}));
  ASSERT_OK(ApplyPathPricesFlag("", &options));
  EXPECT_EQ(options.path_prices, (Prices{0.25, 0.02}));
  const Status s = ApplyPathPricesFlag("x", &options);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s, "--path_prices")) << s.ToString();
  EXPECT_EQ(options.path_prices, (Prices{0.25, 0.02}));
}

// OPTIONS files keep the prices, and with them the paths that they are for.
TEST(PathPricesTest, OptionStringsHavePricesAndPaths) {
  ColumnFamilyOptions options;
  options.cf_paths = {{"/a", 1}, {"/b", 2}};
  std::string text;
  ASSERT_OK(GetStringFromColumnFamilyOptions(ConfigOptions(), options, &text));
  EXPECT_EQ(text.find("path_prices"), std::string::npos) << text;

  options.path_prices = {0.39, 0.19};
  ASSERT_OK(GetStringFromColumnFamilyOptions(ConfigOptions(), options, &text));
  EXPECT_NE(text.find("path_prices=0.39:0.19;"), std::string::npos) << text;
  EXPECT_NE(text.find("cf_paths=/a:1,/b:2;"), std::string::npos) << text;

  ColumnFamilyOptions parsed;
  ASSERT_OK(GetColumnFamilyOptionsFromString(
      ConfigOptions(), ColumnFamilyOptions(), text, &parsed));
  EXPECT_EQ(parsed.path_prices, options.path_prices);
  ASSERT_EQ(parsed.cf_paths.size(), 2u);
  ASSERT_OK(
      RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), options, parsed));

  // The comparison notices other prices.
  parsed.path_prices[1] = 0.2;
  const Status s =
      RocksDBOptionsParser::VerifyCFOptions(ConfigOptions(), options, parsed);
  EXPECT_TRUE(s.IsInvalidArgument());
  EXPECT_TRUE(Mentions(s, "path_prices")) << s.ToString();

  ColumnFamilyOptions cleared;
  ASSERT_OK(GetColumnFamilyOptionsFromString(ConfigOptions(), options,
                                             "path_prices=", &cleared));
  EXPECT_TRUE(cleared.path_prices.empty());
  EXPECT_TRUE(GetColumnFamilyOptionsFromString(ConfigOptions(), options,
                                               "path_prices=0.1:nan", &cleared)
                  .IsInvalidArgument());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
