// The node's configuration (config.get, config.set): each value, where it comes from, what it means. Owned by a Node;
// GUI thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <QObject>

#include "app/core/agent_link.h"

namespace atl {

struct SettingRow {
  std::string key, value, default_value, origin, meaning;
};

class SettingsModel : public QObject {
  Q_OBJECT

 public:
  explicit SettingsModel(AgentLink& link, QObject* parent = nullptr) : QObject(parent), link_(link) {}

  const std::vector<SettingRow>& rows() const { return rows_; }
  const SettingRow* find(const std::string& key) const;
  const std::string& file() const { return file_; }          // the user's config.toml
  const std::string& settings() const { return settings_; }  // what `config.set` writes
  const std::string& problem() const { return problem_; }

  // `done` gets the error that names what is wrong with the value; null value: take it back.
  void set(const std::string& key, const std::optional<std::string>& value, QObject* context,
           std::function<void(const Status&)> done);
  void reload();

 Q_SIGNALS:
  void changed();

 private:
  void takeChange(const nlohmann::json& answer);

  AgentLink& link_;
  std::vector<SettingRow> rows_;
  std::string file_, settings_, problem_;
};

}  // namespace atl
