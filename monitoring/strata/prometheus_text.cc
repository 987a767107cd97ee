//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "monitoring/strata/prometheus_text.h"

#include <cassert>
#include <cmath>
#include <limits>
#include <locale>
#include <sstream>
#include <utility>

namespace ROCKSDB_NAMESPACE {

namespace {

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the number of bytes of the UTF-8 character with which the text
// begins, or 0 if it begins with none that Prometheus reads. Encodings that are
// longer than needed, surrogates and numbers above 0x10ffff are no characters.
// A zero byte ends the text for Prometheus.
size_t Utf8Length(const Slice& text) {
  const auto byte = [&text](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const auto follows = [&byte](size_t i, uint8_t min, uint8_t max) {
    return byte(i) >= min && byte(i) <= max;
  };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    return first == 0 ? 0 : 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1, 0x80, 0xbf) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const uint8_t min = first == 0xe0 ? 0xa0 : 0x80;
    const uint8_t max = first == 0xed ? 0x9f : 0xbf;
    return follows(1, min, max) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const uint8_t min = first == 0xf0 ? 0x90 : 0x80;
    const uint8_t max = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, min, max) && follows(2, 0x80, 0xbf) &&
                   follows(3, 0x80, 0xbf)
               ? 4
               : 0;
  }
  return 0;
}

// Appends the text with backslashes and line breaks escaped.
// escapes_quotes: as in the value of a label.
void AppendEscaped(Slice text, bool escapes_quotes, std::string* result) {
  constexpr char kDigits[] = "0123456789abcdef";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const char first = text[0];
    if (length == 0) {
      const uint8_t byte = static_cast<uint8_t>(first);
      // The backslash is a character of the value, and so is escaped itself.
      result->append("\\\\x");
      result->push_back(kDigits[byte >> 4]);
      result->push_back(kDigits[byte & 15]);
    } else if (first == '\\') {
      result->append("\\\\");
    } else if (first == '\n') {
      result->append("\\n");
    } else if (first == '"' && escapes_quotes) {
      result->append("\\\"");
    } else {
      result->append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

std::string ValueText(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "+Inf" : "-Inf";
  }
  // Below this limit, integers have no exponent.
  constexpr double kMaxInteger = 9e18;
  if (std::fabs(value) < kMaxInteger && value == std::floor(value)) {
    return std::to_string(static_cast<int64_t>(value));
  }
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(std::numeric_limits<double>::digits10);
  text << value;
  return text.str();
}

const char* TypeText(PrometheusText::Type type) {
  switch (type) {
    case PrometheusText::Type::kCounter:
      return "counter";
    case PrometheusText::Type::kGauge:
      return "gauge";
    case PrometheusText::Type::kSummary:
      return "summary";
  }
  assert(false);
  return "untyped";
}

}  // namespace

PrometheusText::Labels& PrometheusText::Labels::Add(const Slice& name,
                                                    const Slice& value) {
  assert(IsName(name));
  if (!text_.empty()) {
    text_.push_back(',');
  }
  text_.append(name.data(), name.size()).append("=\"");
  AppendEscaped(value, /*escapes_quotes=*/true, &text_);
  text_.push_back('"');
  return *this;
}

bool PrometheusText::IsName(const Slice& name) {
  for (size_t i = 0; i < name.size(); ++i) {
    if (!IsLetter(name[i]) && (i == 0 || !IsDigit(name[i]))) {
      return false;
    }
  }
  return !name.empty();
}

std::string PrometheusText::ToName(const std::string& text) {
  std::string name = text;
  for (char& c : name) {
    if (!IsLetter(c) && !IsDigit(c)) {
      c = '_';
    }
  }
  return name;
}

size_t PrometheusText::Define(const std::string& name, Type type,
                              const std::string& help) {
  assert(IsName(name));
  bool is_new = names_.insert(name).second;
  if (type == Type::kSummary) {
    is_new &= names_.insert(name + "_sum").second;
    is_new &= names_.insert(name + "_count").second;
  }
  assert(is_new);
  (void)is_new;
  Metric metric{name, type, /*help=*/"", /*samples=*/""};
  AppendEscaped(help, /*escapes_quotes=*/false, &metric.help);
  metrics_.push_back(std::move(metric));
  return metrics_.size() - 1;
}

void PrometheusText::Add(size_t metric, const Labels& labels, double value) {
  Metric& to = metrics_[metric];
  assert(to.type != Type::kSummary);
  AppendSample(to.name, labels, value, &to.samples);
}

void PrometheusText::AddSummary(size_t metric, const Labels& labels,
                                std::initializer_list<Quantile> quantiles,
                                double sum, double count) {
  Metric& to = metrics_[metric];
  assert(to.type == Type::kSummary);
  for (const Quantile& quantile : quantiles) {
    Labels with_quantile = labels;
    with_quantile.Add("quantile", quantile.quantile);
    AppendSample(to.name, with_quantile, quantile.value, &to.samples);
  }
  AppendSample(to.name + "_sum", labels, sum, &to.samples);
  AppendSample(to.name + "_count", labels, count, &to.samples);
}

void PrometheusText::AppendSample(const std::string& name, const Labels& labels,
                                  double value, std::string* text) {
  text->append(name);
  if (!labels.text().empty()) {
    text->append("{").append(labels.text()).append("}");
  }
  text->append(" ").append(ValueText(value)).append("\n");
}

std::string PrometheusText::ToString() const {
  std::string text;
  for (const Metric& metric : metrics_) {
    if (!metric.samples.empty()) {
      text.append("# HELP ").append(metric.name).append(" ");
      text.append(metric.help).append("\n");
      text.append("# TYPE ").append(metric.name).append(" ");
      text.append(TypeText(metric.type)).append("\n");
      text.append(metric.samples);
    }
  }
  return text;
}

}  // namespace ROCKSDB_NAMESPACE
