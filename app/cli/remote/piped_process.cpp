#include "app/cli/remote/piped_process.h"

namespace atl {

Result<PipedProcess> PipedProcess::spawn(const PipedOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(Pipe input, make_pipe());
  ATOLL_ASSIGN_OR_RETURN(Pipe output, make_pipe());
  Pipe errors;
  if (options.own_errors) {
    ATOLL_ASSIGN_OR_RETURN(errors, make_pipe());
  }
  // Without a group of its own it stays in ours to ask for a password, but Ctrl-C is ours to pass on.
  ATOLL_ASSIGN_OR_RETURN(ChildProcess child,
                         ChildProcess::spawn({.program = options.program,
                                              .arguments = options.arguments,
                                              .environment = options.environment,
                                              .input = input.reading.get(),
                                              .output = output.writing.get(),
                                              .errors = options.own_errors ? errors.writing.get() : ChildOptions::kOurs,
                                              .group = options.own_group ? ChildGroup::kOwn : ChildGroup::kOurs,
                                              .end = ChildEnd::kWithOwner,
                                              .blocks_interrupt = !options.own_group}));
  PipedProcess process(std::move(child));
  process.input = std::move(input.writing);
  process.output = std::move(output.reading);
  process.errors = std::move(errors.reading);
  return process;
}

std::optional<int> PipedProcess::wait(Deadline deadline) {
  const auto exit = child_.wait(deadline);
  return exit.ok() ? std::optional(*exit) : std::nullopt;
}

}  // namespace atl
