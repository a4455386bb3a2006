#include "trainer/program/trainer_environment.h"

#include <cstdlib>

#include "net/control/trainer_contract.h"

namespace atl {

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : text;
}

StoreSettings store_of_environment() {
  return {environment(kStoreEndpointVariable), environment(kStoreRegionVariable), environment(kStoreBucketVariable),
          environment(kStoreCredentialsVariable), environment(kStoreAuthoritiesVariable)};
}

}  // namespace atl
