#include "net/wire/enrol.h"

#include <fmt/format.h>

#include <optional>

#include "net/base/encoding.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr int kMaxDepth = 4;
constexpr std::size_t kMaxId = 64;
constexpr std::size_t kMaxSecretText = 128;
constexpr std::size_t kMaxPem = 8 * 1024;
constexpr std::size_t kMaxHubAddresses = 16;

void write_addresses(nlohmann::json& object, const std::vector<Address>& hub) {
  nlohmann::json list = nlohmann::json::array();
  for (const Address& address : hub) list.push_back(to_string(address));
  object["hub"] = std::move(list);
}

void read_addresses(JsonReader& reader, std::vector<Address>& hub) {
  const nlohmann::json* list = reader.find("hub");
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > kMaxHubAddresses) return reader.fail("field 'hub' is no short list");
  for (const nlohmann::json& entry : *list) {
    auto address = parse_address(entry.is_string() ? entry.get<std::string>() : "");
    if (!address.ok()) return reader.fail("field 'hub' holds no HOST:PORT");
    hub.push_back(std::move(address).value());
  }
}

Bytes frame_of(const nlohmann::json& object) {
  const std::string body = dump_json(object);
  ByteWriter writer;
  writer.put(static_cast<std::uint32_t>(body.size()));
  writer.put_bytes(as_bytes(body));
  return writer.take();
}

Result<nlohmann::json> parse_body(ByteView body) {
  auto parsed = parse_bounded_json(to_string(body), kMaxEnrolBytes, kMaxDepth);
  if (!parsed.ok()) return parsed.error().with_context("enrolment message");
  return parsed;
}

nlohmann::json refusal_of(const Error& error) {
  return {{"error", {{"code", to_string(error.code)}, {"message", printable(error.message, kMaxPersonText)}}}};
}

// The error that the hub answers with, if that is its answer.
Status read_refusal(const nlohmann::json& object, std::optional<Error>& refusal) {
  if (!object.is_object() || !object.contains("error")) return ok_status();
  JsonReader reader(object["error"]);
  std::string code;
  Error error;
  reader.bounded("code", code, kMaxId);
  reader.text("message", error.message);
  if (!reader.status().ok()) return reader.status().error().with_context("enrolment message");
  error.code = parse_error_code(code).value_or(ErrorCode::kPermissionDenied);
  refusal = std::move(error);
  return ok_status();
}

Status check_version(JsonReader& reader, int& version) {
  reader.field("version", version);
  if (!reader.status().ok() || version == kEnrolVersion) return ok_status();
  return Error{ErrorCode::kVersionUnsupported,
               fmt::format("the island enrols with version {}, this hub with version {}; install the same version of "
                           "Atoll on both",
                           version, kEnrolVersion)};
}

template <class Archive>
void fields(Archive& archive, RunAbout& run) {
  archive.id("id", run.run_id);
  archive.text("name", run.name);
  archive.text_if_any("operator", run.operator_name);
  archive.text_if_any("model", run.model);
  archive.field("parameters", run.parameters);
  bool is_told = !run.needs.empty();
  if constexpr (Archive::kReads) is_told = archive.has("needs");
  if (is_told) archive.bounded("needs", run.needs, kMaxRunNeeds);
}

Error unfit(const JsonReader& reader) { return reader.status().error().with_context("enrolment message"); }

}  // namespace

Bytes encode_frame(const EnrolRequest& request) {
  return frame_of({{"version", request.version},
                   {"run", request.run_id},
                   {"invite", request.invite_id},
                   {"secret", base64url_encode(request.secret)},
                   {"request", request.request_pem},
                   {"name", printable(request.display_name, kMaxDisplayName)}});
}

Bytes encode_frame(const EnrolResponse& response) {
  if (const Error* error = std::get_if<Error>(&response)) return frame_of(refusal_of(*error));
  const auto& grant = std::get<EnrolGrant>(response);
  nlohmann::json object = {
      {"certificate", grant.certificate_pem}, {"authority", grant.authority_pem}, {"island", grant.island.value}};
  write_addresses(object, grant.hub);
  return frame_of(object);
}

Bytes encode_frame(const AboutRequest& request) {
  return frame_of({{"version", request.version}, {"about", request.run_id}});
}

Bytes encode_frame(const AboutResponse& response) {
  if (const Error* error = std::get_if<Error>(&response)) return frame_of(refusal_of(*error));
  JsonWriter writer;
  fields(writer, const_cast<RunAbout&>(std::get<RunAbout>(response)));
  return frame_of({{"run", std::move(writer.object)}});
}

Result<std::size_t> enrol_body_bytes(ByteView header) {
  ByteReader reader(header);
  const auto size = reader.get<std::uint32_t>();
  if (!reader.ok() || size == 0 || size > kMaxEnrolBytes) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("an enrolment message has 1 to {} bytes, not {}", kMaxEnrolBytes, size)};
  }
  return size;
}

Result<EnrolRequest> decode_enrol_request(ByteView body) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object, parse_body(body));
  JsonReader reader(object);
  EnrolRequest request;
  ATOLL_RETURN_IF_ERROR(check_version(reader, request.version));
  std::string secret;
  reader.id("run", request.run_id);
  reader.id("invite", request.invite_id);
  reader.bounded("secret", secret, kMaxSecretText);
  reader.bounded("request", request.request_pem, kMaxPem);
  reader.text("name", request.display_name, kMaxDisplayName);
  if (!reader.status().ok()) return unfit(reader);
  auto decoded = base64url_decode(secret);
  if (!decoded.ok()) return Error{ErrorCode::kProtocol, "enrolment message: field 'secret' is not base64url"};
  request.secret = std::move(decoded).value();
  return request;
}

Result<EnrolMessage> decode_enrol_message(ByteView body) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object, parse_body(body));
  if (!object.is_object() || !object.contains("about")) {
    ATOLL_ASSIGN_OR_RETURN(EnrolRequest request, decode_enrol_request(body));
    return EnrolMessage(std::move(request));
  }
  JsonReader reader(object);
  AboutRequest request;
  ATOLL_RETURN_IF_ERROR(check_version(reader, request.version));
  reader.id("about", request.run_id);
  if (!reader.status().ok()) return unfit(reader);
  return EnrolMessage(std::move(request));
}

Result<EnrolResponse> decode_enrol_response(ByteView body) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object, parse_body(body));
  std::optional<Error> refusal;
  ATOLL_RETURN_IF_ERROR(read_refusal(object, refusal));
  if (refusal) return EnrolResponse(std::move(*refusal));
  JsonReader reader(object);
  EnrolGrant grant;
  reader.bounded("certificate", grant.certificate_pem, kMaxPem);
  reader.bounded("authority", grant.authority_pem, kMaxPem);
  reader.field("island", grant.island);
  read_addresses(reader, grant.hub);
  if (!reader.status().ok()) return unfit(reader);
  return EnrolResponse(std::move(grant));
}

Result<AboutResponse> decode_about_response(ByteView body) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object, parse_body(body));
  std::optional<Error> refusal;
  ATOLL_RETURN_IF_ERROR(read_refusal(object, refusal));
  if (refusal) return AboutResponse(std::move(*refusal));
  JsonReader reader(object);
  const nlohmann::json* run = reader.find("run");
  if (run == nullptr) return unfit(reader);
  JsonReader inner(*run);
  RunAbout about;
  fields(inner, about);
  if (!inner.status().ok()) return unfit(inner);
  return AboutResponse(std::move(about));
}

}  // namespace atl
