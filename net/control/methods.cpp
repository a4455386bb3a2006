#include "net/control/methods.h"

#include "net/control/method_fields.h"

namespace atl {
namespace {

template <class Message>
constexpr std::string_view name_of_message() {
  if constexpr (requires { Message::kName; }) {
    static_assert(AllMethods::kHas<Message>, "AllMethods lacks this method");
    return Message::kName;
  } else {
    return "the answer";
  }
}

}  // namespace

template <class Message>
nlohmann::json encode_message(const Message& message) {
  return ControlWriter::object_of(message);
}

template <class Message>
Result<Message> decode_message(const nlohmann::json& json) {
  auto message = read_fields<Message>(json, name_of_message<Message>().data());
  if (!message.ok()) return Error{ErrorCode::kInvalidArgument, message.error().message};
  return message;
}

#define ATOLL_CONTROL_MESSAGE(Message)                                             \
  template nlohmann::json encode_message<method::Message>(const method::Message&); \
  template Result<method::Message> decode_message<method::Message>(const nlohmann::json&)
ATOLL_CONTROL_MESSAGE(StateGet);
ATOLL_CONTROL_MESSAGE(Pause);
ATOLL_CONTROL_MESSAGE(Resume);
ATOLL_CONTROL_MESSAGE(Finish);
ATOLL_CONTROL_MESSAGE(Stop);
ATOLL_CONTROL_MESSAGE(Leave);
ATOLL_CONTROL_MESSAGE(GpuPause);
ATOLL_CONTROL_MESSAGE(GpuResume);
ATOLL_CONTROL_MESSAGE(GpusTaken);
ATOLL_CONTROL_MESSAGE(WishTaken);
ATOLL_CONTROL_MESSAGE(Stopping);
ATOLL_CONTROL_MESSAGE(Join);
ATOLL_CONTROL_MESSAGE(JoinCancel);
ATOLL_CONTROL_MESSAGE(InviteLook);
ATOLL_CONTROL_MESSAGE(CheckRun);
ATOLL_CONTROL_MESSAGE(Started);
ATOLL_CONTROL_MESSAGE(Cancelled);
ATOLL_CONTROL_MESSAGE(AgentAlive);
ATOLL_CONTROL_MESSAGE(ModelExport);
ATOLL_CONTROL_MESSAGE(ModelExported);
ATOLL_CONTROL_MESSAGE(IslandSendAway);
ATOLL_CONTROL_MESSAGE(RunRollback);
ATOLL_CONTROL_MESSAGE(RolledBackTo);
ATOLL_CONTROL_MESSAGE(RunDecay);
ATOLL_CONTROL_MESSAGE(DecayDecided);
ATOLL_CONTROL_MESSAGE(RunDecayCancel);
ATOLL_CONTROL_MESSAGE(RunMixture);
ATOLL_CONTROL_MESSAGE(MixtureDecided);
ATOLL_CONTROL_MESSAGE(RunMixtureCancel);
#undef ATOLL_CONTROL_MESSAGE

}  // namespace atl
