#include "tests/fakes/test_run.h"

#include <fmt/format.h>

#include "net/tls/signature.h"

namespace atl {
namespace {

Validity now_valid() { return Validity::starting(std::chrono::system_clock::now(), std::chrono::hours(1)); }

}  // namespace

std::string tiny_model_json() {
  return R"({"model_type": "llama", "vocab_size": 257, "hidden_size": 8, "intermediate_size": 8,
             "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
             "max_position_embeddings": 1024, "tie_word_embeddings": true})";
}

TestRun::TestRun(const std::string& run_id)
    : authority_(CertificateAuthority::create(run_id).value()),
      hub_(authority_.make_hub_identity(now_valid()).value()) {}

const Identity& TestRun::island(int number) {
  const auto found = islands_.find(number);
  if (found != islands_.end()) return found->second;
  return islands_.emplace(number, issue(island_id(number), now_valid())).first->second;
}

IslandId TestRun::island_id(int number) { return IslandId{fmt::format("isl-{:016x}", number)}; }

Identity TestRun::issue(const IslandId& name, const Validity& validity) const {
  KeyAndRequest made = make_signing_request();
  Identity identity;
  identity.name = name;
  identity.run = authority_.run_id();
  identity.certificate_pem = authority_.sign_request(made.request_pem, name, validity).value();
  identity.key_pem = std::move(made.key_pem);
  identity.authority_pem = authority_.certificate_pem();
  return identity;
}

}  // namespace atl
