// The inner steps of an island that its engine has begun and not finished: as many as keep its device busy while the
// host fetches the next batch and tells what came of a step. Owned by the inner loop, on the island's thread.
#pragma once

#include <cstdint>
#include <deque>

#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/control/island_state.h"
#include "trainer/engine/engine.h"

namespace atl {

// An inner step that was taken.
struct TakenStep {
  StepReport report;
  float learning_rate = 0;
  double seconds = 0;       // from its beginning, or since the one before it was finished
  double data_seconds = 0;  // of those, waiting for its batch with nothing to compute
};

// Where its time went. A device may measure now and then: without parts the ones told before stay.
void show_step_times(IslandState& state, const TakenStep& step);

class InnerSteps {
 public:
  // The engine outlives this.
  explicit InnerSteps(Engine& engine) : engine_(engine) {}

  std::uint32_t under_way() const { return static_cast<std::uint32_t>(begun_.size()); }
  // More than the device needs to be busy.
  bool enough() const { return engine_.steps_under_way() > engine_.steps_ahead(); }

  // `since`: when its batch was asked for; it came after data_seconds.
  Status begin(const TokenBatch& batch, float learning_rate, Clock::time_point since, double data_seconds);
  // The oldest; waits for it.
  Result<TakenStep> finish();
  // What came of those under way is not asked; they are waited for. What failed for good the engine says when it is
  // called next.
  void forget();

 private:
  struct Begun {
    float learning_rate = 0;
    double data_seconds = 0;
    Clock::time_point since;
    bool alone = true;  // there was nothing to compute while its batch came
  };

  Engine& engine_;
  std::deque<Begun> begun_;  // the oldest first
  Clock::time_point finished_;
};

}  // namespace atl
