// What members say to each other of states and rounds: a round's manifest, made up or altered here and there, the
// manifest of a state, that of the hub's base model, and what is asked of an island that serves states and rounds. What
// is believed is what was signed, and says itself again to the same bytes.
//
// Input: which of the five u8, then its bytes; an altered manifest: (where u16, how u8) again and again.
#include <algorithm>
#include <memory>

#include "kernels/wire_codec.h"
#include "net/mesh/commit_signature.h"
#include "net/recovery/base_model.h"
#include "net/recovery/round_manifest.h"
#include "net/recovery/state_answers.h"
#include "tests/fakes/test_run.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

constexpr std::int64_t kNumel = 600'000;  // an average of three pieces
constexpr OuterStep kRound{7};
constexpr std::uint32_t kFragments = 3;

struct Run {
  TestRun run;
  Identity self = run.island(1);
  Bytes manifest = make();

  Bytes make() const {
    Bytes average(static_cast<std::size_t>(encoded_bytes(WireFormat::kInt8Block, kNumel)));
    encode_values(WireFormat::kInt8Block, std::vector<float>(kNumel, 0.5F), average);
    std::vector<PieceHash> pieces;
    for (std::size_t piece = 0; piece < digest_pieces(average.size()); ++piece) {
      pieces.push_back(hash_of_piece(average, piece));
    }
    SignedCommit record;
    record.commit.round = kRound;
    record.commit.attempt = Attempt{2};
    record.commit.digest = to_hex(digest_of_pieces(pieces));
    record.commit.outer_learning_rate = 0.7;
    record.commit.outer_momentum = 0.9;
    record.commit.fragment = FragmentId{kRound.value % kFragments};
    const Identity hub = run.hub();
    record.commit.signature = sign_commit(hub, record.commit).value();
    record.hub_certificate = hub.certificate_pem;
    Bytes bytes = round_manifest_head(record, WireFormat::kInt8Block, average.size());
    for (const PieceHash& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
    return bytes;
  }
};

Run& the_run() {
  static Run run;
  return run;
}

void read_round(ByteView bytes) {
  const auto read = read_round_manifest(bytes, the_run().self, kRound, kNumel, kFragments);
  if (!read.ok()) return;
  const HubCommit& commit = read->record.commit;
  ATOLL_FUZZ_CHECK(commit.round == kRound && commit.fragment.value == kRound.value % kFragments);
  ATOLL_FUZZ_CHECK(verify_commit(the_run().self, read->record.hub_certificate, commit).ok());
  ATOLL_FUZZ_CHECK(to_hex(digest_of_pieces(read->pieces)) == commit.digest);
  ATOLL_FUZZ_CHECK(read->pieces.size() == digest_pieces(static_cast<std::size_t>(read->bytes)));
  ATOLL_FUZZ_CHECK(read->bytes == static_cast<std::uint64_t>(encoded_bytes(read->wire, kNumel)));
  std::uint64_t bytes_of_pieces = 0;
  for (std::size_t piece = 0; piece < read->pieces.size(); ++piece) bytes_of_pieces += read->piece_bytes(piece);
  ATOLL_FUZZ_CHECK(bytes_of_pieces == read->bytes);
}

void read_altered_round(Input& input) {
  Bytes bytes = the_run().manifest;
  while (!input.rest().empty()) {
    const auto where = input.get<std::uint16_t>();
    const auto how = input.get<std::uint8_t>();
    bytes[where % bytes.size()] ^= static_cast<std::byte>(how);
  }
  read_round(bytes);
  const bool is_believed = read_round_manifest(bytes, the_run().self, kRound, kNumel, kFragments).ok();
  ATOLL_FUZZ_CHECK(is_believed || bytes != the_run().manifest);
}

void read_state_manifest(ByteView bytes) {
  const auto read = StateManifest::from_json(to_string(bytes));
  if (!read.ok()) return;
  const auto again = StateManifest::from_json(read->to_json());
  ATOLL_FUZZ_CHECK(again.ok() && again->tree_hash() == read->tree_hash());
  std::uint64_t total = 0;
  for (std::uint64_t index = 0; index < read->chunk_sha256.size(); ++index) total += read->chunk_bytes(index);
  ATOLL_FUZZ_CHECK(total == read->state_bytes);
  ATOLL_FUZZ_CHECK(read->to_json().size() <= max_manifest_bytes(read->state_bytes));
}

void read_base_model_manifest(ByteView bytes) {
  const auto read = BaseModelManifest::from_json(to_string(bytes));
  if (!read.ok()) return;
  const auto again = BaseModelManifest::from_json(read->to_json());
  ATOLL_FUZZ_CHECK(again.ok() && again->dtype == read->dtype && again->state.tree_hash() == read->state.tree_hash());
  ATOLL_FUZZ_CHECK(read->to_json().size() <= max_base_model_manifest_bytes(read->state.state_bytes));
  std::uint64_t end = 0;
  for (std::uint64_t index = 0; index < read->state.chunk_sha256.size(); ++index) {
    const ByteRange range = read->range_of_chunk(index);
    ATOLL_FUZZ_CHECK(range.first == end && range.count > 0);
    end += range.count;
  }
  ATOLL_FUZZ_CHECK(end == read->parameters_bytes());
}

class SmallState final : public OuterStateSource {
 public:
  Result<StateManifest> manifest() const override { return manifest_; }
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override {
    ATOLL_FUZZ_CHECK(index == 0);  // it was asked for what is there
    if (version != manifest_.version) return Error{ErrorCode::kNotFound, "another version"};
    return Bytes(static_cast<std::size_t>(manifest_.state_bytes));
  }

 private:
  const std::vector<float> values_ = std::vector<float>(10);
  const StateManifest manifest_ = make_state_manifest(kRound, values_, values_);
};

void ask(ByteView target) {
  static const SmallState state;
  static ServedRounds rounds{RoundLog("/nowhere")};
  const Answer answer = answer_to(to_string(target), state, &rounds);
  ATOLL_FUZZ_CHECK(!answer.read && answer.bytes == answer.content.size());  // nothing is logged
  ATOLL_FUZZ_CHECK(answer.bytes <= 16u << 20);
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl::fuzz;
  Input input(data, size);
  switch (input.get<std::uint8_t>() % 5) {
    case 0: read_round(input.rest()); break;
    case 1: read_altered_round(input); break;
    case 2: read_state_manifest(input.rest()); break;
    case 3: ask(input.rest()); break;
    case 4: read_base_model_manifest(input.rest()); break;
  }
  return 0;
}
