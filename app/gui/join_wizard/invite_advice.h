// What is wrong with an invite, or with the hub that it names, in a sentence of its own for each defect, and what to do
// about it. Pure; GUI thread.
#pragma once

#include <QString>

#include "net/base/result.h"

namespace atl {

struct InviteAdvice {
  QString sentence;  // what happened
  QString advice;    // what to do
  QString details;   // as the program said it; may be empty
};

// Of a text that JoinModel::setInvite refused. The codes are coarse: `text` says more.
InviteAdvice advice_for_invite(const Error& error, const QString& text);
// Of what came of looking at the hub, and of joining.
InviteAdvice advice_for_hub(const Error& error);
// Nothing helps but another invite.
bool wants_another_invite(ErrorCode code);

}  // namespace atl
