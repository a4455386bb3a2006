#include "trainer/engine/program_runner.h"

namespace atl {

void ProgramRunner::run(const Program& program) {
  if (last_ != &program) join();
  if (program.events() > events_) {
    device_.synchronize();
    device_.make_events(program.events());
    events_ = program.events();
  }
  last_ = &program;
  for (const ProgramStep& step : program.steps()) {
    for (const StepWait& wait : step.waits) device_.wait(step.stream, wait.event);
    device_.run(step.stream, step.operation);
    if (step.event >= 0) device_.record(step.stream, step.event);
  }
}

void ProgramRunner::join() {
  if (last_ == nullptr) return;
  device_.join();
  last_ = nullptr;
}

}  // namespace atl
