#include "net/store/state_upload.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "net/base/encoding.h"
#include "net/base/json_reader.h"
#include "net/base/json_text.h"
#include "net/base/mutex.h"
#include "net/base/printable.h"
#include "net/base/round_words.h"
#include "net/store/multipart.h"
#include "net/store/published_state.h"

namespace atl {
namespace {

constexpr int kUploadingDepth = 1;
constexpr std::size_t kMaxRunId = 16;
constexpr int kObjectTries = 3;  // uploads of one object that others ended meanwhile
constexpr int kPartTries = 3;    // a part of which the store keeps other bytes

std::string md5_hex(ByteView bytes) {
  std::array<std::byte, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_md5(), nullptr);
  return hex_encode(ByteView(digest).first(size));
}

std::string etag_of(const StoreAnswer& answer) {
  std::string etag = answer.header("etag");
  std::erase(etag, '"');
  return etag;
}

// Of what a store encrypts with keys of its own the ETag is no MD5. That the bytes arrived it has checked itself: they
// are signed.
bool etag_is_md5(const StoreAnswer& answer) {
  const std::string encryption = answer.header("x-amz-server-side-encryption");
  return (encryption.empty() || encryption == "AES256") &&
         answer.header("x-amz-server-side-encryption-customer-algorithm").empty();
}

bool is_missing(const Status& status) { return !status.ok() && status.error().code == ErrorCode::kNotFound; }

class StateUpload {
 public:
  StateUpload(const StoreAccess& access, const std::string& prefix, const PublishedRun& run, const ChunkSource& source,
              const AbortSignal& abort, const StateUploadOptions& options)
      : access_(access),
        run_(run),
        source_(source),
        state_(source.manifest()),
        hash_(to_hex(state_.tree_hash())),
        abort_(abort),
        options_(options),
        root_{access.bucket, prefix, {}, {}},
        directory_(root_.beneath(published_name(state_.version))),
        initial_(state_.chunk_sha256.size()),
        zeros_(kStateChunkNumel) {}

  Result<StateUploadReport> run();

 private:
  // Parts of one object, while they are sent.
  struct Sending {
    const MultipartUpload& upload;
    const std::uint64_t first, count;                 // chunks
    const std::map<std::uint64_t, StoredPart> there;  // what the store had before
    std::atomic<std::uint64_t> next{0};
    Mutex mutex = {};
    std::map<std::uint64_t, StoredPart> parts ATOLL_GUARDED_BY(mutex) = {};
    Status failed ATOLL_GUARDED_BY(mutex) = {};
  };

  StoreClient& client() { return clients_.front(); }
  Status check_place();
  Status check_manifest(OuterStep step);
  Status is_anothers(const std::string& run_id, const std::string& run_name) const;
  Result<bool> is_published();
  Result<bool> is_whole(std::uint64_t object);
  Status begin();
  Status upload_object(std::uint64_t object);
  Result<MultipartUpload> upload_of(std::uint64_t object);
  Status try_object(std::uint64_t object);
  Status send_parts(Sending& sending);
  void work(Sending& sending, StoreClient& client);
  Result<StoredPart> send_part(Sending& sending, StoreClient& client, std::uint64_t chunk);
  Result<StoredPart> put_part(const StoreRequest& request, StoreClient& client, const std::string& md5);
  Status read_object(std::uint64_t object);
  Result<Bytes> read_chunk(std::uint64_t chunk);
  void kept(std::uint64_t bytes);
  Status finish();
  Status write_latest();
  Result<StoreAnswer> get(const std::string& key, std::uint64_t max_bytes);
  Status put(const std::string& key, const std::string& text);

  const StoreAccess& access_;
  const PublishedRun& run_;
  const ChunkSource& source_;
  const StateManifest& state_;
  const std::string hash_;
  const AbortSignal& abort_;
  const StateUploadOptions& options_;
  const StoreUrl root_, directory_;
  std::vector<StoreClient> clients_;                // one a connection
  std::map<std::string, MultipartUpload> uploads_;  // that were begun, by their object's key
  std::vector<Digest> initial_;                     // of each chunk without its momentum
  const std::vector<float> zeros_;
  Mutex progress_;
  std::uint64_t kept_bytes_ ATOLL_GUARDED_BY(progress_) = 0;
  std::atomic<std::uint64_t> sent_bytes_{0};
  std::string manifest_sha256_;
};

Result<StateUploadReport> StateUpload::run() {
  if (access_.credentials.anonymous()) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("there are no credentials for bucket {}: name a file with them (store.credentials_file), "
                             "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                             access_.bucket)};
  }
  for (int i = 0; i < std::max(1, options_.connections); ++i) {
    ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access_, options_.client));
    clients_.push_back(std::move(client));
  }
  ATOLL_RETURN_IF_ERROR(check_place());
  ATOLL_ASSIGN_OR_RETURN(const bool published, is_published());
  if (!published) {
    ATOLL_RETURN_IF_ERROR(begin());
    for (std::uint64_t object = 0; object < chunk_objects(state_); ++object) {
      ATOLL_RETURN_IF_ERROR(upload_object(object));
    }
    ATOLL_RETURN_IF_ERROR(finish());
  }
  ATOLL_RETURN_IF_ERROR(write_latest());
  return StateUploadReport{manifest_sha256_, sent_bytes_};
}

Result<StoreAnswer> StateUpload::get(const std::string& key, std::uint64_t max_bytes) {
  return client().call({.key = key, .max_bytes = max_bytes}, abort_);
}

Status StateUpload::put(const std::string& key, const std::string& text) {
  ATOLL_RETURN_IF_ERROR(client().call({.method = StoreMethod::kPut,
                                       .key = key,
                                       .headers = {{"Content-Type", "application/json"}},
                                       .body = as_bytes(text)},
                                      abort_));
  return ok_status();
}

Status StateUpload::is_anothers(const std::string& run_id, const std::string& run_name) const {
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("run {} ({}) has states at s3://{}/{} already, which stay as they are: publish run {} in "
                           "another place (atoll hub init --upload-to), or delete what is there if nobody needs it",
                           printable(run_name, 64), printable(run_id, 32), root_.bucket, root_.prefix, run_.run_id)};
}

// An owner's word for a bucket is no word for the states of another run in it.
Status StateUpload::check_place() {
  ATOLL_RETURN_IF_ERROR(check_manifest(state_.version));
  const Result<StoreAnswer> begun = get(directory_.key(kUploadingObject), kMaxLatestBytes);
  if (!begun.ok() && begun.error().code != ErrorCode::kNotFound) return begun.error();
  if (begun.ok()) {
    std::string run = run_.run_id;  // an older version says none
    const auto said = parse_bounded_json(to_string(begun->body), kMaxLatestBytes, kUploadingDepth);
    if (said.ok() && JsonReader(*said).has("run_id")) JsonReader(*said).bounded("run_id", run, kMaxRunId);
    if (run != run_.run_id) return is_anothers(run, "another run");
  }
  const Result<StoreAnswer> latest = get(root_.key(kLatestObject), kMaxLatestBytes);
  if (!latest.ok()) return latest.error().code == ErrorCode::kNotFound ? ok_status() : Status(latest.error());
  const auto newest = LatestState::from_json(to_string(latest->body));
  if (!newest.ok() || newest->outer_step == state_.version) return ok_status();
  return check_manifest(newest->outer_step);
}

Status StateUpload::check_manifest(OuterStep step) {
  const auto answer = get(root_.beneath(published_name(step)).key(kManifestObject), kMaxPublishedManifest);
  if (!answer.ok()) return answer.error().code == ErrorCode::kNotFound ? ok_status() : Status(answer.error());
  const auto manifest = PublishedManifest::from_json(to_string(answer->body));
  if (!manifest.ok() || manifest->run_id == run_.run_id) return ok_status();
  return is_anothers(manifest->run_id, manifest->run_name);
}

// The manifest names this state, and all of it is there. One of another state, or of objects that somebody deleted, is
// taken away: nobody is to fetch by it.
Result<bool> StateUpload::is_published() {
  const std::string key = directory_.key(kManifestObject);
  const Result<StoreAnswer> answer = get(key, kMaxPublishedManifest);
  if (!answer.ok()) return answer.error().code == ErrorCode::kNotFound ? Result<bool>(false) : answer.error();
  const auto manifest = PublishedManifest::from_json(to_string(answer->body));
  bool whole = manifest.ok() && to_hex(manifest->state.tree_hash()) == hash_ && manifest->model_json == run_.model_json;
  for (std::uint64_t object = 0; whole && object < chunk_objects(state_); ++object) {
    ATOLL_ASSIGN_OR_RETURN(whole, is_whole(object));
  }
  if (whole) {
    manifest_sha256_ = to_hex(sha256(answer->body));
    return true;
  }
  const auto deleted = client().call({.method = StoreMethod::kDelete, .key = key}, abort_);
  if (!deleted.ok() && deleted.error().code != ErrorCode::kNotFound) return deleted.error();
  return false;
}

Result<bool> StateUpload::is_whole(std::uint64_t object) {
  const auto answer =
      client().call({.method = StoreMethod::kHead, .key = directory_.key(chunk_object(object))}, abort_);
  if (!answer.ok()) return answer.error().code == ErrorCode::kNotFound ? Result<bool>(false) : answer.error();
  return answer->header("content-length") == std::to_string(bytes_of_object(state_, object)) &&
         answer->header(kChunksHeader) == chunks_digest(state_, object);
}

// Uploads that were begun are gone on with where they are of this state: an upload itself says nothing of what is sent.
Status StateUpload::begin() {
  const std::string key = directory_.key(kUploadingObject);
  const std::string text = dump_json({{"version", 1}, {"run_id", run_.run_id}, {"state_hash", hash_}});
  const Result<StoreAnswer> before = get(key, kMaxLatestBytes);
  if (!before.ok() && before.error().code != ErrorCode::kNotFound) return before.error();
  const bool same = before.ok() && to_string(before->body) == text;
  ATOLL_ASSIGN_OR_RETURN(std::vector<MultipartUpload> open, open_uploads(client(), directory_.key(""), abort_));
  for (MultipartUpload& upload : open) {
    if (same) {
      uploads_.insert_or_assign(upload.key(), std::move(upload));
    } else {
      ATOLL_RETURN_IF_ERROR(upload.give_up(client(), abort_));
    }
  }
  return same ? ok_status() : put(key, text);
}

Status StateUpload::upload_object(std::uint64_t object) {
  const std::string key = directory_.key(chunk_object(object));
  Status status;
  for (int attempt = 0; attempt < kObjectTries; ++attempt) {
    ATOLL_ASSIGN_OR_RETURN(const bool whole, is_whole(object));
    if (whole) return read_object(object);
    status = try_object(object);
    if (status.ok()) {
      ATOLL_ASSIGN_OR_RETURN(const bool is, is_whole(object));
      if (is) return ok_status();
      return Error{ErrorCode::kCorrupt, fmt::format("the store at {} has {} of another length, or without what it was "
                                                    "to say of itself, right after it was written; look at the store",
                                                    access_.endpoint, key)};
    }
    // Somebody ended it, perhaps we ourselves with an answer that was lost.
    if (!is_missing(status)) return status;
    uploads_.erase(key);
  }
  return status;
}

Result<MultipartUpload> StateUpload::upload_of(std::uint64_t object) {
  const std::string key = directory_.key(chunk_object(object));
  if (const auto found = uploads_.find(key); found != uploads_.end()) return found->second;
  ATOLL_ASSIGN_OR_RETURN(
      MultipartUpload upload,
      MultipartUpload::begin(client(), key, {{kChunksHeader, chunks_digest(state_, object)}}, abort_));
  uploads_.insert_or_assign(key, upload);
  return upload;
}

Status StateUpload::try_object(std::uint64_t object) {
  ATOLL_ASSIGN_OR_RETURN(const MultipartUpload upload, upload_of(object));
  ATOLL_ASSIGN_OR_RETURN(auto there, upload.parts(client(), abort_));
  Sending sending{upload, first_chunk_of(object), chunks_of_object(state_, object), std::move(there)};
  ATOLL_RETURN_IF_ERROR(send_parts(sending));
  MutexLock lock(sending.mutex);
  const std::map<std::uint64_t, StoredPart> parts = std::move(sending.parts);
  lock.unlock();
  return upload.complete(client(), parts, abort_);
}

Status StateUpload::send_parts(Sending& sending) {
  {
    std::vector<std::jthread> threads;
    for (StoreClient& client : clients_) threads.emplace_back([&] { work(sending, client); });
  }
  MutexLock lock(sending.mutex);
  return sending.failed;
}

// One thread a connection: the next chunk, until there is none or one failed.
void StateUpload::work(Sending& sending, StoreClient& client) {
  for (;;) {
    const std::uint64_t at = sending.next++;
    if (at >= sending.count) return;
    Result<StoredPart> part = Error{ErrorCode::kInternal, "no memory"};
    try {
      part = send_part(sending, client, sending.first + at);
    } catch (const std::exception& failure) {
      part = Error{ErrorCode::kInternal, failure.what()};
    }
    MutexLock lock(sending.mutex);
    if (!part.ok()) {
      if (sending.failed.ok()) sending.failed = part.error();
      sending.next = sending.count;
      return;
    }
    sending.parts[at + 1] = std::move(*part);
  }
}

Result<StoredPart> StateUpload::send_part(Sending& sending, StoreClient& client, std::uint64_t chunk) {
  ATOLL_ASSIGN_OR_RETURN(const Bytes bytes, read_chunk(chunk));
  const std::string md5 = md5_hex(bytes);
  const std::uint64_t number = chunk - sending.first + 1;
  if (const auto had = sending.there.find(number);
      had != sending.there.end() && had->second.etag == md5 && had->second.bytes == bytes.size()) {
    kept(bytes.size());
    return had->second;
  }
  const std::unique_ptr<UploadTurn> turn = options_.take_turn ? options_.take_turn(abort_) : nullptr;
  if (abort_.raised()) return Error{ErrorCode::kAborted, abort_.reason()};
  StoreRequest request = sending.upload.part_request(number);
  request.body = bytes;
  request.body_sha256 = state_.chunk_sha256[chunk];
  if (turn) request.rate = [&turn] { return turn->bytes_per_second(); };
  ATOLL_ASSIGN_OR_RETURN(StoredPart part, put_part(request, client, md5));
  sent_bytes_ += bytes.size();
  kept(bytes.size());
  return part;
}

Result<StoredPart> StateUpload::put_part(const StoreRequest& request, StoreClient& client, const std::string& md5) {
  std::string etag;
  for (int attempt = 0; attempt < kPartTries; ++attempt) {
    ATOLL_ASSIGN_OR_RETURN(const StoreAnswer answer, client.call(request, abort_));
    etag = etag_of(answer);
    if (!etag.empty() && (etag == md5 || !etag_is_md5(answer))) return StoredPart{request.body.size(), etag};
  }
  return Error{ErrorCode::kCorrupt,
               fmt::format("the store at {} keeps other bytes of {} than were sent ({} times): its ETag is {}, their "
                           "MD5 {}; look at the store, and at what stands before it",
                           access_.endpoint, request.key, kPartTries, printable(etag, 64), md5)};
}

// What is there already is read all the same: the manifest says what a run that begins with it will have.
Status StateUpload::read_object(std::uint64_t object) {
  for (std::uint64_t i = 0; i < chunks_of_object(state_, object); ++i) {
    ATOLL_RETURN_IF_ERROR(read_chunk(first_chunk_of(object) + i));
    if (abort_.raised()) return Error{ErrorCode::kAborted, abort_.reason()};
  }
  kept(bytes_of_object(state_, object));
  return ok_status();
}

Result<Bytes> StateUpload::read_chunk(std::uint64_t chunk) {
  ATOLL_ASSIGN_OR_RETURN(Bytes bytes, source_.chunk(chunk));
  if (bytes.size() != state_.chunk_bytes(chunk) || sha256(bytes) != state_.chunk_sha256[chunk]) {
    return Error{ErrorCode::kCorrupt, fmt::format("chunk {} of the state {} is not what its digest says: this disk or "
                                                  "this memory changed it",
                                                  chunk, after_round(state_.version.value))};
  }
  const std::size_t half = bytes.size() / 2;  // the parameters; the rest is their momentum
  Sha256 hash;
  hash.update(ByteView(bytes).first(half));
  hash.update(std::as_bytes(std::span(zeros_)).first(half));
  initial_[chunk] = hash.finish();
  return bytes;
}

void StateUpload::kept(std::uint64_t bytes) {
  MutexLock lock(progress_);
  kept_bytes_ += bytes;
  if (options_.progress) options_.progress(std::min(kept_bytes_, state_.state_bytes), state_.state_bytes);
}

Status StateUpload::finish() {
  const StateManifest initial{OuterStep{0}, state_.state_bytes, initial_};
  const PublishedManifest manifest{.run_id = run_.run_id,
                                   .run_name = run_.run_name,
                                   .model_json = run_.model_json,
                                   .state = state_,
                                   .initial_hash = to_hex(initial.tree_hash()),
                                   .attention = run_.attention,
                                   .tokenizer = run_.tokenizer,
                                   .tokenizer_sha256 = run_.tokenizer_sha256};
  const std::string text = manifest.to_json();
  manifest_sha256_ = sha256_hex(as_bytes(text));
  ATOLL_RETURN_IF_ERROR(put(directory_.key(kModelObject), run_.model_json));
  ATOLL_RETURN_IF_ERROR(put(directory_.key(kManifestObject), text));
  ATOLL_ASSIGN_OR_RETURN(const StoreAnswer back, get(directory_.key(kManifestObject), kMaxPublishedManifest));
  if (to_string(back.body) != text) {
    return Error{ErrorCode::kCorrupt, fmt::format("the store at {} gives another manifest back than it was given; "
                                                  "look at the store",
                                                  access_.endpoint)};
  }
  // One that stays is harmless: with a manifest beside it nobody reads it.
  (void)client().call({.method = StoreMethod::kDelete, .key = directory_.key(kUploadingObject)}, abort_);
  return ok_status();
}

Status StateUpload::write_latest() {
  const std::string text = LatestState{state_.version, hash_, manifest_sha256_}.to_json();
  const Result<StoreAnswer> before = get(root_.key(kLatestObject), kMaxLatestBytes);
  if (!before.ok() && before.error().code != ErrorCode::kNotFound) return before.error();
  if (before.ok() && to_string(before->body) == text) return ok_status();
  return put(root_.key(kLatestObject), text);
}

}  // namespace

Result<StateUploadReport> publish_state(const StoreAccess& access, const std::string& prefix, const PublishedRun& run,
                                        const ChunkSource& source, const AbortSignal& abort,
                                        const StateUploadOptions& options) {
  return StateUpload(access, prefix, run, source, abort, options).run();
}

}  // namespace atl
