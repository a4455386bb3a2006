// Runs `atoll`'s subcommands inside a test: the same code as the program's, with its own output and a home in a
// temporary directory.
#pragma once

#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "net/hub/hub.h"

namespace atl::test {

struct CliOutcome {
  int exit_code = 0;
  std::string out, err;
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class CliRun {
 public:
  CliRun() {
    qputenv("ATOLL_HOME", QByteArray::fromStdString(path("island").string()));
    qputenv("ATOLL_HUB_HOME", QByteArray::fromStdString(path("hub").string()));
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(path("cache").string()));
    qputenv("ATOLL_GPU_PROBE", ATOLL_BIN_DIR "/atoll-gpu-probe");
    qputenv("XDG_STATE_HOME", QByteArray::fromStdString(path("state").string()));
  }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }

  CliOutcome operator()(const std::vector<std::string>& arguments) {
    std::ostringstream out, err;
    Console console{out, err};
    console.out_is_terminal = terminal;
    console.err_is_terminal = errors_on_terminal;
    CliOutcome outcome;
    outcome.exit_code = run_cli(arguments, console, interrupt);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }

  // Text enough for a dataset.
  std::filesystem::path write_text(const std::string& name = "book.txt") const {
    std::ofstream file(path(name));
    for (int i = 0; i < 5000; ++i) file << "This is line " << i << " of a book about islands.\n";
    return path(name);
  }

  // A hub that serves in this process, with its invite in `invite`.
  std::unique_ptr<HubServer> start_hub(const std::string& name = "first", const std::vector<std::string>& options = {});
  // From now on the trainer is this script; what it is called with is appended to path("calls").
  void fake_trainer(const std::string& script) const;

  AbortSignal interrupt;
  std::string invite;     // of the hub that was started last
  bool terminal = false;  // somebody reads along
  bool errors_on_terminal = false;

 private:
  QTemporaryDir directory_;
};

}  // namespace atl::test
