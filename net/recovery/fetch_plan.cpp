#include "net/recovery/fetch_plan.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/base/parallel.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

// Averages are asked for so many chunks ahead of the first that is not stepped: 2 MiB each and round, in memory.
constexpr std::uint64_t kChunksAhead = 128;
// So many chunks of one outer step that averages lead elsewhere, and none to the target: that step, or a round since,
// is of another history. One alone may be a flipped bit.
constexpr int kWrongInARow = 3;
constexpr std::uint32_t kMostStepsTold = 256;  // through which a chunk has stayed the same: more than are ever logged

}  // namespace

FetchPlan::FetchPlan(const Identity& self, FetchModel model, std::function<void(std::uint64_t)> came)
    : self_(self),
      model_(std::move(model)),
      came_(std::move(came)),
      state_(model_.numel),
      ways_(state_.chunks(), Way::kUnknown),
      on_its_way_(state_.chunks()) {
  for (const Fragment& fragment : model_.fragments) {
    std::vector<std::uint64_t>& bytes = touching_bytes_.emplace_back(state_.chunks());
    for (std::uint64_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = average_bytes_of_chunk(fragment.ranges, model_.wire, i);
    }
  }
}

// ---- the target
// -------------------------------------------------------------------------------------------------------

void FetchPlan::aim(const HeldState& target) {
  if (target == target_) return seek_rounds_again();
  if (target.outer_step <= target_.outer_step) {  // a way back: rounds are committed anew
    averages_.clear();
    if (rounds_taken_ != nullptr) rounds_taken_->begin_anew();
  }
  target_ = target;
  manifest_.reset();
  right_ = 0;
  std::ranges::fill(ways_, Way::kUnknown);
  stepping_.clear();
  fetching_.clear();
  unknown_rounds_.clear();
  lost_rounds_.clear();
  trust_.clear();
  wrong_.clear();
  for (auto& [round, average] : averages_) average.want_nothing();
}

// Other sources may have them.
void FetchPlan::seek_rounds_again() {
  if (!manifest_ || lost_rounds_.empty()) return;
  lost_rounds_.clear();
  const std::vector<std::uint64_t> all(fetching_.begin(), fetching_.end());
  for (const std::uint64_t chunk : all) {
    leave_way(chunk);
    plan(chunk);
  }
}

Status FetchPlan::take_manifest(ByteView json) {
  ATOLL_ASSIGN_OR_RETURN(StateManifest manifest, StateManifest::from_json(to_string(json)));
  if (manifest.version != target_.outer_step) {
    return Error{ErrorCode::kNotFound, fmt::format("its state is that {}", after_round(manifest.version.value))};
  }
  if (to_hex(manifest.tree_hash()) != target_.state_hash || manifest.state_bytes != state_.state_bytes()) {
    return Error{ErrorCode::kCorrupt, "its outer state is not the one that the hub names"};
  }
  if (manifest_) return ok_status();  // the same, for there is one of this hash: all is planned
  manifest_ = std::move(manifest);
  for (std::uint64_t chunk = 0; chunk < state_.chunks(); ++chunk) plan(chunk);
  for (auto& [round, average] : averages_) average.trim();
  return ok_status();
}

std::uint64_t FetchPlan::bytes_to_fetch() const {
  std::uint64_t bytes = 0;
  for (const std::uint64_t chunk : fetching_) bytes += state_.chunk_bytes(chunk);
  for (const std::uint64_t chunk : stepping_) {
    for_each_round(chunk,
                   [&](OuterStep round) { bytes += touching_bytes_[round.value % model_.fragments.size()][chunk]; });
  }
  return bytes;
}

// ---- ways
// -------------------------------------------------------------------------------------------------------------

// Rounds that touch it, from the outer step of which it is to the target.
template <class Act>
void FetchPlan::for_each_round(std::uint64_t chunk, Act act) const {
  for (OuterStep round = state_.chunk(chunk)->step; round < target_.outer_step; ++round.value) {
    if (touches(round, chunk)) act(round);
  }
}

std::uint64_t FetchPlan::bytes_of_rounds(std::uint64_t chunk, OuterStep from) const {
  const auto fragments = static_cast<std::uint32_t>(model_.fragments.size());
  std::uint64_t bytes = 0;
  for (std::uint32_t offset = 0; offset < fragments; ++offset) {
    const std::uint32_t first = from.value + offset;
    if (first >= target_.outer_step.value) break;
    const std::uint64_t rounds = (target_.outer_step.value - first - 1) / fragments + 1;
    bytes += rounds * touching_bytes_[first % fragments][chunk];
  }
  return bytes;
}

FetchPlan::Way FetchPlan::decide(std::uint64_t chunk) {
  const std::optional<StoredChunk>& is = state_.chunk(chunk);
  if (!is) return Way::kFetch;
  if (is->sha256 == manifest_->chunk_sha256[chunk]) return Way::kRight;
  if (is->step > target_.outer_step) return Way::kFetch;
  const std::uint64_t bytes = bytes_of_rounds(chunk, is->step);
  if (bytes == 0) wrong_.insert(chunk);  // of the target's outer step, or untouched since its own
  if (bytes == 0 || bytes >= state_.chunk_bytes(chunk)) return Way::kFetch;
  const auto trust = trust_.find(is->step);
  if (trust != trust_.end() && trust->second.right == 0 && trust->second.wrong >= kWrongInARow) return Way::kFetch;
  const bool is_cut =
      std::ranges::any_of(lost_rounds_, [&](OuterStep round) { return round >= is->step && touches(round, chunk); });
  return is_cut ? Way::kFetch : Way::kStep;
}

void FetchPlan::leave_way(std::uint64_t chunk) {
  if (ways_[chunk] == Way::kRight) --right_;
  fetching_.erase(chunk);
  if (stepping_.erase(chunk) == 0) return;
  for_each_round(chunk, [&](OuterStep round) {
    const auto average = averages_.find(round);
    if (average != averages_.end()) average->second.stepped(chunk);
  });
}

// Before its state changes it leaves its way, which depends on that.
void FetchPlan::plan(std::uint64_t chunk) {
  ways_[chunk] = decide(chunk);
  switch (ways_[chunk]) {
    case Way::kRight:
      if (rounds_taken_ != nullptr) {
        const StoredChunk& is = *state_.chunk(chunk);
        const std::uint32_t to = target_.outer_step.value;
        const OuterStep from{std::clamp(is.step.value, to - std::min(to, kMostStepsTold), to)};
        rounds_taken_->chunk_was(chunk, from, std::vector<Digest>(to - from.value + 1, is.sha256));
      }
      state_.mark(chunk, wanted(chunk));  // untouched since an earlier step: of the target's, too
      ++right_;
      break;
    case Way::kFetch: fetching_.insert(chunk); break;
    case Way::kStep:
      stepping_.insert(chunk);
      for_each_round(chunk, [&](OuterStep round) {
        const auto average = averages_.find(round);
        average != averages_.end() ? average->second.want(chunk) : static_cast<void>(unknown_rounds_.insert(round));
      });
      break;
    case Way::kUnknown: break;
  }
}

// ---- rounds
// -----------------------------------------------------------------------------------------------------------

Status FetchPlan::take_round(OuterStep round, ByteView bytes) {
  const auto fragments = static_cast<std::uint32_t>(model_.fragments.size());
  ATOLL_ASSIGN_OR_RETURN(RoundManifest manifest,
                         read_round_manifest(bytes, self_, round, part(round).numel, fragments));
  if (unknown_rounds_.erase(round) == 0) return ok_status();
  FetchedAverage& average =
      averages_.try_emplace(round, std::move(manifest), std::span(part(round).ranges)).first->second;
  for (const std::uint64_t chunk : stepping_) {
    if (state_.chunk(chunk)->step <= round && touches(round, chunk)) average.want(chunk);
  }
  return ok_status();
}

void FetchPlan::give_up_round(OuterStep round) {
  lost_rounds_.insert(round);
  unknown_rounds_.erase(round);
  const std::vector<std::uint64_t> all(stepping_.begin(), stepping_.end());
  for (const std::uint64_t chunk : all) {
    if (state_.chunk(chunk)->step > round || !touches(round, chunk)) continue;
    leave_way(chunk);
    plan(chunk);
  }
}

// Only once all rounds are known: else what cannot be stepped would gather in memory.
FetchedAverage* FetchPlan::average_to_ask(const std::function<bool(OuterStep)>& may_ask) {
  if (!unknown_rounds_.empty() || stepping_.empty()) return nullptr;
  FetchedAverage* best = nullptr;
  for (auto& [round, average] : averages_) {
    if (!average.is_open() || !may_ask(round)) continue;
    if (average.first_open_chunk() > *stepping_.begin() + kChunksAhead) continue;
    if (best == nullptr || average.first_open_chunk() < best->first_open_chunk()) best = &average;
  }
  return best;
}

std::set<OuterStep> FetchPlan::rounds_with_open_pieces() const {
  std::set<OuterStep> rounds;
  for (const auto& [round, average] : averages_) {
    if (average.is_open()) rounds.insert(round);
  }
  return rounds;
}

std::uint64_t FetchPlan::open_pieces() const {
  std::uint64_t pieces = 0;
  for (const auto& [round, average] : averages_) pieces += average.open_pieces();
  return pieces;
}

FetchedAverage* FetchPlan::average(OuterStep round, const std::string& digest) {
  const auto found = averages_.find(round);
  return found != averages_.end() && found->second.manifest().record.commit.digest == digest ? &found->second : nullptr;
}

FetchedAverage::Accepted FetchPlan::take_pieces(FetchedAverage& average, PieceSpan asked, ByteView bytes) {
  FetchedAverage::Accepted accepted = average.accept(asked, bytes);
  if (rounds_taken_ == nullptr) return accepted;
  for (const std::size_t piece : accepted.fresh_pieces) {
    const ByteView body = bytes.subspan((piece - asked.first) * kDigestPieceBytes);
    rounds_taken_->piece_came(average.manifest(), piece, body.first(average.manifest().piece_bytes(piece)));
  }
  return accepted;
}

// ---- whole chunks
// -----------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> FetchPlan::next_chunk() {
  const auto next = std::ranges::find_if(fetching_, [&](std::uint64_t chunk) { return !on_its_way_[chunk]; });
  if (next == fetching_.end()) return std::nullopt;
  on_its_way_[*next] = true;
  return *next;
}

Result<bool> FetchPlan::take_chunk(std::uint64_t chunk, const StoredChunk& is, ByteView bytes) {
  if (bytes.size() != state_.chunk_bytes(chunk) || sha256(bytes) != is.sha256) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("chunk {} of the state {} has a wrong hash", chunk, after_round(is.step.value))};
  }
  on_its_way_[chunk] = false;
  const std::optional<StoredChunk>& before = state_.chunk(chunk);
  const bool is_wanted = manifest_ && is == wanted(chunk);
  if (is_right(chunk) || (ways_[chunk] == Way::kStep && !is_wanted)) return false;
  if (!manifest_ && before && before->step > is.step) return false;
  if (manifest_) leave_way(chunk);
  state_.put(chunk, is, bytes);
  if (manifest_) plan(chunk);
  if (is_right(chunk) && came_) came_(chunk);
  return true;
}

// ---- outer steps
// ------------------------------------------------------------------------------------------------------

bool FetchPlan::is_ready(std::uint64_t chunk) const {
  bool ready = true;
  for_each_round(chunk, [&](OuterStep round) {
    const auto average = averages_.find(round);
    ready = ready && average != averages_.end() && average->second.has(chunk);
  });
  return ready;
}

// In memory, so that nothing can fail. Its digests, from that which it had to that of the target's step; those between
// only where somebody is told of the rounds.
std::vector<Digest> FetchPlan::step(std::uint64_t chunk) {
  const auto digest = [&] { return chunk_digest(state_.parameters(chunk), state_.momentum(chunk)); };
  std::vector<Digest> digests{state_.chunk(chunk)->sha256};
  for (OuterStep round = state_.chunk(chunk)->step; round < target_.outer_step; ++round.value) {
    if (touches(round, chunk)) take_outer_step(chunk, averages_.at(round));
    if (rounds_taken_ != nullptr) digests.push_back(touches(round, chunk) ? digest() : digests.back());
  }
  if (rounds_taken_ == nullptr) digests.push_back(digest());
  return digests;
}

void FetchPlan::take_outer_step(std::uint64_t chunk, const FetchedAverage& average) {
  const HubCommit& commit = average.manifest().record.commit;
  const Status stepped =
      step_chunk(chunk, state_.parameters(chunk), state_.momentum(chunk), average.ranges(), average.manifest().wire,
                 average, {static_cast<float>(commit.outer_learning_rate), static_cast<float>(commit.outer_momentum)});
  if (!stepped.ok()) detail::die_on_wrong_access("all pieces of a round are there", stepped.error().message);
}

void FetchPlan::step_ready() {
  std::vector<std::uint64_t> ready;
  for (const std::uint64_t chunk : stepping_) {
    if (chunk > *stepping_.begin() + kChunksAhead) break;
    if (is_ready(chunk)) ready.push_back(chunk);
  }
  std::vector<std::vector<Digest>> digests(ready.size());
  parallel_for(ready.size(), [&](std::size_t i) { digests[i] = step(ready[i]); });
  for (std::size_t i = 0; i < ready.size(); ++i) stepped(ready[i], digests[i]);
}

void FetchPlan::stepped(std::uint64_t chunk, const std::vector<Digest>& digests) {
  const OuterStep from = state_.chunk(chunk)->step;
  leave_way(chunk);
  const bool is_right = digests.back() == manifest_->chunk_sha256[chunk];
  if (is_right) {
    if (rounds_taken_ != nullptr) rounds_taken_->chunk_was(chunk, from, digests);
    state_.mark(chunk, wanted(chunk));
    ++trust_[from].right;
  } else {
    state_.forget(chunk);  // of no step any more
    wrong_.insert(chunk);
    ++trust_[from].wrong;
  }
  plan(chunk);
  if (is_right && came_) came_(chunk);
  const Trust& trust = trust_[from];
  if (!is_right && trust.right == 0 && trust.wrong == kWrongInARow) distrust(from);
}

// Which round it is nobody knows: they are asked for anew, should a later target want them.
void FetchPlan::distrust(OuterStep from) {
  spdlog::warn("recovery outer_step={} from={} message=\"the rounds between do not lead there\"",
               target_.outer_step.value, from.value);
  const std::vector<std::uint64_t> all(stepping_.begin(), stepping_.end());
  for (const std::uint64_t chunk : all) {
    if (state_.chunk(chunk)->step != from) continue;
    leave_way(chunk);
    plan(chunk);
  }
  std::erase_if(averages_, [&](const auto& entry) { return entry.first >= from && !entry.second.is_wanted(); });
}

}  // namespace atl
