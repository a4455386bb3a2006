#include "app/gui/checkpoint_trouble.h"

#include <QCoreApplication>

namespace atl {
namespace {

struct Text {
  Q_DECLARE_TR_FUNCTIONS(CheckpointTrouble)
};

QString what_to_do(ErrorCode code) {
  switch (code) {
    case ErrorCode::kDiskFull:
      return Text::tr("The disk is full. Export to a directory on another disk, or free some space, then try again.");
    case ErrorCode::kPermissionDenied:
      return Text::tr("Nothing may be written there. Export to a directory that is yours.");
    case ErrorCode::kNotFound: return Text::tr("A file or directory is missing. Look at the path, then try again.");
    case ErrorCode::kNotRunning:
      return Text::tr("No agent runs there. Start it, or wait until it has started, then try again.");
    case ErrorCode::kNotJoined: return Text::tr("This machine has joined no run yet, so there is no model.");
    case ErrorCode::kTimeout: return Text::tr("It took too long. Try again when the machine has less to do.");
    case ErrorCode::kUnreachable:
    case ErrorCode::kPeerLost: return Text::tr("The machine cannot be reached. Try again when the connection stands.");
    case ErrorCode::kVersionUnsupported:
    case ErrorCode::kProtocol:
      return Text::tr("Another version of Atoll is installed there. Install the same one on both machines.");
    case ErrorCode::kAborted: return Text::tr("It was cut short. Try again.");
    default: return Text::tr("Try again; the page Logs may say more.");
  }
}

}  // namespace

CheckpointTrouble checkpoint_trouble(CheckpointsModel::Task task, const Error& error) {
  const QString details = QString::fromStdString(error.message);
  if (task == CheckpointsModel::Task::kExport) {
    return {Text::tr("The model was not exported."), what_to_do(error.code), details};
  }
  if (error.code == ErrorCode::kCorrupt) {
    return {Text::tr("A checkpoint is damaged."),
            Text::tr("Remove its file: the island fetches the state from the others when it starts the next time."),
            details};
  }
  return {Text::tr("The checkpoints were not verified."), what_to_do(error.code), details};
}

}  // namespace atl
