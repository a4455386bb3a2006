// A whole run over the emulated internet, to be broken: host 0 serves the hub (`atoll hub serve`), each other host an
// island (`atoll-trainer run`), real programs with a model small enough that an all-reduce over slow links takes a
// second or two. Methods abort the program with a message when the set-up itself fails. One thread; what it started
// dies with it.
#pragma once

#include <QtCore/QTemporaryDir>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/wire/run_config.h"
#include "tests/wan/wan_box.h"

namespace atl::wan {

struct WanRunOptions {
  int islands = 4;
  double bits_per_second = 10e6;        // of every pair of hosts, each way
  std::chrono::milliseconds delay{10};  // of each way
  std::chrono::milliseconds dead_after{6'000};
  std::string congestion_control{};  // empty: the machine's
  // Long enough for an island that comes back to have the state before the others are ready.
  std::uint32_t inner_steps = 32;
};

// What a process holds, of /proc.
struct Holdings {
  long fds = 0;
  long threads = 0;
  long resident_kib = 0;
  long anonymous_kib = 0;  // of those: of no file, as the heap
};

class WanRun {
 public:
  static constexpr std::uint16_t kIslandPort = 47001;

  explicit WanRun(const WanRunOptions& options);
  ~WanRun();

  WanBox& box() { return *box_; }
  int islands() const { return static_cast<int>(islands_.size()); }
  std::filesystem::path directory() const { return directory_.path().toStdString(); }
  // Values of the model, each of which travels as one byte and some.
  std::int64_t numel() const { return numel_; }

  HubState state();
  // Polls the hub every few milliseconds until it is so; false when the time is over.
  bool wait_until(const std::function<bool(const HubState&)>& condition, std::chrono::milliseconds limit);
  // The next round in which all islands take part has come so far that the ring turns: its number.
  std::optional<std::uint32_t> wait_for_ring(std::chrono::milliseconds limit);
  // The record of a committed round whose outer hashes were compared; empty when the time is over.
  std::optional<HubState::Round> wait_for_commit(std::uint32_t round, std::chrono::milliseconds limit);
  // All islands are back: a round was committed by all of them, with equal hashes. The links of those that were broken
  // are fast meanwhile: rounds as short as these would outrun an island that fetches the whole state over slow ones.
  bool wait_for_all(std::chrono::milliseconds limit);

  // ---- islands 0 to islands() - 1, on hosts 1 and following
  static int host_of_island(int island) { return island + 1; }
  void start(int island);  // on the home that it has
  void kill(int island);
  void stop(int island);
  void resume(int island) { signal(island, SIGCONT); }
  // Every link of its host, silently.
  void cut_off(int island);
  void reconnect(int island);
  // The pair of islands between which most has travelled since the last call.
  std::pair<int, int> busiest_edge();

  Holdings hub_holdings() const;
  Holdings holdings(int island) const;

 private:
  struct Member {
    IslandHome home;
    std::optional<WanProcess> process;
  };
  WanProcess launch(int host, const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& log) const;
  void signal(int island, int number);
  void set_rates_of_broken(double bits_per_second);

  const double bits_per_second_;
  QTemporaryDir directory_;
  std::unique_ptr<WanBox> box_;
  std::int64_t numel_ = 0;
  std::optional<WanProcess> hub_;
  std::unique_ptr<ControlClient> client_;
  std::vector<Member> islands_;
  std::set<int> broken_;               // islands, since all were back
  std::vector<std::int64_t> carried_;  // by pair of islands, at the last call of busiest_edge
};

}  // namespace atl::wan
