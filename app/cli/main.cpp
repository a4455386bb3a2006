// atoll: the command line. Parse, construct, run, map the error to an exit code.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "net/base/log.h"
#include "net/base/open_files.h"
#include "net/base/signal_watch.h"
#include "net/base/standard_output.h"
#include "net/wire/invite.h"

namespace {

// An invite is a secret, and what stands in argv every process of the machine can read: for as long as it takes to come
// here it could, which `atoll join --help` says.
void scrub_invites(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (atl::may_be_invite(argv[i])) std::memset(argv[i], '*', std::strlen(argv[i]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  atl::fill_standard_files();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  scrub_invites(argc, argv);
  atl::AbortSignal interrupt, hurry;
  atl::StandardOutput output([&interrupt] { interrupt.raise("standard output takes no more"); });
  ::signal(SIGPIPE, SIG_IGN);
  atl::raise_open_file_limit();
  atl::set_up_log();

  int signals = 0;
  // Before any other thread starts. Who asks a third time does not want to wait.
  const atl::SignalWatch watch([&](int signal) {
    if (++signals >= 3) ::_exit(128 + signal);
    if (signals == 2) hurry.raise("asked twice");
    interrupt.raise(signal == SIGINT ? "interrupted" : "asked to end");
  });
  atl::Console console = atl::process_console(output);
  const int code = atl::run_cli(arguments, console, interrupt, &hurry);
  atl::end_log();
  return output.finish(code, "atoll");
}
