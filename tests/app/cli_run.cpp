#include "tests/app/cli_run.h"

#include <sys/stat.h>

namespace atl::test {

void CliRun::fake_trainer(const std::string& script) const {
  std::ofstream(path("trainer.sh")) << "#!/bin/sh\necho \"$@\" >> '" << path("calls").string() << "'\n"
                                    << script << "\n";
  ::chmod(path("trainer.sh").c_str(), 0755);
  qputenv("ATOLL_TRAINER", QByteArray::fromStdString(path("trainer.sh").string()));
}

std::unique_ptr<HubServer> CliRun::start_hub(const std::string& name, const std::vector<std::string>& options) {
  const std::string home = path("hub-" + name).string();
  if (!std::filesystem::exists(path("data"))) {
    (*this)({"data", "prepare", write_text().string(), "--output", path("data").string()});
  }
  std::vector<std::string> arguments{"hub", "init", "--home", home, "--data", path("data").string(), "--name", name};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const CliOutcome init = (*this)(arguments);
  if (init.exit_code != 0) qFatal("%s", init.err.c_str());
  auto server = HubServer::start({.directory = home, .listen = {"127.0.0.1", 0}, .advertised = {}}, {});
  if (!server.ok()) qFatal("%s", server.error().message.c_str());
  invite = (*this)({"hub", "invite", "--home", home}).out;
  return std::move(*server);
}

}  // namespace atl::test
