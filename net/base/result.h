// Result<T>: what a function that can fail in expected ways returns (peer lost, timeout, bad frame, bad configuration).
// Broken invariants abort instead; exceptions of wrapped libraries are caught at a room's entry points.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace atl {

// Causes that callers tell apart. The names are frozen: they travel in logs and JSON outputs.
enum class ErrorCode {
  kInvalidArgument,     // a wrong flag, configuration or call
  kNotFound,            // a file, run or island that does not exist
  kPermissionDenied,    // the system or the peer says no
  kTimeout,             // a deadline passed
  kUnreachable,         // a name, address or port that does not answer
  kPeerLost,            // an established connection broke
  kProtocol,            // bytes that the protocol does not allow
  kVersionUnsupported,  // a peer or file of another version
  kCertificate,         // of whoever answers, or ours to it: not accepted, which nobody verified has said
  kPinMismatch,         // the hub's authority is not the one in the invite
  kInviteMalformed,
  kInviteExpired,
  kInviteUsed,
  kInviteUnknown,
  kInviteOtherRun,
  kConflict,    // another has that name, key or number already
  kCorrupt,     // a hash, length or header that does not fit
  kDiskFull,    // no space left
  kIo,          // any other failure of a file or socket
  kAborted,     // stopped on purpose: an attempt ended by the hub, a signal
  kNonFinite,   // NaN or infinity where there must be none
  kNotRunning,  // no trainer answers on the control socket
  kNotJoined,   // this home has no identity of a run
  kTrainerFailed,
  kInternal,
};

std::string_view to_string(ErrorCode code);
std::optional<ErrorCode> parse_error_code(std::string_view name);  // empty: a code of a newer version

// What went wrong, in words for a person: what was attempted, why it failed, what to do next.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  // "context: message", the code unchanged.
  Error with_context(std::string_view context) const { return Error{code, std::string(context) + ": " + message}; }
};

namespace detail {
[[noreturn]] inline void die_on_wrong_access(const char* what, const std::string& message) {
  std::fprintf(stderr, "atoll: broken invariant: %s: %s\n", what, message.c_str());
  std::abort();
}
}  // namespace detail

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    if (!ok()) detail::die_on_wrong_access("value() of a failed Result", std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  const T& value() const& { return const_cast<Result*>(this)->value(); }
  T&& value() && { return std::move(value()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    if (ok()) detail::die_on_wrong_access("error() of a Result that holds a value", "");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (ok()) detail::die_on_wrong_access("error() of a Status that is ok", "");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;
inline Status ok_status() { return Status(); }

// Return the error of `expression` (a Status or Result) to the caller, if it has one.
#define ATOLL_RETURN_IF_ERROR(expression)                  \
  do {                                                     \
    auto atoll_status_ = (expression);                     \
    if (!atoll_status_.ok()) return atoll_status_.error(); \
  } while (false)

// Declare `declaration` with the value of `expression` (a Result), or return its error to the caller.
#define ATOLL_ASSIGN_OR_RETURN(declaration, expression) \
  ATOLL_ASSIGN_OR_RETURN_(ATOLL_CONCAT_(atoll_result_, __LINE__), declaration, expression)
#define ATOLL_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return result.error();                       \
  declaration = std::move(result).value()
#define ATOLL_CONCAT_(a, b) ATOLL_CONCAT_INNER_(a, b)
#define ATOLL_CONCAT_INNER_(a, b) a##b

}  // namespace atl
