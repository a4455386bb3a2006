#include "net/hub/open_connections.h"

#include <algorithm>

#include "net/base/open_files.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLook{500};

// All zero when the connection is closed already.
TcpProgress progress_of(boost::beast::tcp_stream* stream) {
  return stream != nullptr && stream->socket().is_open() ? tcp_progress(stream->socket().native_handle())
                                                         : TcpProgress{};
}

}  // namespace

OpenConnections::OpenConnections(const HubPortLimits& limits)
    : limits_(limits), counts_(limits.connections.within(open_file_limit())) {}

void OpenConnections::expect(const std::vector<std::string>& hosts) {
  std::vector<NetworkAddress> addresses;
  for (const std::string& host : hosts) {
    if (const auto address = NetworkAddress::parse(host)) addresses.push_back(*address);
  }
  counts_.expect(addresses);
}

std::chrono::milliseconds OpenConnections::look_period() const {
  return std::min({kLook, limits_.handshake / 4, limits_.pace.header / 4, limits_.pace.window / 4});
}

void OpenConnections::look() {
  const auto now = Clock::now();
  for (auto& [id, open] : open_) {
    if (!open.dropped && is_over(id, open, now)) end(open);
  }
}

bool OpenConnections::is_over(ConnectionId id, Open& open, Clock::time_point now) {
  if (open.until) return now >= *open.until;
  if (!open.pace) return false;
  const bool was_idle = open.pace->is_idle();
  const TcpProgress progress = progress_of(open.stream);
  const bool over = open.pace->is_over(now, progress.bytes_acknowledged, progress.bytes_queued);
  if (open.pace->is_idle() && !was_idle) counts_.set_idle(id, now);
  return over;
}

void OpenConnections::drop(const ConnectionLimits::Dropped& ids) {
  for (const ConnectionId id : ids) {
    if (const auto found = open_.find(id); found != open_.end()) end(found->second);
  }
}

// Whoever waits for it hears of it, and its coroutine ends.
void OpenConnections::end(Open& open) {
  open.dropped = true;
  if (open.stream != nullptr) open.stream->close();
  if (const auto link = open.link.lock()) link->cut();
}

OpenConnections::Place::Place(std::shared_ptr<OpenConnections> all, const std::string& host,
                              boost::beast::tcp_stream& stream)
    : all_(std::move(all)) {
  const ConnectionLimits::Admitted admitted =
      all_->counts_.admit(NetworkAddress::parse(host).value_or(NetworkAddress()));
  id_ = admitted.id;
  Open& open = all_->open_[id_];
  open.stream = &stream;
  open.until = Clock::now() + all_->limits_.handshake;
  all_->drop(admitted.dropped);
}

OpenConnections::Place::~Place() {
  all_->counts_.closed(id_);
  all_->open_.erase(id_);
}

bool OpenConnections::Place::dropped() const { return all_->open_[id_].dropped; }

void OpenConnections::Place::use(boost::beast::tcp_stream& stream) { all_->open_[id_].stream = &stream; }

void OpenConnections::Place::spoke() { all_->counts_.spoke(id_); }

void OpenConnections::Place::begin_exchange() { all_->open_[id_].until = Clock::now() + all_->limits_.handshake; }

bool OpenConnections::Place::verified(const IslandId& member) {
  Open& open = all_->open_[id_];
  if (open.pace) return !open.dropped;  // known by then
  open.until.reset();
  open.pace.emplace(all_->limits_.pace);
  all_->drop(all_->counts_.verified(id_, member, Clock::now()));
  return !open.dropped;
}

void OpenConnections::Place::wait_for_request() {
  Open& open = all_->open_[id_];
  if (!open.pace) return;
  open.pace->wait_for_request(Clock::now(), progress_of(open.stream).bytes_acknowledged);
  if (open.pace->is_idle()) all_->counts_.set_idle(id_, Clock::now());
}

void OpenConnections::Place::begin_header() {
  all_->counts_.set_busy(id_);
  if (auto& pace = all_->open_[id_].pace) pace->begin_header(Clock::now());
}

void OpenConnections::Place::begin_answer() {
  Open& open = all_->open_[id_];
  if (open.pace) open.pace->begin_answer(Clock::now(), progress_of(open.stream).bytes_acknowledged);
}

void OpenConnections::Place::become_link(const std::shared_ptr<IslandLink>& link) {
  Open& open = all_->open_[id_];
  open.stream = nullptr;
  open.pace.reset();
  open.link = link;
}

}  // namespace atl
