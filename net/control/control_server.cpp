#include "net/control/control_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <thread>
#include <tuple>
#include <vector>

#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "net/base/unix_time.h"
#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"

namespace atl {
namespace {

constexpr std::size_t kMaxClients = 512;
constexpr std::size_t kNewcomers = 256;  // that are let in in one turn, and may speak in the next
constexpr std::size_t kMaxEventsBehind = 1024;
constexpr std::size_t kMaxSlowCalls = 8;  // that wait
// A client whose unread answers exceed this is not reading.
constexpr std::size_t kMaxUnreadBytes = 4u << 20;
constexpr std::size_t kMaxHeldBytes = 16u << 20;  // for all clients together

struct Event {
  std::uint64_t seq = 0;
  std::string line;
};

struct SlowCall {
  std::uint64_t client = 0;
  RpcRequest request;
};

struct SlowAnswer {
  std::uint64_t client = 0;
  std::string line;
};

struct Client {
  std::uint64_t number = 0;
  UniqueFd fd;
  std::string input;                         // not yet answered
  std::string output;                        // not yet sent
  std::size_t line_end = std::string::npos;  // of the first request in `input`, once it is whole
  bool understood = false;                   // it has said something that is a request
  bool subscribed = false;
  std::uint64_t last_seq = 0;  // of the events queued for it
  bool closing = false;        // after one try to send what is in `output`
  bool dead = false;

  bool request_waits() const { return line_end != std::string::npos; }
  // Who does not read what it asked for is told no more.
  bool may_be_answered() const { return request_waits() && output.empty(); }
  std::size_t held_bytes() const { return input.size() + output.size(); }
};

}  // namespace

class ControlServer::Impl {
 public:
  Impl(UnixListener listener, std::string program, ControlService& service)
      : listener_(std::move(listener)),
        program_(std::move(program)),
        service_(service),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        slow_thread_([this] { serve_slow_calls(); }),
        thread_([this](const std::stop_token& stop) { serve(stop); }) {}

  ~Impl() {
    thread_.request_stop();
    slow_calls_.close();
    wake();
  }

  void publish(std::string_view event, const nlohmann::json& data) {
    {
      MutexLock lock(mutex_);
      const std::uint64_t seq = ++last_seq_;
      events_.push_back(
          {seq, encode_event({{"event", event}, {"seq", seq}, {"time", unix_time_now()}, {"data", data}})});
      if (events_.size() > kMaxEventsBehind) events_.pop_front();
    }
    wake();
  }

 private:
  void wake() {
    const std::uint64_t one = 1;
    // A full counter wakes as well.
    if (::write(wake_.get(), &one, sizeof one) < 0) return;
  }

  void serve(const std::stop_token& stop) {
    std::vector<pollfd> fds;
    while (!stop.stop_requested()) {
      fds.assign({{listener_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}});
      for (const Client& client : clients_) {
        const int events = (client.request_waits() ? 0 : POLLIN) | (client.output.empty() ? 0 : POLLOUT);
        fds.push_back({client.fd.get(), static_cast<short>(events), 0});
      }
      const bool idle = std::ranges::none_of(clients_, &Client::may_be_answered);
      if (::poll(fds.data(), fds.size(), idle ? 1000 : 0) < 0) continue;
      if ((fds[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        if (::read(wake_.get(), &count, sizeof count) < 0) count = 0;
      }
      take_slow_answers();
      std::size_t i = 2;
      for (Client& client : clients_) {
        const bool readable = (fds[i++].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
        if (readable && !client.request_waits()) read_from(client);
        answer_next(client);
        queue_events(client);
        write_to(client);
      }
      clients_.remove_if([](const Client& client) { return client.dead; });
      bound_held_bytes();
      if ((fds[0].revents & POLLIN) != 0) accept_clients();
    }
  }

  // However many clients there are: those that read least go.
  void bound_held_bytes() {
    std::size_t held = 0;
    for (const Client& client : clients_) held += client.held_bytes();
    while (held > kMaxHeldBytes) {
      const auto most = std::ranges::max_element(clients_, {}, &Client::held_bytes);
      held -= most->held_bytes();
      clients_.erase(most);
    }
  }

  void accept_clients() {
    for (std::size_t i = 0; i < kNewcomers; ++i) {
      UniqueFd fd = listener_.accept();
      if (!fd) return;
      if (clients_.size() >= kMaxClients) make_room();
      Client& client = clients_.emplace_back();
      client.fd = std::move(fd);
      client.number = ++last_client_;
    }
  }

  // A crowd keeps nobody out who has something to say: gone is one that had its time and never said what we understand,
  // else one that does not read, else the oldest.
  void make_room() {
    clients_.erase(std::ranges::min_element(clients_, {}, [this](const Client& client) {
      const bool is_new = client.number + kNewcomers > last_client_;
      return std::tuple(client.understood || is_new, client.output.empty(), client.number);
    }));
  }

  // One read and one answer a turn, so that a client that asks without end does not keep the others waiting.
  void read_from(Client& client) {
    char buffer[16 * 1024];
    const ssize_t count = ::recv(client.fd.get(), buffer, sizeof buffer, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      client.dead = true;
    } else if (!client.closing) {
      const std::size_t before = client.input.size();
      client.input.append(buffer, static_cast<std::size_t>(count));
      client.line_end = client.input.find('\n', before);
    }
  }

  void answer_next(Client& client) {
    if (client.dead || client.closing) return;
    if (client.may_be_answered()) {
      answer(client, std::string_view(client.input).substr(0, client.line_end));
      client.input.erase(0, client.line_end + 1);
      client.line_end = client.input.find('\n');
    } else if (client.input.size() > kMaxControlLineBytes) {
      refuse(client, fmt::format("a line of more than {} bytes", kMaxControlLineBytes));
    }
  }

  void refuse(Client& client, const std::string& why) {
    client.output += encode_response(nullptr, Error{ErrorCode::kProtocol, why});
    client.closing = true;
  }

  void answer(Client& client, std::string_view line) {
    const auto request = decode_request(line);
    if (!request.ok()) return refuse(client, request.error().message);
    client.understood = true;
    if (service_.is_slow(request->method)) {
      if (slow_calls_.push({client.number, *request})) return;
      client.output += encode_response(request->id, Error{ErrorCode::kTimeout, "too many such calls wait; try later"});
    } else {
      client.output += bounded_response(*request, call(client, *request));
    }
  }

  static std::string bounded_response(const RpcRequest& request, const Result<nlohmann::json>& result) {
    std::string text = encode_response(request.id, result);
    if (text.size() <= kMaxControlLineBytes) return text;
    return encode_response(request.id, Error{ErrorCode::kInternal, "the answer is longer than a line may be"});
  }

  void serve_slow_calls() {
    while (!slow_calls_.closed()) {
      const auto slow = slow_calls_.pop(Deadline::after(std::chrono::seconds(10)));
      if (!slow) continue;
      std::string line = bounded_response(slow->request, call_service(slow->request));
      {
        MutexLock lock(mutex_);
        slow_answers_.push_back({slow->client, std::move(line)});
      }
      wake();
    }
  }

  void take_slow_answers() {
    std::vector<SlowAnswer> answers;
    {
      MutexLock lock(mutex_);
      answers.swap(slow_answers_);
    }
    for (SlowAnswer& answer : answers) {
      for (Client& client : clients_) {
        if (client.number == answer.client && !client.closing) client.output += answer.line;
      }
    }
  }

  Result<nlohmann::json> call(Client& client, const RpcRequest& request) {
    if (request.method == "hello") return nlohmann::json{{"version", kControlVersion}, {"program", program_}};
    if (request.method == "events.subscribe") return subscribe(client, request.params);
    return call_service(request);
  }

  Result<nlohmann::json> call_service(const RpcRequest& request) {
    try {
      return service_.call(request.method, request.params);
    } catch (const std::exception& exception) {  // of the JSON library, or out of memory
      return Error{ErrorCode::kInternal, exception.what()};
    }
  }

  Result<nlohmann::json> subscribe(Client& client, const nlohmann::json& params) {
    const nlohmann::json since = params.value("since", nlohmann::json(0u));
    if (!since.is_number_unsigned()) return Error{ErrorCode::kInvalidArgument, "since must be a sequence number"};
    client.subscribed = true;
    client.last_seq = since.get<std::uint64_t>();
    MutexLock lock(mutex_);
    return nlohmann::json{{"first", events_.empty() ? last_seq_ + 1 : events_.front().seq}, {"last", last_seq_}};
  }

  void queue_events(Client& client) {
    if (!client.subscribed || client.closing) return;
    MutexLock lock(mutex_);
    for (const Event& event : events_) {
      if (event.seq <= client.last_seq) continue;
      client.output += event.line;
      client.last_seq = event.seq;
    }
  }

  void write_to(Client& client) {
    while (!client.dead && !client.output.empty()) {
      const ssize_t count = ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        client.output.erase(0, static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        break;
      } else if (errno != EINTR) {
        client.dead = true;
      }
    }
    if (client.closing || client.output.size() > kMaxUnreadBytes) client.dead = true;
  }

  UnixListener listener_;
  const std::string program_;
  ControlService& service_;
  UniqueFd wake_;
  // The thread's:
  std::list<Client> clients_;
  std::uint64_t last_client_ = 0;

  Mailbox<SlowCall> slow_calls_{kMaxSlowCalls};

  Mutex mutex_;
  std::deque<Event> events_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t last_seq_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::vector<SlowAnswer> slow_answers_ ATOLL_GUARDED_BY(mutex_);

  std::jthread slow_thread_;
  std::jthread thread_;
};

Result<std::unique_ptr<ControlServer>> ControlServer::start(const std::filesystem::path& socket, std::string program,
                                                            ControlService& service, SocketAccess access) {
  ATOLL_ASSIGN_OR_RETURN(UnixListener listener, UnixListener::listen(socket, access));
  return std::unique_ptr<ControlServer>(
      new ControlServer(std::make_unique<Impl>(std::move(listener), std::move(program), service)));
}

ControlServer::ControlServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlServer::~ControlServer() = default;

void ControlServer::publish(std::string_view event, const nlohmann::json& data) { impl_->publish(event, data); }

}  // namespace atl
