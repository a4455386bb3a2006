// What went wrong with an export or a verification of checkpoints, in a sentence for each cause, and what to do about
// it. Pure; GUI thread.
#pragma once

#include <QString>

#include "app/core/checkpoints_model.h"

namespace atl {

struct CheckpointTrouble {
  QString sentence;  // what happened
  QString advice;    // what to do
  QString details;   // as the program said it
};

CheckpointTrouble checkpoint_trouble(CheckpointsModel::Task task, const Error& error);

}  // namespace atl
