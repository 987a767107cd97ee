// Copyright (c) The Strata Authors
// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

#include "tools/workloads/device_profile.h"

#include <string>
#include <vector>

#include "port/stack_trace.h"
#include "test_util/testharness.h"

namespace ROCKSDB_NAMESPACE {
namespace bench {

namespace {

std::vector<PathDevice> Parsed(const std::string& text) {
  std::vector<PathDevice> devices;
  EXPECT_OK(ParsePathDevices(text, &devices)) << text;
  return devices;
}

void ExpectRefused(const std::string& text, const std::string& message) {
  std::vector<PathDevice> devices{{"/kept", DeviceProfile()}};
  const Status s = ParsePathDevices(text, &devices);
  ASSERT_TRUE(s.IsInvalidArgument()) << text << ": " << s.ToString();
  EXPECT_NE(s.ToString().find(message), std::string::npos) << s.ToString();
  ASSERT_EQ(devices.size(), 1u) << text;
  EXPECT_EQ(devices[0].path, "/kept");
}

}  // namespace

TEST(DeviceProfileTest, NothingIsParsedToNoDevice) {
  EXPECT_TRUE(Parsed("").empty());
  EXPECT_TRUE(Parsed(" \t\n").empty());
}

TEST(DeviceProfileTest, NumbersAreParsed) {
  const std::vector<PathDevice> devices =
      Parsed("/a:100:550:98000, rel/b : 1/2:3/4:5/6:7:8 ,/c:0:0:0:1:0");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].path, "/a");
  // A sync takes as long as a write by default.
  EXPECT_EQ(
      devices[0].profile,
      (DeviceProfile{100, 100, 550, 550, 98000, 98000,
                     DeviceProfile::kDefaultQueueDepth, /*sync_us=*/100}));
  EXPECT_EQ(devices[1].path, "rel/b");
  EXPECT_EQ(devices[1].profile, (DeviceProfile{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(devices[2].profile, (DeviceProfile{0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(Parsed("/a:5/9:1:1:4")[0].profile.sync_us, 9u);
}

TEST(DeviceProfileTest, LargestNumbersAreParsed) {
  const std::vector<PathDevice> devices =
      Parsed("/a:60000000:10000000:1000000000:65536:60000000");
  EXPECT_EQ(devices[0].profile,
            (DeviceProfile{60'000'000, 60'000'000, 10'000'000, 10'000'000,
                           1'000'000'000, 1'000'000'000, 65'536, 60'000'000}));
}

TEST(DeviceProfileTest, PresetsAreParsed) {
  const std::vector<PathDevice> devices =
      Parsed("/n:nvme,/s:sata,/h:hdd,/net:network");
  ASSERT_EQ(devices.size(), 4u);
  // The devices of the paper, of which the first one is faster in everything.
  const DeviceProfile& nvme = devices[0].profile;
  const DeviceProfile& sata = devices[1].profile;
  EXPECT_EQ(nvme.read_mb_per_second, 3500u);
  EXPECT_EQ(nvme.write_mb_per_second, 2700u);
  EXPECT_EQ(sata.read_mb_per_second, 550u);
  EXPECT_EQ(sata.write_iops, 90'000u);
  EXPECT_LT(nvme.read_latency_us, sata.read_latency_us);
  EXPECT_LT(nvme.write_latency_us, sata.write_latency_us);
  EXPECT_LT(sata.read_latency_us, devices[2].profile.read_latency_us);
  EXPECT_EQ(devices[3].profile.read_iops, 3000u);
  EXPECT_EQ(DevicePresetNames(), "nvme, sata, hdd, network");
}

// At its queue depth a device must reach the IOPS that it claims, or the limit
// would be another one than that which is written down.
TEST(DeviceProfileTest, PresetsReachTheirIops) {
  for (const char* name : {"nvme", "sata", "hdd", "network"}) {
    const DeviceProfile profile = Parsed(std::string("/a:") + name)[0].profile;
    EXPECT_GE(profile.queue_depth * 1'000'000,
              profile.read_latency_us * profile.read_iops)
        << name;
    EXPECT_GE(profile.queue_depth * 1'000'000,
              profile.write_latency_us * profile.write_iops)
        << name;
  }
}

TEST(DeviceProfileTest, EncodedPathsAreDecoded) {
  EXPECT_EQ(Parsed("/a%2cb%3A1:nvme")[0].path, "/a,b:1");
  EXPECT_EQ(Parsed("%25:nvme")[0].path, "%");
  for (const char* text : {"/a%:nvme", "/a%2:nvme", "/a%zz:nvme", "/a%00:nvme",
                           ":nvme", "/a:nvme,", ",/a:nvme"}) {
    ExpectRefused(text, "the path is empty, or a %");
  }
  ExpectRefused(std::string("/a\0b:nvme", 9), "zero byte");
}

TEST(DeviceProfileTest, ErrorsNameTheItemAndTheValue) {
  for (const char* text : {"/a", "/a:", "/a:NVMe", "/a:100", "/a:100:5",
                           "/a:1:2:3:4:5:6", "/a:nvme:32"}) {
    ExpectRefused(text, "the name of a device (nvme, sata, hdd, network) or");
  }
  ExpectRefused("/x:nvme,/a:b:1:1", "'/a:b:1:1': 'b' is not a latency");
  for (const char* latency : {"", "-1", "+1", "1.5", "0x1", "1/", "/1", "1/2/3",
                              "60000001", "99999999999999999999999", "1 2"}) {
    ExpectRefused(std::string("/a:") + latency + ":1:1",
                  "is not a latency in microseconds: there must be a number "
                  "from 0 to 60000000, or two such, <read>/<write>");
  }
  ExpectRefused("/a:1:10000001:1", "'10000001' is not a bandwidth in MB/s");
  ExpectRefused("/a:1:1/x:1", "'1/x' is not a bandwidth in MB/s");
  ExpectRefused("/a:1:1:1000000001", "is not a number of requests per second");
  ExpectRefused("/a:1:1:1:0",
                "'0' is not a queue depth: there must be a "
                "number from 1 to 65536");
  ExpectRefused("/a:1:1:1:1/2", "'1/2' is not a queue depth");
  ExpectRefused("/a:1:1:1:65537", "is not a queue depth");
  ExpectRefused("/a:1:1:1:1:x", "'x' is not the time of a sync");
  ExpectRefused("/a:nvme,/b:sata,/a:hdd",
                "'/a:hdd': the path has a device already");
}

TEST(DeviceProfileTest, TextRoundTrips) {
  for (const DeviceProfile& profile :
       {DeviceProfile{1, 2, 3, 4, 5, 6, 7, 8}, DeviceProfile(),
        DeviceProfile{9, 9, 9, 9, 9, 9, 9, 9}}) {
    EXPECT_EQ(Parsed("/a:" + profile.ToString())[0].profile, profile)
        << profile.ToString();
  }
  EXPECT_EQ((DeviceProfile{1, 2, 3, 3, 5, 6, 7, 8}).ToString(),
            "1/2:3:5/6:7:8");
}

}  // namespace bench
}  // namespace ROCKSDB_NAMESPACE

int main(int argc, char** argv) {
  ROCKSDB_NAMESPACE::port::InstallStackTraceHandler();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
