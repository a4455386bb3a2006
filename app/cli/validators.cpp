#include "app/cli/validators.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "net/control/home.h"

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

}  // namespace atl
