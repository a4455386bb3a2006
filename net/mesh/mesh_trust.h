// What of the islands' words is believed: which outer state the last commit made (HashAgreement), whose norm is within
// bounds (NormWatch), whether averages are what their members say that they gave, and whose work goes against the
// others' (WorkWatch), which validation losses count, and whether they say that the state is spoiled (ValidationWatch);
// which answers to the run's tasks count (EvaluationBook).
// One thread; owned by the RoundCoordinator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/mesh/coordinator_turn.h"
#include "net/mesh/evaluation_book.h"
#include "net/mesh/hash_agreement.h"
#include "net/mesh/norm_watch.h"
#include "net/mesh/validation_watch.h"
#include "net/mesh/work_watch.h"

namespace atl {

class MeshTrust {
 public:
  MeshTrust(CoordinatorTurn& turn, const CoordinatorMemory& memory);

  // ---- the committed outer state
  HashAgreement& agreement() { return agreement_; }
  const HashAgreement& agreement() const { return agreement_; }
  // The hash of the committed state, when it is known which that is.
  const std::optional<std::string>& agreed() const { return agreement_.agreed(); }
  void begin_state(const Voters& voters);
  // Persists and tells what was agreed on of `committed`, and whether all said the same.
  void compare_hashes(OuterStep committed);
  // Of late; empty: not known.
  std::optional<std::string> state_hash(OuterStep step) const;
  void forget_states_from(OuterStep step);
  // A rollback to a state whose hash is known. One that was found spoiled is good enough for its operator.
  void go_back_to(OuterStep step, const std::string& state_hash);

  // ---- the work
  // Of a fragment: those of an embedding say nothing of a block's.
  NormWatch& norms(FragmentId fragment) { return norms_.at(fragment.value); }
  WorkWatch& work() { return work_; }
  const WorkWatch& work() const { return work_; }
  void forget_work(const IslandId& island);

  // ---- validations
  ValidationWatch& validation() { return validation_; }
  const ValidationWatch& validation() const { return validation_; }
  // One in turn, every so many rounds; all of them the first time, and when what one found is in doubt. What they are
  // asked about is the outer state `committed`, which they hold when `round` begins.
  std::set<IslandId> ask_for_validation(OuterStep round, OuterStep committed, const std::vector<IslandId>& trainers);
  // Tells and persists what an answer made of it. The state's loss, when one is known or in doubt.
  std::optional<ValidatedState> learn(const IslandId& by, ValidationWatch::Outcome outcome);
  const std::optional<ValidatedState>& spoiled() const { return spoiled_; }
  void forget_spoiled() { spoiled_.reset(); }

  // ---- the run's tasks
  EvaluationBook& evaluation() { return evaluation_; }
  // Those that validate the state, or one in turn.
  std::set<IslandId> ask_for_evaluation(OuterStep round, OuterStep committed, const std::vector<IslandId>& trainers,
                                        const std::set<IslandId>& validators);
  // Tells what is known now, where that counts.
  void learn(const IslandId& by, const IslandEvaluation& said);

 private:
  CoordinatorTurn& turn_;
  HashAgreement agreement_;
  bool hash_persisted_ = false;
  bool compared_ = false;  // its result was published
  std::map<OuterStep, std::string> state_hashes_;
  std::vector<NormWatch> norms_;  // by fragment
  WorkWatch work_;
  ValidationWatch validation_;
  EvaluationBook evaluation_;
  std::optional<ValidatedState> spoiled_;
};

// A mean loss over tokens, and not what would make of others' losses no mean.
bool is_loss(double nats);

}  // namespace atl
