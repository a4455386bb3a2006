#include "net/control/control_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>

#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"

namespace atl {
namespace {

constexpr std::size_t kMaxKeptEvents = 4096;

}  // namespace

class ControlClient::Impl {
 public:
  Impl(UniqueFd socket, std::filesystem::path path) : socket_(std::move(socket)), path_(std::move(path)) {}

  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params, Deadline deadline) {
    const std::int64_t id = ++last_id_;
    ATOLL_RETURN_IF_ERROR(send(encode_request(id, method, params), deadline));
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(auto reply, receive(deadline));
      if (auto* event = std::get_if<RpcEvent>(&reply)) {
        if (events_.size() < kMaxKeptEvents) events_.push_back(std::move(event->params));
        continue;
      }
      auto& response = std::get<RpcResponse>(reply);
      if (response.id == id || response.id == -1) return std::move(response.result);
    }
  }

  Result<nlohmann::json> next_event(Deadline deadline) {
    while (events_.empty()) {
      ATOLL_ASSIGN_OR_RETURN(auto reply, receive(deadline));
      if (auto* event = std::get_if<RpcEvent>(&reply)) events_.push_back(std::move(event->params));
    }
    nlohmann::json event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  Error timeout() const { return Error{ErrorCode::kTimeout, fmt::format("no answer from {} in time", path_.string())}; }
  Error lost() const {
    return Error{ErrorCode::kPeerLost, fmt::format("the process behind {} closed the connection", path_.string())};
  }

  // kTimeout unless the socket becomes ready for `events`.
  Status wait(short events, Deadline deadline) {
    pollfd poll_fd{socket_.get(), events, 0};
    for (;;) {
      const int ready = ::poll(&poll_fd, 1, deadline.poll_milliseconds());
      if (ready > 0) return ok_status();
      if (deadline.expired()) return timeout();
    }
  }

  Status send(std::string_view text, Deadline deadline) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        text.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        ATOLL_RETURN_IF_ERROR(wait(POLLOUT, deadline));
      } else if (errno != EINTR) {
        return lost();
      }
    }
    return ok_status();
  }

  Result<std::variant<RpcResponse, RpcEvent>> receive(Deadline deadline) {
    for (;;) {
      if (const auto newline = input_.find('\n'); newline != std::string::npos) {
        auto reply = decode_reply(std::string_view(input_).substr(0, newline));
        input_.erase(0, newline + 1);
        if (!reply.ok()) return reply.error().with_context(path_.string());
        return reply;
      }
      if (input_.size() > kMaxControlLineBytes) {
        return Error{ErrorCode::kProtocol, fmt::format("{} sent a line that is too long", path_.string())};
      }
      char buffer[16 * 1024];
      const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (count > 0) {
        input_.append(buffer, static_cast<std::size_t>(count));
      } else if (count < 0 && errno == EAGAIN) {
        ATOLL_RETURN_IF_ERROR(wait(POLLIN, deadline));
      } else if (count == 0 || errno != EINTR) {
        return lost();
      }
    }
  }

  UniqueFd socket_;
  std::filesystem::path path_;
  std::string input_;
  std::deque<nlohmann::json> events_;
  std::int64_t last_id_ = 0;
};

Result<std::unique_ptr<ControlClient>> ControlClient::connect(const std::filesystem::path& socket, Deadline deadline) {
  std::unique_ptr<ControlClient> client;
  Result<nlohmann::json> answer = nlohmann::json();
  do {
    ATOLL_ASSIGN_OR_RETURN(UniqueFd fd, connect_unix(socket, deadline));
    client.reset(new ControlClient(std::make_unique<Impl>(std::move(fd), socket)));
    answer = client->call("hello", nlohmann::json::object(), deadline);
    // One of a crowd, for whom others had to make room.
  } while (!answer.ok() && answer.error().code == ErrorCode::kPeerLost && !deadline.expired());
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json hello, std::move(answer));
  const bool has_version = hello.is_object() && hello.contains("version") && hello["version"].is_number_integer();
  if (!has_version || hello["version"] != kControlVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("the process behind {} speaks another version of the control protocol (this is {}); "
                             "restart it with this version of Atoll",
                             socket.string(), kControlVersion)};
  }
  return client;
}

ControlClient::ControlClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlClient::~ControlClient() = default;

Result<nlohmann::json> ControlClient::call(std::string_view method, const nlohmann::json& params, Deadline deadline) {
  return impl_->call(method, params, deadline);
}

Result<nlohmann::json> ControlClient::next_event(Deadline deadline) { return impl_->next_event(deadline); }

}  // namespace atl
