// The devices of an island's local ranks, and where the ranks meet. Owned by the engine; outlives the devices made from
// it.
#pragma once

#include <memory>
#include <string>

#include "net/base/id.h"
#include "net/step/traits.h"
#include "trainer/device/device.h"

namespace atl {

class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;

  virtual int world_size() const = 0;
  virtual StepTraits traits() const = 0;
  // On the rank's thread, which alone uses it; all ranks' at once. Throws.
  virtual std::unique_ptr<Device> device(LocalRank rank) = 0;
  // Any thread: ranks that wait for others in a collective, or come to one later, throw CollectiveAborted with the
  // reason.
  virtual void abort(const std::string& reason) noexcept = 0;
  // Forgets an abort, while no rank is in a collective. False: there is no going on, the engine has to be made anew.
  virtual bool reset() = 0;
};

}  // namespace atl
