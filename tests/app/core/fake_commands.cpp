#include "tests/app/core/fake_commands.h"

#include <QPointer>

namespace atl::test {

struct FakeCommands::Core {
  class Command;
  std::vector<std::pair<QStringList, Outcome>> outcomes;
  std::vector<CommandRequest> asked;
};

class FakeCommands::Core::Command final : public CommandRun {
 public:
  explicit Command(Outcome outcome) : outcome_(std::move(outcome)) {}

  void start() override {
    QMetaObject::invokeMethod(
        this,
        [this] {
          const QPointer<Command> alive(this);
          if (!outcome_.out.isEmpty()) Q_EMIT output(outcome_.out);
          if (alive && !outcome_.err.isEmpty()) Q_EMIT errors(outcome_.err);
          if (alive && !outcome_.hangs) finish(outcome_.exit_code);
        },
        Qt::QueuedConnection);
  }
  void interrupt() override {
    QMetaObject::invokeMethod(
        this, [this] { finish(130); }, Qt::QueuedConnection);
  }

 private:
  void finish(int exit_code) {
    if (!std::exchange(over_, true)) Q_EMIT ended(exit_code);
  }
  const Outcome outcome_;
  bool over_ = false;
};

FakeCommands::FakeCommands() : core_(std::make_shared<Core>()) {}

RunCommand FakeCommands::run() const {
  return [core = core_](const CommandRequest& request) {
    core->asked.push_back(request);
    Outcome outcome{.exit_code = 1, .err = "atoll: the test knows no such command\n"};
    qsizetype longest = -1;
    for (const auto& [beginning, answer] : core->outcomes) {
      const bool fits = request.arguments.mid(0, beginning.size()) == beginning;
      if (!fits || beginning.size() < longest) continue;
      longest = beginning.size();
      outcome = answer;
    }
    return std::make_unique<Core::Command>(outcome);
  };
}

void FakeCommands::answer(const QStringList& beginning, const Outcome& outcome) {
  core_->outcomes.emplace_back(beginning, outcome);
}

const std::vector<CommandRequest>& FakeCommands::asked() const { return core_->asked; }

}  // namespace atl::test
