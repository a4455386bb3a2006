#include "app/core/sync_model.h"

#include <algorithm>

#include "net/control/json_fields.h"
#include "net/control/told.h"

namespace atl {
namespace {

constexpr double kMuchSlower = 2;

std::optional<RingIsland> member_from_json(const nlohmann::json& json, const std::string& own_island) {
  RingIsland member;
  JsonFields fields(json, "a member of the ring");
  std::optional<std::uint64_t> tokens;
  std::optional<std::string> name;
  fields.read("island", member.id).read("name", name).read("tokens", tokens);
  fields.read("edge_bytes_per_second", member.edge_bytes_per_second);
  if (!fields.status().ok()) return std::nullopt;
  member.name = name.value_or("");
  member.tokens = tokens.value_or(0);
  member.self = !own_island.empty() && member.id == own_island;
  return member;
}

}  // namespace

SyncModel::SyncModel(QObject* parent) : QObject(parent), tell_([this] { Q_EMIT changed(); }) {}

void SyncModel::take(const ControlEvent& event, const std::string& own_island) {
  const nlohmann::json& data = event.data;
  if (!data.is_object()) return;
  bool news = false;
  if (event.name == "sync.phase") {
    const nlohmann::json phase = data.value("phase", nlohmann::json());
    news = phase == "begin" ? begin(data, own_island) : phase.is_string() && takePhase(data);
  } else if (event.name == "sync.progress") {
    news = takeProgress(data);
  } else if (event.name == "peer.link") {
    news = takeLink(data, own_island);
  } else if (event.name == "sync.done" || event.name == "step" || event.name == "round.begin") {
    // A step tells that it is over, where its end was not heard.
    news = active_;
    active_ = false;
  }
  if (news) tell_.request();
}

void SyncModel::reset() {
  active_ = false;
  round_.reset();
  ring_.clear();
  progress_.reset();
  phases_.clear();
  tell_.request();
}

void SyncModel::enterRound(std::uint32_t round) {
  if (round_ == round) return;
  round_ = round;
  phases_.clear();
  progress_.reset();
}

bool SyncModel::begin(const nlohmann::json& data, const std::string& own_island) {
  JsonFields fields(data, "the beginning of an attempt");
  std::uint32_t round = 0;
  const nlohmann::json* members = fields.read("round", round).array("ring", kMaxMembers);
  if (members == nullptr) return false;
  std::vector<RingIsland> ring;
  for (const nlohmann::json& json : *members) {
    auto member = member_from_json(json, own_island);
    if (!member) return false;
    // What was measured before is better than nothing.
    const auto before = std::ranges::find(ring_, member->id, &RingIsland::id);
    if (!member->edge_bytes_per_second && before != ring_.end() && member->self) {
      member->edge_bytes_per_second = before->edge_bytes_per_second;
    }
    ring.push_back(std::move(*member));
  }
  enterRound(round);
  progress_.reset();
  ring_ = std::move(ring);
  active_ = true;
  return true;
}

bool SyncModel::takePhase(const nlohmann::json& data) {
  auto phase = phase_from_json(data, "phase");
  const nlohmann::json round = data.value("round", nlohmann::json());
  if (!phase || !round.is_number_unsigned() || round > UINT32_MAX) return false;
  enterRound(round.get<std::uint32_t>());
  if (phases_.size() < kMaxPhases) phases_.push_back(std::move(*phase));
  return true;
}

bool SyncModel::takeProgress(const nlohmann::json& data) {
  SyncProgress progress;
  JsonFields fields(data, "progress");
  std::optional<double> sent, received;
  std::optional<std::uint32_t> step, steps;
  fields.read("round", progress.round).read("attempt", progress.attempt).read("phase", progress.phase);
  fields.read("bytes_done", progress.bytes_done).read("bytes_total", progress.bytes_total);
  fields.read("sent_bytes_per_second", sent).read("received_bytes_per_second", received);
  fields.read("step", step).read("steps", steps);
  if (!fields.status().ok()) return false;
  progress.bytes_done = std::min(progress.bytes_done, progress.bytes_total);
  progress.sent_bytes_per_second = sent.value_or(0);
  progress.received_bytes_per_second = received.value_or(0);
  progress.step = step.value_or(0);
  progress.steps = steps.value_or(0);
  enterRound(progress.round);
  progress_ = std::move(progress);
  active_ = true;
  return true;
}

bool SyncModel::takeLink(const nlohmann::json& data, const std::string& own_island) {
  const nlohmann::json island = data.value("island", nlohmann::json());
  const auto rate = [&](const char* key) {
    const auto value = told::number(data, key);
    return value.value_or(0) > 0 ? value : std::nullopt;
  };
  const auto self = std::ranges::find_if(ring_, [&](const RingIsland& m) { return m.self || m.id == own_island; });
  const auto other = std::ranges::find_if(ring_, [&](const RingIsland& m) { return island == m.id; });
  if (ring_.size() < 2 || self == ring_.end() || other == ring_.end()) return false;
  const auto next = std::next(self) == ring_.end() ? ring_.begin() : std::next(self);
  const auto previous = self == ring_.begin() ? std::prev(ring_.end()) : std::prev(self);
  const auto up = rate("bytes_per_second"), down = rate("down_bytes_per_second");
  if (up && other == next) self->edge_bytes_per_second = up;
  if (down && other == previous) previous->edge_bytes_per_second = down;
  return up || down;
}

std::optional<std::size_t> SyncModel::slowest_edge() const {
  std::optional<std::size_t> slowest;
  double least = 0, next = 0;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    if (!ring_[i].edge_bytes_per_second) continue;
    const double rate = *ring_[i].edge_bytes_per_second;
    if (!slowest || rate < least) {
      next = slowest ? least : 0;
      least = rate;
      slowest = i;
    } else if (next == 0 || rate < next) {
      next = rate;
    }
  }
  return slowest && next >= kMuchSlower * least ? slowest : std::nullopt;
}

}  // namespace atl
