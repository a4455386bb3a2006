#include "app/core/pause_words.h"

#include <algorithm>
#include <array>

#include <QCoreApplication>

namespace atl {
namespace {

struct Words {
  OwnersRule rule;
  const char* sentence;
};
constexpr std::array kWords{
    Words{OwnersRule::kHours, QT_TRANSLATE_NOOP("PauseWords", "Training is paused outside the hours that are set.")},
    Words{OwnersRule::kLoad, QT_TRANSLATE_NOOP("PauseWords", "Training is paused while other programs compute.")},
    Words{OwnersRule::kGpu, QT_TRANSLATE_NOOP("PauseWords", "Training is paused while other programs use a GPU.")},
    Words{OwnersRule::kIdle, QT_TRANSLATE_NOOP("PauseWords", "Training is paused while somebody uses the machine.")},
    Words{OwnersRule::kBattery,
          QT_TRANSLATE_NOOP("PauseWords", "Training is paused while the machine runs on its battery.")},
    Words{OwnersRule::kMetered, QT_TRANSLATE_NOOP("PauseWords", "Training is paused on a metered network.")},
    Words{OwnersRule::kGpuTemperature, QT_TRANSLATE_NOOP("PauseWords", "Training is paused until a GPU is cooler.")},
    Words{OwnersRule::kCpuTemperature,
          QT_TRANSLATE_NOOP("PauseWords", "Training is paused until the processor is cooler.")},
    Words{OwnersRule::kPower, QT_TRANSLATE_NOOP("PauseWords", "Training is paused until less power is drawn.")},
};
static_assert(kWords.size() == static_cast<std::size_t>(OwnersRule::kUnknown));

}  // namespace

QString pause_words(const PausedBy& pause) {
  const auto known = std::ranges::find(kWords, pause.rule, &Words::rule);
  if (known == kWords.end()) return QString::fromStdString(sentence_of(pause));
  return QCoreApplication::translate("PauseWords", known->sentence);
}

}  // namespace atl
