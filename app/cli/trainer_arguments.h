// How `export`, `eval` and `sample` run: atoll-trainer as a child process, with arguments in its spelling, whose exit
// code is passed on. Used by their commands alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/cli/command.h"

namespace atl {

// Arguments for the trainer, in its spelling: those that the person gave.
class TrainerArguments {
 public:
  explicit TrainerArguments(std::string subcommand) : arguments_{std::move(subcommand)} {}
  // Nothing where `value` is empty.
  void add(const char* flag, const std::string& value);
  void add_all(const char* flag, const std::vector<std::string>& values);
  void add_path(const char* flag, const std::string& value);
  void add_flag(const char* flag, bool given);
  // A home that has joined a run: only such a one has a model.
  Status add_home(const std::string& given);
  // The owner's object store, as the configuration of this user has it: in its environment.
  Status add_store();
  // What computes and which GPU may, the first of a list, as given, else as the configuration of this user has it for
  // training.
  Status add_device(const std::string& device, const std::string& gpus);
  const std::vector<std::string>& get() const { return arguments_; }
  const std::map<std::string, std::string>& environment() const { return environment_; }

 private:
  std::vector<std::string> arguments_;
  std::map<std::string, std::string> environment_;
};

// Where the model comes from: --model or --home; without either the default home.
struct TrainerModelSource {
  std::string model, home;

  void add_to(CLI::App& command);
  Status append_to(TrainerArguments& arguments) const;
};

// How a model is computed that is asked and continued.
struct TrainerInference {
  std::string tokenizer, batch, threads, device, gpus;
  bool bf16 = false;

  void add_to(CLI::App& command);
  Status append_to(TrainerArguments& arguments, const AbortSignal& interrupt) const;
};

void run_trainer(const TrainerArguments& arguments, CommandContext& context);

}  // namespace atl
