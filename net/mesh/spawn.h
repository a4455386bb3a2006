// Coroutines that go on by themselves. For .cpp files of net/mesh and net/hub only, as asio_tls.h.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <string>
#include <utility>

namespace atl {

// In words: "std::bad_alloc".
inline std::string what_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of another kind";
  }
}

// As co_spawn with `detached`, but that what the coroutine throws is told: failed(what), on its executor. It has ended
// then, and with it what it owned. `coroutine`: an awaitable<void>, or what makes one and is kept as long as it runs.
template <class Executor, class Coroutine, class Failed>
void spawn(Executor&& executor, Coroutine&& coroutine, Failed failed) {
  boost::asio::co_spawn(std::forward<Executor>(executor), std::forward<Coroutine>(coroutine),
                        [failed = std::move(failed)](const std::exception_ptr& thrown) {
                          if (thrown) failed(what_of(thrown));
                        });
}

}  // namespace atl
