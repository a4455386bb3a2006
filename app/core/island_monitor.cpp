#include "app/core/island_monitor.h"

#include <condition_variable>
#include <mutex>

#include <nlohmann/json.hpp>

#include "net/control/control_client.h"

namespace atl {

IslandMonitor::IslandMonitor(IslandHome home, MonitorTiming timing) : home_(std::move(home)), timing_(timing) {}

void IslandMonitor::start() {
  thread_ = std::jthread([this](std::stop_token stop) { watch(std::move(stop)); });
}

IslandMonitor::~IslandMonitor() {
  // Before ~QObject, which must not race with a signal.
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void IslandMonitor::watch(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  IslandReport report;
  while (!stop.stop_requested()) {
    look(report);
    if (stop.stop_requested()) return;
    Q_EMIT reported(report);
    stopped.wait_for(lock, stop, timing_.interval, [] { return false; });
  }
}

void IslandMonitor::look(IslandReport& report) {
  report.problem.clear();
  const Status status = ask(report);
  if (status.ok()) {
    report.link = IslandLink::kConnected;
    return;
  }
  // A late answer is skipped by the next call, so a connection survives a timeout.
  if (status.error().code != ErrorCode::kTimeout) client_.reset();
  switch (status.error().code) {
    case ErrorCode::kNotJoined:
      report = IslandReport{};
      report.link = IslandLink::kNotJoined;
      break;
    case ErrorCode::kNotRunning:
    case ErrorCode::kPeerLost: report.link = IslandLink::kNotRunning; break;
    case ErrorCode::kTimeout: report.link = IslandLink::kSilent; break;
    default: report.link = IslandLink::kFailed; report.problem = status.error().message;
  }
}

Status IslandMonitor::ask(IslandReport& report) {
  if (!client_) {
    ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(home_.join_file()));
    if (report.state && report.state->run_id != join.run_id) report.state.reset();
    report.run_name = join.run_name;
    ATOLL_ASSIGN_OR_RETURN(client_,
                           ControlClient::connect(home_.control_socket(), Deadline::after(timing_.answer_time)));
  }
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json,
                         client_->call("state.get", nlohmann::json::object(), Deadline::after(timing_.answer_time)));
  ATOLL_ASSIGN_OR_RETURN(report.state, IslandState::from_json(json));
  report.state_time = Clock::now();
  if (!report.state->run_name.empty()) report.run_name = report.state->run_name;
  return ok_status();
}

}  // namespace atl
