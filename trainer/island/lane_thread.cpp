#include "trainer/island/lane_thread.h"

#include <fmt/format.h>

namespace atl {
namespace {

// As many as the mesh holds for an island; a sane hub has a handful under way.
constexpr std::size_t kMostCommands = 1024;
constexpr std::chrono::seconds kTurn{10};  // a thread looks as often whether it should end, though it is woken for that

}  // namespace

LaneThread::LaneThread(FragmentId fragment, Fragment part, const RunConfig& run, OuterStateStore& outer,
                       IslandStatus& status, LaneNetwork& network, SyncLane::Tell tell)
    : tell_(std::move(tell)),
      lane_(fragment, std::move(part), run, outer, gate_, status, network, tell_),
      commands_(kMostCommands),
      thread_([this] { this->run(); }) {}

void LaneThread::post(LaneCommand command) {
  if (commands_.push(std::move(command)) || commands_.closed()) return;
  tell_(LaneFailed{{ErrorCode::kProtocol, "the hub says more than this island can take in; start it again"}});
}

void LaneThread::welcome() {
  gate_.welcome();
  post(LanePassWelcome{});
}

void LaneThread::take(const HubAttempt& message) {
  gate_.abort_through(message.round, Attempt{message.attempt.value - 1}, "a newer attempt began");
  post(message);
}

void LaneThread::take(const HubAbort& message) {
  gate_.abort_through(message.round, message.attempt, message.reason);
  post(message);
}

void LaneThread::stop(const std::string& reason) {
  gate_.close(reason);
  commands_.close();
  if (thread_.joinable()) thread_.join();
}

void LaneThread::run() {
  try {
    for (;;) {
      if (auto command = commands_.pop(Deadline::after(kTurn))) {
        lane_.handle(std::move(*command));
      } else if (commands_.closed()) {
        while (auto last = commands_.try_pop()) lane_.handle(std::move(*last));
        return;
      }
    }
  } catch (const std::exception& error) {
    tell_(LaneFailed{{ErrorCode::kInternal, fmt::format("the synchronisation ended: {}", error.what())}});
  }
}

}  // namespace atl
