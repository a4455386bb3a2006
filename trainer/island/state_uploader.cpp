#include "trainer/island/state_uploader.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "net/base/deadline.h"
#include "net/base/round_words.h"
#include "net/data/run_dataset.h"
#include "net/disk/replay.h"
#include "net/model/train_only.h"
#include "net/store/state_upload.h"

namespace atl {
namespace {

constexpr int kNicest = 19;
constexpr std::chrono::seconds kYields{60};  // to the ring, at a time
constexpr std::chrono::milliseconds kLook{200};
// A store takes more from several connections than from one, but not what the owner's limit does not let out.
constexpr int kConnections = 4;

class DiskSource final : public ChunkSource {
 public:
  explicit DiskSource(RestoredChunks chunks) : chunks_(std::move(chunks)) {}
  const StateManifest& manifest() const override { return chunks_.manifest(); }
  Result<Bytes> chunk(std::uint64_t index) const override { return chunks_.chunk(index); }

 private:
  const RestoredChunks chunks_;
};

// A line of the log a tenth of the way: an upload may take hours. One thread at a time.
class LoggedProgress {
 public:
  explicit LoggedProgress(OuterStep step) : step_(step) {}
  void operator()(std::uint64_t done, std::uint64_t total) {
    const std::uint64_t tenth = 10 * done / std::max<std::uint64_t>(1, total);
    if (tenth <= told_) return;
    told_ = tenth;
    spdlog::info("upload outer_step={} bytes={} of={}", step_.value, done, total);
  }

 private:
  const OuterStep step_;
  std::uint64_t told_ = 0;
};

// A part of an upload counts as an attempt: what the owner allows is shared with the ring's own.
class RingFirst {
 public:
  RingFirst(AttemptsUnderWay& ring, ServingPace& pace) : ring_(ring), pace_(pace) {}

  std::unique_ptr<UploadTurn> take(const AbortSignal& abort) {
    const Deadline yields = Deadline::after(kYields);
    pollfd wake{abort.fd(), POLLIN, 0};
    while (ring_.count() > own_ && !yields.expired() && !abort.raised()) {
      (void)::poll(&wake, 1, static_cast<int>(kLook.count()));
    }
    return std::make_unique<Turn>(*this);
  }

 private:
  struct Turn final : UploadTurn {
    explicit Turn(RingFirst& of)
        : owner(of), part(of.pace_), share(of.ring_, [&of] { return of.pace_.left_to_parts(Clock::now()); }) {
      ++owner.own_;
    }
    ~Turn() override { --owner.own_; }
    std::optional<double> bytes_per_second() const override { return share.most_bytes_per_second(); }
    RingFirst& owner;
    ServingPace::Part part;
    UploadShare share;
  };

  AttemptsUnderWay& ring_;
  ServingPace& pace_;
  std::atomic<int> own_{0};  // parts that are being sent
};

}  // namespace

StateUploader::StateUploader(Surroundings around, RunConfig run, ModelConfig model)
    : around_(std::move(around)), run_(std::move(run)), model_(std::move(model)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { this->run(stop); });
}

StateUploader::~StateUploader() {
  thread_.request_stop();
  {
    MutexLock lock(mutex_);
    if (under_way_) under_way_->abort.raise("the island stops");
  }
  thread_.join();
}

void StateUploader::upload(const HubUpload& asked) {
  const auto is_it = [&](const HubUpload& other) {
    return other.outer_step == asked.outer_step && other.state_hash == asked.state_hash;
  };
  {
    MutexLock lock(mutex_);
    asked_.reset();
    if (under_way_ && !under_way_->abort.raised() && is_it(under_way_->asked)) return;
    asked_ = asked;
    if (under_way_) under_way_->abort.raise("another state is asked for");
  }
  changed_.notify_all();
}

void StateUploader::give_up_after(OuterStep committed) {
  MutexLock lock(mutex_);
  if (asked_ && asked_->outer_step > committed) asked_.reset();
  if (under_way_ && under_way_->asked.outer_step > committed) under_way_->abort.raise("a rollback undid that state");
}

// Null: the island stops.
std::shared_ptr<StateUploader::Upload> StateUploader::next(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  under_way_.reset();
  (void)changed_.wait(lock, stop, [&]() ATOLL_REQUIRES(mutex_) { return asked_.has_value(); });
  if (stop.stop_requested()) return nullptr;
  under_way_ = std::make_shared<Upload>(*std::exchange(asked_, std::nullopt));
  return under_way_;
}

void StateUploader::run(const std::stop_token& stop) {
  // Of this thread, and of those that it starts to read through a state: what trains comes first.
  (void)::setpriority(PRIO_PROCESS, 0, kNicest);
  while (const std::shared_ptr<Upload> upload = next(stop)) {
    const HubUpload& asked = upload->asked;
    around_.progress(0);
    const Status published = try_to_publish(*upload);
    around_.progress(std::nullopt);
    if (stop.stop_requested()) return;
    if (!published.ok()) {
      spdlog::warn("upload outer_step={} error=\"{}\"", asked.outer_step.value, published.error().message);
    }
    if (!published.ok() && upload->abort.raised()) continue;
    around_.told({asked.outer_step, asked.state_hash, published.ok() ? "" : published.error().message});
  }
}

Status StateUploader::try_to_publish(const Upload& upload) const {
  try {
    return publish(upload);
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kInternal, failure.what()};
  }
}

Status StateUploader::publish(const Upload& upload) const {
  const HubUpload& asked = upload.asked;
  ATOLL_ASSIGN_OR_RETURN(const StoreUrl url, parse_store_url(run_.upload_store));
  ATOLL_ASSIGN_OR_RETURN(const StoreAccess access, access_to_write(around_.store, url));
  const RoundLog log(around_.checkpoint_directory);
  const auto way =
      way_to(HeldState{asked.outer_step, asked.state_hash}, kept_states(around_.checkpoint_directory), log.rounds());
  if (!way) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("this island's disk does not lead to the state {}", after_round(asked.outer_step.value))};
  }
  ATOLL_ASSIGN_OR_RETURN(RestoredChunks chunks,
                         RestoredChunks::open(*way, log, layout_of_training(model_, run_.train_only), upload.abort));
  const DiskSource source(std::move(chunks));
  RingFirst ring_first(around_.ring, around_.pace);
  StateUploadOptions options;
  options.connections = around_.pace.allowed() ? 1 : kConnections;
  LoggedProgress progress(asked.outer_step);
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress(done, total);
    around_.progress(done);
  };
  options.take_turn = [&](const AbortSignal& abort) { return ring_first.take(abort); };
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts data, facts_of_run_data(run_.dataset_json));
  const PublishedRun published{.run_id = run_.run_id,
                               .run_name = run_.name,
                               .model_json = run_.model_json,
                               .attention = run_.attention,
                               .tokenizer = data.tokenizer,
                               .tokenizer_sha256 = data.tokenizer_file ? data.tokenizer_file->sha256 : ""};
  ATOLL_ASSIGN_OR_RETURN(const StateUploadReport report,
                         publish_state(access, url.prefix, published, source, upload.abort, options));
  spdlog::info("upload outer_step={} store=\"{}\" sent_bytes={} manifest_sha256={}", asked.outer_step.value,
               to_string(url), report.sent_bytes, report.manifest_sha256);
  return ok_status();
}

}  // namespace atl
