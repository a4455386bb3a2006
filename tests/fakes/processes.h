// The processes that run, as /proc shows them. Any thread.
#pragma once

#include <sys/types.h>

#include <QtCore/QFile>
#include <filesystem>
#include <string>
#include <vector>

namespace atl::test {

// "cmdline", "environ", ...; empty when the process ended meanwhile (a stream would throw).
inline std::string read_of_process(const std::filesystem::path& file) {
  QFile opened(QString::fromStdString(file.string()));
  return opened.open(QIODevice::ReadOnly) ? opened.readAll().toStdString() : std::string();
}

// Processes whose command line names this directory; zombies, which have none, do not count.
inline std::vector<pid_t> processes_of(const std::filesystem::path& directory) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string line = read_of_process(entry.path() / "cmdline");
    if (line.find(directory.string()) != std::string::npos) found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

}  // namespace atl::test
