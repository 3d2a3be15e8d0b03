// Limits of control groups, read from files as the kernel shows them.
#include "gemma_like/model/cgroup_limits.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemma_like/model/memory_plan.h"
#include "gemma_like/usable_cores.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

class CgroupLimitsTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = folder_.Path(path);
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  // A group of version 2, with 100 bytes of file cache.
  void WriteGroup(const std::string& path, const std::string& most, const std::string& high,
                  size_t used) const {
    const std::string folder = absl::StrCat("sys/fs/cgroup", path, "/");
    Write(folder + "memory.max", most + "\n");
    Write(folder + "memory.high", high + "\n");
    Write(folder + "memory.current", absl::StrCat(used, "\n"));
    Write(folder + "memory.stat",
          "anon 7\nfile 500\ninactive_anon 3\ninactive_file 90\nactive_file 10\nshmem 400\n");
  }
  size_t Cores() const { return CgroupCores(folder_.path() + "/"); }
  size_t Left() const { return CgroupMemory(folder_.path() + "/"); }

  const TempFolder folder_;
};

TEST_F(CgroupLimitsTest, NothingIsLimitedWithoutFiles) {
  EXPECT_EQ(Left(), kNoLimit);
  Write("proc/self/cgroup", "0::/a\nnonsense\n4:memory\n");
  EXPECT_EQ(Left(), kNoLimit);
}

TEST_F(CgroupLimitsTest, EachLevelCounts) {
  Write("proc/self/cgroup", "0::/system.slice/inlay.service\n");
  WriteGroup("/system.slice/inlay.service", "max", "max", 50'000);
  EXPECT_EQ(Left(), kNoLimit);
  WriteGroup("/system.slice", "90000", "max", 60'000);
  EXPECT_EQ(Left(), 30'100u);
  WriteGroup("/system.slice/inlay.service", "70000", "max", 50'000);
  EXPECT_EQ(Left(), 20'100u);
  WriteGroup("/system.slice/inlay.service", "70000", "60000", 50'000);
  EXPECT_EQ(Left(), 10'100u);
  WriteGroup("/system.slice", "60000", "max", 60'300);
  EXPECT_EQ(Left(), 0u) << "more is used than the limit that was set meanwhile";
  WriteGroup("/system.slice", "60000", "max", 20);
  EXPECT_EQ(Left(), 10'100u) << "the cache is counted elsewhere";
}

// As with a namespace of control groups, where a container's own group is the mounted folder.
TEST_F(CgroupLimitsTest, TheMountedFolderCounts) {
  WriteGroup("", "4000", "max", 1100);
  for (const char* group : {"/", "/docker/1234", "/../other", ""}) {
    Write("proc/self/cgroup", absl::StrCat("0::", group, "\n"));
    EXPECT_EQ(Left(), 3000u) << group;
  }
}

TEST_F(CgroupLimitsTest, TheFirstVersionCounts) {
  Write("proc/self/cgroup", "9:name=systemd:/\n4:hugetlb,memory:/job:1/step\n3:cpu:/x\n0::/\n");
  const std::string folder = "sys/fs/cgroup/memory/job:1/";
  Write(folder + "memory.limit_in_bytes", "5000\n");
  Write(folder + "memory.usage_in_bytes", "3000\n");
  Write(folder + "memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file 400\n");
  Write(folder + "step/memory.limit_in_bytes", "9223372036854771712\n");
  Write(folder + "step/memory.usage_in_bytes", "3000\n");
  EXPECT_EQ(Left(), 2400u);
}

TEST_F(CgroupLimitsTest, AvailableMemoryIsNoMore) {
  WriteGroup("", "4000", "max", 1100);
  Write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(AvailableMemory(folder_.path() + "/"), 3000u);
  EXPECT_GT(AvailableMemory(), 3000u);
}

TEST_F(CgroupLimitsTest, NoCoresAreLimitedWithoutAQuota) {
  EXPECT_EQ(Cores(), kNoLimit);
  Write("proc/self/cgroup", "4:cpu,cpuacct:/a\n0::/a\n");
  EXPECT_EQ(Cores(), kNoLimit);
  Write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cores(), kNoLimit);
  Write("sys/fs/cgroup/a/cpu.max", "100000 0\n");
  EXPECT_EQ(Cores(), kNoLimit);
}

TEST_F(CgroupLimitsTest, TheQuotaOfEachLevelCounts) {
  Write("proc/self/cgroup", "0::/kubepods/pod\n");
  Write("sys/fs/cgroup/kubepods/pod/cpu.max", "350000 100000\n");
  EXPECT_EQ(Cores(), 4u) << "rounded up";
  Write("sys/fs/cgroup/kubepods/cpu.max", "100000 50000\n");
  EXPECT_EQ(Cores(), 2u);
  Write("sys/fs/cgroup/cpu.max", "5000 100000\n");
  EXPECT_EQ(Cores(), 1u);
}

TEST_F(CgroupLimitsTest, TheQuotaOfTheFirstVersionCounts) {
  Write("proc/self/cgroup", "5:memory:/m\n3:cpu,cpuacct:/docker/1234\n0::/\n");
  Write("sys/fs/cgroup/cpu/m/cpu.cfs_quota_us", "1000\n");  // it is in this group for memory
  Write("sys/fs/cgroup/cpu/m/cpu.cfs_period_us", "1000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "600000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "200000\n");
  EXPECT_EQ(Cores(), 3u);
}

TEST_F(CgroupLimitsTest, UsableCoresAreNoMore) {
  Write("proc/self/cgroup", "0::/\n");
  const size_t all = UsableCores(folder_.path() + "/");
  EXPECT_GE(all, 1u);
  Write("sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(UsableCores(folder_.path() + "/"), 1u);
  Write("sys/fs/cgroup/cpu.max", "102400000 100000\n");
  EXPECT_EQ(UsableCores(folder_.path() + "/"), all);
}

}  // namespace
}  // namespace inlay
