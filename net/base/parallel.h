// Work that falls into parts which do not touch each other's memory, done by several threads. For passes over a whole
// model that come once a round: threads are made for the call, which costs them some ten microseconds each.
#pragma once

#include <cstddef>
#include <functional>

namespace atl {

std::size_t parallel_threads();  // at most; the machine's processors

// part(i) for every i < count, each once, in no order; returns when all are done. On parallel_threads() threads, the
// caller's among them, and on no more than there are parts. `part` does not throw.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& part);

}  // namespace atl
