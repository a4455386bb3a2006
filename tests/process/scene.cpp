#include "tests/process/scene.h"

#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"

namespace atl::test {
namespace {

void require_success(const ProgramOutcome& outcome) {
  if (outcome.exit_code != 0) qFatal("exit code %d: %s", outcome.exit_code, outcome.err.c_str());
}

}  // namespace

Scene::Scene() : environment(QProcessEnvironment::systemEnvironment()) {
  for (const QString& name : environment.keys()) {
    if (name.startsWith("ATOLL_") || name.startsWith("XDG_")) environment.remove(name);
  }
  environment.insert("HOME", QString::fromStdString(path("home").string()));
  std::filesystem::create_directory(path("home"));
}

Scene::~Scene() {
  if (hub_) end_hub();
}

std::string Scene::write_script(const std::string& name, const std::string& script) const {
  std::ofstream(path(name)) << "#!/bin/sh\n" << script << "\n";
  ::chmod(path(name).c_str(), 0755);
  return path(name).string();
}

void Scene::make_hub(const std::string& home, const std::vector<std::string>& options) const {
  if (!std::filesystem::exists(path("data"))) make_dataset(path("text.txt"), path("data"));
  std::vector<std::string> arguments{
      "hub",      "init",      "--home", path(home).string(), "--data", path("data").string(), "--name",
      "test run", "--islands", "1"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  require_success(run(arguments));
}

void Scene::serve_hub(const std::string& home) {
  hub_ = start({"hub", "serve", "--home", path(home).string(), "--listen", "127.0.0.1:" + hub_port_});
  std::string said;
  const std::string words = "serves on port ";
  const bool serves = wait_for([&] {
    hub_->waitForReadyRead(100);
    said += hub_->readAllStandardOutput().toStdString();
    return said.find("\nCtrl-C") != std::string::npos || hub_->state() == QProcess::NotRunning;
  });
  const auto found = said.find(words);
  if (!serves || found == std::string::npos)
    qFatal("the hub does not serve: %s", hub_->readAllStandardError().constData());
  const auto begin = found + words.size();
  hub_port_ = said.substr(begin, said.find(';', begin) - begin);
}

int Scene::end_hub() {
  ::kill(static_cast<pid_t>(hub_->processId()), SIGINT);
  const int exit_code = outcome_of(*hub_).exit_code;
  hub_.reset();
  return exit_code;
}

void Scene::kill_hub() {
  hub_->kill();
  hub_->waitForFinished();
  hub_.reset();
}

std::string Scene::invite(const std::vector<std::string>& options, const std::string& home) const {
  std::vector<std::string> arguments{"hub", "invite", "--home", path(home).string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const ProgramOutcome outcome = run(arguments);
  require_success(outcome);
  return outcome.out.substr(0, outcome.out.find('\n'));
}

std::string Scene::joined_home(const std::string& name) {
  if (!hub_) {
    make_hub();
    serve_hub();
  }
  QProcessEnvironment with_trainer = environment;
  with_trainer.insert("ATOLL_TRAINER", QString::fromStdString(write_script("ends-at-once", "exit 0")));
  std::string home = path(name).string();
  require_success(
      outcome_of(*start_atoll({"join", invite(), "--home", home, "--listen", "127.0.0.1:0"}, with_trainer)));
  return home;
}

}  // namespace atl::test
