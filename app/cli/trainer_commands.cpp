// atoll export, eval, sample: run atoll-trainer with the same arguments, and pass its exit code on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "app/cli/command.h"
#include "app/cli/own_programs.h"
#include "app/cli/validators.h"
#include "net/base/child_process.h"
#include "net/control/home.h"

namespace atl {
namespace {

// Arguments for the trainer, in its spelling: those that the person gave.
class TrainerArguments {
 public:
  explicit TrainerArguments(std::string subcommand) : arguments_{std::move(subcommand)} {}
  void add(const char* flag, const std::string& value) {
    // One argument, so that a value that begins with '-' is not taken for a flag.
    if (!value.empty()) arguments_.push_back(fmt::format("{}={}", flag, value));
  }
  void add_path(const char* flag, const std::string& value) {
    if (!value.empty()) add(flag, std::filesystem::absolute(value).string());
  }
  void add_flag(const char* flag, bool given) {
    if (given) arguments_.push_back(flag);
  }
  const std::vector<std::string>& get() const { return arguments_; }

 private:
  std::vector<std::string> arguments_;
};

void run_trainer(const TrainerArguments& arguments, CommandContext& context) {
  const auto run = [&]() -> Result<int> {
    ATOLL_ASSIGN_OR_RETURN(const auto trainer, locate_trainer());
    context.console.out.flush();
    ATOLL_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::spawn({.program = trainer, .arguments = arguments.get()}));
    auto code = child.wait(Deadline::after(std::chrono::hours(24)), &context.interrupt);
    if (code.ok() || code.error().code != ErrorCode::kAborted) return code;
    child.terminate(Deadline::after(std::chrono::seconds(5)));
    return kExitInterrupted;
  };
  const auto code = run();
  if (!code.ok()) return context.finish(code.error());
  // The trainer has said why on our stderr, unless a signal ended it.
  context.exit_code = *code;
  if (*code >= 127 && !context.interrupt.raised()) {
    context.finish(Error{ErrorCode::kTrainerFailed, fmt::format("atoll-trainer died (status {})", *code)});
  }
}

// A home that has joined a run: only such a one has a model.
Status append_home(const std::string& given, TrainerArguments& arguments) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, island_home_or_default(given));
  ATOLL_RETURN_IF_ERROR(load_join_file(IslandHome{directory}.join_file()));
  arguments.add("--home", directory.string());
  return ok_status();
}

// Where the model comes from: --model or --home; without either the default home.
struct Source {
  std::string model, home;

  void add_to(CLI::App& command) {
    auto* model_option =
        command.add_option("--model", model, "Exported model: a HuggingFace directory")->type_name("DIR");
    command.add_option("--home", home, "Island's home: the model that it trains (default: this user's island)")
        ->type_name("DIR")
        ->excludes(model_option);
  }
  Status append_to(TrainerArguments& arguments) const {
    arguments.add_path("--model", model);
    if (!model.empty()) return ok_status();
    return append_home(home, arguments);
  }
};

struct Export {
  std::string home, output;
  bool json = false;
};
struct Eval {
  Source source;
  std::string data, split = "validation", sequences, sequence_length, threads;
  bool json = false;
};
struct Sample {
  Source source;
  std::string prompt, tokens, temperature, top_k, seed, threads;
  bool json = false;
};

}  // namespace

void add_export_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Export>();
  CLI::App* sub = app.add_subcommand("export", "Write the model that an island trains as a HuggingFace directory");
  sub->footer("Example:\n  atoll export --output my-model\n\nWorks while the island trains and when it does not.");
  sub->add_option("--home", command->home, "Island's home (default: this user's island)")->type_name("DIR");
  sub->add_option("-o,--output", command->output, "Directory to write")->required()->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] {
    TrainerArguments arguments("export");
    if (const Status status = append_home(command->home, arguments); !status.ok()) return context.finish(status);
    arguments.add_path("--output", command->output);
    arguments.add_flag("--json", command->json);
    run_trainer(arguments, context);
  });
}

void add_eval_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Eval>();
  CLI::App* sub = app.add_subcommand("eval", "Validation loss of a model");
  sub->footer("Example:\n  atoll eval --model my-model --data data --sequences 64");
  command->source.add_to(*sub);
  sub->add_option("--data", command->data, "Dataset made by 'atoll data prepare'")->required()->type_name("DIR");
  sub->add_option("--split", command->split, "Which split")
      ->check(CLI::IsMember({"validation"}))
      ->capture_default_str();
  sub->add_option("--sequences", command->sequences, "How many sequences")->check(whole_number(1, 1 << 20));
  sub->add_option("--sequence-length", command->sequence_length, "Tokens in each")->check(whole_number(1, 1 << 20));
  sub->add_option("--threads", command->threads, "Compute threads")->check(whole_number(1, 1024));
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] {
    TrainerArguments arguments("eval");
    if (const Status status = command->source.append_to(arguments); !status.ok()) return context.finish(status);
    arguments.add_path("--data", command->data);
    arguments.add("--sequences", command->sequences);
    arguments.add("--sequence-length", command->sequence_length);
    arguments.add("--threads", command->threads);
    arguments.add_flag("--json", command->json);
    run_trainer(arguments, context);
  });
}

void add_sample_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Sample>();
  CLI::App* sub = app.add_subcommand("sample", "Continue a prompt with a model");
  sub->footer("Example:\n  atoll sample --model my-model --prompt 'An atoll is' --tokens 200");
  command->source.add_to(*sub);
  sub->add_option("--prompt", command->prompt, "Text to continue");
  sub->add_option("--tokens", command->tokens, "How many to add")->check(whole_number(1, 1 << 20));
  sub->add_option("--temperature", command->temperature, "0: always the likeliest")->check(number_between(0, 100));
  sub->add_option("--top-k", command->top_k, "Choose among the k likeliest; 0: all")->check(whole_number(0, 1 << 20));
  sub->add_option("--seed", command->seed, "Of the choices")->check(whole_number(0, UINT64_MAX));
  sub->add_option("--threads", command->threads, "Compute threads")->check(whole_number(1, 1024));
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] {
    TrainerArguments arguments("sample");
    if (const Status status = command->source.append_to(arguments); !status.ok()) return context.finish(status);
    arguments.add("--prompt", command->prompt);
    arguments.add("--tokens", command->tokens);
    arguments.add("--temperature", command->temperature);
    arguments.add("--top-k", command->top_k);
    arguments.add("--seed", command->seed);
    arguments.add("--threads", command->threads);
    arguments.add_flag("--json", command->json);
    run_trainer(arguments, context);
  });
}

}  // namespace atl
