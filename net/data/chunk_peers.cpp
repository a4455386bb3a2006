#include "net/data/chunk_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "net/base/json_reader.h"
#include "net/base/sha256.h"

namespace atl {
namespace {

constexpr std::string_view kHolders = "/holders";

// A number, in the one way in which it is written; nothing of `text` is left of it.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || (text.front() == '0' && read.ptr != text.data() + 1)) return false;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return true;
}

}  // namespace

std::string to_target(const DataTarget& target) {
  return fmt::format("{}{}/{}{}", kDataPrefix, target.id.tree, target.id.chunk,
                     target.asks_for_holders ? kHolders : std::string_view());
}

std::optional<DataTarget> parse_data_target(std::string_view text) {
  if (!text.starts_with(kDataPrefix)) return std::nullopt;
  text.remove_prefix(kDataPrefix.size());
  DataTarget target;
  if (!take_number(text, target.id.tree) || !text.starts_with('/')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text, target.id.chunk)) return std::nullopt;
  target.asks_for_holders = text == kHolders;
  return text.empty() || target.asks_for_holders ? std::optional(target) : std::nullopt;
}

std::string encode_holders(std::span<const IslandId> holders) {
  std::string text;
  for (const IslandId& holder : holders.first(std::min(holders.size(), kMaxHolders))) text += holder.value + "\n";
  return text;
}

Result<std::vector<IslandId>> decode_holders(std::string_view text) {
  const auto wrong = [](std::string_view why) {
    return Error{ErrorCode::kProtocol, fmt::format("the list of who has a chunk {}", why)};
  };
  if (text.size() > kMaxHoldersBytes) return wrong("is longer than it may be");
  std::vector<IslandId> holders;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return wrong("is cut short");
    if (!is_island_name(text.substr(0, end))) return wrong("has a name that is none");
    if (holders.size() == kMaxHolders) return wrong("has more names than it may");
    holders.push_back(IslandId{std::string(text.substr(0, end))});
    text.remove_prefix(end + 1);
  }
  return holders;
}

std::vector<IslandId> homes_of(ChunkId id, std::vector<IslandId> islands) {
  std::vector<std::pair<Digest, IslandId>> ranked;
  ranked.reserve(islands.size());
  for (IslandId& island : islands) {
    const std::string text = fmt::format("{} {} {}", id.tree, id.chunk, island.value);
    ranked.emplace_back(sha256(as_bytes(text)), std::move(island));
  }
  std::ranges::sort(ranked);
  islands.clear();
  for (auto& [rank, island] : ranked) islands.push_back(std::move(island));
  return islands;
}

}  // namespace atl
