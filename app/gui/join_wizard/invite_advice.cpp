#include "app/gui/join_wizard/invite_advice.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <QRegularExpression>

#include "net/base/encoding.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

struct Text {
  Q_DECLARE_TR_FUNCTIONS(InviteAdvice)
};

// The invite alone: mail programs break lines, and a link has a prefix.
QString bare(QString text) {
  static const QRegularExpression kSpaces("\\s");
  text.remove(kSpaces);
  const QString prefix = QString::fromUtf8(kInviteLinkPrefix.data(), static_cast<qsizetype>(kInviteLinkPrefix.size()));
  return text.startsWith(prefix) ? text.mid(prefix.size()) : text;
}

InviteAdvice malformed(const QString& pasted, const QString& details) {
  const QString again = Text::tr("Copy it again, from the first to the last character.");
  if (pasted.size() > static_cast<qsizetype>(kMaxInviteText)) {
    return {Text::tr("This is too long to be an invite."),
            Text::tr("An invite is one line that begins with atoll1. - copy that line alone."), details};
  }
  const QString text = bare(pasted);
  static const QRegularExpression kBegin("^atoll[0-9]+\\.");
  if (!kBegin.match(text).hasMatch()) {
    return {Text::tr("This is not an invite."),
            Text::tr("An invite begins with atoll1. - copy it from the first character on."), details};
  }
  static const QRegularExpression kEnd("\\.([0-9a-f]{8})$");
  const auto end = kEnd.match(text);
  if (!end.hasMatch() || text.count('.') < 2) {
    return {Text::tr("The end of the invite is missing."), again, details};
  }
  const std::string body = text.left(end.capturedStart()).toStdString();
  const bool fits = crc32(as_bytes(body)) == end.captured(1).toUInt(nullptr, 16);
  if (!fits) {
    return {Text::tr("A part of the invite is missing or was changed."), again, details};
  }
  return {Text::tr("This invite was not made as it should be."),
          Text::tr("It is whole, but what it says cannot be right: ask for another one."), details};
}

InviteAdvice expired(const QString& details) {
  return {Text::tr("This invite has expired."),
          Text::tr("Ask for a new one. If it should still be good, this machine's clock is wrong: it says %1.")
              .arg(QLocale().toString(QDateTime::currentDateTime(), QLocale::ShortFormat)),
          details};
}

}  // namespace

InviteAdvice advice_for_invite(const Error& error, const QString& text) {
  const QString details = QString::fromStdString(error.message);
  switch (error.code) {
    case ErrorCode::kInviteMalformed: return malformed(text, details);
    case ErrorCode::kInviteExpired: return expired(details);
    case ErrorCode::kVersionUnsupported:
      return {Text::tr("This invite is for another version of Atoll."),
              Text::tr("Install the newest Atoll, or ask for another invite."), details};
    default: return {Text::tr("This invite cannot be used."), details, {}};
  }
}

InviteAdvice advice_for_hub(const Error& error) {
  const QString details = QString::fromStdString(error.message);
  const QString ask = Text::tr("Ask the run's operator for a new invite.");
  switch (error.code) {
    case ErrorCode::kPinMismatch:
      return {
          Text::tr("The hub that answers is not the one in the invite."),
          Text::tr("Do not go on: somebody may pose as the hub. Tell the operator, by a way that you trust, and ask "
                   "for a new invite."),
          details};
    case ErrorCode::kInviteOtherRun: return {Text::tr("The hub serves another run than the invite's."), ask, details};
    case ErrorCode::kInviteUsed: return {Text::tr("This invite has been used up."), ask, details};
    case ErrorCode::kInviteUnknown: return {Text::tr("The hub does not know this invite."), ask, details};
    case ErrorCode::kInviteExpired: return expired(details);
    case ErrorCode::kInviteMalformed: return {Text::tr("The hub cannot read this invite."), ask, details};
    case ErrorCode::kVersionUnsupported:
      return {Text::tr("The hub runs another version of Atoll than this machine."),
              Text::tr("Install the newest Atoll here, or tell the operator to do so."), details};
    case ErrorCode::kCertificate:
    case ErrorCode::kProtocol:
      return {Text::tr("Something answers at the hub's address, but it is no hub."),
              Text::tr("A proxy or firewall may stand between, or another program has the port. Tell the operator."),
              details};
    case ErrorCode::kUnreachable:
    case ErrorCode::kTimeout:
    case ErrorCode::kPeerLost:
      return {Text::tr("The hub cannot be reached."),
              Text::tr("Check this machine's network. If that works, ask the operator whether the hub runs and its "
                       "port is open."),
              details};
    case ErrorCode::kDiskFull:
      return {Text::tr("This machine's disk is full."), Text::tr("Free some space, then try again."), details};
    case ErrorCode::kNotRunning:
      return {Text::tr("No agent runs on this machine."), Text::tr("Start one, then try again."), details};
    case ErrorCode::kTrainerFailed:
      return {Text::tr("The trainer did not begin."),
              Text::tr("What it said is in the log: on the page Logs, or with atoll logs. Then try again."), details};
    case ErrorCode::kPermissionDenied: return {Text::tr("This was refused."), details, {}};
    case ErrorCode::kAborted: return {Text::tr("Stopped, as you wished."), {}, details};
    default: return {Text::tr("It did not work."), details, {}};
  }
}

bool wants_another_invite(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInviteMalformed:
    case ErrorCode::kInviteExpired:
    case ErrorCode::kInviteUsed:
    case ErrorCode::kInviteUnknown:
    case ErrorCode::kInviteOtherRun:
    case ErrorCode::kPinMismatch: return true;
    default: return false;
  }
}

}  // namespace atl
