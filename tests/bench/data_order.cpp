// What a dataset of 10^12 tokens costs an island before its first step, and each sequence after that: five sources of a
// made-up tree each, in INTELLECT-1's shares. Nothing of that size is written. Run by hand: data_order
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/file.h"
#include "net/data/chunk_tree.h"
#include "net/data/mixture.h"
#include "net/data/sequence_map.h"

using namespace atl;

namespace {

constexpr std::uint64_t kTokens = 1'000'000'000'000;
constexpr std::uint64_t kShardTokens = 16u << 20;
constexpr std::uint32_t kLength = 2048;
constexpr std::array<double, 5> kShares{0.55, 0.1, 0.2, 0.1, 0.05};
constexpr int kPositions = 3'000'000;

void require(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "data_order: does not hold: {}\n", what);
  std::exit(1);
}

double seconds_since(Clock::time_point began) { return Seconds(Clock::now() - began).count(); }

std::uint64_t resident_bytes() {
  const auto text = read_file("/proc/self/statm");
  const auto second = text.ok() ? text->find(' ') : std::string::npos;
  require(second != std::string::npos, "the kernel says how much memory is in use");
  return std::strtoull(text->c_str() + second, nullptr, 10) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Bytes made_up_index(std::uint64_t tokens) {
  ChunkTreeIndex index{.token_bytes = 4, .vocab_size = 128'256, .tokens = tokens, .shards = {}, .parts = {}};
  for (std::uint64_t left = tokens, i = 0; left > 0; ++i) {
    index.shards.push_back({fmt::format("train-{:05}.tok", i), std::min(left, kShardTokens)});
    left -= index.shards.back().tokens;
  }
  index.parts.resize((index.chunks() + kLeavesOfPart - 1) / kLeavesOfPart);
  return encode(index);
}

}  // namespace

int main() {
  std::vector<Bytes> encoded;
  std::uint64_t bytes = 0;
  for (const double share : kShares) {
    encoded.push_back(made_up_index(static_cast<std::uint64_t>(share * static_cast<double>(kTokens))));
    bytes += encoded.back().size();
  }

  const std::uint64_t resident = resident_bytes();
  const auto began = Clock::now();
  std::vector<ChunkTreeIndex> trees;
  for (const Bytes& index : encoded) {
    auto tree = decode_chunk_tree_index(index);
    require(tree.ok(), "an index is read");
    trees.push_back(std::move(*tree));
  }
  std::vector<ShardTable> tables(trees.begin(), trees.end());
  const double opened = seconds_since(began);
  const std::uint64_t taken = resident_bytes() - resident;

  std::vector<SequenceMap> maps;
  for (std::uint32_t i = 0; i < trees.size(); ++i) {
    maps.emplace_back(1, i, SourceShape{trees[i].tokens, trees[i].chunk_tokens(), kLength});
  }
  const auto weights = mixture_weights({kShares.begin(), kShares.end()});
  const auto mixture = Mixture::create({{0, weights.value()}});
  std::uint64_t position = 1, last_pieces = 0;
  const auto mapped = Clock::now();
  for (int i = 0; i < kPositions; ++i) {
    position = position * 6'364'136'223'846'793'005u + 1;
    const Mixture::Place at = mixture->at(position >> 34);  // up to 10^9 sequences
    const SequencePlace place = maps[at.source].at(at.index);
    last_pieces += place.chunk + place.sequence;
  }
  const double nanoseconds = 1e9 * seconds_since(mapped) / kPositions;
  const SequencePlace place = maps[0].at(12'345);
  require(!tables[0].pieces_of(place.chunk).empty(), "a chunk is in a shard");

  fmt::print("10^12 tokens, {} sources: index {:.1f} MB, opened in {:.3f} s, {:.1f} MB of memory\n", trees.size(),
             static_cast<double>(bytes) / 1e6, opened, static_cast<double>(taken) / 1e6);
  fmt::print("a position of {}: {:.0f} ns to its chunk and sequence (checksum {})\n", std::uint64_t{1} << 30,
             nanoseconds, last_pieces);
  require(opened < 1 && taken < 100'000'000, "opened in a second, in 100 MB");
  require(nanoseconds < 1000, "mapped in a microsecond");
  return 0;
}
