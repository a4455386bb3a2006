#include "app/cli/demo/demo_sample.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/own_programs.h"
#include "app/cli/text.h"
#include "net/base/child_process.h"
#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kSampleTime{60};
constexpr std::chrono::milliseconds kSampleLook{100};
constexpr std::ptrdiff_t kVisibleCharacters = 200;
constexpr const char* kPrompt = "An atoll is ";
constexpr const char* kMostTokens = "1000";

std::ptrdiff_t visible_characters(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return c != ' ' && c != '\n'; });
}

}  // namespace

Result<std::string> sample_of(const std::filesystem::path& model, const AbortSignal& interrupt) {
  const auto written = model.parent_path() / "sample.txt";
  ATOLL_ASSIGN_OR_RETURN(const auto trainer, locate_trainer());
  ATOLL_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::spawn({.program = trainer,
                                              .arguments = {"sample", "--model", model.string(), "--prompt", kPrompt,
                                                            "--tokens", kMostTokens, "--temperature", "0.7",
                                                            "--threads", "2", "--device", "processor"},
                                              .log = written}));
  const Deadline deadline = Deadline::after(kSampleTime);
  std::string text;
  for (;;) {
    const auto code = process.wait(Deadline::after(kSampleLook), &interrupt);
    ATOLL_ASSIGN_OR_RETURN(text, read_file(written));
    if (code.ok() && *code == 0) break;
    if (code.ok()) return Error{ErrorCode::kTrainerFailed, printable_lines(without_gaps(text))};
    if (code.error().code == ErrorCode::kAborted) return code.error();
    if (visible_characters(text) >= kVisibleCharacters) break;
    if (!deadline.expired()) continue;
    // What it wrote until the time was over is a sample as well.
    if (visible_characters(text) > visible_characters(kPrompt)) break;
    return Error{ErrorCode::kTimeout, fmt::format("the model wrote nothing in {} s", kSampleTime.count())};
  }
  return printable_lines(text);
}

}  // namespace atl
