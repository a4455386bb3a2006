#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_text.h"
#include "net/base/printable.h"
#include "trainer/evaluate/generate.h"
#include "trainer/program/inference_source.h"
#include "trainer/program/program.h"

namespace atl {
namespace {

constexpr std::size_t kMaxPromptsFile = std::size_t{1} << 30;  // bytes
constexpr std::size_t kMaxPromptLine = std::size_t{16} << 20;

Result<std::vector<std::string>> read_prompts(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxPromptsFile));
  std::vector<std::string> prompts;
  std::string_view left = text;
  for (int number = 1; !left.empty(); ++number) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto bad = [&](std::string_view why) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}, line {}: {}; each line must be {{\"prompt\": TEXT}}", file.string(), number, why)};
    };
    const auto parsed = parse_bounded_json(line, kMaxPromptLine, 8);
    if (!parsed.ok()) return bad(parsed.error().message);
    const auto found = parsed->is_object() ? parsed->find("prompt") : parsed->end();
    if (!parsed->is_object() || found == parsed->end() || !found->is_string()) return bad("there is no prompt in it");
    prompts.push_back(found->get<std::string>());
  }
  if (!prompts.empty()) return prompts;
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} has no prompt", file.string())};
}

// Prints texts one after the other: the first that has not ended as it is written, those behind it when it has.
class Printer {
 public:
  Printer(std::span<const std::string> prompts, bool json) : prompts_(prompts), json_(json), texts_(prompts.size()) {}

  void add(std::size_t prompt, std::string_view text) {
    texts_[prompt].written += text;
    show();
  }
  void end(std::size_t prompt, const Completion& completion) {
    texts_[prompt].completion = completion;
    show();
  }

 private:
  struct Text {
    std::string written;  // and not shown yet
    std::optional<Completion> completion;
  };

  void show() {
    while (current_ < texts_.size()) {
      Text& text = texts_[current_];
      if (!json_) {
        if (!std::exchange(begun_, true)) begin();
        print(std::exchange(text.written, {}));
      }
      if (!text.completion) return;
      json_ ? print_json(*text.completion) : void(std::cout << '\n');
      text = {};
      ++current_;
      begun_ = false;
      line_.clear();
      shown_ = 0;
    }
  }

  void begin() {
    if (prompts_.size() > 1)
      std::cout << fmt::format("{}--- {} of {}\n", current_ == 0 ? "" : "\n", current_ + 1, prompts_.size());
    print(prompts_[current_]);
  }

  // Whether a character can be shown depends on those before it in its line.
  void print(std::string_view text) {
    line_ += text;
    const std::string shown = printable_lines(line_);
    if (shown.size() > shown_) std::cout << std::string_view(shown).substr(shown_);
    std::cout.flush();
    const std::size_t end = line_.rfind('\n');
    if (end != std::string::npos) line_.erase(0, end + 1);
    shown_ = end == std::string::npos ? shown.size() : printable_lines(line_).size();
  }

  void print_json(const Completion& completion) const {
    // Bytes that are not UTF-8 (a character cut off at the end) are replaced.
    const nlohmann::json json{{"prompt", prompts_[current_]},
                              {"continuation", completion.text},
                              {"tokens", completion.tokens},
                              {"end", text_end_name(completion.end)}};
    std::cout << dump_json(json) << '\n';
    std::cout.flush();
  }

  const std::span<const std::string> prompts_;
  const bool json_;
  std::vector<Text> texts_;
  std::size_t current_ = 0;
  bool begun_ = false;
  std::string line_;
  std::size_t shown_ = 0;  // of its printable text
};

}  // namespace

Status sample_model(const SampleCommand& command) {
  std::vector<std::string> prompts = command.prompts;
  if (!command.prompts_file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(prompts, read_prompts(command.prompts_file));
  }
  if (prompts.empty()) prompts.emplace_back();
  ATOLL_ASSIGN_OR_RETURN(const OpenedModel model, open_model(command.source));
  ATOLL_ASSIGN_OR_RETURN(ModelText text, load_model_text(model, command.inference));
  std::vector<std::vector<std::int32_t>> tokens;
  // A text begins after what the model saw before each document.
  for (const std::string& prompt : prompts) {
    ATOLL_ASSIGN_OR_RETURN(tokens.emplace_back(), text.encode_prompt(prompt));
  }
  const std::int64_t capacity = needed_capacity(tokens, command.tokens, model.reader.config().max_position_embeddings);
  ATOLL_ASSIGN_OR_RETURN(const auto engine, load_inference(model, command.inference, std::ssize(prompts), capacity));
  Printer printer(prompts, command.json);
  const GenerateOptions options{.tokens = command.tokens,
                                .sampling = {.temperature = command.temperature,
                                             .top_k = command.top_k,
                                             .top_p = command.top_p,
                                             .seed = command.seed},
                                .stops = command.stops};
  return generate(
      *engine, text, tokens, options,
      {.on_text = [&](std::size_t prompt, std::string_view more) { printer.add(prompt, more); },
       .on_end = [&](std::size_t prompt, const Completion& completion) { printer.end(prompt, completion); }});
}

}  // namespace atl
