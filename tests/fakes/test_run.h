// A run without files: its certificate authority, the hub's identity and those of any number of islands. For tests.
#pragma once

#include <map>
#include <string>

#include "net/tls/authority.h"
#include "net/tls/identity.h"

namespace atl {

// A config.json that islands compute, as small as can be, over bytes.
std::string tiny_model_json();

class TestRun {
 public:
  explicit TestRun(const std::string& run_id = "0123456789abcdef");

  const CertificateAuthority& authority() const { return authority_; }
  const Identity& hub() const { return hub_; }
  // The identity of island `number`, always the same; its name is "isl-" and the number as 16 hex digits.
  const Identity& island(int number);
  static IslandId island_id(int number);

  // A new certificate with these dates, for failures.
  Identity issue(const IslandId& name, const Validity& validity) const;

 private:
  CertificateAuthority authority_;
  Identity hub_;
  std::map<int, Identity> islands_;
};

}  // namespace atl
