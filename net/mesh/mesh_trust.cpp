#include "net/mesh/mesh_trust.h"

#include <cmath>

namespace atl {
namespace {

constexpr double kMostLoss = 1e6;  // nats a token; of a guess among all tokens it is the logarithm of their number

}  // namespace

bool is_loss(double nats) { return std::isfinite(nats) && nats >= 0 && nats <= kMostLoss; }

MeshTrust::MeshTrust(CoordinatorTurn& turn, const CoordinatorMemory& memory)
    : turn_(turn),
      state_hashes_(memory.state_hashes),
      norms_(turn.run().fragments, NormWatch(turn.run().norm_bound)),
      validation_(turn.run().validation_rise, memory.validations),
      evaluation_(turn.run().evaluation),
      spoiled_(memory.spoiled) {
  agreement_.begin(memory.last_commit ? voters_of(*memory.last_commit) : Voters{}, memory.agreed_hash);
  for (const IslandId& id : memory.removed) agreement_.unseat(id);
  hash_persisted_ = agreement_.agreed().has_value();
}

void MeshTrust::forget_work(const IslandId& island) {
  for (NormWatch& norms : norms_) norms.forget(island);
  work_.forget(island);
}

// ---- the committed outer state

void MeshTrust::begin_state(const Voters& voters) {
  agreement_.begin(voters);
  hash_persisted_ = false;
  compared_ = false;
}

void MeshTrust::compare_hashes(OuterStep committed) {
  const auto& agreed = agreement_.agreed();
  if (!agreed) return;
  if (!hash_persisted_) {
    turn_.act(PersistStateHash{committed, *agreed, std::nullopt});
    hash_persisted_ = true;
  }
  state_hashes_[committed] = *agreed;
  if (compared_ || committed.value == 0 || !agreement_.complete()) return;
  compared_ = true;
  turn_.act(PersistStateHash{committed, *agreed, agreement_.unanimous()});
  turn_.publish(StateHashesCompared{committed, agreement_.unanimous()});
}

std::optional<std::string> MeshTrust::state_hash(OuterStep step) const {
  const auto known = state_hashes_.find(step);
  return known == state_hashes_.end() ? std::nullopt : std::optional(known->second);
}

void MeshTrust::forget_states_from(OuterStep step) {
  std::erase_if(state_hashes_, [&](const auto& entry) { return entry.first >= step; });
}

void MeshTrust::go_back_to(OuterStep step, const std::string& state_hash) {
  forget_states_from(OuterStep{step.value + 1});
  const bool is_spoiled = spoiled_ && spoiled_->outer_step <= step;  // its operator finds it good enough
  agreement_.begin({}, state_hash);
  hash_persisted_ = true;  // it is how the owner knows it
  compared_ = true;
  spoiled_.reset();
  validation_.go_back_to(step, /*as_it_is=*/is_spoiled);
  evaluation_.go_back_to(step);
}

// ---- validations

std::set<IslandId> MeshTrust::ask_for_validation(OuterStep round, OuterStep committed,
                                                 const std::vector<IslandId>& trainers) {
  const std::uint32_t every = turn_.run().validate_every;
  const bool is_due = every > 0 && round.value % every == 0;
  const bool asks_all = validation_.wants_all() || validation_.knows_none();
  std::set<IslandId> validators;
  if (validation_.wants_all() || (is_due && validation_.knows_none())) {
    validators.insert(trainers.begin(), trainers.end());
  } else if (is_due) {
    validators.insert(trainers[round.value / every % trainers.size()]);
  }
  if (!validators.empty()) validation_.ask(committed, validators, asks_all);
  return validators;
}

std::optional<ValidatedState> MeshTrust::learn(const IslandId& by, ValidationWatch::Outcome outcome) {
  using Outcome = ValidationWatch::Outcome;
  if (outcome == Outcome::kIgnored || outcome == Outcome::kWaits) return std::nullopt;
  const ValidatedState found = validation_.result();
  if (outcome == Outcome::kDoubted) {
    turn_.publish(ValidationDoubted{by, found.outer_step, found.loss_nats});
  } else {
    turn_.publish(IslandValidated{by, found.outer_step, found.loss_nats});
  }
  if (outcome == Outcome::kSpoiled) {
    spoiled_ = found;
    turn_.act(PersistSpoiled{found});
  }
  return found;
}

// ---- the run's tasks

std::set<IslandId> MeshTrust::ask_for_evaluation(OuterStep round, OuterStep committed,
                                                 const std::vector<IslandId>& trainers,
                                                 const std::set<IslandId>& validators) {
  if (!evaluation_.is_due(round)) return {};
  std::set<IslandId> asked = validators;
  if (asked.empty()) asked.insert(trainers[round.value / turn_.run().evaluation.every % trainers.size()]);
  evaluation_.ask(committed, asked);
  return asked;
}

void MeshTrust::learn(const IslandId& by, const IslandEvaluation& said) {
  if (auto found = evaluation_.report(by, said)) turn_.publish(StateEvaluated{by, std::move(*found)});
}

}  // namespace atl
