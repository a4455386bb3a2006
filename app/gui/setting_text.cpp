#include "app/gui/setting_text.h"

#include <array>

#include <QCoreApplication>
#include <QDateTime>

#include "app/config/config.h"
#include "app/gui/look/format.h"

namespace atl {
namespace {

struct SettingText {
  Q_DECLARE_TR_FUNCTIONS(SettingText)
};

struct Words {
  const char* key;
  const char* title;
  const char* meaning;
};
constexpr std::array kWords{
    Words{"island.name", QT_TRANSLATE_NOOP("SettingText", "Name"),
          QT_TRANSLATE_NOOP("SettingText", "What others see. Empty: the host's name.")},
    Words{"island.listen", QT_TRANSLATE_NOOP("SettingText", "Address and port"),
          QT_TRANSLATE_NOOP("SettingText", "Where the other islands connect to, HOST:PORT. Port 0: any free one.")},
    Words{"island.advertise", QT_TRANSLATE_NOOP("SettingText", "Host for others"),
          QT_TRANSLATE_NOOP("SettingText", "What the other islands dial. Empty: the address that the hub sees.")},
    Words{"island.region", QT_TRANSLATE_NOOP("SettingText", "Region"),
          QT_TRANSLATE_NOOP("SettingText", "A town or country, for the others to see. Empty: not said.")},
    Words{"island.threads", QT_TRANSLATE_NOOP("SettingText", "Compute threads"),
          QT_TRANSLATE_NOOP("SettingText", "0: all cores.")},
    Words{"island.local_ranks", QT_TRANSLATE_NOOP("SettingText", "Shards of the model"),
          QT_TRANSLATE_NOOP("SettingText", "On this machine. 0: one a GPU, or one a core.")},
    Words{"island.micro_batch", QT_TRANSLATE_NOOP("SettingText", "Sequences at once"),
          QT_TRANSLATE_NOOP("SettingText", "That each shard computes. 0: as many as the memory allows.")},
    Words{"island.device", QT_TRANSLATE_NOOP("SettingText", "Computes on"),
          QT_TRANSLATE_NOOP("SettingText",
                            "auto: the GPUs, where there are any and the model fits on them; else the processor.")},
    Words{"island.precision", QT_TRANSLATE_NOOP("SettingText", "Precision"),
          QT_TRANSLATE_NOOP("SettingText",
                            "In which numbers the model is computed. auto: bf16 on GPUs, fp32 on the processor.")},
    Words{"island.gpus", QT_TRANSLATE_NOOP("SettingText", "GPUs"),
          QT_TRANSLATE_NOOP("SettingText", "That the trainer may use: all, none, or for instance 0-3,6.")},
    Words{"limits.upload", QT_TRANSLATE_NOOP("SettingText", "Upload limit"),
          QT_TRANSLATE_NOOP("SettingText", "What the island may send in all. Changes are in force at once.")},
    Words{"limits.upload_by_hours", QT_TRANSLATE_NOOP("SettingText", "Upload by hours"),
          QT_TRANSLATE_NOOP("SettingText",
                            "Other limits at given hours, in the machine's local time, for instance 08:00-18:00 20 "
                            "Mbit/s, 23:00-06:00 none.")},
    Words{"limits.download", QT_TRANSLATE_NOOP("SettingText", "Download limit"),
          QT_TRANSLATE_NOOP("SettingText", "What the island may receive in all. Changes are in force at once.")},
    Words{"limits.download_by_hours", QT_TRANSLATE_NOOP("SettingText", "Download by hours"),
          QT_TRANSLATE_NOOP("SettingText", "Other limits at given hours, as for the upload.")},
    Words{"limits.gpu_power", QT_TRANSLATE_NOOP("SettingText", "Power per GPU"),
          QT_TRANSLATE_NOOP("SettingText",
                            "Watts that each GPU may draw while training; the agent needs root for it. 0: as the "
                            "driver has it.")},
    Words{"limits.gpu_temperature", QT_TRANSLATE_NOOP("SettingText", "GPU temperature"),
          QT_TRANSLATE_NOOP("SettingText", "Degrees Celsius above which training pauses. 0: no limit.")},
    Words{"limits.cpu_temperature", QT_TRANSLATE_NOOP("SettingText", "Processor's temperature"),
          QT_TRANSLATE_NOOP("SettingText", "Degrees Celsius above which training pauses. 0: no limit.")},
    Words{"limits.power", QT_TRANSLATE_NOOP("SettingText", "Power in all"),
          QT_TRANSLATE_NOOP("SettingText",
                            "Watts that processors and GPUs may draw before training pauses. 0: no limit.")},
    Words{"schedule.hours", QT_TRANSLATE_NOOP("SettingText", "Hours"),
          QT_TRANSLATE_NOOP("SettingText", "When to train, in the machine's local time.")},
    Words{"rules.load", QT_TRANSLATE_NOOP("SettingText", "Other programs"),
          QT_TRANSLATE_NOOP("SettingText",
                            "Percent of one processor that they may keep busy before training pauses. 0: whatever they "
                            "do.")},
    Words{"rules.gpu", QT_TRANSLATE_NOOP("SettingText", "Others on a GPU"),
          QT_TRANSLATE_NOOP("SettingText",
                            "Memory of a GPU that other programs may hold before training pauses. 0: whatever they "
                            "do.")},
    Words{"rules.idle", QT_TRANSLATE_NOOP("SettingText", "Somebody is there"),
          QT_TRANSLATE_NOOP("SettingText",
                            "Training waits until nobody has used this machine for so long. 0s: it does not.")},
    Words{"rules.battery", QT_TRANSLATE_NOOP("SettingText", "On battery"),
          QT_TRANSLATE_NOOP("SettingText", "What is done while the machine runs on its battery.")},
    Words{"rules.metered", QT_TRANSLATE_NOOP("SettingText", "Metered network"),
          QT_TRANSLATE_NOOP("SettingText", "What is done while NetworkManager says that the network is metered.")},
    Words{"island.data_cache", QT_TRANSLATE_NOOP("SettingText", "Data on the disk"),
          QT_TRANSLATE_NOOP("SettingText", "What a run's data may take. It is fetched when it is needed.")},
    Words{"island.data_mirrors", QT_TRANSLATE_NOOP("SettingText", "Mirrors of data"),
          QT_TRANSLATE_NOOP("SettingText",
                            "That a run may name. https: on the internet. web: private networks too. all: and this "
                            "machine's paths.")},
    Words{"island.credit", QT_TRANSLATE_NOOP("SettingText", "Named in models"),
          QT_TRANSLATE_NOOP(
              "SettingText",
              "Whether the cards of exported models name this island. none: it is counted without a name.")},
    Words{"checkpoints.work_every", QT_TRANSLATE_NOOP("SettingText", "Save work every"),
          QT_TRANSLATE_NOOP("SettingText", "A crash costs what was trained since. 0s: only a pause saves it.")},
    Words{"checkpoints.keep_daily", QT_TRANSLATE_NOOP("SettingText", "Days to keep"),
          QT_TRANSLATE_NOOP("SettingText", "Of each the newest state stays on the disk. 0: those of the run alone.")},
    Words{"checkpoints.keep_rounds", QT_TRANSLATE_NOOP("SettingText", "Rounds to keep"),
          QT_TRANSLATE_NOOP("SettingText", "The states after these rounds stay on the disk, apart by commas.")},
    Words{"store.endpoint", QT_TRANSLATE_NOOP("SettingText", "Object store"),
          QT_TRANSLATE_NOOP("SettingText", "Its address, https://HOST:PORT. Empty: Amazon's of the region.")},
    Words{"store.region", QT_TRANSLATE_NOOP("SettingText", "Store's region"),
          QT_TRANSLATE_NOOP("SettingText", "Empty: us-east-1.")},
    Words{"store.bucket", QT_TRANSLATE_NOOP("SettingText", "Bucket"),
          QT_TRANSLATE_NOOP("SettingText", "To which this machine may write states of its runs. Empty: none.")},
    Words{"store.credentials_file", QT_TRANSLATE_NOOP("SettingText", "Store's key"),
          QT_TRANSLATE_NOOP("SettingText", "The file with the access key, which its owner alone may read.")},
    Words{"store.authorities_file", QT_TRANSLATE_NOOP("SettingText", "Trusted authorities"),
          QT_TRANSLATE_NOOP("SettingText", "Certificates for stores and mirrors, a PEM file. Empty: the system's.")},
    Words{"agent.stop_within", QT_TRANSLATE_NOOP("SettingText", "Time to stop"),
          QT_TRANSLATE_NOOP("SettingText", "That a trainer which is ended may take.")},
    Words{"history.max_size", QT_TRANSLATE_NOOP("SettingText", "Size of the history"),
          QT_TRANSLATE_NOOP("SettingText", "What it may take on the disk.")},
    Words{"log.level", QT_TRANSLATE_NOOP("SettingText", "Log"), QT_TRANSLATE_NOOP("SettingText", "What is logged.")},
    Words{"log.max_size", QT_TRANSLATE_NOOP("SettingText", "Size of the logs"),
          QT_TRANSLATE_NOOP("SettingText", "What they may take on the disk.")},
};

const Words* find_words(const std::string& key) {
  for (const Words& words : kWords) {
    if (key == words.key) return &words;
  }
  return nullptr;
}

constexpr std::array kGroups{
    std::pair{"island", QT_TRANSLATE_NOOP("SettingText", "Island")},
    std::pair{"limits", QT_TRANSLATE_NOOP("SettingText", "Limits")},
    std::pair{"schedule", QT_TRANSLATE_NOOP("SettingText", "Schedule")},
    std::pair{"rules", QT_TRANSLATE_NOOP("SettingText", "Rules")},
    std::pair{"checkpoints", QT_TRANSLATE_NOOP("SettingText", "Checkpoints")},
    std::pair{"store", QT_TRANSLATE_NOOP("SettingText", "Object store")},
    std::pair{"agent", QT_TRANSLATE_NOOP("SettingText", "Agent")},
    std::pair{"history", QT_TRANSLATE_NOOP("SettingText", "History")},
    std::pair{"log", QT_TRANSLATE_NOOP("SettingText", "Logs")},
};

}  // namespace

QString setting_title(const std::string& key) {
  const Words* words = find_words(key);
  return words != nullptr ? SettingText::tr(words->title) : QString::fromStdString(key);
}

QString setting_meaning(const SettingRow& row) {
  const Words* words = find_words(row.key);
  return words != nullptr ? SettingText::tr(words->meaning) : QString::fromStdString(row.meaning);
}

QString setting_origin(const SettingRow& row) {
  const QString origin = QString::fromStdString(row.origin);
  if (row.origin == "default") return SettingText::tr("Default");
  if (row.origin == "settings") return SettingText::tr("Set here");
  if (row.origin == kJoinedOrigin) return SettingText::tr("As it was joined");
  if (row.origin == "command line") return SettingText::tr("From the agent's command line");
  if (row.origin.starts_with("ATOLL_")) return SettingText::tr("From the environment: %1").arg(origin);
  return SettingText::tr("From %1").arg(origin);
}

QString setting_group(const std::string& key) {
  const std::string name = key.substr(0, key.find('.'));
  for (const auto& [group, title] : kGroups) {
    if (name == group) return SettingText::tr(title);
  }
  return QString::fromStdString(name);
}

QString cap_in_force(const TransferCapView& cap) {
  if (!cap.until) return {};
  const QString rate = cap.bytes_per_second ? text::link_rate(*cap.bytes_per_second) : SettingText::tr("no limit");
  return SettingText::tr("Now: %1, until %2").arg(rate, QDateTime::fromSecsSinceEpoch(*cap.until).toString("HH:mm"));
}

bool setting_is_overruled(const SettingRow& row) {
  return row.origin == "command line" || row.origin.starts_with("ATOLL_");
}

bool setting_is_ours(const SettingRow& row) { return row.origin == "settings"; }

}  // namespace atl
