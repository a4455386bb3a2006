#include "app/cli/hub_admin/hub_admin_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/agent/files/log_reader.h"
#include "app/cli/console_input.h"
#include "app/cli/hub_admin/hub_backup.h"
#include "app/cli/hub_admin/hub_calls.h"
#include "app/cli/run_init.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/json_text.h"
#include "net/base/round_words.h"
#include "net/base/unix_time.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/methods.h"
#include "net/data/source_name.h"
#include "net/hub/base_model.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"

namespace atl {
namespace {

constexpr std::size_t kMaxShownModel = 1u << 20;  // bytes
constexpr int kMaxModelNesting = 16;

struct HubAdmin {
  std::string home, argument;
  bool json = false, yes = false, force = false;
};

Status islands(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const auto enrolled, enrolled_islands(directory));
  ATOLL_ASSIGN_OR_RETURN(const auto live,
                         ask_hub(HubHome{directory}, method::StateGet::kName, nlohmann::json::object()));
  std::map<std::string, HubIslandState> states;
  if (live) {
    ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(*live));
    for (const HubState::Island& island : state.islands) states[island.id] = island.state;
  }
  nlohmann::json list = nlohmann::json::array();
  Console& console = context.console;
  if (!command.json) {
    console.out << fmt::format("{} {} {} {}\n", fit("island", 20), fit("name", 20), fit("state", 12), "enrolled");
  }
  for (const EnrolledIslandReport& island : enrolled) {
    const auto found = states.find(island.id);
    const std::string_view state = word_of(island.removed          ? HubIslandState::kRemoved
                                           : found != states.end() ? found->second
                                           : live                  ? HubIslandState::kAway
                                                                   : HubIslandState::kUnknown);
    list.push_back({{"island", island.id},
                    {"name", printable(island.name)},
                    {"state", state},
                    {"enrolled_at", island.enrolled_at}});
    if (command.json) continue;
    console.out << fmt::format("{} {} {} {}\n", fit(island.id, 20), fit(printable(island.name), 20), fit(state, 12),
                               log_time(island.enrolled_at));
  }
  if (command.json) console.out << dumped({{"serving", live.has_value()}, {"islands", list}}) << '\n';
  console.out << std::flush;
  return ok_status();
}

// By its id, or by its name where one member alone has it.
Result<EnrolledIslandReport> find_island(const std::filesystem::path& directory, const std::string& given) {
  ATOLL_ASSIGN_OR_RETURN(const auto enrolled, enrolled_islands(directory));
  std::vector<EnrolledIslandReport> named;
  bool is_removed = false;
  for (const EnrolledIslandReport& island : enrolled) {
    if (island.id == given) return island;
    if (island.name != given) continue;
    if (!island.removed) named.push_back(island);
    is_removed = is_removed || island.removed;
  }
  if (named.size() == 1) return named.front();
  if (named.empty() && is_removed) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} was removed already, and no other island has that name", printable(given, 64))};
  }
  if (named.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("no island has the id or the name '{}'; see: atoll hub islands", printable(given, 64))};
  }
  std::string ids;
  for (const EnrolledIslandReport& island : named) ids += (ids.empty() ? "" : ", ") + island.id;
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} islands have the name '{}'; say which by its id: {}",
                                                        named.size(), printable(given, 64), ids)};
}

// By which somebody may still enrol, and so may come back who was removed.
Result<std::size_t> open_invites(const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const auto invites, given_invites(directory));
  const std::int64_t now = unix_seconds_now();
  return static_cast<std::size_t>(std::ranges::count_if(invites, [now](const GivenInvite& invite) {
    return !invite.revoked && invite.uses_left > 0 && invite.expires_at > now;
  }));
}

std::string remains(std::size_t invites) {
  return fmt::format(
      "{} still open: who has one can come back by it. See: atoll hub invites; atoll hub invites revoke "
      "ID takes one back",
      invites == 1 ? "1 invite is" : fmt::format("{} invites are", format_count(invites)));
}

Status ask_removal(const HubAdmin& command, const EnrolledIslandReport& island, std::size_t invites,
                   CommandContext& context) {
  return ask_whether(command.yes,
                     fmt::format("Remove {} ({}) from the run? {}", printable(island.name), island.id,
                                 invites == 0 ? "It cannot come back without another invite."
                                              : "It can come back by an invite that is still open."),
                     "not removed, as you said", context);
}

Status remove(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const EnrolledIslandReport island, find_island(directory, command.argument));
  ATOLL_ASSIGN_OR_RETURN(const std::size_t invites, open_invites(directory));
  ATOLL_RETURN_IF_ERROR(ask_removal(command, island, invites, context));
  ATOLL_RETURN_IF_ERROR(remove_enrolled_island(directory, island.id));
  ATOLL_ASSIGN_OR_RETURN(const auto told, ask_hub(HubHome{directory}, method::IslandSendAway::kName,
                                                  encode_message(method::IslandSendAway{island.id})));
  if (command.json) {
    context.console.out << dumped({{"island", island.id},
                                   {"name", printable(island.name)},
                                   {"told", told.has_value()},
                                   {"open_invites", invites}})
                        << std::endl;
    return ok_status();
  }
  context.console.out << fmt::format("{} ({}) is no member any more{}; its certificate is refused from now on\n",
                                     printable(island.name), island.id, told ? ", its connections are closed" : "")
                      << (invites > 0 ? remains(invites) + "\n" : "") << std::flush;
  return ok_status();
}

Status config(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(HubHome{directory}));
  nlohmann::json shown = run.to_json();
  // For a person the model is shown as the JSON that it is; a program gets the bytes that the run's islands agreed on.
  if (!command.json) {
    if (auto model = parse_bounded_json(run.model_json, kMaxShownModel, kMaxModelNesting); model.ok()) {
      shown["model_json"] = std::move(*model);
    }
  }
  context.console.out << dumped(shown, command.json ? -1 : 2) << std::endl;
  return ok_status();
}

Status data(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  const HubHome home{directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  if (!command.argument.empty()) {
    const auto [source, moved_to] = split_name(command.argument);
    ATOLL_RETURN_IF_ERROR(move_dataset(directory, source, moved_to));
  }
  ATOLL_ASSIGN_OR_RETURN(const HubFile hub, load_hub_file(home));
  nlohmann::json sources = nlohmann::json::object();
  for (const auto& [source, dataset] : hub.datasets) {
    sources[source] = dataset.string();
    if (command.json) continue;
    context.console.out << (hub.datasets.size() > 1 ? source + "=" : std::string()) << dataset.string() << std::endl;
  }
  if (command.json) {
    context.console.out << dumped({{"run", run.name},
                                   {"directory", hub.datasets.begin()->second.string()},
                                   {"sources", std::move(sources)}})
                        << std::endl;
  }
  if (!command.argument.empty())
    context.console.err << "a hub that serves now reads it there once it is started again" << std::endl;
  return ok_status();
}

// The hub's copy of the model with which the run began; with a directory it is made anew of what is there.
Status base_model(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  const HubHome home{directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  if (!command.argument.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const BaseModel model, BaseModel::open(command.argument, context.interrupt));
    ATOLL_RETURN_IF_ERROR(restore_base_model(directory, model));
  }
  if (!run.begins_at_hub()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("run {} does not begin with a model of its hub's", printable(run.name))};
  }
  ATOLL_ASSIGN_OR_RETURN(const BaseModelManifest kept, kept_base_model(home, run));
  if (command.json) {
    context.console.out << dumped({{"run", run.name},
                                   {"base_model", run.beginning()},
                                   {"dtype", name_of(kept.dtype)},
                                   {"bytes", kept.parameters_bytes()},
                                   {"tree_hash", run.initial_state_sha256}})
                        << std::endl;
    return ok_status();
  }
  context.console.out << fmt::format("{}, {}, {} in {}\n", run.beginning(), name_of(kept.dtype),
                                     format_bytes(static_cast<double>(kept.parameters_bytes())),
                                     home.base_model_parameters().string())
                      << std::flush;
  return ok_status();
}

void tell(const HubBackupReport& report, const std::filesystem::path& path, bool json, const char* what,
          CommandContext& context) {
  if (json) {
    context.console.out << dumped({{"run_id", report.run_id},
                                   {"run", report.run_name},
                                   {"rounds", report.rounds},
                                   {"bytes", report.bytes},
                                   {"path", path.string()}})
                        << std::endl;
    return;
  }
  context.console.out << fmt::format("{} run {} ({}), {} committed, {}\n", what, report.run_name, path.string(),
                                     format_number_of(report.rounds, "round"),
                                     format_bytes(static_cast<double>(report.bytes)))
                      << std::flush;
}

Status backup(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  const std::filesystem::path place = command.argument.empty() ? "." : command.argument;
  ATOLL_ASSIGN_OR_RETURN(const HubBackupReport report,
                         back_up_hub(directory, std::filesystem::absolute(place).lexically_normal(), command.force));
  tell(report, report.file, command.json, "backed up", context);
  context.console.err
      << fmt::format("the file holds the run's keys: who has it can let anybody in. The dataset is not in it{}.",
                     report.begins_at_hub ? ", nor is the model with which the run began" : "")
      << std::endl;
  return ok_status();
}

Status restore(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const HubBackupReport report, restore_hub(command.argument, directory));
  tell(report, directory, command.json, "restored", context);
  const char* base_model =
      report.begins_at_hub
          ? " The model with which the run began, which islands fetch before round 1, is made anew by: "
            "atoll hub base-model DIR."
          : "";
  context.console.err
      << fmt::format(
             "if the dataset is elsewhere now: atoll hub data DIR.{} Islands tell it what it missed; of "
             "two hubs the one that was started last goes on, and the other one stops.",
             base_model)
      << std::endl;
  return ok_status();
}

// What changes a round that is to come wants one.
Status check_rounds_to_come(const std::string& home, const std::optional<std::uint32_t>& from_round) {
  ATOLL_ASSIGN_OR_RETURN(const auto answer, ask_serving_hub(home, method::StateGet::kName, nlohmann::json::object()));
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(answer));
  if (state.finished) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("run {} is finished, after {}: no round comes that could be another; its model begins "
                             "another run with atoll hub init --from",
                             printable(state.name), format_number_of(state.outer_step, "round"))};
  }
  if (!from_round || state.max_rounds == 0 || *from_round <= state.max_rounds) return ok_status();
  return Error{ErrorCode::kInvalidArgument, fmt::format("round {} never comes: run {} ends after round {}", *from_round,
                                                        printable(state.name), state.max_rounds)};
}

struct Decay {
  std::string home;
  std::optional<std::uint32_t> from_round;  // as people count, from 1
  method::RunDecay wish;
  bool cancel = false, json = false;
};

Status decay(const Decay& command, CommandContext& context) {
  if (!command.cancel && command.wish.rounds == 0) {
    return Error{ErrorCode::kInvalidArgument, "over how many rounds is the learning rate to fall? Say --rounds N"};
  }
  ATOLL_RETURN_IF_ERROR(check_rounds_to_come(command.home, command.from_round));
  method::RunDecay wish = command.wish;
  if (command.from_round) wish.from_round = *command.from_round - 1;
  ATOLL_ASSIGN_OR_RETURN(const auto answer,
                         command.cancel ? ask_serving_hub(command.home, method::RunDecayCancel::kName,
                                                          encode_message(method::RunDecayCancel{}))
                                        : ask_serving_hub(command.home, method::RunDecay::kName, encode_message(wish)));
  if (command.json) {
    context.console.out << dumped(answer) << std::endl;
    return ok_status();
  }
  if (command.cancel) {
    context.console.out << "taken back: the learning rate goes on as the run's configuration says" << std::endl;
    return ok_status();
  }
  ATOLL_ASSIGN_OR_RETURN(const auto decided, decode_message<method::DecayDecided>(answer));
  context.console.out << fmt::format("the learning rate falls to {} from round {} on, over {} ({})\n",
                                     decided.final_learning_rate, round_number(decided.from_round),
                                     format_number_of(decided.rounds, "round"), decided.shape)
                      << "the run goes on afterwards at that rate, until it is ended" << std::endl;
  return ok_status();
}

void add_decay(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<Decay>();
  CLI::App* sub = hub.add_subcommand("decay", "Let the learning rate fall, from a round on that has not begun");
  sub->footer(
      "Examples:\n  atoll hub decay --rounds 200                     from the next round on\n"
      "  atoll hub decay --from-round 1200 --rounds 200 --shape linear\n  atoll hub decay --cancel\n\n"
      "Instead of the decay of the run's configuration (hub init --decay-steps), for a run whose end is decided while\n"
      "it lives. It is recorded, and each island is told with the round.");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  auto* rounds =
      sub->add_option("--rounds", command->wish.rounds, "In which it falls")->check(whole_number(1, 1 << 30));
  auto* from = sub->add_option("--from-round", command->from_round, "The first of them (default: the next)")
                   ->check(whole_number(1, UINT32_MAX));
  auto* final_rate = sub->add_option("--final-lr", command->wish.final_learning_rate,
                                     "Learning rate at the end, and after it (default: the run's)")
                         ->check(number_between(0, 10));
  auto* shape = sub->add_option("--shape", command->wish.shape, "How it falls (default: 1-sqrt)")
                    ->check(CLI::IsMember(std::vector<std::string>(kDecayShapes.begin(), kDecayShapes.end())));
  auto* cancel = sub->add_flag("--cancel", command->cancel, "Take back what was decided, while it has not begun");
  for (CLI::Option* option : {rounds, from, final_rate, shape}) cancel->excludes(option);
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(decay(*command, context)); });
}

struct MixtureOptions {
  std::string home;
  std::optional<std::uint32_t> from_round;  // as people count, from 1
  method::RunMixture wish;
  bool cancel = false, json = false;
};

Status mixture(const MixtureOptions& command, CommandContext& context) {
  if (!command.cancel && command.wish.weights.empty()) {
    return Error{ErrorCode::kInvalidArgument, "in which shares? Say --weights NAME=SHARE,NAME=SHARE"};
  }
  ATOLL_RETURN_IF_ERROR(check_rounds_to_come(command.home, command.from_round));
  method::RunMixture wish = command.wish;
  if (command.from_round) wish.from_round = *command.from_round - 1;
  ATOLL_ASSIGN_OR_RETURN(
      const auto answer,
      command.cancel
          ? ask_serving_hub(command.home, method::RunMixtureCancel::kName, encode_message(method::RunMixtureCancel{}))
          : ask_serving_hub(command.home, method::RunMixture::kName, encode_message(wish)));
  if (command.json) {
    context.console.out << dumped(answer) << std::endl;
    return ok_status();
  }
  if (command.cancel) {
    context.console.out << "taken back: the mixture stays as it is" << std::endl;
    return ok_status();
  }
  ATOLL_ASSIGN_OR_RETURN(const auto decided, decode_message<method::MixtureDecided>(answer));
  context.console.out << fmt::format("from round {} on: {}\n", round_number(decided.from_round), decided.weights)
                      << std::flush;
  return ok_status();
}

void add_mixture(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<MixtureOptions>();
  CLI::App* sub = hub.add_subcommand("mixture", "Change the shares of the data's sources, from a round on");
  sub->footer(
      "Examples:\n  atoll hub mixture --weights web=0.55,code=0.2     from the next round on\n"
      "  atoll hub mixture --weights math=1 --from-round 1200\n  atoll hub mixture --cancel\n\n"
      "Of the sources that the run was made with (hub init --data); one that is not named has no share. It is\n"
      "recorded, signed with each round, and each island is told. Data that was leased before keeps its shares.");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  auto* weights =
      sub->add_option("--weights", command->wish.weights, "Shares, of any sum")->type_name("NAME=SHARE,...");
  auto* from = sub->add_option("--from-round", command->from_round, "The first such round (default: the next)")
                   ->check(whole_number(1, UINT32_MAX));
  auto* cancel = sub->add_flag("--cancel", command->cancel, "Take back what was decided, while it has not begun");
  for (CLI::Option* option : {weights, from}) cancel->excludes(option);
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(mixture(*command, context)); });
}

using Action = Status (*)(const HubAdmin&, CommandContext&);

struct Argument {
  const char* name = nullptr;  // none where there is no name
  const char* help = "";
  bool required = false;
};

CLI::App* add_action(CLI::App& hub, CommandContext& context, const char* name, const char* what, const char* examples,
                     Action action, const Argument& argument = {},
                     const std::shared_ptr<HubAdmin>& command = std::make_shared<HubAdmin>()) {
  CLI::App* sub = hub.add_subcommand(name, what);
  sub->footer(fmt::format("Examples:\n{}", examples));
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON");
  if (argument.name != nullptr) {
    sub->add_option(argument.name, command->argument, argument.help)
        ->type_name(argument.name)
        ->required(argument.required);
  }
  sub->callback([command, action, &context] { context.finish(action(*command, context)); });
  return sub;
}

}  // namespace

void add_hub_admin_commands(CLI::App& hub, CommandContext& context) {
  add_action(hub, context, "islands", "The islands that ever enrolled", "  atoll hub islands --json", islands);
  auto removal = std::make_shared<HubAdmin>();
  add_action(hub, context, "remove", "Take an island's membership away, at once",
             "  atoll hub remove isl-0123456789abcdef\n  atoll hub remove attic --yes", remove,
             {"ISLAND", "Its id, isl-..., or its name where one alone has it", true}, removal)
      ->add_flag("--yes", removal->yes, "Do not ask");
  add_action(hub, context, "config", "The run's configuration, on which its islands have agreed", "  atoll hub config",
             config);
  add_action(hub, context, "data", "Where the hub reads its dataset; with DIR: where it was moved to",
             "  atoll hub data\n  atoll hub data /srv/data\n  atoll hub data web=/srv/web", data,
             {"DIR", "Where it is now; of several NAME=DIR"});
  add_action(hub, context, "base-model",
             "The hub's copy of the model with which the run began; with DIR: made anew of that model",
             "  atoll hub base-model\n  atoll hub base-model SmolLM2-135M", base_model,
             {"DIR", "HuggingFace directory of that model, from which the lost copy is made anew"});
  auto saving = std::make_shared<HubAdmin>();
  add_action(hub, context, "backup", "All of the hub in one file; works while it serves",
             "  atoll hub backup hub.tar\n  atoll hub backup /srv/backups       hub-first-2026-03-14-092653.tar in it",
             backup, {"FILE", "To be written; in a directory (default: this one) it is named by run and time"}, saving)
      ->add_flag("--force", saving->force, "In place of a file that is there");
  add_action(hub, context, "restore", "A hub made of a backup", "  atoll hub restore hub.tar --home DIR", restore,
             {"FILE", "Made by 'atoll hub backup'", true});
  add_hub_rollback_command(hub, context);
  add_decay(hub, context);
  add_mixture(hub, context);
}

}  // namespace atl
