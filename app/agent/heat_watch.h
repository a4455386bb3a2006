// When GPUs are too hot to train: above their owner's cap, until the hottest is well below it. Pure; one thread.
#pragma once

namespace atl {

class HeatWatch {
 public:
  static constexpr double kHysteresisCelsius = 5;  // cooler than the cap before training goes on

  explicit HeatWatch(double cap_celsius) : cap_(cap_celsius) {}

  // The temperature of the hottest GPU; whether too_hot() has changed by it.
  bool next(double hottest_celsius) {
    const bool before = too_hot_;
    if (hottest_celsius > cap_) too_hot_ = true;
    if (hottest_celsius < cap_ - kHysteresisCelsius) too_hot_ = false;
    return too_hot_ != before;
  }
  bool too_hot() const { return too_hot_; }
  double cap_celsius() const { return cap_; }

 private:
  double cap_;
  bool too_hot_ = false;
};

}  // namespace atl
