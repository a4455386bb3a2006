#include "app/cli/model_files_options.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace atl {
namespace {

constexpr std::uint64_t kLeast = 100'000;  // bytes: one model makes no millions of files

// "5GB" (powers of 1000), "4GiB" (of 1024), or bytes.
std::optional<std::uint64_t> parse_shard_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
      {"", 1}, {"kB", 1000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"MiB", 1u << 20}, {"GiB", 1u << 30}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit != name) continue;
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(number, bytes, &size) || size < kLeast) return std::nullopt;
    return size;
  }
  return std::nullopt;
}

}  // namespace

void ModelFilesArguments::add_to(CLI::App& command) {
  command.add_option("--dtype", dtype, "Type of the numbers: float32, or bfloat16 (rounded to nearest)")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  command.add_option("--max-shard-size", max_shard_size, "A larger model is written as several files of at most this")
      ->check(CLI::Validator(
          [](std::string& text) -> std::string {
            return parse_shard_size(text) ? "" : "must be a size like 5GB or 500MB, 100kB at least";
          },
          ""))
      ->type_name("SIZE")
      ->capture_default_str();
}

ModelFilesOptions ModelFilesArguments::options() const {
  ModelFilesOptions options;
  options.dtype = parse_model_dtype(dtype).value_or(options.dtype);
  options.max_shard_bytes = parse_shard_size(max_shard_size).value_or(options.max_shard_bytes);
  return options;
}

}  // namespace atl
