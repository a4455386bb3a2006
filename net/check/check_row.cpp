#include "net/check/check_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMaxReportBytes = 256 * 1024;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxText = 1024;
constexpr std::array<std::string_view, 4> kNames = {"pass", "warn", "fail", "skip"};

}  // namespace

template <class Archive>
void fields(Archive& archive, CheckRow& row) {
  archive.text("id", row.id, kMaxName);
  if constexpr (Archive::kReads) {
    std::string name;
    archive.bounded("verdict", name, kMaxName);
    const auto verdict = parse_verdict(name);
    if (!verdict) archive.fail("field 'verdict' is none of pass, warn, fail, skip");
    row.verdict = verdict.value_or(Verdict::kSkip);
    archive.text("text", row.text, kMaxText);
    archive.text("fix", row.fix, kMaxText);
  } else {
    archive.object["verdict"] = to_string(row.verdict);
    archive.object["text"] = printable(row.text, kMaxText);
    archive.object["fix"] = printable(row.fix, kMaxText);
  }
  archive.field("value", row.value);
  archive.text("unit", row.unit, kMaxName);
  archive.field("seconds", row.seconds);
}

std::string_view to_string(Verdict verdict) { return kNames[static_cast<std::size_t>(verdict)]; }

std::optional<Verdict> parse_verdict(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Verdict>(found - kNames.begin());
}

nlohmann::json CheckRow::to_json() const {
  JsonWriter writer;
  fields(writer, const_cast<CheckRow&>(*this));
  return std::move(writer.object);
}

bool is_silent_hub(const CheckRow& row) { return row.id == "net.rtt" && row.verdict == Verdict::kFail && !row.value; }

Result<CheckRow> check_row_from_json(const nlohmann::json& json) {
  JsonReader reader(json);
  CheckRow row;
  fields(reader, row);
  if (!reader.status().ok()) return reader.status().error().with_context("row of a check");
  return row;
}

std::size_t CheckReport::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(rows, verdict, &CheckRow::verdict));
}

const CheckRow* CheckReport::find(std::string_view id) const {
  const auto found = std::ranges::find(rows, id, &CheckRow::id);
  return found == rows.end() ? nullptr : &*found;
}

nlohmann::json CheckReport::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckRow& row : rows) list.push_back(row.to_json());
  const auto number_of = [this](Verdict verdict) { return count(verdict); };
  return {{"version", kVersion},
          {"software", software},
          {"run_id", run_id},
          {"time", time},
          {"full", full},
          {"rows", std::move(list)},
          {"counts",
           {{"pass", number_of(Verdict::kPass)},
            {"warn", number_of(Verdict::kWarn)},
            {"fail", number_of(Verdict::kFail)},
            {"skip", number_of(Verdict::kSkip)}}}};
}

Result<CheckReport> CheckReport::from_json(std::string_view text) {
  auto parsed = parse_bounded_json(text, kMaxReportBytes, 4);
  if (!parsed.ok()) return parsed.error().with_context("report of a check");
  JsonReader reader(*parsed);
  int version = 0;
  CheckReport report;
  reader.field("version", version);
  if (reader.status().ok() && version != kVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("report of a check: version {} is not known here; run 'atoll check' again", version)};
  }
  reader.text("software", report.software, kMaxName);
  reader.text("run_id", report.run_id, kMaxName);
  reader.field("time", report.time);
  reader.field("full", report.full);
  reader.field("rows", report.rows);
  if (report.rows.size() > kMaxRows) reader.fail("field 'rows' holds more than 64 entries");
  if (!reader.status().ok()) return reader.status().error().with_context("report of a check");
  return report;
}

}  // namespace atl
