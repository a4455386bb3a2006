// What the desktop app is shown: a run with a hub that is a process of its own, so that it can be killed, two islands
// that train, and a machine that has joined nothing yet. One thread. Methods abort the test program when the set-up
// itself fails.
#pragma once

#include <QtCore/QProcess>
#include <QtCore/QTemporaryDir>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/wire/run_config.h"

namespace atl::test {

class TourRun {
 public:
  TourRun();
  ~TourRun();

  // A home without anything in it, of the machine that the app is on. Whatever was started there is ended with this,
  // also when the test program dies.
  std::filesystem::path home() const { return path("home"); }
  pid_t agent() const;    // the process, however it was started; 0: none
  pid_t trainer() const;  // its

  void serve_hub();
  bool hub_serves();
  void kill_hub();
  // Starts an agent on the home, as a service's supervisor does.
  void start_agent();

  std::string good_invite(std::uint32_t uses = 1) const { return invite(path("hub"), hub_address(), uses); }
  std::string expired_invite() const;  // waits until it is
  std::string used_invite() const;
  std::string invite_with_another_pin() const;
  std::string invite_of_another_run() const { return invite(path("other hub"), hub_address()); }
  std::string invite_to_a_hub_that_is_down() const;

 private:
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  RunConfig make_hub(const char* name) const;
  Address hub_address() const { return {"127.0.0.1", hub_port_}; }
  static std::string invite(const std::filesystem::path& hub, const Address& address, std::uint32_t uses = 1,
                            std::chrono::seconds valid_for = std::chrono::hours(1));
  void start_islands(const RunConfig& run);

  QTemporaryDir directory_;
  QProcess reaper_;
  std::unique_ptr<QProcess> hub_;
  QByteArray hub_said_;
  std::uint16_t hub_port_ = 0;
  std::unique_ptr<QProcess> agent_;
  std::vector<std::unique_ptr<QProcess>> islands_;
};

}  // namespace atl::test
