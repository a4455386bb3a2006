// A run's certificate authority: made once by `atoll hub init`, kept by the hub alone. Its public key's hash is the pin
// in every invite. Const after creation: any thread may sign.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/tls/identity.h"
#include "net/tls/x509.h"

namespace atl {

struct Validity {
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
  // From a little before `now`, because clocks differ.
  static Validity starting(std::chrono::system_clock::time_point now, std::chrono::seconds duration);
};

// No clock that is right shows less. Authorities are valid from here on: they are trusted by their pin, and a date at
// which one was made could only be a wrong one.
inline constexpr std::chrono::sys_days kSurelyPast{std::chrono::year{2026} / std::chrono::January / 1};

inline constexpr std::chrono::hours kAuthorityLifetime{24 * 3652};
inline constexpr std::chrono::hours kHubCertificateLifetime{24 * 730};

class CertificateAuthority {
 public:
  // A new P-256 key and self-signed certificate with the run id as its organisation.
  static Result<CertificateAuthority> create(const std::string& run_id);
  // authority-key.pem (0600) and authority.pem in `directory`. kNotFound when there are none.
  static Result<CertificateAuthority> load(const std::filesystem::path& directory);
  Status save(const std::filesystem::path& directory) const;

  const std::string& run_id() const { return run_id_; }
  const std::string& certificate_pem() const { return certificate_pem_; }
  Digest pin() const;  // SHA-256 of the SubjectPublicKeyInfo
  // kCertificate: at that time nobody accepts what it signed. Says which clock was, or is, wrong.
  Status check_time(std::chrono::system_clock::time_point now) const;
  // Of a certificate that is made now: from when the authority is, so that whatever this machine's clock says, it is
  // valid once the clock is right.
  Validity validity(std::chrono::system_clock::time_point now, std::chrono::seconds lifetime) const;

  // A certificate for the request's key under `name`, whatever name the request asks for. kInvalidArgument when the
  // request is malformed, does not prove possession of its key, or the name is not an island's.
  Result<std::string> sign_request(const std::string& request_pem, const IslandId& name,
                                   const Validity& validity) const;
  // A certificate for the same name and key as this one of an island, whatever its own validity, which it covers: it
  // begins no later and ends no sooner. kCertificate when this authority did not sign it, or it is not an island's.
  Result<std::string> renew(const std::string& certificate_pem, const Validity& validity) const;
  // A new key with a certificate for kHubName.
  Result<Identity> make_hub_identity(const Validity& validity) const;

 private:
  CertificateAuthority(std::string run_id, UniqueKey key, UniqueCertificate certificate);
  Result<std::string> issue(EVP_PKEY* subject_key, const std::string& name, const Validity& validity) const;

  std::string run_id_;
  UniqueKey key_;
  UniqueCertificate certificate_;
  std::string certificate_pem_;
};

// "isl-" and 16 random hex digits: the form of every name that the authority signs for an island.
IslandId random_island_id();
bool is_enrolled_name(const std::string& text);

}  // namespace atl
