// A whole run on this machine for tests: a hub in this process, on 127.0.0.1, with a dataset made of real-looking text,
// and identities enrolled the way people's are. Methods abort the test program with a message when the set-up itself
// fails.
#pragma once

#include <QtCore/QTemporaryDir>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/hub/hub.h"
#include "net/tls/identity.h"
#include "net/wire/invite.h"
#include "net/wire/run_config.h"
#include "tests/process/run_parts.h"

class QProcess;

namespace atl::test {

class LocalRun {
 public:
  // `run`: model_json and what the test cares for; the rest is filled in.
  // `initial_hash`: of outer step 0, for islands that do not begin with what the run's seed makes.
  explicit LocalRun(RunConfig run, const std::string& initial_hash = {});
  ~LocalRun();

  const RunConfig& config() const { return config_; }
  Address hub_address() const;
  HubState state() const { return hub_->state(); }
  // Polls the hub's state until it is so; false when the time is over.
  bool wait_until(const std::function<bool(const HubState&)>& condition, std::chrono::seconds limit) const;

  Invite invite(std::uint32_t uses = 1, std::chrono::seconds valid_for = std::chrono::hours(1)) const;
  Identity enrol(const std::string& name) const;
  void remove(const std::string& island) const;  // as `atoll hub remove`
  // An island's home as `atoll join` leaves it, with the run's data already there.
  IslandHome make_home(const std::string& name, std::uint16_t port = 0) const;
  // `atoll-trainer run` on a new home, listening at `port` (0: any); ends with its owner.
  std::unique_ptr<QProcess> start_island(const std::string& name, std::uint16_t port = 0) const;

  std::filesystem::path directory() const { return root_.path().toStdString(); }
  std::filesystem::path dataset() const { return directory() / "dataset"; }

 private:
  QTemporaryDir root_;
  RunConfig config_;
  std::unique_ptr<HubServer> hub_;
};

}  // namespace atl::test
