#include "app/cli/join_progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/cli/text.h"
#include "net/control/island_state.h"
#include "net/control/trainer_exit.h"
#include "net/mesh/mesh_client.h"

namespace atl {
namespace {

constexpr std::string_view kTrainerPrefix = "atoll-trainer: ";
constexpr std::string_view kRetry = "mesh retry error=";
constexpr std::chrono::seconds kConnectEvery{1};
constexpr std::chrono::seconds kAnswerTime{1};
// Tries are a few seconds apart: after a longer silence the hub was there meanwhile.
constexpr std::chrono::seconds kNewOutage{30};

}  // namespace

void JoinProgress::take_output(std::string_view bytes) {
  unfinished_line_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end; (end = unfinished_line_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    take_line(std::string_view(unfinished_line_).substr(begin, end - begin));
  }
  unfinished_line_.erase(0, begin);
}

void JoinProgress::take_line(std::string_view line) {
  if (line.starts_with(kTrainerPrefix) || line.starts_with(kTrainerExitWords)) {
    return;  // said once, as the command's own error
  }
  if (line.find(kRetry) != std::string_view::npos) {
    take_retry(line);
  } else {
    console_.out << line << std::endl;
  }
}

void JoinProgress::take_retry(std::string_view line) {
  const auto now = Clock::now();
  const bool known = last_retry_ && now - *last_retry_ < kNewOutage;
  last_retry_ = now;
  if (known) return;
  line.remove_prefix(line.find(kRetry) + kRetry.size());
  if (line.size() >= 2 && line.front() == '"') line = line.substr(1, line.size() - 2);
  const auto until =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + MeshClientOptions{}.reconnect_for);
  console_.out << fmt::format("the hub does not answer ({}); trying again until {:%H:%M}", line, fmt::localtime(until))
               << std::endl;
}

void JoinProgress::look_at_rounds() {
  const auto now = Clock::now();
  if (!client_) {
    if (now < next_connect_) return;
    next_connect_ = now + kConnectEvery;
    auto client = ControlClient::connect(home_.control_socket(), Deadline::after(kAnswerTime));
    if (!client.ok()) return;  // it is not so far yet
    if (!(*client)->call("events.subscribe", nlohmann::json::object(), Deadline::after(kAnswerTime)).ok()) return;
    client_ = std::move(*client);
  }
  for (;;) {
    const auto event = client_->next_event(Deadline::at(now));
    if (!event.ok()) {
      if (event.error().code != ErrorCode::kTimeout) client_.reset();
      return;
    }
    if (event->value("event", "") != "sync.done" || !event->contains("data")) continue;
    const auto state = IslandState::from_json((*event)["data"]);
    if (!state.ok()) continue;
    if (std::exchange(last_retry_, std::nullopt)) console_.out << "the hub answers again" << std::endl;
    console_.out << fmt::format("round {}  loss {}  {}  {}", state->round, format_loss(state->loss_nats),
                                format_rate(state->tokens_per_second), format_number_of(state->islands_live, "island"))
                 << std::endl;
  }
}

}  // namespace atl
