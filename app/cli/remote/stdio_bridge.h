// The other side of `--host`: JSON-RPC on standard input and output. Runs commands, and passes everything else on to
// the agent of this machine. Who speaks here has logged in by ssh as the user that it runs as.
//
//   hello {}                                    -> {version, program}
//   command.run {arguments, input, terminal, columns, color, unicode} -> {exit_code}; meanwhile events
//       command.output {stream: "out" or "err", bytes: base64url}; one command at a time
//   command.interrupt {}                        -> {}; the command gets SIGINT
//   any other method                            the agent's answer, and its events; agent.gone when it has ended
//
// One thread, which blocks on all of it.
#pragma once

#include <filesystem>
#include <memory>

#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

struct StdioBridgeOptions {
  int input = 0, output = 1;      // descriptors
  std::filesystem::path program;  // atoll itself
  std::filesystem::path agent_socket;
};

// Until the end of input; a command that still runs is interrupted then.
Status serve_stdio(const StdioBridgeOptions& options, const AbortSignal& interrupt);

}  // namespace atl
