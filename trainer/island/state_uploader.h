// Writes outer states to the run's object store when the hub asks for one (HubUpload), from this island's disk, on a
// thread of its own: training goes on whatever the store does. The ring comes first: no part begins while an
// all-reduce has the link, but for one a minute, so that an upload ends also where rounds follow each other closely;
// and the owner's limit on the upload is that of both together, and of what is served. Owned by the island.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/collective/upload_share.h"
#include "net/model/config.h"
#include "net/recovery/serving_pace.h"
#include "net/store/store_settings.h"
#include "net/wire/mesh.h"

namespace atl {

class StateUploader {
 public:
  struct Surroundings {
    StoreSettings store;
    std::filesystem::path checkpoint_directory;
    ServingPace& pace;  // says what the owner leaves to parts; this and the next outlive it
    AttemptsUnderWay& ring;
    // How much the store has of the state that is written; nothing: none is. On any of the upload's threads.
    std::function<void(std::optional<std::uint64_t>)> progress;
    std::function<void(const IslandUploaded&)> told;  // how one ended; on the uploader's thread
  };

  StateUploader(Surroundings around, RunConfig run, ModelConfig model);
  ~StateUploader();  // breaks off; the next process goes on with what the store has

  // Any thread; returns at once. One of another state that is under way, or waits, is given up, and nothing told of it.
  void upload(const HubUpload& asked);
  // Any thread; returns at once. What is of a later outer step is given up, too: a rollback undid it.
  void give_up_after(OuterStep committed);

 private:
  struct Upload {
    explicit Upload(HubUpload wanted) : asked(std::move(wanted)) {}
    const HubUpload asked;
    AbortSignal abort;
  };
  void run(const std::stop_token& stop);
  std::shared_ptr<Upload> next(const std::stop_token& stop);
  Status try_to_publish(const Upload& upload) const;
  Status publish(const Upload& upload) const;

  const Surroundings around_;
  const RunConfig run_;
  const ModelConfig model_;
  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<HubUpload> asked_ ATOLL_GUARDED_BY(mutex_);     // not begun
  std::shared_ptr<Upload> under_way_ ATOLL_GUARDED_BY(mutex_);  // may be given up already
  std::jthread thread_;
};

}  // namespace atl
