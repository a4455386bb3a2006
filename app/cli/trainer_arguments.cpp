#include "app/cli/trainer_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "app/agent/agent_config.h"
#include "app/agent/trainer_process.h"
#include "app/cli/gpu_choice.h"
#include "app/cli/own_programs.h"
#include "app/cli/validators.h"
#include "app/config/gpu_list.h"
#include "net/base/child_process.h"
#include "net/control/home.h"

namespace atl {
namespace {

// A large model takes days for a large task on a processor; who wants no more of it interrupts it.
constexpr std::chrono::hours kLongest{24 * 365};

}  // namespace

// One argument, so that a value that begins with '-' is not taken for a flag.
void TrainerArguments::add(const char* flag, const std::string& value) {
  if (!value.empty()) arguments_.push_back(fmt::format("{}={}", flag, value));
}

void TrainerArguments::add_all(const char* flag, const std::vector<std::string>& values) {
  for (const std::string& value : values) arguments_.push_back(fmt::format("{}={}", flag, value));
}

void TrainerArguments::add_path(const char* flag, const std::string& value) {
  if (!value.empty()) add(flag, std::filesystem::absolute(value).string());
}

void TrainerArguments::add_flag(const char* flag, bool given) {
  if (given) arguments_.push_back(flag);
}

Status TrainerArguments::add_home(const std::string& given) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, island_home_or_default(given));
  ATOLL_RETURN_IF_ERROR(load_membership(IslandHome{directory}));
  add("--home", directory.string());
  return ok_status();
}

Status TrainerArguments::add_store() {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(""));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  environment_ = store_environment(store_settings(config));
  return ok_status();
}

Status TrainerArguments::add_device(const std::string& device, const std::string& gpus) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(""));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  add("--device", device.empty() ? config.text("island.device") : device);
  ATOLL_ASSIGN_OR_RETURN(GpuList chosen, parse_gpu_list(gpus.empty() ? config.text("island.gpus") : gpus));
  // One computes, and the others are not to be touched.
  if (chosen.numbers && chosen.numbers->size() > 1) chosen.numbers->resize(1);
  if (const auto visible = chosen.visible_devices()) {
    environment_["CUDA_VISIBLE_DEVICES"] = *visible;
    environment_["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // as nvidia-smi counts
  }
  return ok_status();
}

void TrainerModelSource::add_to(CLI::App& command) {
  auto* model_option =
      command.add_option("--model", model, "Exported model: a HuggingFace directory")->type_name("DIR");
  command.add_option("--home", home, "Island's home: the model that it trains (default: this user's island)")
      ->type_name("DIR")
      ->excludes(model_option);
}

Status TrainerModelSource::append_to(TrainerArguments& arguments) const {
  arguments.add_path("--model", model);
  if (!model.empty()) return ok_status();
  return arguments.add_home(home);
}

void TrainerInference::add_to(CLI::App& command) {
  command
      .add_option("--tokenizer", tokenizer,
                  "tokenizer.json or tokenizer.model, or 'bytes' (default: the model's own, else bytes)")
      ->type_name("FILE");
  command.add_flag("--bf16", bf16, "Compute in bf16, in half the memory");
  command.add_option("--batch", batch, "Texts at once (default: 8)")->check(whole_number(1, 1 << 16));
  command.add_option("--threads", threads, "Compute threads of the processor")->check(whole_number(1, 1024));
  command
      .add_option(
          "--device", device,
          "What computes: auto (a GPU, where there is one and the model fits, else the processor), processor or "
          "gpu (default: island.device)")
      ->type_name("WORD")
      ->check(is_device());
  command.add_option("--gpus", gpus, "GPUs, of which the first computes (default: island.gpus)")
      ->type_name("LIST")
      ->check([](const std::string& text) {
        const auto list = parse_gpu_list(text);
        return list.ok() ? std::string() : list.error().message;
      });
}

Status TrainerInference::append_to(TrainerArguments& arguments, const AbortSignal& interrupt) const {
  if (!gpus.empty()) ATOLL_RETURN_IF_ERROR(check_gpus_exist(gpus, interrupt));
  if (tokenizer == "bytes") {
    arguments.add("--tokenizer", tokenizer);
  } else {
    arguments.add_path("--tokenizer", tokenizer);
  }
  arguments.add_flag("--bf16", bf16);
  arguments.add("--batch", batch);
  arguments.add("--threads", threads);
  return arguments.add_device(device, gpus);
}

void run_trainer(const TrainerArguments& arguments, CommandContext& context) {
  const auto run = [&]() -> Result<int> {
    ATOLL_ASSIGN_OR_RETURN(const auto trainer, locate_trainer());
    context.console.out.flush();
    ATOLL_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::spawn({.program = trainer,
                                                                    .arguments = arguments.get(),
                                                                    .environment = arguments.environment()}));
    auto code = child.wait(Deadline::after(kLongest), &context.interrupt);
    if (code.ok() || code.error().code != ErrorCode::kAborted) return code;
    child.terminate(Deadline::after(std::chrono::seconds(5)));
    return kExitInterrupted;
  };
  const auto code = run();
  if (!code.ok()) return context.finish(code.error());
  // The trainer has said why on our stderr, unless a signal ended it.
  context.exit_code = *code;
  if (*code == 128 + SIGPIPE && context.console.output != nullptr) return context.console.output->note_failure(EPIPE);
  if (*code >= 127 && !context.interrupt.raised()) {
    context.finish(Error{ErrorCode::kTrainerFailed, fmt::format("atoll-trainer died (status {})", *code)});
  }
}

}  // namespace atl
