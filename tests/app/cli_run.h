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

namespace atl::test {

struct CliOutcome {
  int exit_code = 0;
  std::string out, err;
};

class CliRun {
 public:
  CliRun() {
    qputenv("ATOLL_HOME", QByteArray::fromStdString(path("island").string()));
    qputenv("ATOLL_HUB_HOME", QByteArray::fromStdString(path("hub").string()));
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(path("cache").string()));
    qputenv("XDG_STATE_HOME", QByteArray::fromStdString(path("state").string()));
  }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }

  CliOutcome operator()(std::initializer_list<std::string> arguments) {
    std::ostringstream out, err;
    Console console{out, err};
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

  AbortSignal interrupt;

 private:
  QTemporaryDir directory_;
};

}  // namespace atl::test
