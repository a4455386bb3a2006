#include "app/config/gpu_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

namespace atl {
namespace {

Error wrong(std::string_view text) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' names no GPUs; say all, none, or numbers from 0 to {} as nvidia-smi counts them, for "
                           "instance 0-3 or 0,2,5-7",
                           text.substr(0, 64), kMostGpus - 1)};
}

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number >= kMostGpus) return std::nullopt;
  return number;
}

}  // namespace

Result<GpuList> parse_gpu_list(std::string_view text) {
  if (text == "all") return GpuList{};
  if (text == "none") return GpuList{std::vector<unsigned>{}};
  if (text.empty() || text.back() == ',') return wrong(text);
  std::set<unsigned> numbers;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ',');) {
    std::erase(part, ' ');
    const std::string_view span = part;
    const auto dash = span.find('-');
    const auto first = number_of(span.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_of(span.substr(dash + 1));
    if (!first || !last || *first > *last) return wrong(text);
    for (unsigned gpu = *first; gpu <= *last; ++gpu) numbers.insert(gpu);
  }
  return GpuList{std::vector<unsigned>(numbers.begin(), numbers.end())};
}

bool GpuList::contains(unsigned gpu) const {
  return !numbers || std::binary_search(numbers->begin(), numbers->end(), gpu);
}

GpuList GpuList::without(const std::vector<unsigned>& others) const {
  if (others.empty()) return *this;
  GpuList left{std::vector<unsigned>()};
  for (unsigned gpu = 0; gpu < kMostGpus; ++gpu) {
    if (contains(gpu) && !std::ranges::binary_search(others, gpu)) left.numbers->push_back(gpu);
  }
  return left;
}

std::string GpuList::text() const {
  if (!numbers) return "all";
  if (numbers->empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < numbers->size();) {
    const std::size_t begin = i;
    while (++i < numbers->size() && (*numbers)[i] == (*numbers)[i - 1] + 1) {
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", (*numbers)[begin]);
    if (i - begin > 1) text += fmt::format("-{}", (*numbers)[i - 1]);
  }
  return text;
}

std::optional<std::string> GpuList::visible_devices() const {
  if (!numbers) return std::nullopt;
  return fmt::format("{}", fmt::join(*numbers, ","));
}

}  // namespace atl
