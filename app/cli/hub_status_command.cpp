// atoll hub status: ask the hub on its control socket.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/agent_client.h"
#include "app/cli/command.h"
#include "app/cli/demo/live_display.h"
#include "app/cli/hub_status_view.h"
#include "app/cli/start_again.h"
#include "app/cli/text.h"
#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/methods.h"
#include "net/hub/hub_home.h"

namespace atl {
namespace {

struct HubStatusRequest {
  std::string home;
  bool json = false, watch = false;
};

constexpr std::chrono::seconds kHubRedraw{1};
constexpr int kHubLooksALine = 10;  // where the output is no terminal

Result<nlohmann::json> ask_hub_state(const std::filesystem::path& directory) {
  const HubHome home{directory};
  std::error_code ignored;
  if (!std::filesystem::exists(home.run_file(), ignored)) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} holds no hub; make one with: atoll hub init", directory.string())};
  }
  const auto client = ControlClient::connect(home.control_socket(), answer_deadline());
  if (!client.ok()) return client.error().code == ErrorCode::kNotRunning ? hub_does_not_serve(home) : client.error();
  return (*client)->call(method::StateGet::kName, nlohmann::json::object(), answer_deadline());
}

// Where the run's states are to be published; empty: nowhere.
std::string store_of(const std::filesystem::path& directory) {
  const auto run = load_run(HubHome{directory});
  return run.ok() ? run->upload_store : std::string();
}

Status print_hub(const nlohmann::json& json, const std::string& store, bool as_json, Console& console) {
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(json));
  if (as_json) {
    console.out << json.dump() << std::endl;
    return ok_status();
  }
  for (const std::string& line : hub_status_lines(state, store, console)) console.out << line << '\n';
  console.out << std::flush;
  return ok_status();
}

Status show_hub(const HubStatusRequest& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, ask_hub_state(directory));
  return print_hub(json, store_of(directory), command.json, context.console);
}

Status draw(const nlohmann::json& json, const std::string& store, LiveDisplay& display, const Console& console) {
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(json));
  std::vector<std::string> lines = hub_status_lines(state, store, console);
  const auto most = static_cast<std::size_t>(display.begin_frame());
  if (lines.size() > most) lines.resize(most);
  display.draw(lines);
  return ok_status();
}

// Until Ctrl-C. A hub that cannot be asked at first is an error; later it may come back.
Status watch_hub(const HubStatusRequest& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  const std::string store = store_of(directory);
  Console& console = context.console;
  std::optional<LiveDisplay> display;
  for (int look = 0; !context.interrupt.raised() && console.out.good(); ++look) {
    const auto json = ask_hub_state(directory);
    if (!json.ok() && look == 0) return json.error();
    if (look == 0 && console.out_is_terminal && !command.json) display.emplace(console);
    const bool is_due = look % (command.json ? 1 : kHubLooksALine) == 0;
    if (!json.ok()) {
      if (display) {
        display->draw({console.styled(printable(json.error().message), Style::kWarning)});
      } else if (is_due) {
        console.err << printable(json.error().message) << std::endl;
      }
    } else if (display) {
      ATOLL_RETURN_IF_ERROR(draw(*json, store, *display, console));
    } else if (is_due) {
      ATOLL_RETURN_IF_ERROR(print_hub(*json, store, command.json, console));
    }
    pollfd wake{context.interrupt.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(std::chrono::milliseconds(kHubRedraw).count()));
  }
  return ok_status();
}

}  // namespace

void add_hub_status_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubStatusRequest>();
  CLI::App* sub = hub.add_subcommand("status", "The run and its islands, as the hub sees them");
  sub->footer(
      "Examples:\n  atoll hub status\n  atoll hub status --watch\n  atoll hub status --json\n\n"
      "With --watch it runs until Ctrl-C: ended so, it is 0.");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON; with --watch an object a second");
  sub->add_flag("-w,--watch", command->watch, "Go on showing it until Ctrl-C");
  sub->callback([command, &context] {
    context.finish(command->watch ? watch_hub(*command, context) : show_hub(*command, context));
  });
}

}  // namespace atl
