// How long tests wait for what must come: until it counts as a hang. Qt's own five seconds are a judgement on the
// machine, which may run four test programs on two processors. Includes Qt Test, whose macros it replaces; any thread.
#pragma once

#include <QtTest/QTest>

namespace atl::test {

inline constexpr int kPatience = 60'000;  // milliseconds

}  // namespace atl::test

#undef QTRY_VERIFY
#undef QTRY_VERIFY2
#undef QTRY_COMPARE
#define QTRY_VERIFY(condition) QTRY_VERIFY_WITH_TIMEOUT(condition, ::atl::test::kPatience)
#define QTRY_VERIFY2(condition, words) QTRY_VERIFY2_WITH_TIMEOUT(condition, words, ::atl::test::kPatience)
#define QTRY_COMPARE(actual, expected) QTRY_COMPARE_WITH_TIMEOUT(actual, expected, ::atl::test::kPatience)
