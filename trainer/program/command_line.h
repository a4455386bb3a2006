// The command line of `atoll-trainer`.
#pragma once

namespace atl {

// Parses, runs one subcommand and maps its error to an exit code, which it returns. Main thread, before others start.
int run_trainer_cli(int argc, char** argv);

}  // namespace atl
