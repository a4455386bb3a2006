// Clients of a control socket that do all that a client should not, many at once, each coming back when it is dropped.
// A thread for each kind; the destructor ends them and closes every connection.
#pragma once

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "net/base/unique_fd.h"

namespace atl::test {

enum class BadClient {
  kSilent,      // says nothing
  kGarbage,     // says what is no request
  kEndless,     // a line without end
  kNeverReads,  // asks and asks, and reads no answer
  kHalfCloses,  // asks, and closes its sending half
};
inline constexpr BadClient kBadClients[] = {BadClient::kSilent, BadClient::kGarbage, BadClient::kEndless,
                                            BadClient::kNeverReads, BadClient::kHalfCloses};

class Crowd {
 public:
  // As many of each kind.
  Crowd(std::filesystem::path socket, std::size_t of_each_kind);
  ~Crowd();

  std::size_t most_at_once() const { return most_at_once_; }  // connections that were open
  std::uint64_t connections() const { return connections_; }  // in all

 private:
  void run(BadClient kind, const std::stop_token& stop);
  void connect(UniqueFd& client);

  const std::filesystem::path socket_;
  const std::size_t of_each_kind_;
  std::atomic<std::size_t> open_{0}, most_at_once_{0};
  std::atomic<std::uint64_t> connections_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace atl::test
