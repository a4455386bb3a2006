#include "tests/net/recovery/committed_run.h"

#include <algorithm>

#include "kernels/wire_codec.h"
#include "net/collective/canonical_digest.h"
#include "net/mesh/commit_signature.h"
#include "net/recovery/outer_step.h"

namespace atl {
namespace {

constexpr std::int64_t kUnitNumel = 700'001;  // of a fragment's range: three of them in a chunk, at no chunk's border
constexpr OuterSgd kHyper{0.7f, 0.9f};

// Units in turn, and side by side where there is one fragment.
std::vector<Fragment> fragments_in_turn(std::int64_t numel, std::uint32_t count) {
  if (count == 1) return {Fragment{{{0, numel}}, numel}};
  std::vector<Fragment> fragments(count);
  for (std::int64_t offset = 0, unit = 0; offset < numel; offset += kUnitNumel, ++unit) {
    Fragment& fragment = fragments[static_cast<std::size_t>(unit) % count];
    const std::int64_t here = std::min(kUnitNumel, numel - offset);
    fragment.ranges.push_back({offset, here});
    fragment.numel += here;
  }
  return fragments;
}

std::vector<float> noise(std::uint64_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random()) * 1e-9F - 2.0F;
  return values;
}

Bytes chunk_of(const FetchedState& state, std::uint64_t index) {
  Bytes bytes;
  for (const auto half : {std::span(state.parameters), std::span(state.momentum)}) {
    const ByteView part = std::as_bytes(of_chunk(half, index));
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

}  // namespace

CommittedRun::CommittedRun(TestRun& run, std::uint64_t numel, std::uint32_t fragments,
                           const std::filesystem::path& directory)
    : run_(run),
      numel_(numel),
      fragments_(fragments_in_turn(static_cast<std::int64_t>(numel), fragments)),
      log_(directory),
      unkept_(directory / "none") {
  MutexLock lock(mutex_);
  state_ = {OuterStep{0}, noise(numel, random_), noise(numel, random_)};
  take(OuterStep{0});
}

void CommittedRun::take(OuterStep step) {
  state_.version = step;
  manifest_ = make_state_manifest(step, state_.parameters, state_.momentum);
}

void CommittedRun::commit(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    MutexLock lock(mutex_);
    const OuterStep round = state_.version;
    const auto number = round.value % static_cast<std::uint32_t>(fragments_.size());
    const Fragment& fragment = fragments_[number];
    const std::vector<float> values = noise(static_cast<std::uint64_t>(fragment.numel), random_);
    Bytes average(static_cast<std::size_t>(encoded_bytes(WireFormat::kInt8Block, fragment.numel)));
    encode_values(WireFormat::kInt8Block, values, average);
    LoggedRound logged;
    logged.from = to_hex(manifest_.tree_hash());
    logged.fragments = static_cast<std::uint32_t>(fragments_.size());
    HubCommit& commit = logged.record.commit;
    commit.round = round;
    commit.attempt = Attempt{1};
    commit.digest = to_hex(canonical_digest(average));
    commit.outer_learning_rate = 0.7;
    commit.outer_momentum = 0.9;
    commit.epoch = epoch_;
    commit.fragment = FragmentId{number};
    commit.signature = sign_commit(run_.hub(), commit).value();
    logged.record.hub_certificate = run_.hub().certificate_pem;
    std::vector<Digest> chunks = manifest_.chunk_sha256;
    outer_step(state_.parameters, state_.momentum, fragment.ranges, WireFormat::kInt8Block, average, kHyper, chunks);
    take(OuterStep{round.value + 1});
    logged.made = to_hex(manifest_.tree_hash());
    const Status kept = log_.keep(logged, unkept_, WireFormat::kInt8Block, average);
    if (!kept.ok()) detail::die_on_wrong_access("a round is logged", kept.error().message);
  }
}

void CommittedRun::go_back_to(const FetchedState& state) {
  MutexLock lock(mutex_);
  state_ = state;
  take(state.version);
  ++epoch_;
}

HeldState CommittedRun::held() const {
  MutexLock lock(mutex_);
  return {manifest_.version, to_hex(manifest_.tree_hash())};
}

FetchedState CommittedRun::copy() const {
  MutexLock lock(mutex_);
  return state_;
}

bool CommittedRun::is(const FetchedState& state) const {
  MutexLock lock(mutex_);
  return state.version == state_.version && state.parameters == state_.parameters && state.momentum == state_.momentum;
}

std::uint64_t CommittedRun::average_bytes(std::uint32_t round) const {
  return static_cast<std::uint64_t>(encoded_bytes(WireFormat::kInt8Block, fragments_[round % fragments_.size()].numel));
}

std::uint64_t CommittedRun::average_bytes(std::uint32_t from, std::uint32_t count) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t round = from; round < from + count; ++round) bytes += average_bytes(round);
  return bytes;
}

Result<StateManifest> CommittedRun::manifest() const {
  MutexLock lock(mutex_);
  return manifest_;
}

Result<Bytes> CommittedRun::copy_chunk(OuterStep version, std::uint64_t index) const {
  MutexLock lock(mutex_);
  if (version != state_.version) return Error{ErrorCode::kNotFound, "another version"};
  return chunk_of(state_, index);
}

HeldStateSource::HeldStateSource(FetchedState state)
    : state_(std::move(state)), manifest_(make_state_manifest(state_.version, state_.parameters, state_.momentum)) {}

void HeldStateSource::flip_bit(std::uint64_t parameter) {
  auto& value = reinterpret_cast<std::uint32_t&>(state_.parameters[parameter]);
  value ^= 1u;
}

Result<Bytes> HeldStateSource::copy_chunk(OuterStep version, std::uint64_t index) const {
  if (version != state_.version) return Error{ErrorCode::kNotFound, "another version"};
  return chunk_of(state_, index);
}

}  // namespace atl
