// A home with join.json, and a real control server on its socket that answers state.get as the test says. Owned by a
// test; its thread.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>

#include <nlohmann/json.hpp>

#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/island_state.h"

namespace atl {

inline JoinFile test_join_file() {
  JoinFile join;
  join.run_id = "run-1";
  join.run_name = "gcide-demo";
  join.hub_addresses = {{"127.0.0.1", 47000}};
  join.display_name = "laptop";
  return join;
}

inline IslandState training_state() {
  IslandState state;
  state.state = "training";
  state.island = "isl-2mf4k7q3x";
  state.name = "laptop";
  state.run_id = "run-1";
  state.run_name = "gcide-demo";
  state.pid = 4711;
  state.parameters = 1'234'567;
  state.round = 42;
  state.inner_step = 371;
  state.inner_steps = 500;
  state.loss_nats = 2.9141;
  state.validation_loss_nats = 3.0217;
  state.tokens_per_second = 31'815;
  state.next_sync_seconds = 250;
  state.islands_live = 7;
  state.islands_total = 8;
  state.last_sync_seconds = 38;
  state.accepted_round = 41;
  state.tokens = 98'765'432;
  state.bytes_sent = 1'900'000'000;
  state.inner_seconds = 920;
  state.sync_seconds = 80;
  state.outer_step = 41;
  state.state_hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
  return state;
}

class FakeTrainer : public ControlService {
 public:
  explicit FakeTrainer(const IslandHome& home) {
    auto server = ControlServer::start(home.control_socket(), "test", *this);
    if (server.ok()) server_ = std::move(*server);
  }
  ~FakeTrainer() override {
    answer_again();
    server_.reset();
  }

  bool started() const { return server_ != nullptr; }
  void say(const IslandState& state) {
    std::lock_guard lock(mutex_);
    state_ = state;
  }
  void fall_silent() {
    std::lock_guard lock(mutex_);
    silent_ = true;
  }
  void answer_again() {
    {
      std::lock_guard lock(mutex_);
      silent_ = false;
    }
    answering_.notify_all();
  }

  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method != "state.get") return Error{ErrorCode::kNotFound, "no such method"};
    std::unique_lock lock(mutex_);
    answering_.wait_for(lock, std::chrono::seconds(30), [this] { return !silent_; });
    return state_.to_json();
  }

 private:
  std::mutex mutex_;
  std::condition_variable answering_;
  IslandState state_ = training_state();  // guarded by mutex_
  bool silent_ = false;                   // guarded by mutex_
  std::unique_ptr<ControlServer> server_;
};

}  // namespace atl
