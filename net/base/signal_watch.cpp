#include "net/base/signal_watch.h"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace atl {
namespace {

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

void SignalWatch::block_signals() {
  const sigset_t signals = watched_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

SignalWatch::SignalWatch(std::function<void(int)> on_signal) {
  block_signals();
  const sigset_t signals = watched_signals();
  UniqueFd source(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!source) {
    std::perror("atoll: signalfd");
    std::abort();
  }
  thread_ = std::jthread([this, source = std::move(source), on_signal = std::move(on_signal)] {
    for (;;) {
      pollfd waits[] = {{source.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
      ::poll(waits, 2, -1);
      if (stop_.raised()) return;
      signalfd_siginfo info{};
      if (::read(source.get(), &info, sizeof info) == sizeof info) on_signal(static_cast<int>(info.ssi_signo));
    }
  });
}

SignalWatch::~SignalWatch() { stop_.raise("done"); }

}  // namespace atl
