// A machine of one person: a home directory, `atoll` of this build run in it by the usual commands alone, and a hub
// that `atoll hub serve` serves. One thread. Methods abort the test program when what the test stands on fails.
#pragma once

#include <QtCore/QTemporaryDir>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/program.h"

namespace atl::test {

class Scene {
 public:
  Scene();
  ~Scene();

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  std::unique_ptr<QProcess> start(const std::vector<std::string>& arguments,
                                  const std::function<void()>& in_child = {}) const {
    return start_atoll(arguments, environment, in_child);
  }
  ProgramOutcome run(const std::vector<std::string>& arguments, const std::function<void()>& in_child = {}) const {
    return outcome_of(*start(arguments, in_child));
  }
  // An executable file with this shell script.
  std::string write_script(const std::string& name, const std::string& script) const;
  // Text, dataset and hub with the preset demo, for one island; what else `hub init` takes.
  void make_hub(const std::string& home = "hub", const std::vector<std::string>& options = {}) const;
  // Serves it at 127.0.0.1, at the port where it served before if it did.
  void serve_hub(const std::string& home = "hub");
  int end_hub();    // by Ctrl-C; its exit code
  void kill_hub();  // kill -9
  qint64 hub_pid() const { return hub_->processId(); }
  std::string invite(const std::vector<std::string>& options = {}, const std::string& home = "hub") const;
  // The home of an island that has joined the hub, by a trainer that ends at once.
  std::string joined_home(const std::string& name = "island");

  QProcessEnvironment environment;  // of every program that is started

 private:
  QTemporaryDir directory_;
  std::unique_ptr<QProcess> hub_;
  std::string hub_port_ = "0";
};

}  // namespace atl::test
