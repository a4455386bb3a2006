// What the app calls the keys of the configuration (app/config/config_keys.cpp), in the person's language. Pure; GUI
// thread.
#pragma once

#include <QString>

#include "app/core/settings_model.h"

namespace atl {

QString setting_title(const std::string& key);   // the key itself where this version does not know it
QString setting_meaning(const SettingRow& row);  // as the agent says it where this version does not know the key
QString setting_origin(const SettingRow& row);   // "Default", "Set in the app", "From config.toml line 3"
QString setting_group(const std::string& key);   // "Limits" of "limits.upload"
// Set where `config.set` has no say: on the agent's command line or in its environment.
bool setting_is_overruled(const SettingRow& row);
// `config.set` set it, so it can be taken back.
bool setting_is_ours(const SettingRow& row);

}  // namespace atl
