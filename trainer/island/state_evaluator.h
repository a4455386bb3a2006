// Tries the run's tasks on the island's outer parameters when the hub asks (HubRoundBegin::evaluate), with the scores
// of `atoll eval`, on a thread of its own and on the processor, at the lowest priority: training goes on meanwhile, and
// an evaluation may take many rounds. Its weights are a copy, 4 bytes a parameter (2 in bf16, where there is no room
// for more), as long as it lasts. What cannot be done is told in the log; the run goes on without it. Calls by the
// island's thread; owned by the island.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/tls/identity.h"
#include "trainer/island/evaluation_tasks.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

class StateEvaluator {
 public:
  struct Surroundings {
    const Identity& self;  // outlives it, as do the hub's addresses
    const std::vector<Address>& hub;
    std::filesystem::path data;        // of the run's dataset
    DownloadPace* download = nullptr;  // of the tasks; null: no limit
    std::shared_ptr<const OuterStateStore> outer;
    std::uint64_t training_bytes = 0;                   // of main memory, that training takes at most
    int threads = 1;                                    // to compute with
    std::chrono::milliseconds tasks_wait{20'000};       // that the first evaluation waits for the tasks
    std::function<void(const IslandEvaluation&)> told;  // a task each; on the evaluator's thread
  };

  // Begins to fetch the tasks. `abort` outlives it, and is raised before it ends.
  StateEvaluator(Surroundings around, RunConfig run, ModelConfig model, const AbortSignal& abort);

  // Of the parameters as they are now, which are copied when it returns. Asked while the one before goes on, it is left
  // out; so it is while the tasks do not come, for which it waits a while the first time. `to_the_end`: after the one
  // before, and it returns when all is told. `abort` ends each wait.
  void evaluate(bool to_the_end);

 private:
  enum class Stage {
    kFetches,  // the tasks
    kIdle,
    kAsked,
    kScores,  // has copied the parameters
    kEnded,   // does nothing any more: aborted, or the tasks cannot be had
  };
  struct Loaded {
    OuterStep outer_step;
    std::unique_ptr<InferenceEngine> engine;
  };
  void work();
  Status prepare();
  bool wait_for_request();
  Status evaluate_now();
  Result<Loaded> load() const;
  Status score(const Loaded& loaded);
  void become(Stage stage);
  // Until it is another one, or `until`, where there is such; false: it still is, or it is to end.
  bool wait_while(MutexLock& lock, Stage stage, std::optional<Deadline> until = {}) ATOLL_REQUIRES(mutex_);

  const Surroundings around_;
  const RunConfig run_;
  const ModelConfig model_;
  const AbortSignal& abort_;
  TokenTasks tasks_;             // the thread's
  bool waits_for_tasks_ = true;  // the island's thread
  Mutex mutex_;
  CondVar changed_;
  Stage stage_ ATOLL_GUARDED_BY(mutex_) = Stage::kFetches;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace atl
