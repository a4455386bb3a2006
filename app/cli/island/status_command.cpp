// atoll status: once, or again and again.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/agent_client.h"
#include "app/cli/demo/live_display.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/island/status_view.h"
#include "app/cli/text.h"
#include "net/control/events.h"
#include "net/control/island_state.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRedraw{1};
constexpr int kLooksALine = 10;  // where the output is no terminal
constexpr int kPastEvery = 60;   // looks
constexpr std::size_t kMaxLosses = 400;

struct StatusRequest {
  std::string home;
  bool json = false, watch = false;
};

Result<nlohmann::json> ask_state(const AgentHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const auto client, connect_island(home));
  return client->call(method::StateGet::kName, nlohmann::json::object(), answer_deadline());
}

void print(const nlohmann::json& state, bool json, Console& console) {
  if (json) {
    console.out << state.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    return;
  }
  for (const std::string& line : status_lines(state, console)) console.out << line << '\n';
  console.out << std::flush;
}

// Where the run's hub is, which the state does not say.
void print_hub(const AgentHome& home, Console& console) {
  const auto join = load_join_file(home.island.join_file());
  if (!join.ok()) return;
  std::vector<std::string> addresses;
  for (const Address& address : join->hub_addresses) addresses.push_back(to_string(address));
  console.out << fmt::format("hub {}", fmt::join(addresses, ", ")) << std::endl;
}

Status show(const StatusRequest& command, const AgentHome& home, CommandContext& context) {
  const auto state = ask_state(home);
  if (state.ok()) {
    print(*state, command.json, context.console);
    if (!command.json) print_hub(home, context.console);
    // An agent that answers for a home without a run says so; a script wants the exit code as well.
    if (state->value("state", "") != word_of(IslandPhase::kUnjoined)) return ok_status();
    return load_join_file(home.island.join_file()).ok() ? ok_status()
                                                        : Status(load_join_file(home.island.join_file()).error());
  }
  if (command.json) {
    const bool joined = state.error().code == ErrorCode::kNotRunning;
    context.console.out
        << nlohmann::json{{"state", word_of(joined ? IslandPhase::kStopped : IslandPhase::kUnjoined)}}.dump()
        << std::endl;
  }
  return state.error();
}

// What the past looks like; nothing where no agent keeps one.
std::vector<double> past_losses(const AgentHome& home, const char* series, const char* axis) {
  const auto answer = ask_history(home, "metrics.query", {{"name", series}, {"axis", axis}, {"max_points", 200}});
  std::vector<double> losses;
  if (!answer.ok()) return losses;
  for (const nlohmann::json& loss : answer->value("mean", nlohmann::json::array())) {
    if (loss.is_number()) losses.push_back(loss.get<double>());
  }
  return losses;
}

Status watch(const StatusRequest& command, const AgentHome& home, CommandContext& context) {
  Console& console = context.console;
  WatchFrame frame;
  frame.losses = past_losses(home, "loss_nats", "time");
  nlohmann::json last;
  Clock::time_point heard = Clock::now();
  std::optional<LiveDisplay> display;
  if (console.out_is_terminal && !command.json) display.emplace(console);
  for (int look = 0; !context.interrupt.raised() && console.out.good(); ++look) {
    auto state = ask_state(home);
    if (display && look % kPastEvery == 0) frame.run_losses = past_losses(home, kPastLossSeries, "step");
    frame.trouble = state.ok() ? "" : state.error().message;
    if (state.ok()) {
      const double loss =
          state->value("loss_nats", nlohmann::json()).is_number() ? (*state)["loss_nats"].get<double>() : 0;
      const bool moved = last.is_null() || last.value("inner_step", 0) != state->value("inner_step", 0);
      if (loss > 0 && moved) frame.losses.push_back(loss);
      if (frame.losses.size() > kMaxLosses) frame.losses.erase(frame.losses.begin());
      last = std::move(*state);
      heard = Clock::now();
      frame.state = &last;
    }
    frame.age_seconds = Seconds(Clock::now() - heard).count();
    if (display) {
      std::vector<std::string> lines = watch_lines(frame, console);
      const auto most = static_cast<std::size_t>(display->begin_frame());
      if (lines.size() > most) lines.resize(most);
      display->draw(lines);
    } else if (look % (command.json ? 1 : kLooksALine) == 0) {
      if (state.ok()) print(last, command.json, console);
      if (!frame.trouble.empty()) console.err << printable(frame.trouble) << std::endl;
    }
    pollfd wake{context.interrupt.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(std::chrono::milliseconds(kRedraw).count()));
  }
  return ok_status();
}

}  // namespace

void add_status_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<StatusRequest>();
  CLI::App* sub = app.add_subcommand("status", "What this machine's island is doing");
  sub->footer(
      "Examples:\n  atoll status\n  atoll status --watch\n  atoll status --json | jq .loss_nats\n\n"
      "With --watch it runs until Ctrl-C: ended so, it is 0.");
  add_home_option(*sub, command->home);
  sub->add_flag("--json", command->json, "Print JSON; with --watch an object a second");
  sub->add_flag("-w,--watch", command->watch, "Go on showing it until Ctrl-C");
  sub->callback([command, &context] {
    const auto home = home_of_agent(command->home);
    context.finish(!home.ok()       ? Status(home.error())
                   : command->watch ? watch(*command, *home, context)
                                    : show(*command, *home, context));
  });
}

}  // namespace atl
