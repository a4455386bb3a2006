// The agent's line to its trainer: tells it once a second that the agent lives, hears its state in answer, and takes
// its events. Connects again by itself. Owns its thread, on which the callbacks are made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>

#include <nlohmann/json.hpp>

#include "net/base/deadline.h"
#include "net/base/result.h"

namespace atl {

class TrainerLink {
 public:
  struct Callbacks {
    std::function<void(const nlohmann::json& state)> answered;
    std::function<void(const nlohmann::json& event)> event;  // {"event", "seq", "time", "data"}
  };

  TrainerLink(std::filesystem::path socket, Callbacks callbacks);
  ~TrainerLink();

 private:
  void serve(const std::stop_token& stop);

  const std::filesystem::path socket_;
  const Callbacks callbacks_;
  std::jthread thread_;
};

// Of a trainer's state: changes with every step, round and state.
std::uint64_t progress_of(const nlohmann::json& state);
// One call on a connection of its own: "pause", "stop", ...
Status ask_trainer(const std::filesystem::path& socket, std::string_view method, Deadline deadline);

}  // namespace atl
