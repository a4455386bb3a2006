#include "trainer/island/store_start.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include "net/base/backoff.h"
#include "net/store/state_download.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kFirstStorePause{2'000}, kLongestStorePause{300'000};

// One try; credentials are read anew, for their owner may have changed them meanwhile.
Status fetch_once(const RunConfig& run, const StoreSettings& settings, ParametersSink& sink, std::uint64_t numel,
                  const AbortSignal& abort, const FetchProgress& progress, DownloadPace* download) {
  ATOLL_ASSIGN_OR_RETURN(const StoreUrl url, parse_store_url(run.initial_state));
  ATOLL_ASSIGN_OR_RETURN(const StoreAccess access, access_to_read(settings, url));
  ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access, {.download = download}));
  ATOLL_ASSIGN_OR_RETURN(const PublishedState state,
                         find_published_state(client, url.prefix, run.initial_state_sha256, abort));
  if (state.manifest.state.state_bytes != 2 * sizeof(float) * numel) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is of a model of another size than the run's", run.initial_state)};
  }
  return fetch_published_state(access, state, sink, abort, progress, {.client = {.download = download}});
}

}  // namespace

Result<std::vector<float>> fetch_initial_parameters(const RunConfig& run, std::uint64_t numel,
                                                    const StoreSettings& settings, const AbortSignal& abort,
                                                    TransferNews& news,
                                                    const std::function<void(const std::string&)>& trouble,
                                                    DownloadPace* download) {
  ParametersSink sink(numel);  // of all tries
  const auto progress = [&](std::uint64_t done, std::uint64_t total) { news.progress(done, total, Clock::now()); };
  Backoff backoff(kFirstStorePause, kLongestStorePause);
  for (;;) {
    const Status fetched = fetch_once(run, settings, sink, numel, abort, progress, download);
    if (fetched.ok()) {
      news.done();
      trouble({});
      return sink.take();
    }
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    spdlog::warn("initial_state store=\"{}\" error=\"{}\"", run.initial_state, fetched.error().message);
    news.failed(fetched.error().message);
    if (fetched.error().code == ErrorCode::kInvalidArgument) return fetched.error();
    trouble(fetched.error().message + "; trying again");
    pollfd wake{abort.fd(), POLLIN, 0};
    const Deadline pause = Deadline::after(backoff.next());
    while (!pause.expired() && !abort.raised()) (void)::poll(&wake, 1, pause.poll_milliseconds());
  }
}

}  // namespace atl
