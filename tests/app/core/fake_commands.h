// Commands that do nothing but end as a test says. Owned by a test; its thread, by the event loop.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "app/core/command_run.h"

namespace atl::test {

class FakeCommands {
 public:
  struct Outcome {
    int exit_code = 0;
    QByteArray out = {}, err = {};
    bool hangs = false;  // until it is interrupted, which is 130
  };

  FakeCommands();
  RunCommand run() const;
  // Of commands that begin so; the longest beginning counts. Others end with 1.
  void answer(const QStringList& beginning, const Outcome& outcome);
  const std::vector<CommandRequest>& asked() const;

  struct Core;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace atl::test
