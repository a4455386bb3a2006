// atoll peers, atoll rounds: the island's past, from its agent or from its history file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/cli/agent_client.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/round_words.h"
#include "net/base/unix_time.h"
#include "net/check/figures.h"
#include "net/control/methods.h"
#include "net/control/told.h"

namespace atl {
namespace {

constexpr double kNoRound = 4294967296;  // after all that can be counted

struct Listing {
  std::string home;
  bool json = false;
  std::uint32_t limit = 20;
};

std::string number(const nlohmann::json& object, const char* key, std::string (*format)(double)) {
  const auto value = told::number(object, key);
  return value ? format(*value) : "-";
}

std::string count(double value) { return format_count(static_cast<std::uint64_t>(std::max(0.0, value))); }
std::string milliseconds(double seconds) { return fmt::format("{:.0f} ms", seconds * 1e3); }
std::string rate(double bytes_per_second) { return figures::bits_per_second(bytes_per_second); }
std::string ago(double time) { return format_duration(std::max(0.0, unix_time_now() - time)) + " ago"; }

Result<nlohmann::json> ask(const Listing& command, const char* method, const nlohmann::json& params,
                           CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  ATOLL_ASSIGN_OR_RETURN(nlohmann::json answer, ask_history(home, method, params));
  if (command.json) context.console.out << answer.dump() << std::endl;
  return answer;
}

std::string accepted_word(const nlohmann::json& round, bool may_be_under_way, const Console& console) {
  const nlohmann::json accepted = round.value("accepted", nlohmann::json());
  if (!accepted.is_boolean()) return may_be_under_way ? "under way" : "not here";
  if (accepted.get<bool>()) return "yes";
  return told::number(round, "tokens") == 0 ? "followed" : console.styled("no", Style::kWarning);
}

// Whether this island is among the others now.
bool is_connected(const Listing& command) {
  const auto home = home_of_agent(command.home);
  if (!home.ok()) return false;
  const auto island = connect_island(*home);
  if (!island.ok()) return false;
  const auto state = (*island)->call(method::StateGet::kName, nlohmann::json::object(), answer_deadline());
  return state.ok() && told::number(*state, "pid").value_or(0) > 0;
}

std::string round_text(const nlohmann::json& round) {
  const auto index = told::number(round, "round");
  return index ? format_count(round_number(static_cast<std::uint32_t>(*index))) : "-";
}

// "capitals acc 0.5", a figure each; empty: the state after that round was asked nothing.
std::string scores_text(const nlohmann::json& round) {
  std::vector<std::string> scores;
  const nlohmann::json list = round.value("scores", nlohmann::json::array());
  for (const nlohmann::json& score : list) {
    scores.push_back(fmt::format("{} {} {:.4g}", told::line(score, "task"), told::line(score, "metric"),
                                 told::number(score, "value").value_or(0)));
  }
  return fmt::format("{}", fmt::join(scores, ", "));
}

// "5.213 -> 3.021", or one of them; empty: none is known.
std::string from_to(const std::vector<double>& losses) {
  if (losses.empty()) return {};
  const std::string first = format_loss(losses.front()), last = format_loss(losses.back());
  return losses.size() == 1 ? first : first + " -> " + last;
}

// What the hub told of the rounds before `first`; empty: there were none, or it told nothing.
std::string past_text(const nlohmann::json& answer, double first) {
  std::vector<double> mean, validated;
  double rounds = 0;
  const nlohmann::json pieces = answer.value("past", nlohmann::json::array());
  for (const nlohmann::json& piece : pieces) {
    const double round = told::number(piece, "round").value_or(first);
    if (round >= first) break;
    rounds = std::min(first, round + told::number(piece, "rounds").value_or(1));
    const double loss = told::number(piece, "mean_loss_nats").value_or(0);
    if (loss > 0) mean.push_back(loss);
  }
  if (rounds == 0) return {};
  const nlohmann::json validations = answer.value("validations", nlohmann::json::array());
  for (const nlohmann::json& validation : validations) {
    if (told::number(validation, "outer_step").value_or(first + 1) > rounds) break;
    validated.push_back(told::number(validation, "loss_nats").value_or(0));
  }
  std::string text =
      fmt::format("before this island came: {}", format_number_of(static_cast<std::uint64_t>(rounds), "round"));
  if (const std::string losses = from_to(mean); !losses.empty()) text += ", loss of all islands " + losses;
  if (const std::string losses = from_to(validated); !losses.empty()) text += ", validated " + losses;
  return text;
}

Status show_rounds(const Listing& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json answer,
                         ask(command, "rounds.list", {{"limit", command.limit}, {"past", true}}, context));
  if (command.json) return ok_status();
  Console& console = context.console;
  console.out << fmt::format("{} {} {} {} {} {} {} {} {}\n", fit_right("round", 7), fit_right("loss", 7),
                             fit_right("validated", 9), fit_right("tokens", 12), fit_right("inner", 8),
                             fit_right("sync", 8), fit_right("sent", 8), fit_right("islands", 7), "accepted");
  const nlohmann::json rounds = answer.value("rounds", nlohmann::json::array());
  if (rounds.empty()) console.out << "none yet\n";
  // Only the newest may be under way: of an older one that has no end here, its end was not seen.
  bool may_be_under_way = is_connected(command);
  for (const nlohmann::json& round : rounds) {
    console.out << fmt::format(
        "{} {} {} {} {} {} {} {} {}\n", fit_right(round_text(round), 7),
        fit_right(number(round, "loss_nats", format_loss), 7),
        fit_right(number(round, "validation_loss_nats", format_loss), 9), fit_right(number(round, "tokens", count), 12),
        fit_right(number(round, "inner_seconds", format_duration), 8),
        fit_right(number(round, "sync_seconds", format_duration), 8),
        fit_right(number(round, "bytes_sent", format_bytes), 8), fit_right(number(round, "islands", count), 7),
        accepted_word(round, std::exchange(may_be_under_way, false), console));
    const std::string scores = scores_text(round);
    if (!scores.empty()) console.out << fmt::format("{} {}\n", std::string(7, ' '), scores);
  }
  const bool more = answer.value("more", false);
  if (more) console.out << "older rounds: --limit " << 10 * command.limit << '\n';
  const double oldest = rounds.empty() ? kNoRound : told::number(rounds.back(), "round").value_or(0);
  const std::string past = more ? std::string() : past_text(answer, oldest);
  if (!past.empty()) console.out << past << '\n';
  console.out << std::flush;
  return ok_status();
}

Status show_peers(const Listing& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json answer, ask(command, "peers.list", nlohmann::json::object(), context));
  if (command.json) return ok_status();
  Console& console = context.console;
  const bool connected = is_connected(command);  // else what is told of them is as old as its last round
  if (!connected) console.out << "this island does not train now; the others as it last knew them:\n";
  console.out << fmt::format("{} {} {} {} {} {} {} {} {} {}\n", fit("island", 20), fit("name", 16), fit("region", 10),
                             fit("state", 5), fit_right("rtt", 8), fit_right("up", 11), fit_right("down", 11),
                             fit_right("retries", 7), fit("version", 12), "since");
  const nlohmann::json peers = answer.value("peers", nlohmann::json::array());
  if (peers.empty()) console.out << "none yet\n";
  for (const nlohmann::json& peer : peers) {
    console.out << fmt::format(
        "{} {} {} {} {} {} {} {} {} {}\n", fit(told::line(peer, "island"), 20), fit(told::line(peer, "name"), 16),
        fit(told::line(peer, "region"), 10), fit(connected ? told::line(peer, "state") : "-", 5),
        fit_right(number(peer, "rtt_seconds", milliseconds), 8), fit_right(number(peer, "bytes_per_second", rate), 11),
        fit_right(number(peer, "down_bytes_per_second", rate), 11), fit_right(number(peer, "retries", count), 7),
        fit(told::line(peer, "version"), 12), number(peer, "last_change", ago));
  }
  console.out << std::flush;
  return ok_status();
}

}  // namespace

void add_rounds_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Listing>();
  CLI::App* sub = app.add_subcommand("rounds", "The rounds in which this machine's island took part");
  sub->footer("Examples:\n  atoll rounds --limit 100\n  atoll rounds --json | jq '.rounds[0]'");
  add_home_option(*sub, command->home);
  sub->add_flag("--json", command->json, "Print JSON");
  sub->add_option("--limit", command->limit, "How many, the newest first")
      ->check(whole_number(1, 500))
      ->capture_default_str();
  sub->callback([command, &context] { context.finish(show_rounds(*command, context)); });
}

void add_peers_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Listing>();
  CLI::App* sub = app.add_subcommand("peers", "The other islands, as this machine's island knows them");
  sub->footer("Examples:\n  atoll peers\n  atoll peers --json");
  add_home_option(*sub, command->home);
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(show_peers(*command, context)); });
}

}  // namespace atl
