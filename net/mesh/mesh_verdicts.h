// What one part of the RoundCoordinator decides and all others follow. The RoundCoordinator carries it out; a test of
// one part alone notes it down.
#pragma once

#include <string>

#include "net/base/id.h"
#include "net/base/result.h"

namespace atl {

class OpenRound;

class MeshVerdicts {
 public:
  virtual ~MeshVerdicts() = default;

  // It leaves every open round and its attempts, and gets the committed outer state anew.
  virtual void start_recovering(const IslandId& island) = 0;
  // It is told why, and is no member any more. `why`: for a person.
  virtual void send_away(const IslandId& island, ErrorCode code, const std::string& why) = 0;
  // It begins this open round with other work, and gives up what it did in those after it.
  virtual void begin_anew(const IslandId& island, OuterStep round) = 0;
  // It trains: what it has to do in the open rounds is sent to it (again).
  virtual void tell_parts(const IslandId& island) = 0;
  // The round's attempt is agreed on. The round is closed when this returns: it is in no list, and does nothing more.
  virtual void commit(OpenRound& round) = 0;

  // Whether attempts may begin: it is known which outer state is the committed one, and that it is sound.
  virtual bool may_average() const = 0;
  // Rounds are committed in their order, each when it is known which state the one before made.
  virtual bool may_commit(OuterStep round) const = 0;
};

}  // namespace atl
