#include "net/evaluate/task_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "net/base/file.h"
#include "net/base/json_text.h"

namespace atl {
namespace {

using nlohmann::json;

// Of the line that begins the file.
struct Header {
  std::string few_shot;         // before every context
  std::string delimiter = " ";  // between context and choice
};

Error bad(std::string what) { return Error{ErrorCode::kInvalidArgument, std::move(what)}; }

Status text_field(const json& line, const char* name, std::string& value) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_string()) return bad(fmt::format("\"{}\" must be a text", name));
  value = found->get<std::string>();
  return ok_status();
}

Status texts_field(const json& line, const char* name, std::vector<std::string>& values) {
  const auto found = line.find(name);
  const bool texts = found != line.end() && found->is_array() && !found->empty() &&
                     std::ranges::all_of(*found, [](const json& one) { return one.is_string(); });
  if (!texts) return bad(fmt::format("\"{}\" must be a list of texts", name));
  values = found->get<std::vector<std::string>>();
  return ok_status();
}

Status gold_field(const json& line, std::size_t choices, std::vector<std::int64_t>& gold) {
  const auto found = line.find("gold");
  if (found == line.end()) return bad("\"gold\" must be the number of the right choice, from 0");
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json& one : list) {
    const bool fits = one.is_number_integer() && one >= 0 && one < choices;
    if (!fits) return bad(fmt::format("\"gold\" must be the number of a choice, from 0 to {}", choices - 1));
    gold.push_back(one.get<std::int64_t>());
  }
  return gold.empty() ? Status(bad("\"gold\" names no choice")) : ok_status();
}

// One context and several choices, or, as WinoGrande has it, several contexts and what follows each.
Status read_choices(const json& line, const Header& header, TaskDocument& document) {
  if (line.contains("contexts")) {
    std::string continuation;
    ATOLL_RETURN_IF_ERROR(texts_field(line, "contexts", document.choices));
    ATOLL_RETURN_IF_ERROR(text_field(line, "continuation", continuation));
    for (const std::string& context : document.choices) document.contexts.push_back(header.few_shot + context);
    document.continuations.assign(document.choices.size(), header.delimiter + continuation);
  } else {
    std::string context;
    ATOLL_RETURN_IF_ERROR(text_field(line, "context", context));
    ATOLL_RETURN_IF_ERROR(texts_field(line, "choices", document.choices));
    document.contexts.assign(document.choices.size(), header.few_shot + context);
    for (const std::string& choice : document.choices) document.continuations.push_back(header.delimiter + choice);
  }
  for (const std::string& choice : document.choices) {
    if (choice.empty()) return bad("a choice is empty");
  }
  return gold_field(line, document.choices.size(), document.gold);
}

Result<TaskDocument> read_document(const json& line, TaskKind kind, const Header& header) {
  TaskDocument document;
  if (kind == TaskKind::kMultipleChoice) {
    ATOLL_RETURN_IF_ERROR(read_choices(line, header, document));
    return document;
  }
  std::string continuation;
  std::string context;
  if (kind == TaskKind::kRolling) {
    ATOLL_RETURN_IF_ERROR(text_field(line, "text", continuation));
  } else {
    ATOLL_RETURN_IF_ERROR(text_field(line, "context", context));
    ATOLL_RETURN_IF_ERROR(text_field(line, "continuation", continuation));
    context = header.few_shot + context;
  }
  if (continuation.empty()) return bad("there is nothing in it to be scored");
  document.contexts.push_back(std::move(context));
  document.continuations.push_back(std::move(continuation));
  return document;
}

std::uint64_t text_bytes(const TaskDocument& document) {
  std::uint64_t bytes = 0;
  for (const auto* texts : {&document.contexts, &document.continuations}) {
    for (const std::string& text : *texts) bytes += text.size();
  }
  return bytes;
}

Status read_header(const json& line, Task& task, Header& header) {
  std::string kind;
  ATOLL_RETURN_IF_ERROR(text_field(line, "kind", kind));
  const auto found = task_kind_named(kind);
  if (!found) return bad("\"kind\" must be multiple_choice, loglikelihood or loglikelihood_rolling");
  task.kind = *found;
  if (line.contains("task")) ATOLL_RETURN_IF_ERROR(text_field(line, "task", task.name));
  if (line.contains("few_shot")) ATOLL_RETURN_IF_ERROR(text_field(line, "few_shot", header.few_shot));
  if (line.contains("delimiter")) ATOLL_RETURN_IF_ERROR(text_field(line, "delimiter", header.delimiter));
  if (const auto version = line.find("version"); version != line.end()) {
    if (!version->is_number()) return bad("\"version\" must be a number");
    task.version = version->get<double>();
  }
  if (const auto shots = line.find("num_fewshot"); shots != line.end()) {
    if (!shots->is_number_integer() || *shots < 0) return bad("\"num_fewshot\" must be a whole number");
    task.few_shot = shots->get<std::int64_t>();
  }
  return ok_status();
}

}  // namespace

Result<Task> read_task(std::string_view text, std::string_view name, std::int64_t limit) {
  Task task;
  task.name = name;
  std::optional<Header> header;
  std::int64_t number = 0;
  std::uint64_t asked = 0;
  const auto in_line = [&](const Error& error) {
    return bad(fmt::format("task {}, line {}: {}", name, number, error.message));
  };
  while (!text.empty() && (limit == 0 || std::ssize(task.documents) < limit)) {
    ++number;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto parsed = parse_bounded_json(line, kMaxTaskLine, 8);
    if (!parsed.ok()) return in_line(parsed.error());
    if (!parsed->is_object()) return in_line(bad("it is no JSON object"));
    if (!header) {
      if (const Status status = read_header(*parsed, task, header.emplace()); !status.ok()) {
        return in_line(bad(status.error().message + " (the first line says what the task is)"));
      }
      continue;
    }
    auto document = read_document(*parsed, task.kind, *header);
    if (!document.ok()) return in_line(document.error());
    asked += text_bytes(*document);
    if (asked > kMaxTaskText)
      return in_line(bad(fmt::format("the task asks more than {} GiB of text", kMaxTaskText >> 30)));
    task.documents.push_back(std::move(*document));
  }
  if (task.documents.empty()) return bad(fmt::format("task {} asks nothing: it has no line after the first", name));
  return task;
}

std::uint64_t text_bytes(const Task& task) {
  std::uint64_t bytes = 0;
  for (const TaskDocument& document : task.documents) bytes += text_bytes(document);
  return bytes;
}

Result<Task> load_task(const std::filesystem::path& file, std::int64_t limit) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxTaskFile));
  return read_task(text, file.stem().string(), limit);
}

}  // namespace atl
