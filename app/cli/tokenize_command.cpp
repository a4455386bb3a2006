// atoll tokenize: text -> the tokens that a tokenizer makes of it, and back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/console_input.h"
#include "app/cli/validators.h"
#include "net/base/file.h"
#include "net/base/json_text.h"
#include "net/base/printable.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

constexpr std::size_t kMaxInput = std::size_t{1} << 30;     // bytes of text, or of numbers
constexpr std::size_t kOutputPiece = std::size_t{1} << 20;  // bytes that are written at once

struct Tokenize {
  std::string tokenizer, pattern, input;
  bool decode = false, special = false, json = false;
};

// The file, or standard input to its end.
Result<std::string> read_all(const std::string& file, const AbortSignal& interrupt) {
  if (!file.empty() && file != "-") return read_file(file, kMaxInput);
  std::string all;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const std::string piece, read_input(interrupt));
    if (piece.empty()) return all;
    if (all.size() + piece.size() > kMaxInput) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("standard input is longer than {} MiB; give it in parts", kMaxInput >> 20)};
    }
    all += piece;
  }
}

Error no_ids(std::string why) {
  return Error{
      ErrorCode::kInvalidArgument,
      std::move(why) + ": --decode reads what 'atoll tokenize' prints, numbers with spaces between, or with --json"};
}

Result<std::vector<TokenId>> ids_of_json(std::string_view text) {
  constexpr int kDepth = 3;
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json document, parse_bounded_json(text, kMaxInput, kDepth));
  const auto found = document.find("ids");
  if (found == document.end() || !found->is_array()) return no_ids("there is no list \"ids\"");
  std::vector<TokenId> ids;
  ids.reserve(found->size());
  for (const nlohmann::json& id : *found) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > UINT32_MAX) {
      return no_ids(fmt::format("entry {} of \"ids\" is no token", ids.size()));
    }
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

Result<std::vector<TokenId>> ids_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpaces);
  if (first != std::string_view::npos && text[first] == '{') return ids_of_json(text);
  std::vector<TokenId> ids;
  for (std::size_t at = first; at < text.size(); at = text.find_first_not_of(kSpaces, at)) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end) {
      constexpr std::size_t kShown = 32;
      return no_ids(fmt::format("'{}' is no token", printable(text.substr(at, std::min(end - at, kShown)))));
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

// {"ids": [1, 2]}, or 1 2; a line.
void print(const std::vector<TokenId>& ids, bool json, std::ostream& out) {
  std::string text = json ? "{\"ids\":[" : "";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += json ? ',' : ' ';
    fmt::format_to(std::back_inserter(text), "{}", ids[i]);
    if (text.size() >= kOutputPiece) {
      out << text;
      text.clear();
    }
  }
  out << text << (json ? "]}\n" : "\n") << std::flush;
}

Status run(const Tokenize& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(command.tokenizer, parse_split_pattern(command.pattern)));
  ATOLL_ASSIGN_OR_RETURN(const std::string input, read_all(command.input, context.interrupt));
  if (command.decode) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ids_of(input));
    std::string bytes;
    ATOLL_RETURN_IF_ERROR(tokenizer->decode(ids, bytes));
    context.console.out << bytes << std::flush;
    return ok_status();
  }
  std::vector<TokenId> ids;
  const auto scratch = tokenizer->make_scratch();
  const SpecialText special = command.special ? SpecialText::kIsToken : SpecialText::kIsText;
  ATOLL_RETURN_IF_ERROR(tokenizer->encode(input, special, *scratch, ids));
  print(ids, command.json, context.console.out);
  return ok_status();
}

}  // namespace

void add_tokenize_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Tokenize>();
  CLI::App* sub =
      app.add_subcommand("tokenize", "Print the tokens that a tokenizer makes of text, or the text of tokens");
  sub->footer(
      "Examples:\n"
      "  atoll tokenize --tokenizer tokenizer.json book.txt\n"
      "  echo -n 'An atoll is' | atoll tokenize --tokenizer Llama-3/tokenizer.model --json\n"
      "  atoll tokenize --tokenizer bytes book.txt | atoll tokenize --tokenizer bytes --decode\n\n"
      "Reads a tokenizer.json of BPE (GPT-2, Llama, Qwen, SmolLM, DeepSeek, Mistral, Gemma), Llama 3's\n"
      "tokenizer.model, and tiktoken's files; a directory with one of them; or 'bytes'.");
  sub->add_option("--tokenizer", command->tokenizer, "The tokenizer's file, or 'bytes'")->required()->type_name("FILE");
  sub->add_option("--pattern", command->pattern, "How text is cut, for a tiktoken file that is none of the known ones")
      ->check(is_split_pattern());
  auto* special = sub->add_flag("--special", command->special, "Names of special tokens in the text are these tokens");
  auto* json = sub->add_flag("--json", command->json, "Print JSON");
  sub->add_flag("--decode", command->decode, "Read tokens and print their text")->excludes(special)->excludes(json);
  sub->add_option("INPUT", command->input, "Text, or tokens with --decode (default: standard input)")
      ->type_name("FILE");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
