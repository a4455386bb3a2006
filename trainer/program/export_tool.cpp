#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "net/base/round_words.h"
#include "net/control/home.h"
#include "net/control/methods.h"
#include "trainer/island/model_export.h"
#include "trainer/program/model_source.h"
#include "trainer/program/program.h"
#include "trainer/program/trainer_environment.h"

namespace atl {
namespace {

// On one line of a terminal that somebody looks at.
void show_progress(std::uint64_t done, std::uint64_t of) {
  if (::isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r{:.1f} of {:.1f} GB {}", static_cast<double>(done) / 1e9, static_cast<double>(of) / 1e9,
             done == of ? "\n" : "");
}

Result<OuterStep> export_it(const ExportCommand& command, const ModelFilesOptions& files) {
  const auto wanted = command.round ? std::optional(OuterStep{*command.round}) : std::nullopt;
  if (!command.run.empty()) {
    const IslandHome home{command.home};
    return export_checkpoint(home.checkpoint_of(command.run), {.run_id = command.run}, home.data(), command.output,
                             files, wanted);
  }
  if (command.from.empty()) {
    return export_from_home(command.home, command.output, files, /*for_others=*/true, wanted);
  }
  const IslandHome home{command.home};
  const bool has_home = !command.home.empty();
  return export_published(command.from, store_of_environment(), has_home ? home.checkpoint() : "",
                          has_home ? home.data() : "", command.output, files, show_progress);
}

}  // namespace

Status export_model(const ExportCommand& command) {
  const auto dtype = parse_model_dtype(command.dtype);
  if (!dtype) return Error{ErrorCode::kInvalidArgument, "--dtype must be float32 or bfloat16"};
  ATOLL_ASSIGN_OR_RETURN(const OuterStep outer_step, export_it(command, {*dtype, command.max_shard_bytes}));
  if (command.json) {
    const nlohmann::json exported = encode_message(method::ModelExported{command.output.string(), outer_step.value});
    std::cout << exported.dump() << '\n';
  } else {
    std::cout << fmt::format("exported the state {} to {} ({})\n", after_round(outer_step.value),
                             command.output.string(), command.dtype);
  }
  return ok_status();
}

}  // namespace atl
