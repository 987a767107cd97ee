//  Copyright (c) The Strata Authors
//  SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "file/strata/space_reservations.h"

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {

namespace {

using Bytes = SpaceReservations::Bytes;

}  // namespace

TEST(SpaceReservationsTest, ReservationsCountUntilTheyAreDestroyed) {
  SpaceReservations reservations;
  const int family = 0;
  EXPECT_EQ(reservations.All(), Bytes());
  auto first = reservations.Reserve(&family, {{"/a", 1}, {"/b", 2}});
  auto second = reservations.Reserve(&family, {{"/b", 4}});
  EXPECT_EQ(reservations.All(), (Bytes{{"/a", 1}, {"/b", 6}}));
  first.reset();
  EXPECT_EQ(reservations.All(), (Bytes{{"/b", 4}}));
  second.reset();
  EXPECT_EQ(reservations.All(), Bytes());
}

TEST(SpaceReservationsTest, FamiliesAreToldApart) {
  SpaceReservations reservations;
  const int family1 = 1;
  const int family2 = 2;
  const auto first = reservations.Reserve(&family1, {{"/a", 1}});
  const auto second = reservations.Reserve(&family2, {{"/a", 2}, {"/b", 3}});
  EXPECT_EQ(reservations.Of(&family1), (Bytes{{"/a", 1}}));
  EXPECT_EQ(reservations.Of(&family2), (Bytes{{"/a", 2}, {"/b", 3}}));
  EXPECT_EQ(reservations.All(), (Bytes{{"/a", 3}, {"/b", 3}}));
}

TEST(SpaceReservationsTest, JobMayWriteNothing) {
  SpaceReservations reservations;
  const int family = 0;
  const auto reservation = reservations.Reserve(&family, {});
  EXPECT_EQ(reservations.Of(&family), Bytes());
}

}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
