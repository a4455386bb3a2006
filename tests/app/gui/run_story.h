// A run as it might really be, told by an agent in memory: for pictures, and for tests that look at whole pages. Eight
// islands, the 43rd round, two hours without the hub in the middle. Its figures agree with one another: tokens, times,
// bytes and FLOPs follow from the model, the steps and the rounds. Owned by a test; its thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/app/core/fake_agent.h"

namespace atl::test {

class RunStory {
 public:
  // `gpus`: of this island; 0 to 8.
  explicit RunStory(FakeAgent& agent, int gpus = 8);

  FakeAgent& agent() { return agent_; }
  void begin_sync(int islands = 0);     // the ring of an attempt; 0: of those that live
  void progress_sync(double fraction);  // 0 to 1 of the whole all-reduce
  void tell_gpus();                     // one sample of each
  void be_a_newcomer(int first_round);  // who trained from then on alone; of the rounds before its hub told
  void be_empty();                      // joined a moment ago: nothing was measured yet

  // What metrics.query tells of one metric.
  struct Points {
    std::vector<double> time, step, tokens, value;
  };
  const Points& points(const std::string& name);

 private:
  void answer_lists();
  nlohmann::json metrics(const nlohmann::json& params);
  nlohmann::json gpu_json(int index) const;
  Points make(const std::string& name) const;
  Points make_past(bool validations) const;

  FakeAgent& agent_;
  const int gpus_;
  unsigned ring_islands_ = 0;
  bool empty_ = false;
  int first_round_ = 0;
  std::map<std::string, Points> points_;
};

}  // namespace atl::test
