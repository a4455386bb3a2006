#include "tests/net/store/fake_store.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/socket.h>
#include <QtCore/QtGlobal>

#include <algorithm>
#include <sstream>

#include "net/base/encoding.h"
#include "net/base/sha256.h"
#include "net/store/s3_xml.h"

namespace atl::test {
namespace {

constexpr std::chrono::milliseconds kLook{20};

std::string md5(const std::string& bytes) {
  std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_md5(), nullptr);
  return hex_encode(ByteView(digest).first(size));
}

std::string hmac(const std::string& key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto at = text.find(begin);
  if (at == std::string::npos) return {};
  const auto from = at + begin.size();
  return text.substr(from, std::min(text.find(end, from), text.size()) - from);
}

FakeStoreAnswer refusal(int status, const std::string& code, const std::string& message) {
  return {status,
          fmt::format("<?xml version=\"1.0\"?><Error><Code>{}</Code><Message>{}</Message></Error>", code, message),
          {}};
}

std::string sorted_query(const std::string& query) {
  std::vector<std::string> pairs;
  std::istringstream stream(query);
  for (std::string pair; std::getline(stream, pair, '&');)
    pairs.push_back(pair.find('=') == std::string::npos ? pair + "=" : pair);
  std::ranges::sort(pairs);
  std::string sorted;
  for (const std::string& pair : pairs) sorted += (sorted.empty() ? "" : "&") + pair;
  return sorted;
}

// AWS Signature Version 4, "Create a signed AWS API request": canonical request, string to sign, derived key.
std::string signature_of(const FakeStoreRequest& request, const std::string& authorization) {
  const std::string signed_headers = between(authorization, "SignedHeaders=", ",");
  const std::string scope = between(authorization, "Credential=", ",").substr(std::string(kFakeKeyId).size() + 1);
  std::string headers;
  std::istringstream names(signed_headers);
  for (std::string name; std::getline(names, name, ';');) {
    const auto found = request.headers.find(name);
    headers += fmt::format("{}:{}\n", name, found == request.headers.end() ? "" : found->second);
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, sorted_query(request.query), headers,
                  signed_headers, request.headers.at("x-amz-content-sha256"));
  const std::string to_sign = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", request.headers.at("x-amz-date"), scope,
                                          sha256_hex(as_bytes(canonical)));
  std::string key = fmt::format("AWS4{}", kFakeSecret);
  std::istringstream parts(scope);
  for (std::string part; std::getline(parts, part, '/');) key = hmac(key, part);
  return hex_encode(as_bytes(hmac(key, to_sign)));
}

bool send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// One request; empty where the connection ended before.
std::optional<FakeStoreRequest> receive(int socket, std::string& buffer) {
  std::array<char, 1 << 16> piece{};
  const auto more = [&] {
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
    if (got > 0) buffer.append(piece.data(), static_cast<std::size_t>(got));
    return got > 0;
  };
  while (buffer.find("\r\n\r\n") == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  const auto end = buffer.find("\r\n\r\n");
  std::istringstream head(buffer.substr(0, end));
  FakeStoreRequest request;
  head >> request.method >> request.target;
  std::string line;
  std::getline(head, line);
  while (std::getline(head, line)) {
    if (line.ends_with('\r')) line.pop_back();
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = line.substr(colon + 2);
  }
  const auto question = std::min(request.target.find('?'), request.target.size());
  request.path = request.target.substr(0, question);
  request.query = request.target.substr(std::min(question + 1, request.target.size()));
  const auto length = request.headers.find("content-length");
  const std::size_t body = length == request.headers.end() ? 0 : std::stoull(length->second);
  if (request.headers.contains("expect")) send_all(socket, "HTTP/1.1 100 Continue\r\n\r\n");
  while (buffer.size() < end + 4 + body) {
    if (!more()) return std::nullopt;
  }
  request.body = buffer.substr(end + 4, body);
  buffer.erase(0, end + 4 + body);
  return request;
}

bool send_answer(int socket, const FakeStoreRequest& request, const FakeStoreAnswer& answer) {
  std::string head = fmt::format("HTTP/1.1 {} .\r\n", answer.status);
  if (!answer.headers.contains("Content-Length")) head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  return send_all(socket, head + "\r\n" + (request.method == "HEAD" ? "" : answer.body));
}

// Of a GET.
bool drip_answer(int socket, const FakeStoreAnswer& answer, const std::atomic<bool>& ends) {
  if (!send_all(socket,
                fmt::format("HTTP/1.1 {} .\r\nContent-Length: {}\r\n\r\n", answer.status, answer.body.size()))) {
    return false;
  }
  for (std::size_t at = 0; at < answer.body.size(); at += 16) {
    if (ends || !send_all(socket, answer.body.substr(at, 16))) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

std::map<std::string, std::string> meta_of(const FakeStoreRequest& request) {
  std::map<std::string, std::string> meta;
  for (const auto& [name, value] : request.headers) {
    if (name.starts_with("x-amz-meta-")) meta[name] = value;
  }
  return meta;
}

}  // namespace

std::string FakeStoreRequest::key() const {
  const std::string bucket = fmt::format("/{}", kFakeBucket);
  return path.size() <= bucket.size() + 1 ? std::string() : decoded(path.substr(bucket.size() + 1));
}

std::string FakeStoreRequest::value(const std::string& name) const {
  return decoded(between("&" + query, "&" + name + "=", "&"));
}

bool FakeStoreRequest::asks(const std::string& name) const {
  return ("&" + query).find("&" + name + "=") != std::string::npos;
}

StoreFault StoreFault::refuse(int status, const std::string& code, const std::string& message) {
  return {Kind::kAnswer, refusal(status, code, message)};
}

FakeStore::FakeStore(std::function<StoreFault(const FakeStoreRequest&)> fault)
    : fault_(std::move(fault)), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool listens = ::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::listen(listening_.get(), 64) == 0 &&
                       ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!listens) qFatal("the fake store does not listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
}

FakeStore::~FakeStore() {
  ends_ = true;
  acceptor_.request_stop();
  acceptor_.join();
  MutexLock lock(connections_mutex_);
  for (const UniqueFd& connection : connections_) ::shutdown(connection.get(), SHUT_RDWR);
  threads_.clear();
}

std::string FakeStore::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

void FakeStore::accept_all(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd ready{listening_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(kLook.count())) <= 0) continue;
    UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    const int number = socket.get();
    MutexLock lock(connections_mutex_);
    connections_.push_back(std::move(socket));
    threads_.emplace_back([this, number] { serve(number); });
  }
}

void FakeStore::serve(int socket) {
  std::string buffer;
  while (const auto request = receive(socket, buffer)) {
    FakeStoreAnswer answer;
    StoreFault fault;
    {
      MutexLock lock(mutex_);
      asked_.push_back(fmt::format("{} {}{}", request->method, request->key(), request->is_part() ? " part" : ""));
      heads_ += request->target + "\n";
      for (const auto& [name, value] : request->headers) heads_ += name + ": " + value + "\n";
      if (const auto no = refused(*request)) {
        answer = *no;
      } else {
        if (fault_) fault = fault_(*request);
        const bool is_done = fault.kind != StoreFault::Kind::kAnswer && fault.kind != StoreFault::Kind::kCutBefore &&
                             fault.kind != StoreFault::Kind::kStall;
        answer = is_done ? this->answer(*request) : fault.answer;
      }
    }
    using Kind = StoreFault::Kind;
    while (fault.kind == Kind::kStall && !ends_) std::this_thread::sleep_for(kLook);
    if (fault.kind == Kind::kCutBefore || fault.kind == Kind::kCutAfter || fault.kind == Kind::kStall) break;
    if (fault.kind == Kind::kWrongEtag) answer.headers["ETag"] = "\"00000000000000000000000000000000\"";
    if (fault.kind == Kind::kWrongBytes && !answer.body.empty())
      answer.body.back() = static_cast<char>(answer.body.back() ^ 1);
    const bool sent =
        fault.kind == Kind::kDrip ? drip_answer(socket, answer, ends_) : send_answer(socket, *request, answer);
    if (!sent) break;
  }
  ::shutdown(socket, SHUT_RDWR);
}

std::optional<FakeStoreAnswer> FakeStore::refused(const FakeStoreRequest& request) const {
  const auto authorization = request.headers.find("authorization");
  if (authorization == request.headers.end()) {
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (public_ && reads) return std::nullopt;
    return refusal(403, "AccessDenied", "Access Denied");
  }
  const std::string& text = authorization->second;
  if (between(text, "Credential=", "/") != kFakeKeyId) {
    return refusal(403, "InvalidAccessKeyId", "The key that you gave does not exist");
  }
  if (between(text, "Signature=", ",") != signature_of(request, text)) {
    return refusal(403, "SignatureDoesNotMatch", "The signature is another");
  }
  if (request.headers.at("x-amz-content-sha256") != sha256_hex(as_bytes(request.body))) {
    return refusal(400, "XAmzContentSHA256Mismatch", "The body is another than was signed");
  }
  if (!request.path.starts_with(fmt::format("/{}", kFakeBucket))) {
    return refusal(404, "NoSuchBucket", "The bucket does not exist");
  }
  return std::nullopt;
}

FakeStoreAnswer FakeStore::answer(const FakeStoreRequest& request) {
  if (request.method == "POST") return post(request);
  if (request.method == "PUT") return put_object(request);
  if (request.method == "DELETE") {
    if (request.asks("uploadId")) {
      return uploads_.erase(request.value("uploadId")) > 0 ? FakeStoreAnswer{204}
                                                           : refusal(404, "NoSuchUpload", "gone");
    }
    objects_.erase(request.key());
    return {204};
  }
  if (request.key().empty() || request.asks("uploadId")) return list(request);
  return get_object(request);
}

FakeStoreAnswer FakeStore::list(const FakeStoreRequest& request) const {
  std::string body = "<?xml version=\"1.0\"?><List>";
  if (request.asks("uploadId")) {
    const auto found = uploads_.find(request.value("uploadId"));
    if (found == uploads_.end()) return refusal(404, "NoSuchUpload", "The upload does not exist");
    for (const auto& [number, part] : found->second.parts) {
      body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>&quot;{}&quot;</ETag><Size>{}</Size></Part>", number,
                          part.etag, part.bytes.size());
    }
  } else if (request.asks("uploads")) {
    // A page each, as a large bucket would.
    const std::string after = request.value("upload-id-marker");
    for (auto at = after.empty() ? uploads_.begin() : uploads_.upper_bound(after); at != uploads_.end(); ++at) {
      if (!at->second.key.starts_with(request.value("prefix"))) continue;
      body += fmt::format(
          "<Upload><Key>{}</Key><UploadId>{}</UploadId></Upload><NextKeyMarker>{}</NextKeyMarker>"
          "<NextUploadIdMarker>{}</NextUploadIdMarker><IsTruncated>true</IsTruncated>",
          at->second.key, at->first, at->second.key, at->first);
      break;
    }
  }
  return {200, body + "<IsTruncated>false</IsTruncated></List>", {}};
}

FakeStoreAnswer FakeStore::post(const FakeStoreRequest& request) {
  if (request.asks("uploads")) {
    const std::string id = fmt::format("upload+{}/=", ++last_upload_);
    uploads_[id] = {request.key(), meta_of(request), {}};
    return {200, fmt::format("<R><Key>{}</Key><UploadId>{}</UploadId></R>", request.key(), id), {}};
  }
  const auto found = uploads_.find(request.value("uploadId"));
  if (found == uploads_.end()) return refusal(404, "NoSuchUpload", "The upload does not exist");
  Object whole{{}, {}, found->second.headers};
  std::size_t count = 0;
  for (const std::string_view part : xml_elements(request.body, "Part")) {
    const int number = std::stoi(xml_text(part, "PartNumber"));
    const Object& stored = found->second.parts[number];
    if (xml_text(part, "ETag") != "\"" + stored.etag + "\"") return refusal(400, "InvalidPart", "another ETag");
    whole.bytes += stored.bytes;
    ++count;
  }
  whole.etag = fmt::format("{}-{}", md5(whole.bytes), count);
  objects_[found->second.key] = std::move(whole);
  uploads_.erase(found);
  return {200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", {}};
}

FakeStoreAnswer FakeStore::put_object(const FakeStoreRequest& request) {
  Object object{request.body, md5(request.body), meta_of(request)};
  const FakeStoreAnswer taken{200, {}, {{"ETag", "\"" + object.etag + "\""}}};
  if (!request.is_part()) {
    objects_[request.key()] = std::move(object);
    return taken;
  }
  const auto found = uploads_.find(request.value("uploadId"));
  if (found == uploads_.end()) return refusal(404, "NoSuchUpload", "The upload does not exist");
  found->second.parts[std::stoi(request.value("partNumber"))] = std::move(object);
  ++parts_taken_;
  return taken;
}

FakeStoreAnswer FakeStore::get_object(const FakeStoreRequest& request) const {
  const auto found = objects_.find(request.key());
  if (found == objects_.end()) return refusal(404, "NoSuchKey", "The key does not exist");
  const std::string& bytes = found->second.bytes;
  FakeStoreAnswer answer{200, {}, found->second.headers};
  answer.headers["ETag"] = "\"" + found->second.etag + "\"";
  if (request.method == "HEAD") answer.headers["Content-Length"] = std::to_string(bytes.size());
  const auto range = request.headers.find("range");
  if (range == request.headers.end()) {
    answer.body = bytes;
    return answer;
  }
  const std::size_t first = std::stoull(between(range->second, "bytes=", "-"));
  const std::size_t last = std::stoull(range->second.substr(range->second.find('-') + 1));
  answer.status = 206;
  answer.body = bytes.substr(first, last - first + 1);
  return answer;
}

std::vector<std::string> FakeStore::keys() const {
  MutexLock lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, object] : objects_) keys.push_back(key);
  return keys;
}

std::string FakeStore::object(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? std::string() : found->second.bytes;
}

void FakeStore::put(const std::string& key, const std::string& bytes) {
  MutexLock lock(mutex_);
  objects_[key].bytes = bytes;
}

void FakeStore::erase(const std::string& key) {
  MutexLock lock(mutex_);
  objects_.erase(key);
}

std::size_t FakeStore::open_upload_count() const {
  MutexLock lock(mutex_);
  return uploads_.size();
}

std::vector<std::string> FakeStore::asked() const {
  MutexLock lock(mutex_);
  return asked_;
}

std::string FakeStore::everything_received() const {
  MutexLock lock(mutex_);
  return heads_;
}

}  // namespace atl::test
