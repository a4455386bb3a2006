#include "app/cli/validators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "app/config/quantity.h"
#include "net/control/home.h"
#include "net/model/attention_scope.h"
#include "net/tokenizer/split_pattern.h"

namespace atl {
namespace {

template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

CLI::Validator validator(std::function<std::string(std::string&)> check) {
  return CLI::Validator(std::move(check), /*validator_desc=*/"");
}

}  // namespace

CLI::Validator positive_number() {
  return validator([](std::string& text) -> std::string {
    const auto value = parse<double>(text);
    return value && std::isfinite(*value) && *value > 0 ? "" : "must be a positive number";
  });
}

CLI::Validator number_between(double low, double high) {
  return validator([=](std::string& text) -> std::string {
    const auto value = parse<double>(text);
    return value && *value >= low && *value <= high ? "" : fmt::format("must be a number from {} to {}", low, high);
  });
}

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  return validator([=](std::string& text) -> std::string {
    const auto value = parse<std::uint64_t>(text);
    return value && *value >= low && *value <= high ? ""
                                                    : fmt::format("must be a whole number from {} to {}", low, high);
  });
}

CLI::Validator is_duration() {
  return validator([](std::string& text) -> std::string {
    const auto duration = parse_duration(text);
    return duration && duration->count() > 0 ? "" : fmt::format("must be {}", kDurationWanted);
  });
}

CLI::Validator attention_scope() {
  return validator([](std::string& text) -> std::string {
    return attention_scope_named(text) ? "" : fmt::format("must be one of {}", fmt::join(kAttentionScopes, ", "));
  });
}

CLI::Validator is_device() {
  return validator([](std::string& text) -> std::string {
    const auto choice = parse_device_choice(text);
    return choice.ok() ? "" : choice.error().message;
  });
}

CLI::Validator is_precision() {
  return validator([](std::string& text) -> std::string {
    const auto choice = parse_precision_choice(text);
    return choice.ok() ? "" : choice.error().message;
  });
}

CLI::Validator is_split_pattern() {
  return validator([](std::string& text) -> std::string {
    return parse_split_pattern(text) ? "" : "must be gpt2, cl100k_base, llama3, qwen2 or o200k_base";
  });
}

}  // namespace atl
