// What an object store's refusal means for a person, and whether it may pass. Pure; any thread.
#pragma once

#include <string>

#include "net/base/result.h"
#include "net/store/store_client.h"

namespace atl {

struct StoreRefusal {
  Error error;
  bool may_pass = false;  // the same request may be answered in a while
};

// Of an answer that is no success; `action`: "PUT outer-12/chunks.00000". Nothing in it is a secret.
StoreRefusal refusal_of(const StoreAnswer& answer, const std::string& action, const StoreAccess& access);

// A store may say 200 and then, in the body, that it failed (CompleteMultipartUpload).
bool is_refusal_in_body(const StoreAnswer& answer);

}  // namespace atl
