#include "app/cli/join_progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "app/cli/text.h"
#include "net/control/island_state.h"
#include "net/control/told.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kTransferEvery{5};

std::string text_of(const nlohmann::json& data, const char* key) { return printable(told::text(data, key)); }

double number_of(const nlohmann::json& data, const char* key) { return told::number(data, key).value_or(0); }

std::string name_of(const std::string& what) { return what == "state" ? "the model's state" : "the run's data"; }

// What a stage of a joining is called while it runs; empty: it is shown in another way.
std::string words_of(const std::string& stage) {
  if (stage == "key") return "making a key";
  if (stage == "enrol") return "enrolling";
  if (stage == "check") return "checking this machine";
  if (stage == "trainer") return "starting the trainer";
  return stage == "first_step" ? "waiting for the first step" : "";
}

}  // namespace

void JoinProgress::show() {
  while (const auto event = events_.try_pop()) {
    const auto name = event->is_object() ? event->find("event") : event->end();
    if (!event->is_object() || name == event->end() || !name->is_string() || !event->contains("data")) continue;
    if ((*event)["data"].is_object()) show(name->get<std::string>(), (*event)["data"]);
  }
}

void JoinProgress::show(const std::string& name, const nlohmann::json& data) {
  if (name == "transfer") return show_transfer(text_of(data, "what"), data);
  if (name == "join.progress") return show_stage(data);
  if (name == "hub.link") return show_hub(data);
  if (name == "sync.done") show_round(data);
  // What the agent says of a trainer that ended is this command's own error.
  if (data.contains("state") && !data.contains("agent") && text_of(data, "state") != "error") show_trouble(data);
}

void JoinProgress::print(const std::string& line) { console_.out << line << std::endl; }

void JoinProgress::show_round(const nlohmann::json& data) {
  const auto state = IslandState::from_json(data);
  if (!state.ok()) return;
  print(fmt::format("round {}  loss {}  {}  {}", state->round, format_loss(state->loss_nats),
                    format_rate(state->tokens_per_second), format_number_of(state->islands_live, "island")));
}

void JoinProgress::show_hub(const nlohmann::json& data) {
  if (data.value("up", nlohmann::json()) == true) {
    hub_text_.clear();
    return print("the hub answers again");
  }
  hub_text_ = text_of(data, "text");
  std::string line = fmt::format("the hub does not answer ({}); trying again", hub_text_);
  if (const auto tries_for = told::number(data, "tries_for_seconds")) {
    const auto seconds = std::chrono::seconds(static_cast<long>(*tries_for));
    const auto until = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + seconds);
    line += fmt::format(" until {:%H:%M}", fmt::localtime(until));
  }
  print(line);
}

void JoinProgress::show_trouble(const nlohmann::json& data) {
  std::string trouble = text_of(data, "error");
  if (!hub_text_.empty() && trouble.find(hub_text_) != std::string::npos) trouble.clear();  // said by hub.link
  if (trouble == std::exchange(trouble_, trouble) || trouble.empty()) return;
  print(console_.styled(trouble, Style::kWarning));
}

void JoinProgress::show_stage(const nlohmann::json& data) {
  const std::string stage = text_of(data, "stage"), status = text_of(data, "status");
  if (stage == "data" || stage == "state") return show_transfer(stage, data);
  const std::string words = words_of(stage);
  if (status != "running" || words.empty() || stage == std::exchange(stage_, stage)) return;
  print(words);
}

void JoinProgress::show_transfer(const std::string& what, const nlohmann::json& data) {
  const std::string status = text_of(data, "status"), why = text_of(data, "text");
  const double done = number_of(data, "done_bytes"), total = number_of(data, "total_bytes");
  const auto found = transfers_.find(what);
  if (status != "running") {
    if (found == transfers_.end()) return;  // there was nothing to fetch
    print(status == "done" ? fmt::format("{} is here", name_of(what))
                           : fmt::format("{} could not be fetched: {}", name_of(what), why));
    transfers_.erase(found);
    return;
  }
  if (total <= 0) return;
  const auto now = Clock::now();
  if (found == transfers_.end()) {
    transfers_[what] = now;
    return print(fmt::format("fetching {}, {}", name_of(what), format_bytes(total)));
  }
  if (now - found->second < kTransferEvery) return;
  found->second = now;
  std::string line = fmt::format("  {} of {}", format_bytes(done), format_bytes(total));
  if (const double rate = number_of(data, "bytes_per_second"); rate > 0)
    line += fmt::format(", {}/s", format_bytes(rate));
  if (const double left = number_of(data, "seconds_left"); left > 0)
    line += fmt::format(", {} left", format_duration(left));
  print(line);
}

}  // namespace atl
