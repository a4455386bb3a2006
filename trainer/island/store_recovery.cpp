#include "trainer/island/store_recovery.h"

#include <fmt/format.h>

#include "net/base/mutex.h"
#include "net/base/round_words.h"
#include "net/store/state_download.h"

namespace atl {
namespace {

// The download's threads bring chunks; the plan takes them one at a time.
class PlanSink final : public ChunkSink {
 public:
  PlanSink(FetchPlan& plan, const std::function<bool()>& superseded) : plan_(plan), superseded_(superseded) {}

  bool has(std::uint64_t index) const override {
    MutexLock lock(mutex_);
    return plan_.is_right(index);
  }
  Status put(std::uint64_t index, ByteView bytes) override {
    MutexLock lock(mutex_);
    if (superseded_ && superseded_()) return Error{ErrorCode::kNotFound, "another outer state is to be fetched by now"};
    const auto taken = plan_.take_chunk(index, plan_.wanted(index), bytes);
    return taken.ok() ? ok_status() : Status(taken.error());
  }

 private:
  mutable Mutex mutex_;
  FetchPlan& plan_;
  const std::function<bool()>& superseded_;
};

}  // namespace

Status fetch_from_store(const StoreRecovery& store, const HeldState& target, FetchPlan& plan, const AbortSignal& abort,
                        const FetchProgress& progress, const std::function<bool()>& superseded) {
  plan.aim(target);
  ATOLL_ASSIGN_OR_RETURN(const StoreUrl url, parse_store_url(store.upload_store));
  ATOLL_ASSIGN_OR_RETURN(const StoreAccess access, access_to_read(store.settings, url));
  ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access, {.download = store.download}));
  ATOLL_ASSIGN_OR_RETURN(
      const PublishedState found,
      find_published_state(client, url.key(published_name(target.outer_step)), /*manifest_sha256=*/{}, abort));
  const std::string manifest = found.manifest.state.to_json();
  if (const Status taken = plan.take_manifest(as_bytes(manifest)); !taken.ok()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} in {} is another state than the run's {}: it was written over", found.prefix,
                             store.upload_store, after_round(target.outer_step.value))};
  }
  PlanSink sink(plan, superseded);
  return fetch_published_state(access, found, sink, abort, progress, {.client = {.download = store.download}});
}

}  // namespace atl
