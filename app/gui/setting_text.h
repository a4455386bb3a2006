// What the app calls the keys of the configuration (app/config/config_keys.cpp), in the person's language. Pure; GUI
// thread.
#pragma once

#include <QString>

#include "app/core/settings_model.h"
#include "net/control/transfer_caps.h"

namespace atl {

QString setting_title(const std::string& key);   // the key itself where this version does not know it
QString setting_meaning(const SettingRow& row);  // as the agent says it where this version does not know the key
QString setting_origin(const SettingRow& row);   // "Default", "Set in the app", "From config.toml line 3"
QString setting_group(const std::string& key);   // "Limits" of "limits.upload"
// What an owner's limit on transfers comes to at this hour, and until when: "Now: 20 Mbit/s, until 18:00"; empty where
// it is the same at all hours.
QString cap_in_force(const TransferCapView& cap);
// Set where `config.set` has no say: on the agent's command line or in its environment.
bool setting_is_overruled(const SettingRow& row);
// `config.set` set it, so it can be taken back.
bool setting_is_ours(const SettingRow& row);

}  // namespace atl
