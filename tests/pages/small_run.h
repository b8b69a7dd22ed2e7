// A short training run shared by the tests of pages.
#pragma once

#include "tests/cli/program.h"

namespace heed::test {

inline const Path& small_run_report() {
  static const Folder folder;
  static const Path page = [] {
    const ProgramResult ran =
        run_heed("train classify data=shapes:400 layers=2 width=48 heads=3 epochs=2 --quiet --name seen --runs " + folder.path().string());
    check(ran.exit_code == 0, "heed train: ", ran.err);
    return folder / "classify" / "seen" / "report.html";
  }();
  return page;
}

}  // namespace heed::test
