// The agent's line to its trainer: tells it once a second that the agent lives, and what it may send and receive now,
// hears its state in answer, and takes its events, each once and in order, also those from before the line was there.
// Connects again by itself. Owns its thread, on which the callbacks are made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>

#include <nlohmann/json_fwd.hpp>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/control/event_reader.h"
#include "net/control/transfer_caps.h"

namespace atl {

class ControlClient;

class TrainerLink {
 public:
  struct Callbacks {
    std::function<void(const IslandState& state)> answered;
    // Kept: it happened before there was a line to this trainer.
    std::function<void(HeardEvent event)> event;
  };

  TrainerLink(std::filesystem::path socket, Callbacks callbacks, const TransferCaps& caps = {});
  ~TrainerLink();

  // Any thread: what the trainer is told with each word that its agent lives.
  void set_caps(const TransferCaps& caps);

 private:
  void serve(const std::stop_token& stop);
  Result<std::unique_ptr<ControlClient>> connect();
  void hear(const nlohmann::json& event);
  void answer(const nlohmann::json& state);
  void tell_unread(const Error& why);

  TransferCaps caps() const;

  const std::filesystem::path socket_;
  mutable Mutex mutex_;
  TransferCaps caps_ ATOLL_GUARDED_BY(mutex_);
  const Callbacks callbacks_;
  // The thread's:
  std::int64_t pid_ = 0;         // of the trainer whose events were heard
  std::uint64_t heard_seq_ = 0;  // the last of them
  std::uint64_t kept_seq_ = 0;   // the last that it had kept when it was first met
  EventReader reader_;
  bool unread_told_ = false;  // that it cannot be understood
  std::jthread thread_;
};

// Of a trainer's state: changes with every part of a step, round and state.
std::uint64_t progress_of(const IslandState& state);
// One call on a connection of its own: "pause", "stop", ...
Status ask_trainer(const std::filesystem::path& socket, std::string_view method, Deadline deadline);

}  // namespace atl
