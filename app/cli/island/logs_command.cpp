// atoll logs: what agent and trainer wrote, in one order of time.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/agent/files/log_reader.h"
#include "app/agent/files/redaction.h"
#include "app/cli/agent_client.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "app/config/quantity.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr int kLookMilliseconds = 250;

struct Logs {
  std::string home, since;
  bool follow = false, json = false;
  std::uint32_t lines = 200;
};

std::string since_time(const std::string& since) {
  return since.empty() ? std::string() : log_time(unix_seconds_now() - duration_of(since).count());
}

// An invite that found its way into a log is not carried on to a screen or a pipe.
void print(const LogLine& line, bool json, Console& console) {
  const std::string text = printable(redacted(line.text));
  if (json) {
    const nlohmann::json object = {{"source", line.source}, {"time", line.time}, {"text", text}};
    console.out << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return;
  }
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  const Style style = has(" error ") ? Style::kBad : has(" warning ") ? Style::kWarning : Style::kPlain;
  console.out << console.styled(fit(line.source, 8), Style::kDim) << console.styled(text, style) << '\n';
}

Status run(const Logs& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  const std::string since = since_time(command.since);
  LogReader reader({{"agent", home.agent_log()}, {"trainer", home.trainer_log()}});
  ATOLL_ASSIGN_OR_RETURN(std::vector<LogLine> lines, reader.read(since));
  if (lines.empty() && !command.follow) {
    if (since.empty()) ATOLL_RETURN_IF_ERROR(load_join_file(home.island.join_file()));
    context.console.err << "no lines" << (since.empty() ? "" : " of that time") << std::endl;
  }
  // Without --since the last ones are what one wants to see.
  const bool cut = since.empty() && lines.size() > command.lines;
  for (std::size_t i = cut ? lines.size() - command.lines : 0; i < lines.size(); ++i) {
    print(lines[i], command.json, context.console);
  }
  context.console.out << std::flush;
  while (command.follow && !context.interrupt.raised() && context.console.out.good()) {
    pollfd wake{context.interrupt.fd(), POLLIN, 0};
    ::poll(&wake, 1, kLookMilliseconds);
    ATOLL_ASSIGN_OR_RETURN(lines, reader.read(""));
    for (const LogLine& line : lines) print(line, command.json, context.console);
    context.console.out << std::flush;
  }
  return ok_status();
}

}  // namespace

void add_logs_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Logs>();
  CLI::App* sub = app.add_subcommand("logs", "What the agent and its trainer wrote");
  sub->footer(
      "Examples:\n  atoll logs -f\n  atoll logs --since 1h --json\n\nWith -f it runs until Ctrl-C: ended so, it is 0.");
  add_home_option(*sub, command->home);
  sub->add_flag("-f,--follow", command->follow, "Go on as they grow, until Ctrl-C");
  sub->add_option("--since", command->since, "From so long ago: 30m, 1h, 7d")->check(is_duration());
  sub->add_option("-n,--lines", command->lines, "Without --since: the last so many")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  sub->add_flag("--json", command->json, "Print JSON, an object a line");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
