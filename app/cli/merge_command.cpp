// atoll merge: several models of one shape -> one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/model_files_options.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/deadline.h"
#include "net/model_files/merge_models.h"

namespace atl {
namespace {

struct Merge {
  std::string method = "linear", base, output;
  std::vector<std::string> models;
  std::vector<double> densities;
  std::optional<double> t, lambda;
  std::optional<std::uint64_t> seed;
  bool normalize = false, no_normalize = false, force = false, json = false;
  ModelFilesArguments files;
};

Error usage(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

// DIR or DIR:WEIGHT. A directory whose own name ends so is taken as it is.
void add_model(const std::string& text, ModelMerge& merge) {
  const std::size_t colon = text.rfind(':');
  std::error_code failed;
  double weight = 1;
  if (colon != std::string::npos && !std::filesystem::exists(text, failed)) {
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data() + colon + 1, end, weight);
    if (error == std::errc() && parsed == end) {
      merge.models.emplace_back(text.substr(0, colon));
      merge.recipe.weights.push_back(weight);
      return;
    }
  }
  merge.models.emplace_back(text);
  merge.recipe.weights.push_back(1);
}

// What this method does not read is refused: whoever wrote it means another one.
Status check_options(const Merge& command, MergeMethod method) {
  const auto refuse = [&](const char* option, const char* of) {
    return usage(fmt::format("{} is of {}, not of {}", option, of, name_of(method)));
  };
  if (!needs_base(method)) {
    if (!command.base.empty()) return refuse("--base", "task-arithmetic, ties and DARE");
    if (command.lambda) return refuse("--lambda", "task-arithmetic, ties and DARE");
  } else if (command.base.empty()) {
    return usage(fmt::format("{} adds up what models learned since they were one: name that one with --base DIR",
                             name_of(method)));
  }
  if (command.t && method != MergeMethod::kSlerp) return refuse("--t", "slerp");
  if (command.seed && !draws(method)) return refuse("--seed", "DARE");
  if (method == MergeMethod::kSlerp && (command.normalize || command.no_normalize)) {
    return refuse("--normalize", "the other methods");
  }
  if (has_density(method) == command.densities.empty()) {
    if (!command.densities.empty()) return refuse("--density", "ties and DARE");
    return usage(fmt::format("{} keeps a part of what each model learned: say which, for instance --density 0.5",
                             name_of(method)));
  }
  if (command.densities.size() > 1 && command.densities.size() != command.models.size()) {
    return usage(fmt::format("--density stands {} times, and there are {} models; give one for all, or one for each",
                             command.densities.size(), command.models.size()));
  }
  return ok_status();
}

Result<ModelMerge> merge_of(const Merge& command) {
  const MergeMethod method = parse_merge_method(command.method).value_or(MergeMethod::kLinear);
  ATOLL_RETURN_IF_ERROR(check_options(command, method));
  ModelMerge merge;
  merge.recipe.method = method;
  for (const std::string& model : command.models) add_model(model, merge);
  if (method == MergeMethod::kSlerp && std::ranges::any_of(merge.recipe.weights, [](double w) { return w != 1; })) {
    return usage("slerp has no weights, but --t: 0 is the first model, 1 the second");
  }
  merge.recipe.densities = command.densities;
  if (command.densities.size() == 1) merge.recipe.densities.resize(merge.models.size(), command.densities[0]);
  if (command.t) merge.recipe.t = *command.t;
  if (command.lambda) merge.recipe.lambda = *command.lambda;
  if (command.seed) merge.recipe.seed = *command.seed;
  if (command.normalize || command.no_normalize) merge.recipe.normalize = command.normalize;
  if (!command.base.empty()) merge.base = command.base;
  merge.output = command.output;
  merge.files = command.files.options();
  merge.other_tokenizers = command.force;
  ATOLL_RETURN_IF_ERROR(merge.recipe.validate());
  std::error_code failed;
  if (!command.force && std::filesystem::exists(merge.output, failed) &&
      !std::filesystem::is_empty(merge.output, failed)) {
    return Error{ErrorCode::kConflict, fmt::format("there is something in {} already; choose another directory, or "
                                                   "replace the model that is there with --force",
                                                   command.output)};
  }
  return merge;
}

Status run(const Merge& command, CommandContext& context) {
  Console& console = context.console;
  ATOLL_ASSIGN_OR_RETURN(const ModelMerge merge, merge_of(command));
  const auto began = Clock::now();
  auto shown = began;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    if (!console.err_is_terminal || Clock::now() - shown < std::chrono::milliseconds(100)) return;
    shown = Clock::now();
    const double seconds = Seconds(shown - began).count();
    const double left = seconds * static_cast<double>(total - done) / static_cast<double>(done);
    console.err << fmt::format("\r\033[Kmerging {:.0f} %, {:.0f} s left",
                               100.0 * static_cast<double>(done) / static_cast<double>(total), left)
                << std::flush;
  };
  const auto on_note = [&](const std::string& note) { console.err << fmt::format("note: {}\n", note) << std::flush; };
  const auto parameters = merge_models(merge, context.interrupt, progress, on_note);
  if (console.err_is_terminal) console.err << "\r\033[K" << std::flush;
  if (!parameters.ok()) return parameters.error();
  if (command.json) {
    console.out << nlohmann::json{{"directory", command.output},
                                  {"method", command.method},
                                  {"models", merge.models.size()},
                                  {"parameters", *parameters},
                                  {"dtype", command.files.dtype}}
                       .dump()
                << std::endl;
    return ok_status();
  }
  console.out << fmt::format("{}: {} parameters of {} models, merged by {}, {}\n", command.output,
                             format_count(static_cast<std::uint64_t>(*parameters)), merge.models.size(), command.method,
                             command.files.dtype)
              << std::flush;
  return ok_status();
}

constexpr const char* kHelp =
    "Examples:\n"
    "  atoll merge --model a --model b -o both\n"
    "  atoll merge --method slerp --model a --model b --t 0.3 -o between\n"
    "  atoll merge --method ties --base start --model a:0.5 --model b:0.5 --density 0.4 -o both\n\n"
    "linear: the weighted mean. slerp: between two models, on the sphere. The others add to --base what each model\n"
    "learned since it was that one: task-arithmetic all of it; ties the largest part of it (--density), and of\n"
    "several models only what agrees in sign; dare-linear and dare-ties a part of it that is drawn at random.\n"
    "As mergekit defines them. All models have one shape and one tokenizer, which goes along: the base's, or the\n"
    "first one's.";

}  // namespace

void add_merge_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Merge>();
  CLI::App* sub = app.add_subcommand("merge", "Merge models of one shape into one");
  sub->footer(kHelp);
  sub->add_option("--method", command->method, fmt::format("{}", fmt::join(kMergeMethodNames, ", ")))
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kMergeMethodNames), std::end(kMergeMethodNames))))
      ->capture_default_str();
  sub->add_option("--model", command->models, "HuggingFace directory, with its weight (default 1); once for each")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("DIR[:WEIGHT]");
  sub->add_option("--base", command->base, "The model that the others were once")->type_name("DIR");
  sub->add_option("--density", command->densities, "Part of what a model learned that is kept; once, or for each model")
      ->check(number_between(0, 1))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--lambda", command->lambda, "Multiplies what is added to the base (default 1)");
  auto* normalize = sub->add_flag("--normalize", command->normalize,
                                  "Divide by the sum of the weights (linear and ties do unless told not to)");
  sub->add_flag("--no-normalize", command->no_normalize, "Do not")->excludes(normalize);
  sub->add_option("--t", command->t, "slerp: 0 is the first model, 1 the second (default 0.5)")
      ->check(number_between(0, 1));
  sub->add_option("--seed", command->seed, "DARE: of what is drawn (default 1)")->check(whole_number(0, UINT64_MAX));
  command->files.add_to(*sub);
  sub->add_option("-o,--output", command->output, "Directory to make")->required()->type_name("DIR");
  sub->add_flag("--force", command->force, "Replace a model that is there; merge models of several tokenizers, too");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
