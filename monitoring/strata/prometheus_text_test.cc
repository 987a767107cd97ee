//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "monitoring/strata/prometheus_text.h"

#include <cmath>
#include <limits>
#include <string>

#include "port/stack_trace.h"
#include "rocksdb/env.h"
#include "test_util/strata/history_check_test_util.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

using Labels = PrometheusText::Labels;
using Type = PrometheusText::Type;

TEST(PrometheusTextTest, EmptyTextHasNoLines) {
  PrometheusText text;
  EXPECT_EQ(text.ToString(), "");
  text.Define("rocksdb_x", Type::kGauge, "A metric without samples.");
  EXPECT_EQ(text.ToString(), "");
}

// scripts/metrics_test.py has another program read the same file.
TEST(PrometheusTextTest, WritesTheSampleFile) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  PrometheusText text;
  const size_t counter =
      text.Define("rocksdb_events_total", Type::kCounter,
                  "Events of a backslash \\ and a\nline break, with "
                  "\"quotes\".");
  const size_t unused = text.Define("rocksdb_unused", Type::kGauge, "None.");
  const size_t gauge =
      text.Define("rocksdb_cf_numbers", Type::kGauge, "Numbers of all kinds.");
  const size_t summary = text.Define("rocksdb_times", Type::kSummary, "Times.");
  EXPECT_LT(unused, gauge);

  text.Add(gauge, Labels().Add("cf", "default"), 0);
  text.AddSummary(summary, Labels(), {{"0.5", 1.5}, {"0.99", nan}}, 1234567.125,
                  3);
  text.Add(gauge, Labels().Add("cf", "a \"quoted\" name"), -3);
  text.Add(counter, Labels(), static_cast<double>(uint64_t{1} << 54));
  text.Add(gauge, Labels().Add("cf", "back\\slash"), 0.25);
  text.Add(gauge, Labels().Add("cf", "line\nbreak"), nan);
  text.AddSummary(summary, Labels().Add("cf", "x"), {{"1", 7}}, 0, 0);
  text.Add(gauge, Labels().Add("cf", "z\xc3\xbcrich \xe2\x82\xac"), kInfinity);
  text.Add(gauge, Labels().Add("cf", "\xff\xc3("), -kInfinity);
  text.Add(gauge, Labels().Add("cf", "").Add("level", "1"), 1e30);

  std::string expected;
  ASSERT_OK(ReadFileToString(Env::Default(),
                             FindHistoryScripts() + "/../prometheus/writer.txt",
                             &expected));
  EXPECT_EQ(text.ToString(), expected);
}

TEST(PrometheusTextTest, ValuesAreWrittenAsTheFormatWants) {
  const auto value_text = [](double value) {
    PrometheusText text;
    text.Add(text.Define("m", Type::kGauge, "M."), Labels(), value);
    const std::string all = text.ToString();
    const size_t begin = all.rfind(' ') + 1;
    return all.substr(begin, all.size() - begin - 1);
  };
  EXPECT_EQ(value_text(0), "0");
  EXPECT_EQ(value_text(-1), "-1");
  EXPECT_EQ(value_text(0.1), "0.1");
  EXPECT_EQ(value_text(1e-9), "1e-09");
  EXPECT_EQ(value_text(9007199254740991.0), "9007199254740991");
  EXPECT_EQ(value_text(1e18), "1000000000000000000");
  EXPECT_EQ(value_text(1e19), "1e+19");
  EXPECT_EQ(value_text(static_cast<double>(UINT64_MAX)),
            "1.84467440737096e+19");
  EXPECT_EQ(value_text(std::nan("")), "NaN");
}

TEST(PrometheusTextTest, BytesThatAreNoUtf8AreEscaped) {
  const auto label_text = [](const Slice& value) {
    return Labels().Add("l", value).text();
  };
  EXPECT_EQ(label_text(Slice("a\0b", 3)), "l=\"a\\\\x00b\"");
  EXPECT_EQ(label_text("\x01"), "l=\"\x01\"");
  // The shortest and the longest characters of each length.
  for (const char* value : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
                            "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
                            "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(label_text(value), "l=\"" + std::string(value) + "\"");
  }
  // A continuation alone, encodings that are too long, a surrogate, a number
  // beyond the last character, and a character without its end.
  EXPECT_EQ(label_text("\x80"), "l=\"\\\\x80\"");
  EXPECT_EQ(label_text("\xc1\xbf"), "l=\"\\\\xc1\\\\xbf\"");
  EXPECT_EQ(label_text("\xe0\x9f\xbf"), "l=\"\\\\xe0\\\\x9f\\\\xbf\"");
  EXPECT_EQ(label_text("\xed\xa0\x80"), "l=\"\\\\xed\\\\xa0\\\\x80\"");
  EXPECT_EQ(label_text("\xf0\x8f\xbf\xbf"),
            "l=\"\\\\xf0\\\\x8f\\\\xbf\\\\xbf\"");
  EXPECT_EQ(label_text("\xf4\x90\x80\x80"),
            "l=\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");
  EXPECT_EQ(label_text("\xe2\x82"), "l=\"\\\\xe2\\\\x82\"");
  EXPECT_EQ(label_text("\xe2\"x"), "l=\"\\\\xe2\\\"x\"");
}

TEST(PrometheusTextTest, Names) {
  for (const char* name : {"a", "_", "Z9", "rocksdb_l0_hit_total"}) {
    EXPECT_TRUE(PrometheusText::IsName(name)) << name;
  }
  for (const char* name : {"", "9a", "a.b", "a-b", "a:b", "a b", "\xc3\xbc"}) {
    EXPECT_FALSE(PrometheusText::IsName(name)) << name;
  }
  EXPECT_EQ(PrometheusText::ToName("a.b-c:d\xc3\xbc_E9"), "a_b_c_d___E9");
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
