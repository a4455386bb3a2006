#include "app/agent/trainer_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "net/control/control_client.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kEvery{1};
constexpr std::chrono::seconds kAnswerTime{3};
constexpr std::chrono::milliseconds kConnectEvery{200};

}  // namespace

TrainerLink::TrainerLink(std::filesystem::path socket, Callbacks callbacks, const TransferCaps& caps)
    : socket_(std::move(socket)),
      caps_(caps),
      callbacks_(std::move(callbacks)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

TrainerLink::~TrainerLink() = default;

void TrainerLink::set_caps(const TransferCaps& caps) {
  MutexLock lock(mutex_);
  caps_ = caps;
}

TransferCaps TrainerLink::caps() const {
  MutexLock lock(mutex_);
  return caps_;
}

// The trainer's last word is its state, so what it told before that is heard first.
Result<std::unique_ptr<ControlClient>> TrainerLink::connect() {
  const auto deadline = Deadline::after(kAnswerTime);
  ATOLL_ASSIGN_OR_RETURN(auto client, ControlClient::connect(socket_, deadline));
  ATOLL_ASSIGN_OR_RETURN(const auto state, client->call(method::StateGet::kName, nlohmann::json::object(), deadline));
  const std::int64_t pid = state.is_object() ? state.value("pid", std::int64_t{0}) : 0;
  const bool is_new = std::exchange(pid_, pid) != pid;
  if (is_new) {
    heard_seq_ = 0;
    reader_.forget();
  }
  ATOLL_ASSIGN_OR_RETURN(const auto kept, client->call("events.subscribe", {{"since", heard_seq_}}, deadline));
  const auto last = kept.value("last", std::uint64_t{0});
  if (is_new) kept_seq_ = last;
  while (heard_seq_ < last) {
    ATOLL_ASSIGN_OR_RETURN(const auto event, client->next_event(deadline));
    hear(event);
  }
  return client;
}

void TrainerLink::hear(const nlohmann::json& event) {
  heard_seq_ = event.value("seq", heard_seq_);
  const auto name = event.find("event"), data = event.find("data"), time = event.find("time");
  if (name == event.end() || !name->is_string() || data == event.end()) return;
  const double when = time != event.end() && time->is_number() ? time->get<double>() : 0;
  auto heard = reader_.read(name->get_ref<const std::string&>(), *data, when, heard_seq_, heard_seq_ <= kept_seq_);
  if (!heard.ok()) return tell_unread(heard.error());
  for (HeardEvent& one : *heard) callbacks_.event(std::move(one));
}

// One whose state cannot be read lives all the same, which is all that is known of it.
void TrainerLink::answer(const nlohmann::json& json) {
  const auto state = IslandState::from_json(json);
  if (state.ok()) return callbacks_.answered(*state);
  tell_unread(state.error());
  IslandState lives;
  lives.pid = pid_;
  callbacks_.answered(lives);
}

void TrainerLink::tell_unread(const Error& why) {
  if (std::exchange(unread_told_, true)) return;
  spdlog::warn("trainer unread=\"{}\" (is it of another version?)", why.message);
}

void TrainerLink::serve(const std::stop_token& stop) {
  std::unique_ptr<ControlClient> client;
  while (!stop.stop_requested()) {
    if (!client) {
      auto connected = connect();
      if (connected.ok()) {
        client = std::move(*connected);
      } else {
        ::poll(nullptr, 0, static_cast<int>(kConnectEvery.count()));
        continue;
      }
    }
    const auto state = client->call(method::AgentAlive::kName, encode_message(method::AgentAlive{.caps = caps()}),
                                    Deadline::after(kAnswerTime));
    if (!state.ok()) {
      client.reset();
      continue;
    }
    answer(*state);
    const auto next = Deadline::after(kEvery);
    while (!stop.stop_requested()) {
      const auto event = client->next_event(next);
      if (event.ok()) {
        hear(*event);
      } else if (event.error().code == ErrorCode::kTimeout) {
        break;
      } else {
        client.reset();
        break;
      }
    }
  }
}

std::uint64_t progress_of(const IslandState& state) {
  // FNV-1a over what moves while a trainer works.
  const std::string text = fmt::format("{} {} {} {} {} {}", word_of(state.state), state.round, state.inner_step,
                                       state.outer_step, state.tokens, state.passes);
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

Status ask_trainer(const std::filesystem::path& socket, std::string_view method, Deadline deadline) {
  ATOLL_ASSIGN_OR_RETURN(const auto client, ControlClient::connect(socket, deadline));
  ATOLL_RETURN_IF_ERROR(client->call(method, nlohmann::json::object(), deadline));
  return ok_status();
}

}  // namespace atl
