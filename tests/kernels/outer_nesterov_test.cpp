#include "kernels/outer_nesterov.h"

#include <QtTest>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/wire_codec.h"
#include "tests/kernels/codec_values.h"

using namespace atl;

namespace {

std::vector<float> uniform_values(std::size_t numel, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> x(numel);
  for (float& value : x) value = uniform(random);
  return x;
}

std::vector<std::byte> encoded(WireFormat format, const std::vector<float>& x) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(encoded_bytes(format, std::ssize(x))));
  encode_values(format, x, bytes);
  return bytes;
}

}  // namespace

class OuterNesterovTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void follows_a_double_precision_loop_data();
  void follows_a_double_precision_loop();
  void first_step_from_rest_is_one_plus_momentum_times_the_gradient();
  void each_operation_is_rounded_on_its_own();
  void slices_at_blocks_give_the_same_bits_as_the_whole();
};

void OuterNesterovTest::follows_a_double_precision_loop_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("numel");
  for (const WireFormat format : kWireFormats) {
    for (const int numel : {1, 255, 256, 2048, 2049, 5000}) {
      QTest::addRow("%s %d", wire_format_name(format).data(), numel) << static_cast<int>(format) << numel;
    }
  }
  QTest::newRow("int8-codebook, two blocks") << static_cast<int>(WireFormat::kInt8Codebook) << 70'000;
}

void OuterNesterovTest::follows_a_double_precision_loop() {
  QFETCH(int, format);
  QFETCH(int, numel);
  const auto wire = static_cast<WireFormat>(format);
  const auto count = static_cast<std::size_t>(numel);
  auto theta = uniform_values(count, 1);
  std::vector<float> velocity(count, 0.0f);
  std::vector<double> exact_theta(theta.begin(), theta.end());
  std::vector<double> exact_velocity(count, 0.0);

  for (unsigned step = 0; step < 5; ++step) {
    const auto bytes = encoded(wire, uniform_values(count, 100 + step));
    std::vector<float> d(count);
    decode_values(wire, bytes, d);
    outer_nesterov(theta, velocity, wire, bytes, {.learning_rate = 0.7f, .momentum = 0.9f});
    for (std::size_t i = 0; i < count; ++i) {
      exact_velocity[i] = 0.9 * exact_velocity[i] + d[i];
      exact_theta[i] -= 0.7 * (d[i] + 0.9 * exact_velocity[i]);
    }
  }

  // Magnitudes stay below 16, five roundings a step for five steps, and 0.7 and 0.9 rounded to fp32.
  for (std::size_t i = 0; i < count; ++i) QVERIFY(std::abs(theta[i] - exact_theta[i]) < 16 * 50 * 0x1p-24);
}

void OuterNesterovTest::first_step_from_rest_is_one_plus_momentum_times_the_gradient() {
  std::vector<float> theta{1.0f, 2.0f};
  std::vector<float> velocity{0.0f, 0.0f};

  outer_nesterov(theta, velocity, WireFormat::kFp32, encoded(WireFormat::kFp32, {0.5f, -0.25f}),
                 {.learning_rate = 0.5f, .momentum = 0.5f});

  // As torch.optim.SGD(lr=0.5, momentum=0.5, nesterov=True): buf = d; theta -= 0.5 * (d + 0.5 * buf). Exact in fp32.
  QCOMPARE(velocity, (std::vector<float>{0.5f, -0.25f}));
  QCOMPARE(theta, (std::vector<float>{0.625f, 2.1875f}));
}

void OuterNesterovTest::each_operation_is_rounded_on_its_own() {
  const std::size_t count = 4099;
  auto theta = uniform_values(count, 21);
  auto velocity = uniform_values(count, 22);
  const auto d = uniform_values(count, 23);
  const OuterSgd hyper;
  auto plain_theta = theta;
  auto plain_velocity = velocity;

  outer_nesterov(theta, velocity, WireFormat::kFp32, encoded(WireFormat::kFp32, d), hyper);

  // volatile: nothing may be contracted, reordered or kept in more precision here.
  for (std::size_t i = 0; i < count; ++i) {
    volatile float carried = hyper.momentum * plain_velocity[i];
    volatile float v = carried + d[i];
    volatile float ahead = hyper.momentum * v;
    volatile float direction = d[i] + ahead;
    volatile float step = hyper.learning_rate * direction;
    plain_theta[i] = plain_theta[i] - step;
    plain_velocity[i] = v;
  }
  QVERIFY(same_bits(theta, plain_theta));
  QVERIFY(same_bits(velocity, plain_velocity));
}

void OuterNesterovTest::slices_at_blocks_give_the_same_bits_as_the_whole() {
  const std::size_t count = 3000;
  const std::size_t cut = 5 * kBlockNumel;
  const auto bytes = encoded(WireFormat::kInt8Block, uniform_values(count, 3));
  auto theta = uniform_values(count, 4);
  auto velocity = uniform_values(count, 5);
  auto sliced_theta = theta;
  auto sliced_velocity = velocity;

  outer_nesterov(theta, velocity, WireFormat::kInt8Block, bytes, {});
  const auto first_bytes = static_cast<std::size_t>(encoded_bytes(WireFormat::kInt8Block, cut));
  const std::span st(sliced_theta);
  const std::span sv(sliced_velocity);
  outer_nesterov(st.subspan(cut), sv.subspan(cut), WireFormat::kInt8Block, std::span(bytes).subspan(first_bytes), {});
  outer_nesterov(st.first(cut), sv.first(cut), WireFormat::kInt8Block, std::span(bytes).first(first_bytes), {});

  QVERIFY(sliced_theta == theta);
  QVERIFY(sliced_velocity == velocity);
}

QTEST_APPLESS_MAIN(OuterNesterovTest)
#include "outer_nesterov_test.moc"
