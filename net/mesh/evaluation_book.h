// Which answers to the run's tasks count, and what is believed of them. Only an island that was asked is heard, of the
// state that it was asked about, once a task; where several answered, the one in the middle counts. What they say
// becomes points of a curve and decides nothing: a liar can write a wrong one where it was asked. Pure values; not
// thread-safe; owned by MeshTrust.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/wire/evaluation.h"
#include "net/wire/mesh.h"

namespace atl {

// Of the islands that have answered so far.
struct EvaluatedState {
  OuterStep outer_step;
  std::string task;
  TaskKind kind = TaskKind::kMultipleChoice;
  std::vector<double> figures;  // of metrics_of(kind), in their order
  std::uint32_t islands = 0;
};

class EvaluationBook {
 public:
  explicit EvaluationBook(RunEvaluation run) : run_(std::move(run)) {}

  bool is_due(OuterStep round) const { return run_.is_due(round.value); }
  bool asks() const { return run_.every > 0; }
  // Who was asked of it before may still answer.
  void ask(OuterStep outer_step, const std::set<IslandId>& islands);
  std::optional<EvaluatedState> report(const IslandId& island, const IslandEvaluation& said);
  // What was asked of later states is void.
  void go_back_to(OuterStep outer_step);

 private:
  using Answers = std::map<std::uint32_t, std::map<IslandId, std::vector<double>>>;  // by task
  struct Asked {
    std::set<IslandId> islands;
    Answers answers;
  };
  // An evaluation may take many rounds; the older ones are forgotten.
  static constexpr std::size_t kMostOpen = 32;

  const RunEvaluation run_;
  std::map<OuterStep, Asked> asked_;
};

}  // namespace atl
