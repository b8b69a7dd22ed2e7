// ./dev install, with a fake cmake that records its arguments.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/cli/program.h"

namespace heed::test {
namespace {

struct Installed {
  int exit_code;
  std::string cmake_arguments, out, err;
};

// arguments and path: as a shell reads them; HERE is a temporary folder
Installed dev_install(const std::string& arguments, const std::string& path) {
  const Folder folder;
  const std::string here = folder.path();
  std::filesystem::create_directories(folder / "programs");
  put(folder / "programs/cmake",
      "#!/bin/sh\n[ \"$1\" != --build ] || exit 0\n[ \"$1\" = --install ] || "
      "exit 9\n"
      "echo \"$@\" >'" +
          here +
          "/cmake_arguments'\nmkdir -p \"$4/bin\"; echo >\"$4/bin/heed\"; chmod +x "
          "\"$4/bin/heed\"\n");
  put(folder / "programs/dpkg-query", "#!/bin/sh\nshift 3\nfor p in \"$@\"; do echo \"$p installed\"; done\n");
  for (const char* name : {"cmake", "dpkg-query"})
    std::filesystem::permissions(folder / "programs" / name, std::filesystem::perms::owner_all);
  // A copy, so that the build of this tree is not touched.
  std::filesystem::create_directories(folder / "tree/build");
  std::filesystem::copy(Path(HEED_SOURCE_DIR) / "dev", folder / "tree/dev");
  put(folder / "tree/build/build.ninja", "");
  put(folder / "run", "HERE='" + here + "'\nexport HOME=$HERE/home PATH=\"$HERE/programs:" + path +
                          "/usr/bin:/bin\"\nexec bash $HERE/tree/dev install " + arguments + "\n");
  const int status = std::system(("bash '" + here + "/run' >'" + here + "/out' 2>'" + here + "/err'").c_str());
  Installed out{WEXITSTATUS(status), get(folder / "cmake_arguments"), get(folder / "out"), get(folder / "err")};
  for (std::string* text : {&out.cmake_arguments, &out.out, &out.err})
    for (size_t at = text->find(here); at != std::string::npos; at = text->find(here)) text->replace(at, here.size(), "HERE");
  return out;
}

TEST(Dev, install_prints_its_location_and_checks_the_path) {
  const Installed unknown = dev_install("--prefix $HERE/there", "");
  EXPECT_EQ(unknown.exit_code, 0) << unknown.err;
  EXPECT_EQ(unknown.cmake_arguments, "--install build --prefix HERE/there\n");
  EXPECT_EQ(unknown.out,
            "installed: HERE/there/bin/heed\nheed is not on your PATH yet. "
            "Add this line to your shell's startup file:\n"
            "  export PATH=\"HERE/there/bin:$PATH\"\n");
  EXPECT_EQ(dev_install("--prefix=$HERE/there", "$HERE/there/bin:").out, "installed: HERE/there/bin/heed\n");
  if (::geteuid() != 0) {
    EXPECT_EQ(dev_install("", "").cmake_arguments, "--install build --prefix HERE/home/.local\n");
  }
  for (const char* wrong : {"--prefix", "--prefx there", "there"}) {
    const Installed refused = dev_install(wrong, "");
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_EQ(refused.cmake_arguments, "");
    EXPECT_TRUE(refused.err.starts_with("dev: install: expected")) << refused.err;
  }
}

// The calls of cmake by ./dev build, in a tree that was configured with this line in its cache and now has MPI.
std::string calls_of_build(const std::string& cached) {
  const Folder folder;
  const std::string here = folder.path();
  std::filesystem::create_directories(folder / "programs");
  std::filesystem::create_directories(folder / "build");
  std::filesystem::copy(Path(HEED_SOURCE_DIR) / "dev", folder / "dev");
  put(folder / "build/build.ninja", "");
  put(folder / "build/CMakeCache.txt", "HEED_MPI:STRING=AUTO\n" + cached + "\n");
  put(folder / "programs/cmake", "#!/bin/sh\necho \"$@\" >>'" + here + "/calls'\n");
  put(folder / "programs/dpkg-query", "#!/bin/sh\nshift 3\nfor p in \"$@\"; do echo \"$p installed\"; done\n");
  put(folder / "programs/mpicxx", "#!/bin/sh\n");
  for (const char* name : {"cmake", "dpkg-query", "mpicxx"})
    std::filesystem::permissions(folder / "programs" / name, std::filesystem::perms::owner_all);
  EXPECT_EQ(std::system(("PATH='" + here + "/programs':/usr/bin:/bin bash '" + here + "/dev' build heed_program").c_str()), 0);
  return get(folder / "calls");
}

TEST(Dev, build_configures_again_when_mpi_was_installed) {
  const std::string builds = "--build build --target heed_program\n";
  EXPECT_EQ(calls_of_build("MPI_CXX_COMPILER:FILEPATH=MPI_CXX_COMPILER-NOTFOUND"), "--preset release\n" + builds);
  EXPECT_EQ(calls_of_build("MPI_CXX_COMPILER:FILEPATH=/usr/bin/mpicxx"), builds);
}

}  // namespace
}  // namespace heed::test
