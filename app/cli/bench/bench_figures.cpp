#include "app/cli/bench/bench_figures.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "net/base/deadline.h"

namespace atl {
namespace {

constexpr std::uint64_t kMaxSize = 16ull << 30;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const Error wrong{ErrorCode::kInvalidArgument,
                    fmt::format("'{}' is no size; write for instance 256MiB, 1GiB or 64KiB, at most 16GiB", text)};
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count == 0) return wrong;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 9> kUnits{{{"", 1},
                                                                              {"B", 1},
                                                                              {"KiB", 1u << 10},
                                                                              {"MiB", 1u << 20},
                                                                              {"GiB", 1u << 30},
                                                                              {"kB", 1'000},
                                                                              {"KB", 1'000},
                                                                              {"MB", 1'000'000},
                                                                              {"GB", 1'000'000'000}}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit == name && count <= kMaxSize / bytes) return count * bytes;
  }
  return wrong;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double minimum(const std::vector<double>& values) { return *std::ranges::min_element(values); }

ProcessUse process_use() {
  rusage usage{};
  (void)::getrusage(RUSAGE_SELF, &usage);
  ProcessUse use;
  use.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const auto kibibytes = [&](std::string_view name, std::uint64_t& bytes) {
      if (line.starts_with(name)) bytes = std::strtoull(line.c_str() + name.size(), nullptr, 10) << 10;
    };
    kibibytes("VmHWM:", use.peak_resident_bytes);
    kibibytes("VmRSS:", use.resident_bytes);
  }
  return use;
}

std::uint64_t available_memory_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    constexpr std::string_view kName = "MemAvailable:";
    if (line.starts_with(kName)) return std::strtoull(line.c_str() + kName.size(), nullptr, 10) << 10;
  }
  return 0;
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double seconds_on_threads(int count, const std::function<void(std::size_t)>& work) {
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < static_cast<std::size_t>(count); ++i) others.emplace_back([&work, i] { work(i); });
    work(0);
  }
  return Seconds(Clock::now() - begin).count();
}

double memcpy_bytes_per_second(std::uint64_t bytes, int repeats) {
  const std::vector<char> source(bytes, 1);
  std::vector<char> target(bytes, 2);
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    std::memcpy(target.data(), source.data(), source.size());
    const double seconds = Seconds(Clock::now() - begin).count();
    if (target.back() == source.back()) best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return best;
}

}  // namespace atl
