#include "app/gui/recordings.h"

#include <cstdio>

#include <QCoreApplication>

#include "app/core/nodes.h"
#include "app/core/recording_index.h"

namespace atl {
namespace {

struct RecordingsText {
  Q_DECLARE_TR_FUNCTIONS(Recordings)
};

}  // namespace

Recordings::~Recordings() {
  if (recorder_) nodes_.all().front()->link().recordTo(nullptr);
}

void Recordings::complain(const QString& what) {
  failed_ = true;
  std::fprintf(stderr, "atoll-gui: %s\n", qPrintable(what));
}

Status Recordings::begin(const GuiOptions& options) {
  if (!options.replay.isEmpty() && ends_within_a_line(options.replay)) {
    complain(RecordingsText::tr("%1 is not whole: it breaks off within a line, and is shown up to there.")
                 .arg(options.replay));
  }
  if (options.record.isEmpty()) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(recorder_, Recorder::create(options.record));
  AgentLink& link = nodes_.all().front()->link();
  QObject::connect(&link, &AgentLink::recordingFailed, &link, [this](const QString& why) { complain(why); });
  link.recordTo(recorder_.get());
  return ok_status();
}

}  // namespace atl
