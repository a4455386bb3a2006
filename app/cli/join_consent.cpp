#include "app/cli/join_consent.h"

#include <fmt/format.h>

#include <chrono>

#include "app/agent/join_run.h"
#include "app/cli/console_input.h"
#include "app/cli/text.h"
#include "net/check/run_needs.h"
#include "net/enrol/client.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAskTime{30};  // of the hub
constexpr std::size_t kMaxSaid = 200;         // bytes of what a hub says of itself

std::chrono::sys_seconds this_second() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

bool is_whole_invite(const std::string& text) {
  const auto invite = decode_invite(text, this_second());
  return invite.ok() || invite.error().code != ErrorCode::kInviteMalformed;
}

std::string said(const std::string& text) { return text.empty() ? "the hub does not say" : printable(text, kMaxSaid); }

std::string costs_text(const RunCosts& costs, const std::filesystem::path& directory) {
  const auto bytes = [](std::uint64_t number) { return format_bytes(static_cast<double>(number)); };
  return fmt::format(
      "  each round  up to {} sent, and as much received; {} to join\n"
      "  disk        up to {} in {}\n"
      "  memory      {} where the processor computes; where GPUs do, {} and {} of a card\n",
      bytes(costs.round), bytes(costs.join), bytes(costs.disk), printable_lines(directory.string()),
      bytes(costs.memory), bytes(costs.memory_beside_gpus), bytes(costs.gpu_memory));
}

std::string summary_of(const HubDescription& hub, const std::filesystem::path& directory) {
  const RunAbout& run = hub.run;
  std::string text = fmt::format("run {} ({})\n", said(run.name), printable(run.run_id, kMaxSaid));
  text += fmt::format("  operator    {}\n", said(run.operator_name));
  text += fmt::format("  hub         {}, whose key is the one in the invite\n", to_string(hub.address));
  text += fmt::format("  model       {}{}\n", said(run.model),
                      run.parameters > 0 ? fmt::format("; {} parameters", format_count(run.parameters)) : "");
  const auto needs = run_needs_from_json(run.needs);
  text += needs.ok() ? costs_text(costs_of(*needs), directory)
                     : std::string("  each round, disk, memory: the hub does not say\n");
  return text +
         "  leaves      this machine: what its copy of the model learned, and the run's states and data,\n"
         "              to the other islands, which may connect to it; its address, name, version,\n"
         "              speed and node check, to them and the hub. No files of yours.\n";
}

std::string leaving_text(const JoinFile& other, const IslandHome& home) {
  const std::string name = printable(other.run_name);
  const std::string left = fmt::format("This machine belongs to run {}, and leaves it for this one", name);
  std::error_code ignored;
  if (!std::filesystem::exists(home.checkpoint(), ignored)) return left + ".\n";
  const auto usual = default_island_home();
  const bool is_usual = usual.ok() && *usual == home.directory;
  return fmt::format("{}; the model of {} stays in\n{}, and atoll export{} --run {} writes it.\n", left, name,
                     printable_lines(home.checkpoint_of(other.run_id).string()),
                     is_usual ? "" : " --home " + printable_lines(home.directory.string()), printable(other.run_id));
}

}  // namespace

Result<std::string> read_pasted_invite(Console& console, const AbortSignal& interrupt) {
  const bool terminal = input_is_terminal();
  const UnseenInput unseen;
  if (terminal) console.err << "Paste the invite, then Enter; it is not shown:" << std::endl;
  std::string text;
  while (text.size() <= kMaxInviteText) {
    ATOLL_ASSIGN_OR_RETURN(const std::string more, read_input(interrupt));
    if (more.empty()) break;
    text += more;
    if (terminal && (more == "\n" || is_whole_invite(text))) break;
  }
  return text;
}

bool JoinConsent::asks() const { return !yes_ && context_.console.screen() != nullptr && can_ask(); }

Status JoinConsent::ask(const Invite& invite) {
  if (std::exchange(asked_, true)) return ok_status();
  const std::optional<JoinFile> other = other_run(home_.island, invite);
  const bool asks = this->asks();
  if (other && !asks && !yes_) return ok_status();  // refused by what follows
  ATOLL_ASSIGN_OR_RETURN(const HubDescription hub,
                         describe_hub(invite, Deadline::after(kAskTime), &context_.interrupt));
  std::ostream* screen = context_.console.screen();
  std::ostream& out = asks ? *screen : context_.console.out;
  out << summary_of(hub, home_.island.directory);
  if (other) out << leaving_text(*other, home_.island);
  out << std::flush;
  if (!asks && !yes_ && screen != nullptr) {
    return Error{ErrorCode::kInvalidArgument,
                 "not joined: nobody can be asked here; say --yes if this machine shall compute for that run"};
  }
  if (asks) {
    out << fmt::format("This machine will compute for it until you stop it. {} [y/N] ",
                       other ? fmt::format("Leave {} and join?", printable(other->run_name)) : "Join?")
        << std::flush;
    ATOLL_ASSIGN_OR_RETURN(const bool yes, said_yes(context_.interrupt));
    if (!yes) return Error{ErrorCode::kAborted, "not joined, as you said"};
  }
  leaves_ = other.has_value();
  return ok_status();
}

}  // namespace atl
