// What whoever starts this program says in its environment (net/control/trainer_contract.h). Any thread.
#pragma once

#include <string>

#include "net/store/store_settings.h"

namespace atl {

std::string environment(const char* name);  // empty where it is not set
StoreSettings store_of_environment();       // of this machine's owner

}  // namespace atl
