#include "net/mesh/commit_signature.h"

#include <fmt/format.h>

#include "net/base/encoding.h"
#include "net/tls/signature.h"

namespace atl {

Result<std::string> sign_commit(const Identity& hub, const HubCommit& commit) {
  const std::string record = commit_record(commit);
  ATOLL_ASSIGN_OR_RETURN(const Bytes signature, sign_message(hub, as_bytes(record)));
  return base64url_encode(signature);
}

Status verify_commit(const Identity& self, const std::string& hub_certificate_pem, const HubCommit& commit) {
  const std::string context = fmt::format("the hub's commit of round {}", commit.round.value);
  const Result<Bytes> signature = base64url_decode(commit.signature);
  if (!signature.ok()) return signature.error().with_context(context);
  const std::string record = commit_record(commit);
  const Status verified = verify_hub_signature(self, hub_certificate_pem, as_bytes(record), *signature);
  if (!verified.ok()) return verified.error().with_context(context);
  return ok_status();
}

Status verify_epoch(const Identity& self, const SignedEpoch& epoch) {
  const Result<Bytes> signature = base64url_decode(epoch.signature);
  if (!signature.ok()) return signature.error().with_context("the hub's epoch");
  const std::string record = epoch_record(self.run, epoch.epoch);
  const Status verified = verify_hub_signature(self, epoch.hub_certificate, as_bytes(record), *signature);
  if (!verified.ok()) return verified.error().with_context("the hub's epoch");
  return ok_status();
}

}  // namespace atl
