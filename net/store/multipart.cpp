#include "net/store/multipart.h"

#include <fmt/format.h>

#include <charconv>

#include "net/store/s3_xml.h"

namespace atl {
namespace {

constexpr int kMostPages = 64;  // of a list; a store that goes on for ever is not believed

std::uint64_t number_in(std::string_view text, std::string_view name) {
  const std::string digits = xml_text(text, name);
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::string without_quotes(std::string text) {
  std::erase(text, '"');
  return text;
}

}  // namespace

Result<MultipartUpload> MultipartUpload::begin(StoreClient& client, const std::string& key,
                                               const std::map<std::string, std::string>& headers,
                                               const AbortSignal& abort) {
  ATOLL_ASSIGN_OR_RETURN(
      const StoreAnswer answer,
      client.call({.method = StoreMethod::kPost, .key = key, .query = {{"uploads", ""}}, .headers = headers}, abort));
  std::string id = xml_text(to_string(answer.body), "UploadId");
  if (!id.empty()) return MultipartUpload(key, std::move(id));
  return Error{ErrorCode::kProtocol, fmt::format("the store does not name the upload of {} that it began", key)};
}

Result<std::map<std::uint64_t, StoredPart>> MultipartUpload::parts(StoreClient& client,
                                                                   const AbortSignal& abort) const {
  ATOLL_ASSIGN_OR_RETURN(const StoreAnswer answer, client.call({.key = key_, .query = {{"uploadId", id_}}}, abort));
  const std::string text = to_string(answer.body);
  std::map<std::uint64_t, StoredPart> parts;
  for (const std::string_view part : xml_elements(text, "Part")) {
    parts[number_in(part, "PartNumber")] = {number_in(part, "Size"), without_quotes(xml_text(part, "ETag"))};
  }
  return parts;
}

StoreRequest MultipartUpload::part_request(std::uint64_t number) const {
  return {
      .method = StoreMethod::kPut, .key = key_, .query = {{"partNumber", std::to_string(number)}, {"uploadId", id_}}};
}

Status MultipartUpload::complete(StoreClient& client, const std::map<std::uint64_t, StoredPart>& parts,
                                 const AbortSignal& abort) const {
  std::string body = "<CompleteMultipartUpload>";
  for (const auto& [number, part] : parts) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>&quot;{}&quot;</ETag></Part>", number,
                        xml_escaped(part.etag));
  }
  body += "</CompleteMultipartUpload>";
  ATOLL_RETURN_IF_ERROR(client.call({.method = StoreMethod::kPost,
                                     .key = key_,
                                     .query = {{"uploadId", id_}},
                                     .headers = {{"Content-Type", "application/xml"}},
                                     .body = as_bytes(body)},
                                    abort));
  return ok_status();
}

Status MultipartUpload::give_up(StoreClient& client, const AbortSignal& abort) const {
  const auto answer = client.call({.method = StoreMethod::kDelete, .key = key_, .query = {{"uploadId", id_}}}, abort);
  if (!answer.ok() && answer.error().code != ErrorCode::kNotFound) return answer.error();
  return ok_status();
}

Result<std::vector<MultipartUpload>> open_uploads(StoreClient& client, const std::string& prefix,
                                                  const AbortSignal& abort) {
  std::vector<MultipartUpload> uploads;
  StoreRequest request{.query = {{"prefix", prefix}, {"uploads", ""}}};
  for (int page = 0; page < kMostPages; ++page) {
    ATOLL_ASSIGN_OR_RETURN(const StoreAnswer answer, client.call(request, abort));
    const std::string text = to_string(answer.body);
    for (const std::string_view upload : xml_elements(text, "Upload")) {
      std::string key = xml_text(upload, "Key"), id = xml_text(upload, "UploadId");
      // Stores differ in how well they know a prefix.
      if (key.starts_with(prefix) && !id.empty()) uploads.emplace_back(std::move(key), std::move(id));
    }
    if (xml_text(text, "IsTruncated") != "true") return uploads;
    request.query["key-marker"] = xml_text(text, "NextKeyMarker");
    request.query["upload-id-marker"] = xml_text(text, "NextUploadIdMarker");
  }
  return Error{ErrorCode::kProtocol, "the store lists uploads without an end"};
}

}  // namespace atl
