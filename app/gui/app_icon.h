// The app's own icon, sharp at every size. GUI thread.
#pragma once

#include <QIcon>

namespace atl {

QIcon app_icon();

}  // namespace atl
