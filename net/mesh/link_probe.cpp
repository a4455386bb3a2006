#include "net/mesh/link_probe.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "net/base/mutex.h"
#include "net/https/https_fetcher.h"

namespace atl {
namespace {

// A slow link is measured by what came until then. Across half the world a connection takes five seconds until its
// window is open, and before that it would seem a slow one.
constexpr std::chrono::seconds kProbeTimeout{10};
constexpr std::chrono::seconds kStall{5};
constexpr std::chrono::seconds kPollPeriod{1};

struct Fetched {
  Clock::time_point asked, first_byte, half, end;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_at_half = 0;
};

Result<Fetched> fetch(HttpsFetcher& fetcher, const LinkProbe& probe, std::uint64_t bytes, Deadline deadline,
                      const AbortSignal& abort) {
  Fetched fetched;
  HttpsRequest request;
  request.peer = probe.peer;
  request.address = probe.address;
  request.path = fmt::format("{}{}", kProbeTarget, bytes);
  request.max_bytes = bytes;
  request.on_body = [&](ByteView body, bool) {
    fetched.end = Clock::now();
    if (fetched.bytes == 0) fetched.first_byte = fetched.end;
    if (fetched.bytes < bytes / 2) {
      fetched.half = fetched.end;
      fetched.bytes_at_half = fetched.bytes + body.size();
    }
    fetched.bytes += body.size();
    return ok_status();
  };
  fetched.asked = Clock::now();
  const TransferId id = fetcher.start(std::move(request));
  while (!deadline.expired()) {
    ATOLL_ASSIGN_OR_RETURN(const auto outcomes, fetcher.wait(deadline, abort));
    if (outcomes.empty()) continue;
    if (outcomes[0].error) return *outcomes[0].error;
    if (outcomes[0].http_status != 200 || fetched.bytes != bytes) {
      return Error{ErrorCode::kProtocol,
                   fmt::format("status {} and {} of {} bytes", outcomes[0].http_status, fetched.bytes, bytes)};
    }
    return fetched;
  }
  fetcher.cancel(id);
  if (fetched.bytes > 1) return fetched;
  return Error{ErrorCode::kTimeout, "nothing came within the time allowed"};
}

}  // namespace

Result<MeasuredLink> measure_link(const Identity& self, const LinkProbe& probe, Deadline deadline,
                                  const AbortSignal& abort, DownloadPace* download) {
  const std::string what = fmt::format("probe of the link from {} at {}", probe.peer.value, to_string(probe.address));
  if (probe.bytes < 2 || probe.bytes > kMaxProbeBytes) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {} bytes; 2 to {}", what, probe.bytes, kMaxProbeBytes)};
  }
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, kStall, download));
  MeasuredLink link{probe.peer, 0, 0};
  std::optional<Seconds> least;
  for (int i = 0; i < 3; ++i) {  // the first opens the connection
    const auto one = fetch(fetcher, probe, 1, deadline, abort);
    if (!one.ok()) return one.error().with_context(what);
    const Seconds took = one->first_byte - one->asked;
    least = least ? std::min(*least, took) : took;
  }
  link.rtt_seconds = least->count();
  const auto many = fetch(fetcher, probe, probe.bytes, deadline, abort);
  if (!many.ok()) return many.error().with_context(what);
  // All in one piece: nothing better than the whole is known.
  const bool has_halves = many->end > many->half && many->bytes > many->bytes_at_half;
  const Seconds took = has_halves ? many->end - many->half : many->end - many->asked;
  const std::uint64_t bytes = has_halves ? many->bytes - many->bytes_at_half : many->bytes;
  link.bytes_per_second = static_cast<double>(bytes) / std::max(took.count(), 1e-6);
  return link;
}

LinkProber::LinkProber(const Identity& self, std::function<void(const MeasuredLink&)> report, DownloadPace* download)
    : self_(self), report_(std::move(report)), download_(download), thread_([this] { run(); }) {}

LinkProber::~LinkProber() {
  stop_.raise("the island stops");
  stop_probing();
  waiting_.close();
}

void LinkProber::probe(LinkProbe probe) {
  std::uint64_t generation = 0;
  {
    MutexLock lock(mutex_);
    generation = generation_;
  }
  if (!waiting_.push({std::move(probe), generation})) spdlog::debug("probe dropped=\"several wait\"");
}

void LinkProber::stop_probing() {
  MutexLock lock(mutex_);
  ++generation_;
  if (current_) current_->raise("the links are needed");
}

std::shared_ptr<AbortSignal> LinkProber::begin(const Wish& wish) {
  MutexLock lock(mutex_);
  if (wish.generation != generation_) return nullptr;
  current_ = std::make_shared<AbortSignal>();
  return current_;
}

void LinkProber::run() {
  while (!stop_.raised()) {
    const auto wish = waiting_.pop(Deadline::after(kPollPeriod));
    if (!wish) continue;
    const std::shared_ptr<AbortSignal> abort = begin(*wish);
    if (!abort) continue;
    const auto link = measure_link(self_, wish->probe, Deadline::after(kProbeTimeout), *abort, download_);
    if (link.ok()) {
      report_(*link);
    } else if (!abort->raised()) {
      spdlog::info("probe error=\"{}\"", link.error().message);
    }
  }
}

}  // namespace atl
