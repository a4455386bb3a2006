// A program's buffers have places that none takes from another while it is alive, and what the host writes or reads is
// there when it does.
#include "net/step/program.h"

#include <QtTest>

#include <algorithm>

namespace {

using namespace atl;

constexpr std::int64_t kCount = 100;  // floats, that is two units of alignment

const StepBuffer& buffer_of(const Program& program, std::string_view name) {
  return *std::ranges::find(program.buffers(), name, &StepBuffer::name);
}

bool share_bytes(const StepBuffer& a, const StepBuffer& b) {
  return a.byte < b.byte + b.bytes && b.byte < a.byte + a.bytes;
}

// A buffer is written, copied, and its copy too: never more than two are alive.
struct Chain {
  ProgramBuilder builder;
  std::vector<Tensor> links;

  explicit Chain(int count) {
    for (int i = 0; i < count; ++i) {
      links.push_back(builder.buffer("link " + std::to_string(i), DType::kFloat32, 1, kCount));
      if (i == 0) {
        builder.compute(Fill{links.back()});
      } else {
        copy(links[links.size() - 2], links.back());
      }
    }
  }
  void copy(const Tensor& from, const Tensor& to) {
    builder.compute(MatMul{.a = from, .b = from, .out = to, .add = {}});
  }
};

}  // namespace

class ProgramTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void kept_buffers_lie_one_behind_the_other();
  void buffers_live_from_the_first_to_the_last_operation_that_touches_them();
  void buffers_that_are_never_alive_together_share_bytes();
  void without_sharing_each_buffer_has_bytes_of_its_own();
  void views_are_placed_in_their_buffer();
  void inputs_stay_where_they_are_from_beginning_to_end();
  void outputs_stay_to_the_end();
  void what_is_kept_stays_as_long_as_it_was_said();
  void a_name_that_there_is_not_is_no_input();
  void only_the_named_wait_is_left_out();
  void a_program_without_operations_takes_nothing();
};

void ProgramTest::kept_buffers_lie_one_behind_the_other() {
  KeptBuffers kept;

  const Tensor a = kept.add("a", DType::kFloat32, 1, 3);
  const Tensor b = kept.add("b", DType::kBfloat16, 5, 100);
  const Tensor c = kept.add("c", DType::kFloat64, 1, 1);

  QCOMPARE(a.byte, 0);
  QCOMPARE(b.byte, 256);
  QCOMPARE(c.byte, 256 + 1024);  // 1,000 bytes
  QCOMPARE(kept.bytes(), 256 + 1024 + 256);
  QCOMPARE(kept.buffers().size(), std::size_t{3});
  QCOMPARE(b.arena, Arena::kKept);
}

void ProgramTest::buffers_live_from_the_first_to_the_last_operation_that_touches_them() {
  const Program program = Chain(4).builder.finish();

  QCOMPARE(buffer_of(program, "link 1").first, 1);
  QCOMPARE(buffer_of(program, "link 1").last, 2);
  QCOMPARE(buffer_of(program, "link 3").last, 3);
}

void ProgramTest::buffers_that_are_never_alive_together_share_bytes() {
  const Program program = Chain(10).builder.finish();

  QCOMPARE(program.step_bytes(), 2 * arena_aligned(4 * kCount));
  QVERIFY(share_bytes(buffer_of(program, "link 1"), buffer_of(program, "link 3")));
  QVERIFY(!share_bytes(buffer_of(program, "link 1"), buffer_of(program, "link 2")));
}

void ProgramTest::without_sharing_each_buffer_has_bytes_of_its_own() {
  const Program program = Chain(10).builder.finish(/*share=*/false);

  QCOMPARE(program.step_bytes(), 10 * arena_aligned(4 * kCount));
}

void ProgramTest::views_are_placed_in_their_buffer() {
  Chain chain(2);
  const Tensor row = chain.links[1].view(10, 2, 5).row_range(1, 1);
  chain.builder.compute(Fill{row});

  const Program program = chain.builder.finish();

  const auto& fill = std::get<Fill>(program.steps().back().operation);
  QCOMPARE(fill.x.byte, buffer_of(program, "link 1").byte + 4 * 15);
  QCOMPARE(fill.x.numel(), 5);
}

void ProgramTest::inputs_stay_where_they_are_from_beginning_to_end() {
  Chain chain(5);
  const Tensor input = chain.builder.input("tokens", DType::kInt32, 1, kCount);
  chain.builder.compute(Embed{chain.links[4], input, chain.links[4]});
  chain.copy(chain.builder.buffer("later", DType::kFloat32, 1, kCount), chain.links[4]);

  const Program program = chain.builder.finish();

  QCOMPARE(program.input("tokens").byte, buffer_of(program, "tokens").byte);
  for (const StepBuffer& other : program.buffers()) {
    if (other.name != "tokens") QVERIFY(!share_bytes(buffer_of(program, "tokens"), other));
  }
}

void ProgramTest::outputs_stay_to_the_end() {
  Chain chain(6);
  chain.builder.output("second", chain.links[1].view(4, 1, 2));

  const Program program = chain.builder.finish();

  for (const StepBuffer& other : program.buffers()) {
    if (other.name != "link 1" && other.first > 0) QVERIFY(!share_bytes(buffer_of(program, "link 1"), other));
  }
  QVERIFY(program.output("second") != nullptr);
  QCOMPARE(program.output("second")->byte, buffer_of(program, "link 1").byte + 16);
  QVERIFY(program.output("third") == nullptr);
}

void ProgramTest::what_is_kept_stays_as_long_as_it_was_said() {
  Chain chain(4);
  chain.builder.keep(chain.links[0]);
  chain.copy(chain.links[3], chain.builder.buffer("after", DType::kFloat32, 1, kCount));

  const Program program = chain.builder.finish();

  const StepBuffer& kept = buffer_of(program, "link 0");
  QCOMPARE(kept.last, 3);
  for (const char* other : {"link 1", "link 2", "link 3"}) QVERIFY(!share_bytes(kept, buffer_of(program, other)));
}

void ProgramTest::a_name_that_there_is_not_is_no_input() {
  const Program program = Chain(2).builder.finish();

  QVERIFY_THROWS_EXCEPTION(std::logic_error, (void)program.input("tokens"));
}

void ProgramTest::only_the_named_wait_is_left_out() {
  Chain chain(2);
  KeptBuffers kept;
  const Tensor sums = kept.add("sums", DType::kFloat32, 1, kCount);
  chain.builder.collective(AllGather{chain.links[1], sums});
  chain.copy(sums, chain.links[0]);
  const Program program = chain.builder.finish();
  QVERIFY(!program.steps()[2].waits.empty() && !program.steps()[3].waits.empty());

  const Program without = program.without_wait(2, 0);

  QCOMPARE(without.steps()[2].waits.size() + 1, program.steps()[2].waits.size());
  QCOMPARE(without.steps()[3].waits.size(), program.steps()[3].waits.size());
  QCOMPARE(without.step_bytes(), program.step_bytes());
}

void ProgramTest::a_program_without_operations_takes_nothing() {
  const Program program = ProgramBuilder().finish();

  QCOMPARE(program.step_bytes(), 0);
  QCOMPARE(program.events(), 0);
  QVERIFY(program.steps().empty());
}

QTEST_APPLESS_MAIN(ProgramTest)
#include "program_test.moc"
