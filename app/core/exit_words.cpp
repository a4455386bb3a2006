#include "app/core/exit_words.h"

#include <algorithm>
#include <array>

#include <QCoreApplication>

namespace atl {
namespace {

struct Words {
  ExitCause cause;
  const char* sentence;
  const char* advice;
};
constexpr std::array kWords{
    Words{ExitCause::kKilled, QT_TRANSLATE_NOOP("ExitWords", "Something killed the trainer."), ""},
    Words{ExitCause::kOutOfMemory, QT_TRANSLATE_NOOP("ExitWords", "The machine ran out of memory."),
          QT_TRANSLATE_NOOP("ExitWords", "Close other programs, or add memory or swap.")},
    Words{ExitCause::kCrashed, QT_TRANSLATE_NOOP("ExitWords", "The trainer crashed."), ""},
    Words{ExitCause::kHung, QT_TRANSLATE_NOOP("ExitWords", "The trainer did nothing any more and was ended."), ""},
    Words{ExitCause::kGpuMemory, QT_TRANSLATE_NOOP("ExitWords", "A GPU ran out of memory."),
          QT_TRANSLATE_NOOP("ExitWords", "End other programs that use it; nvidia-smi lists them.")},
    Words{ExitCause::kGpuLost, QT_TRANSLATE_NOOP("ExitWords", "A GPU is lost."),
          QT_TRANSLATE_NOOP("ExitWords", "Restart the machine; the kernel's log says more (dmesg | grep -i xid).")},
    Words{ExitCause::kDriver, QT_TRANSLATE_NOOP("ExitWords", "The GPU driver does not work."),
          QT_TRANSLATE_NOOP("ExitWords", "Does nvidia-smi? If not, reinstall the driver or restart the machine.")},
    Words{ExitCause::kNotFinite, QT_TRANSLATE_NOOP("ExitWords", "The trainer's numbers were not finite."),
          QT_TRANSLATE_NOOP("ExitWords", "If it happens again, check the machine's memory and GPUs.")},
    Words{ExitCause::kHubUnreachable, QT_TRANSLATE_NOOP("ExitWords", "The hub does not answer."),
          QT_TRANSLATE_NOOP("ExitWords", "If this lasts, look after the network, or ask the operator.")},
    Words{ExitCause::kRefused, QT_TRANSLATE_NOOP("ExitWords", "The hub no longer lets this machine take part."),
          QT_TRANSLATE_NOOP("ExitWords",
                            "The operator may have removed it; ask why. With a new invite it joins again, and what it "
                            "contributed stays.")},
    Words{ExitCause::kUnusable,
          QT_TRANSLATE_NOOP("ExitWords", "The trainer cannot run with what it finds on this machine."),
          QT_TRANSLATE_NOOP("ExitWords", "Put right what is named below, then resume.")},
};

struct Text {
  static QString tr(const char* text) { return QCoreApplication::translate("ExitWords", text); }
};

}  // namespace

bool exit_was_meant(ExitCause cause) {
  return cause == ExitCause::kRunFinished || cause == ExitCause::kPaused || cause == ExitCause::kFinished ||
         cause == ExitCause::kStopped;
}

ExitWords exit_words(ExitCause cause) {
  const auto found = std::ranges::find(kWords, cause, &Words::cause);
  if (found == kWords.end()) return {QCoreApplication::translate("ExitWords", "The trainer ended."), {}};
  return {Text::tr(found->sentence), *found->advice == 0 ? QString() : Text::tr(found->advice)};
}

}  // namespace atl
