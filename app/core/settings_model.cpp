#include "app/core/settings_model.h"

#include <algorithm>

#include "net/control/json_fields.h"
#include "net/control/told.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRows = 512;

Result<std::vector<SettingRow>> rows_from_json(const nlohmann::json& json) {
  JsonFields fields(json, "the configuration");
  const nlohmann::json* values = fields.array("values", kMaxRows);
  ATOLL_RETURN_IF_ERROR(fields.status());
  std::vector<SettingRow> rows;
  for (const nlohmann::json& value : *values) {
    SettingRow& row = rows.emplace_back();
    JsonFields one(value, "a value of the configuration");
    one.read("key", row.key).read("value", row.value).read("default", row.default_value);
    ATOLL_RETURN_IF_ERROR(one.read("origin", row.origin).read("meaning", row.meaning).status());
  }
  return rows;
}

}  // namespace

const SettingRow* SettingsModel::find(const std::string& key) const {
  const auto found = std::ranges::find(rows_, key, &SettingRow::key);
  return found == rows_.end() ? nullptr : &*found;
}

void SettingsModel::reload() {
  link_.call("config.get", nlohmann::json::object(), this, [this](const auto& answer) {
    auto rows = answer.ok() ? rows_from_json(*answer) : Result<std::vector<SettingRow>>(answer.error());
    problem_ = rows.ok() ? std::string() : rows.error().message;
    if (rows.ok()) {
      rows_ = std::move(*rows);
      file_ = told::text(*answer, "file");
      settings_ = told::text(*answer, "settings");
    }
    Q_EMIT changed();
  });
}

void SettingsModel::set(const std::string& key, const std::optional<std::string>& value, QObject* context,
                        std::function<void(const Status&)> done) {
  const nlohmann::json params = {{"key", key}, {"value", value ? nlohmann::json(*value) : nlohmann::json()}};
  const QPointer<QObject> asker(context);
  const bool has_asker = context != nullptr;
  link_.call("config.set", params, this, [this, asker, has_asker, done = std::move(done)](const auto& answer) {
    if (answer.ok()) takeChange(*answer);
    if (done && (asker || !has_asker)) done(answer.ok() ? ok_status() : Status(answer.error()));
  });
}

void SettingsModel::takeChange(const nlohmann::json& answer) {
  auto rows = rows_from_json(answer);
  if (!rows.ok()) return reload();
  for (SettingRow& told : *rows) {
    const auto same = std::ranges::find(rows_, told.key, &SettingRow::key);
    if (same != rows_.end()) *same = std::move(told);
  }
  Q_EMIT changed();
}

}  // namespace atl
