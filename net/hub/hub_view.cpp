#include "net/hub/hub_view.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/unix_time.h"

namespace atl {
namespace {

using nlohmann::json;

double finite(double value) { return std::isfinite(value) ? value : 0; }

HubPhase phase_of(RoundCoordinator::Phase phase) {
  switch (phase) {
    case RoundCoordinator::Phase::kWaiting: break;
    case RoundCoordinator::Phase::kTraining: return HubPhase::kTraining;
    case RoundCoordinator::Phase::kSyncing: return HubPhase::kSyncing;
    case RoundCoordinator::Phase::kStandstill: return HubPhase::kStandstill;
    case RoundCoordinator::Phase::kFinished: return HubPhase::kFinished;
  }
  return HubPhase::kWaiting;
}

const char* name_of(Standstill::Kind kind) {
  switch (kind) {
    case Standstill::Kind::kLost: return "lost";
    case Standstill::Kind::kUndecided: return "undecided";
    case Standstill::Kind::kSplitState: return "split_state";
    case Standstill::Kind::kSplitAverage: return "split_average";
    case Standstill::Kind::kSpoiled: return "spoiled";
    case Standstill::Kind::kQuorum: return "quorum";
    case Standstill::Kind::kStragglers: return "stragglers";
    case Standstill::Kind::kNoData: return "no_data";
  }
  return "lost";
}

HubState::Island view_of(const MeshIsland& island, Clock::time_point now) {
  HubState::Island view;
  view.id = island.id().value;
  view.name = island.entry.display_name;
  view.state =
      island.standing == MeshIsland::Standing::kTraining ? HubIslandState::kTraining : HubIslandState::kRecovering;
  if (island.paused) view.state = HubIslandState::kPaused;
  view.last_seen_seconds = Seconds(now - island.last_heard).count();
  if (!island.heartbeat) return view;
  view.phase = parse_word<IslandPhase>(island.heartbeat->phase);
  view.inner_step = island.heartbeat->inner_step;
  view.loss_nats = finite(island.heartbeat->loss_nats);
  view.tokens_per_second = island.connected ? finite(island.heartbeat->tokens_per_second) : 0;
  view.tokens = island.heartbeat->tokens;
  view.bytes_sent = island.heartbeat->bytes_sent;
  view.inner_seconds = finite(island.heartbeat->inner_seconds);
  view.sync_seconds = finite(island.heartbeat->sync_seconds);
  return view;
}

json ids(const std::vector<IslandId>& islands) {
  json list = json::array();
  for (const IslandId& island : islands) list.push_back(island.value);
  return list;
}

NewsEvent event_of(const RoundBegan& news) {
  return {"round.begin", {{"round", news.round.value}, {"islands", ids(news.trainers)}}};
}
NewsEvent event_of(const RoundCommitted& news) {
  json members = json::array();
  std::uint64_t tokens = 0;
  for (const AttemptMember& member : news.commit.members) {
    members.push_back({{"id", member.id.value}, {"tokens", member.tokens}});
    tokens += member.tokens;
  }
  return {"round.commit",
          {{"round", news.commit.round.value},
           {"attempt", news.commit.attempt.value},
           {"digest", news.commit.digest},
           {"members", std::move(members)},
           {"tokens", tokens},
           {"seconds", news.seconds},
           {"mean_loss_nats", news.mean_loss_nats},
           {"directly", news.directly}}};
}
NewsEvent event_of(const StateHashesCompared& news) {
  return {"round.hashes", {{"outer_step", news.outer_step.value}, {"equal", news.equal}}};
}
NewsEvent event_of(const AttemptFailed& news) {
  return {"attempt.failed", {{"round", news.round.value}, {"attempt", news.attempt.value}, {"reason", news.reason}}};
}
NewsEvent event_of(const IslandJoined& news) {
  return {"island.joined", {{"island", news.island.value}, {"name", news.display_name}}};
}
NewsEvent event_of(const IslandGone& news) {
  return {news.left ? "island.left" : "island.dead",
          {{"island", news.island.value}, {"name", news.display_name}, {"reason", news.reason}}};
}
NewsEvent event_of(const IslandPaused& news) {
  return {"island.paused", {{"island", news.island.value}, {"name", news.display_name}}};
}
NewsEvent event_of(const IslandValidated& news) {
  return {"validation",
          {{"island", news.island.value}, {"outer_step", news.outer_step.value}, {"loss_nats", news.loss_nats}}};
}
NewsEvent event_of(const StateEvaluated& news) {
  const auto metrics = metrics_of(news.found.kind);
  json figures = json::object();
  for (std::size_t i = 0; i < metrics.size(); ++i) figures[std::string(metrics[i].name)] = news.found.figures[i];
  return {"evaluation",
          {{"island", news.island.value},
           {"outer_step", news.found.outer_step.value},
           {"task", news.found.task},
           {"islands", news.found.islands},
           {"figures", std::move(figures)}}};
}
NewsEvent event_of(const RunFinished& news) { return {"run.finished", {{"outer_step", news.outer_step.value}}}; }
NewsEvent event_of(const RolledBack& news) {
  return {"run.rolled_back",
          {{"from", news.from.value}, {"to", news.to.value}, {"reason", news.reason}, {"automatic", news.automatic}}};
}
NewsEvent event_of(const FastForwarded& news) {
  return {"run.fast_forwarded", {{"from", news.from.value}, {"to", news.to.value}, {"island", news.shown_by.value}}};
}
NewsEvent event_of(const StandstillChanged& news) {
  if (!news.standstill) return {"run.goes_on", json::object()};
  return {"run.standstill", {{"kind", name_of(news.standstill->kind)}, {"text", news.standstill->text}}};
}
NewsEvent event_of(const WorkLeftOut& news) {
  return {"island.left_out", {{"island", news.island.value}, {"round", news.round.value}, {"reason", news.reason}}};
}
NewsEvent event_of(const ValidationDoubted& news) {
  return {"validation.doubted",
          {{"island", news.island.value}, {"outer_step", news.outer_step.value}, {"loss_nats", news.loss_nats}}};
}
NewsEvent event_of(const StateUploaded& news) {
  return {"state.uploaded",
          {{"island", news.island.value}, {"outer_step", news.outer_step.value}, {"error", news.error}}};
}

}  // namespace

NewsEvent to_event(const CoordinatorNews& news) {
  return std::visit([](const auto& n) { return event_of(n); }, news);
}

void HubView::learn(const CoordinatorNews& news) {
  if (const auto* committed = std::get_if<RoundCommitted>(&news)) {
    HubState::Round& round = state_.rounds.emplace_back();
    round.round = committed->commit.round.value;
    round.attempts = committed->commit.attempt.value;
    round.members = static_cast<std::uint32_t>(committed->commit.members.size());
    for (const AttemptMember& member : committed->commit.members) {
      round.tokens += member.tokens;
      if (member.tokens > 0) ++accepted_[member.id];
    }
    round.seconds = committed->seconds;
    round.mean_loss_nats = committed->mean_loss_nats;
    past_.add(HubState::Past{.round = round.round,
                             .tokens = round.tokens,
                             .seconds = round.seconds,
                             .mean_loss_nats = round.mean_loss_nats});
    if (state_.rounds.size() > HubState::kMaxRounds) state_.rounds.erase(state_.rounds.begin());
  } else if (const auto* compared = std::get_if<StateHashesCompared>(&news)) {
    for (HubState::Round& round : state_.rounds) {
      if (round.round + 1 == compared->outer_step.value) round.outer_hashes_equal = compared->equal;
    }
  } else if (const auto* validated = std::get_if<IslandValidated>(&news)) {
    state_.last_validation = HubState::Validation{validated->outer_step.value, validated->loss_nats};
    if (!state_.first_validation) state_.first_validation = state_.last_validation;
    past_.add(*state_.last_validation);
  } else if (const auto* evaluated = std::get_if<StateEvaluated>(&news)) {
    curves_.learn(evaluated->found);
    state_.evaluations = curves_.shown();
  } else if (const auto* back = std::get_if<RolledBack>(&news)) {
    curves_.go_back_to(back->to);
    state_.evaluations = curves_.shown();
    std::erase_if(state_.rounds, [&](const HubState::Round& round) { return round.round >= back->to.value; });
    if (state_.last_validation && state_.last_validation->outer_step > back->to.value) state_.last_validation.reset();
    if (!state_.last_validation) state_.last_validation = state_.first_validation;
  } else if (const auto* joined = std::get_if<IslandJoined>(&news)) {
    gone_.erase(joined->island);
  } else if (const auto* gone = std::get_if<IslandGone>(&news)) {
    if (gone_.size() >= HubState::kMaxIslands / 2) gone_.erase(gone_.begin());
    HubState::Island& island = gone_[gone->island];
    island.id = gone->island.value;
    island.name = gone->display_name;
    island.state = HubIslandState::kGone;
  }
}

std::uint32_t HubView::accepted_of(const IslandId& island) const {
  const auto found = accepted_.find(island);
  return found == accepted_.end() ? 0 : found->second;
}

std::optional<HubState::Mixture> HubView::mixture_of(const RunMixture& mixture) const {
  std::optional<HubState::Mixture> view = state_.mixture;
  if (!view) return view;
  if (!mixture.eras.empty()) view->weights = describe_weights(sources_, mixture.eras.back().weights);
  if (mixture.decided) {
    view->next_round = mixture.decided->from_round;
    view->next_weights = describe_weights(sources_, mixture.decided->weights);
  }
  return view;
}

HubState HubView::build(const RoundCoordinator& coordinator, Clock::time_point now) const {
  HubState state = state_;
  state.past = past_.rounds();
  state.validations = past_.validations();
  state.phase = phase_of(coordinator.phase());
  state.outer_step = coordinator.committed().value;
  state.round_open = coordinator.round_open();
  state.finished = coordinator.phase() == RoundCoordinator::Phase::kFinished;
  if (const auto& stop = coordinator.standstill()) {
    state.standstill = HubState::Standstill{name_of(stop->kind), stop->text, std::nullopt, 0};
    state.standstill->seconds = Seconds(now - coordinator.standstill_since()).count();
    if (stop->back_to) state.standstill->back_to = stop->back_to->value;
  }
  state.waits_for = coordinator.waits_for();
  state.fetch_wait = coordinator.fetch_wait();
  if (const auto safe = coordinator.safekeeping().safe_step()) state.safe_outer_step = safe->value;
  state.disks_with_committed = coordinator.safekeeping().disks_with_committed();
  state.decay = coordinator.decay();
  state.mixture = mixture_of(coordinator.mixture());
  const auto uploaded = coordinator.safekeeping().uploaded();
  state.uploaded_outer_step = uploaded ? std::optional(uploaded->value) : std::nullopt;
  for (const auto& [id, island] : coordinator.islands()) {
    state.islands.push_back(view_of(island, now));
    state.islands.back().rounds_accepted = accepted_of(id);
    if (state.finished) state.islands.back().state = HubIslandState::kGone;
  }
  for (const auto& [id, island] : gone_) {
    if (!coordinator.islands().contains(id) && state.islands.size() < HubState::kMaxIslands) {
      state.islands.push_back(island);
      state.islands.back().rounds_accepted = accepted_of(id);
      if (coordinator.is_removed(id)) state.islands.back().state = HubIslandState::kRemoved;
    }
  }
  return state;
}

CheckAbout check_about(const RunConfig& run, const RoundCoordinator& coordinator, const HubState& state) {
  CheckAbout about{run, 0, 0, {}};
  about.time = unix_time_now();
  for (const auto& [id, island] : coordinator.islands()) {
    if (about.islands.size() == kMaxCheckIslands) break;
    about.islands.push_back({id, island.entry.display_name, island.entry.address, coordinator.dialable(id)});
  }
  double inner = 0, all = 0;
  for (const HubState::Island& island : state.islands) {
    inner += island.inner_seconds;
    all += island.inner_seconds + island.sync_seconds;
  }
  if (!state.rounds.empty() && all > 0) about.inner_seconds = state.rounds.back().seconds * inner / all;
  return about;
}

}  // namespace atl
