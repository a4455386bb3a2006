// What a hub, a mirror, another island or a run's configuration says of data: the index of a hash tree and its parts,
// the run's dataset, mixtures, what islands ask each other and answer; and a tree's journal, as a disk gives it back.
// What is read holds together, and says itself again to the same.
//
// Input: which of the six u8, then the bytes.
#include <numeric>
#include <string>

#include "net/data/chunk_peers.h"
#include "net/data/chunk_tree.h"
#include "net/data/mixture.h"
#include "net/data/run_dataset.h"
#include "net/data/sequence_map.h"
#include "net/data/token_shard.h"
#include "net/data/tree_journal.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

void check_pieces(const ChunkTreeIndex& index, const ShardTable& table, std::uint64_t chunk) {
  std::uint64_t bytes = 0;
  for (const ShardPiece& piece : table.pieces_of(chunk)) {
    ATOLL_FUZZ_CHECK(piece.shard < index.shards.size() && piece.bytes > 0);
    ATOLL_FUZZ_CHECK(piece.offset + piece.bytes <=
                     kTokenShardHeaderBytes + index.shards[piece.shard].tokens * index.token_bytes);
    bytes += piece.bytes;
  }
  ATOLL_FUZZ_CHECK(bytes == index.tokens_of(chunk) * index.token_bytes);
}

void read_index(ByteView bytes) {
  const auto index = decode_chunk_tree_index(bytes);
  if (!index.ok()) return;
  const Bytes again = encode(*index);
  ATOLL_FUZZ_CHECK(again.size() == bytes.size() && std::equal(again.begin(), again.end(), bytes.begin()));
  if (index->chunks() == 0) return;
  const ShardTable table(*index);
  check_pieces(*index, table, 0);
  check_pieces(*index, table, index->chunks() / 2);
  check_pieces(*index, table, index->chunks() - 1);
  const SequenceMap map(1, 0, {index->tokens, index->chunk_tokens(), 100});
  if (map.sequences() == 0) return;
  for (const std::uint64_t i : {std::uint64_t{0}, map.sequences() - 1, map.sequences(), std::uint64_t{1} << 60}) {
    const SequencePlace place = map.at(i);
    ATOLL_FUZZ_CHECK(place.chunk * index->chunk_tokens() + place.sequence * 100 + 101 <= index->tokens);
  }
}

// Of a tree whose index was verified: the part is a liar's.
void read_part(ByteView bytes) {
  ChunkTreeIndex index{
      .token_bytes = 2, .vocab_size = 300, .tokens = 1'000'000, .shards = {}, .parts = {sha256(bytes)}};
  const auto leaves = decode_tree_part(index, 0, bytes);
  ATOLL_FUZZ_CHECK(!leaves.ok() || leaves->size() == index.leaves_of(0));
}

void read_dataset(const std::string& text) {
  const auto read = RunDataset::from_json(text);
  if (!read.ok()) return;
  const auto again = RunDataset::from_json(read->to_json());
  ATOLL_FUZZ_CHECK(again.ok() && again->to_json() == read->to_json());
  ATOLL_FUZZ_CHECK(facts_of_run_data(text).ok() && has_sources(text));
  ATOLL_FUZZ_CHECK(Mixture::create({{0, read->weights()}}).ok());
}

void read_mixture(const std::string& text) {
  (void)parse_named_shares(text);
  const auto read = parse_run_mixture(text);
  if (!read.ok()) return;
  const auto again = parse_run_mixture(to_json(*read));
  ATOLL_FUZZ_CHECK(again.ok() && *again == *read);
  const auto mixture = Mixture::create(read->eras);
  if (!mixture.ok()) return;
  for (const std::uint64_t position : {std::uint64_t{0}, read->eras.back().from_position, std::uint64_t{1} << 62}) {
    const auto counts = mixture->counts_before(position);
    ATOLL_FUZZ_CHECK(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) == position);
    const Mixture::Place place = mixture->at(position);
    ATOLL_FUZZ_CHECK(place.source < counts.size() && place.index == counts[place.source]);
  }
}

void read_peers_words(const std::string& text) {
  if (const auto target = parse_data_target(text)) ATOLL_FUZZ_CHECK(to_target(*target) == text);
  const auto holders = decode_holders(text);
  if (!holders.ok()) return;
  ATOLL_FUZZ_CHECK(holders->size() <= kMaxHolders && encode_holders(*holders) == text);
  ATOLL_FUZZ_CHECK(homes_of({0, 1}, *holders).size() == holders->size());
}

void read_journal(ByteView bytes) {
  const TreeJournalText text = read_tree_journal(bytes, Digest{});
  ATOLL_FUZZ_CHECK(text.good_bytes <= bytes.size());
  ATOLL_FUZZ_CHECK(text.leaves.size() * kChunkLeafBytes <= text.good_bytes);
  ATOLL_FUZZ_CHECK(read_tree_journal(bytes.first(text.good_bytes), Digest{}).leaves.size() == text.leaves.size());
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  using namespace atl::fuzz;
  Input input(data, size);
  const auto which = input.get<std::uint8_t>() % 6;
  const ByteView rest = input.rest();
  if (which == 0) read_index(rest);
  if (which == 1) read_part(rest);
  if (which == 2) read_dataset(to_string(rest));
  if (which == 3) read_mixture(to_string(rest));
  if (which == 4) read_peers_words(to_string(rest));
  if (which == 5) read_journal(rest);
  return 0;
}
