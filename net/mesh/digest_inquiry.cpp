#include "net/mesh/digest_inquiry.h"

#include <algorithm>

namespace atl {

DigestInquiry::DigestInquiry(Attempt attempt, std::vector<AttemptMember> order, std::set<IslandId> asked,
                             Schedule schedule)
    : attempt_(attempt), order_(std::move(order)), schedule_(schedule), asked_(std::move(asked)) {}

void DigestInquiry::answer(const IslandId& island, std::vector<std::string> chunk_digests) {
  if (asked_.contains(island)) answers_.emplace(island, std::move(chunk_digests));
}

bool DigestInquiry::complete() const {
  return std::ranges::all_of(asked_, [this](const IslandId& island) { return answers_.contains(island); });
}

std::vector<IslandId> DigestInquiry::silent() const {
  std::vector<IslandId> islands;
  for (const IslandId& island : asked_) {
    const auto found = answers_.find(island);
    if (found == answers_.end() || found->second.size() != order_.size()) islands.push_back(island);
  }
  return islands;
}

std::set<IslandPair> DigestInquiry::bad_edges() const {
  std::set<IslandPair> edges;
  const std::size_t world_size = order_.size();
  const auto digest_of = [&](std::size_t rank, std::size_t chunk) -> const std::string* {
    const auto found = answers_.find(order_[rank].id);
    if (found == answers_.end() || found->second.size() != world_size) return nullptr;
    return &found->second[chunk];
  };
  for (std::size_t chunk = 0; chunk < world_size; ++chunk) {
    // Rank r owns the sum of chunk r + 1 (net/collective/ring_schedule.h); from there it travels to all others.
    const std::size_t owner = (chunk + world_size - 1) % world_size;
    for (std::size_t hop = 0; hop + 1 < world_size; ++hop) {
      const std::size_t to = (owner + hop + 1) % world_size;
      const std::size_t from = schedule_ == Schedule::kDirect ? owner : (owner + hop) % world_size;
      const std::string *sent = digest_of(from, chunk), *received = digest_of(to, chunk);
      if (sent == nullptr || received == nullptr || *sent == *received) continue;
      edges.insert(std::minmax(order_[from].id, order_[to].id));
    }
  }
  return edges;
}

void BadEdges::forget(const IslandId& island) {
  std::erase_if(edges_, [&](const IslandPair& edge) { return edge.first == island || edge.second == island; });
}

std::optional<IslandId> BadEdges::culprit() const {
  if (edges_.size() < 2) return std::nullopt;
  const IslandPair& one = *edges_.begin();
  for (const IslandId& suspect : {one.first, one.second}) {
    const auto has_it = [&](const IslandPair& edge) { return edge.first == suspect || edge.second == suspect; };
    if (std::ranges::all_of(edges_, has_it)) return suspect;
  }
  return std::nullopt;
}

}  // namespace atl
