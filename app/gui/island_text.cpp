#include "app/gui/island_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <QCoreApplication>
#include <QLocale>
#include <QRegularExpression>

namespace atl::text {
namespace {

struct IslandText {
  Q_DECLARE_TR_FUNCTIONS(IslandText)
};

QString tr(const char* source) { return IslandText::tr(source); }

// The states of net/control/island_state.h.
struct Word {
  const char* state;
  const char* symbol;
  const char* word;
};
constexpr std::array kWords{
    Word{"joining", "\u25B7", QT_TRANSLATE_NOOP("IslandText", "Joining")},
    Word{"recovering", "\u25B7", QT_TRANSLATE_NOOP("IslandText", "Recovering")},
    Word{"waiting", "\u25CB", QT_TRANSLATE_NOOP("IslandText", "Waiting")},
    Word{"training", "\u25B6", QT_TRANSLATE_NOOP("IslandText", "Training")},
    Word{"syncing", "\u21C4", QT_TRANSLATE_NOOP("IslandText", "Synchronizing")},
    Word{"finishing", "\u25B7", QT_TRANSLATE_NOOP("IslandText", "Finishing")},
    Word{"reconnecting", "\u26A0", QT_TRANSLATE_NOOP("IslandText", "Reconnecting")},
    Word{"error", "\u26A0", QT_TRANSLATE_NOOP("IslandText", "Error")},
    Word{"stopped", "\u25A0", QT_TRANSLATE_NOOP("IslandText", "Stopped")},
};

QString path_text(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

// As an argument of a shell.
QString quoted(const std::filesystem::path& path) {
  const QString text = path_text(path);
  return text.contains(QRegularExpression("[^A-Za-z0-9_./-]")) ? "'" + QString(text).replace("'", "'\\''") + "'" : text;
}

QString home_option(const IslandHome& home) {
  const auto usual = default_island_home();
  return usual.ok() && *usual == home.directory ? QString() : " --home " + quoted(home.directory);
}

QString log_hint(const IslandHome& home) { return tr("Its log: %1").arg(path_text(home.trainer_log())); }

}  // namespace

QString count(std::uint64_t number) { return QLocale().toString(static_cast<qulonglong>(number)); }

QString bytes(std::uint64_t number) {
  const auto bounded = std::min(number, static_cast<std::uint64_t>(std::numeric_limits<qint64>::max()));
  return QLocale().formattedDataSize(static_cast<qint64>(bounded), 1, QLocale::DataSizeSIFormat);
}

QString duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) return tr("unknown");
  if (seconds < 0.0995) return tr("%1 ms").arg(std::llround(1000 * seconds));
  if (seconds < 9.95) return tr("%1 s").arg(QLocale().toString(seconds, 'f', 1));
  const auto whole = static_cast<qint64>(std::llround(seconds));
  if (whole < 100) return tr("%1 s").arg(whole);
  if (whole < 3600) return tr("%1 min %2 s").arg(whole / 60).arg(whole % 60, 2, 10, QChar('0'));
  return tr("%1 h %2 min").arg(whole / 3600).arg(whole % 3600 / 60, 2, 10, QChar('0'));
}

QString loss(std::optional<double> nats) {
  return nats ? tr("%1 nats per token").arg(QLocale().toString(*nats, 'f', 3)) : tr("none yet");
}

QString speed(double tokens_per_second) {
  const bool sane = std::isfinite(tokens_per_second) && tokens_per_second >= 0 && tokens_per_second < 1e15;
  return sane ? tr("%1 tokens/s").arg(count(static_cast<std::uint64_t>(tokens_per_second))) : tr("unknown");
}

StateWord state_word(const IslandReport& report, Clock::time_point now) {
  switch (report.link) {
    case IslandLink::kUnknown: return {"\u25CB", tr("Looking")};
    case IslandLink::kNotJoined: return {"\u25CB", tr("Not joined")};
    case IslandLink::kNotRunning: return {"\u25A0", tr("Not running")};
    case IslandLink::kFailed: return {"\u26A0", tr("Cannot ask the trainer")};
    case IslandLink::kConnected:
    case IslandLink::kSilent: break;
  }
  if (!is_live(report, now)) return {"\u26A0", tr("Not answering")};
  for (const Word& word : kWords) {
    if (report.state->state == word.state) return {word.symbol, tr(word.word)};
  }
  return {"\u25CB", QString::fromStdString(report.state->state)};  // of a newer trainer
}

QString age(const IslandReport& report, Clock::time_point now) {
  const auto age = age_of(report, now);
  if (!age) return {};
  if (*age < std::chrono::seconds(2)) return tr("Updated now");
  const double seconds = std::floor(age->count());
  return tr("Last update %1 ago").arg(seconds < 60 ? tr("%1 s").arg(static_cast<int>(seconds)) : duration(seconds));
}

QString advice(const IslandReport& report, const IslandHome& home, Clock::time_point now) {
  switch (report.link) {
    case IslandLink::kUnknown: return tr("Looking at %1").arg(path_text(home.directory));
    case IslandLink::kNotJoined:
      return tr("Not joined: run `atoll join INVITE`, with the invite that the run's operator gave you.");
    case IslandLink::kNotRunning:
      return tr("Joined to the run %1, but no trainer is running here. Start it with the command below.")
          .arg(QString::fromStdString(report.run_name));
    case IslandLink::kFailed: return QString::fromStdString(report.problem);
    case IslandLink::kConnected:
    case IslandLink::kSilent: break;
  }
  if (!is_live(report, now)) {
    return tr("The trainer does not answer; it is asked again every second. If this lasts, it is suspended or "
              "hangs. ") +
           log_hint(home);
  }
  if (report.state->error.empty()) return {};
  const QString error = QString::fromStdString(report.state->error);
  return report.state->state == "reconnecting" ? tr("%1\nIt tries again by itself. ").arg(error) + log_hint(home)
                                               : error + "\n" + log_hint(home);
}

QString remedy(const IslandReport& report, const IslandHome& home) {
  if (report.link == IslandLink::kNotJoined) return "atoll join INVITE" + home_option(home);
  if (report.link == IslandLink::kNotRunning) return "atoll join" + home_option(home);
  return {};
}

}  // namespace atl::text
