#include "net/control/control_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "net/base/mailbox.h"
#include "net/base/unix_time.h"
#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"

namespace atl {
namespace {

constexpr std::size_t kMaxClients = 64;
constexpr std::size_t kMaxKeptEvents = 1024;
constexpr std::size_t kMaxSlowCalls = 8;  // that wait
// A client whose unread answers exceed this is not reading.
constexpr std::size_t kMaxUnreadBytes = 4u << 20;

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
  std::string input;   // the beginning of a line
  std::string output;  // not yet sent
  bool subscribed = false;
  std::uint64_t last_seq = 0;  // of the events queued for it
  bool closing = false;        // after one try to send what is in `output`
  bool dead = false;
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
      std::lock_guard lock(mutex_);
      const std::uint64_t seq = ++last_seq_;
      events_.push_back(
          {seq, encode_event({{"event", event}, {"seq", seq}, {"time", unix_time_now()}, {"data", data}})});
      if (events_.size() > kMaxKeptEvents) events_.pop_front();
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
        fds.push_back({client.fd.get(), static_cast<short>(client.output.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      }
      if (::poll(fds.data(), fds.size(), 1000) <= 0) continue;
      if ((fds[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        if (::read(wake_.get(), &count, sizeof count) < 0) count = 0;
      }
      take_slow_answers();
      std::size_t i = 2;
      for (Client& client : clients_) {
        if ((fds[i++].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(client);
        queue_events(client);
        write_to(client);
      }
      clients_.remove_if([](const Client& client) { return client.dead; });
      if ((fds[0].revents & POLLIN) != 0) accept_client();
    }
  }

  void accept_client() {
    UniqueFd fd = listener_.accept();
    if (!fd || clients_.size() >= kMaxClients) return;
    Client& client = clients_.emplace_back();
    client.fd = std::move(fd);
    client.number = ++last_client_;
  }

  // One read a turn, so that a client that writes without end does not keep the others waiting.
  void read_from(Client& client) {
    char buffer[16 * 1024];
    const ssize_t count = ::recv(client.fd.get(), buffer, sizeof buffer, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      client.dead = true;
      return;
    }
    if (client.closing) return;
    client.input.append(buffer, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end;
         !client.closing && !client.dead && (end = client.input.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      answer(client, std::string_view(client.input).substr(begin, end - begin));
    }
    client.input.erase(0, begin);
    if (!client.closing && client.input.size() > kMaxControlLineBytes) {
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
    if (service_.is_slow(request->method)) {
      if (slow_calls_.push({client.number, *request})) return;
      client.output += encode_response(request->id, Error{ErrorCode::kTimeout, "too many such calls wait; try later"});
    } else {
      client.output += bounded_response(*request, call(client, *request));
    }
    write_to(client);
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
        std::lock_guard lock(mutex_);
        slow_answers_.push_back({slow->client, std::move(line)});
      }
      wake();
    }
  }

  void take_slow_answers() {
    std::vector<SlowAnswer> answers;
    {
      std::lock_guard lock(mutex_);
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
    std::lock_guard lock(mutex_);
    return nlohmann::json{{"first", events_.empty() ? last_seq_ + 1 : events_.front().seq}, {"last", last_seq_}};
  }

  void queue_events(Client& client) {
    if (!client.subscribed || client.closing) return;
    std::lock_guard lock(mutex_);
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

  std::mutex mutex_;
  std::deque<Event> events_;              // guarded by mutex_
  std::uint64_t last_seq_ = 0;            // guarded by mutex_
  std::vector<SlowAnswer> slow_answers_;  // guarded by mutex_

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
