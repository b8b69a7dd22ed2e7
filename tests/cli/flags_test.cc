// Invalid values of flags.
#include "tests/cli/program.h"

namespace heed::test {
namespace {

TEST(Flags, nan_and_inf_are_refused_by_name) {
  for (const char* command :
       {"generate x y --temperature ", "generate x y --top-p ", "generate x y --min-p ", "generate x y --length-penalty ",
        "generate x y --repetition-penalty ", "translate x y --length-penalty ", "parity x --tolerance "})
    for (const std::string value : {"nan", "inf", "-inf", "NaN", "1e999"}) {
      const std::string arguments = command + value,
                        flag = arguments.substr(arguments.find("--"), arguments.rfind(' ') - arguments.find("--"));
      const ProgramResult ran = run_heed(arguments);
      EXPECT_EQ(ran.exit_code, 2) << arguments << ran.err;
      EXPECT_NE(ran.err.find(flag), std::string::npos) << arguments << ran.err;
      EXPECT_NE(ran.err.find(value), std::string::npos) << arguments << ran.err;
    }
}

}  // namespace
}  // namespace heed::test
