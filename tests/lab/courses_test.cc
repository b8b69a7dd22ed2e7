// The pages of the courses: their numbers are those of the pages and experiments that they name.
#include <sstream>

#include "heed/lab/markdown.h"
#include "heed/lab/sources.h"
#include "tests/io/files.h"
#include "tests/lab/lab.h"
#include "tests/structure/source.h"

namespace heed::test {
namespace {

using namespace lab;

TEST(Courses, and_published_errors_are_listed) {
  const Folder folder;
  const std::vector results{run_one(find_experiment("L32"), {}, [](const std::string&) {}),
                            run_one(find_experiment("L35"), {}, [](const std::string&) {}),
                            run_one(find_experiment("L1"), {}, [](const std::string&) {})};
  write_markdown(folder / "lab", results, {results.data(), 1});
  EXPECT_NE(get(folder / "lab/stability.md").find("| holds, corrected | holds, corrected | yes |"), std::string::npos);
  Result longer = results[0];
  longer.report.measured = {at_least("something else", 0, 1)};
  write_markdown(folder / "longer", results, {&longer, 1});
  EXPECT_NE(get(folder / "lab/stability.md").find("| quantity |"), std::string::npos);
  EXPECT_EQ(get(folder / "longer/stability.md").find("| quantity |"), std::string::npos);  // nothing to compare: no empty table
  EXPECT_NE(source_text(find_experiment("L33")).find("be a convolution? Cordonnier"), std::string::npos);
  const std::string errors = get(folder / "lab/errors.md"), list = get(folder / "lab/README.md");
  EXPECT_NE(errors.find("[The softmax runs over keys](expression.md#l32-the-softmax-runs-over-keys)"), std::string::npos) << errors;
  EXPECT_EQ(link_to(find_experiment("L7")), "[Why scores are divided by √d](statistics.md#l7-why-scores-are-divided-by-d)");
  EXPECT_NE(errors.find("Source: Problem sheets on attention and its statistics: attention with tokens as columns"), std::string::npos);
  EXPECT_NE(errors.find("largest total weight of a query | 1 | 2.476"), std::string::npos);
  EXPECT_EQ(errors.find("L1:"), std::string::npos);
  EXPECT_NE(get(folder / "lab/expression.md").find("## L32: The softmax runs over keys"), std::string::npos);
  EXPECT_NE(list.find("| L1 | what the inverse temperature does at 0 and in the limit | ["), std::string::npos) << list;
  EXPECT_NE(list.find("| D1 | attention: softmax of β Q Kᵀ, times V | [attend.md](../attend.md), L1 | holds |"), std::string::npos) << list;
  const std::string course = get(folder / "lab/course-attention.md");
  EXPECT_LT(course.find("## D1: "), course.find("## L1: what the inverse temperature"));
  EXPECT_NE(course.find("**Answer (holds, corrected).**"), std::string::npos) << course;
  EXPECT_NE(list.find("| holds, corrected | over the columns of Q^T K: largest total weight of a query: 2.476 (published: 1) | `heed lab "
                      "softmax-axis` |"),
            std::string::npos)
      << list;
  EXPECT_EQ(list.find("|  |"), std::string::npos);
}

TEST(Courses, results_are_on_their_pages) {
  int results = 0;
  for (const CourseTask& task : course_tasks()) {
    SCOPED_TRACE(task.number);
    const std::string page = read_source(std::filesystem::path("docs/lab") / task.page);
    EXPECT_FALSE(page.empty()) << task.page;
    EXPECT_EQ(find_experiment(task.experiment).number, task.experiment);
    std::istringstream words(task.result);
    for (std::string word; words >> word;)
      if (word.find_first_of("0123456789") != std::string::npos) {
        EXPECT_NE(page.find(word), std::string::npos) << word;
      }
    results += !task.result.empty();
  }
  EXPECT_GE(results, 4);
}

// Of experiments that train no models; the others have measurements only when they are decided.
TEST(Courses, named_measurements_exist) {
  for (const char* name : {"L1", "L10", "L26", "L34", "L41"}) {
    const Result result = run_experiment(name);
    for (const CourseTask& task : course_tasks()) {
      if (task.experiment != name || task.measurement.empty()) continue;
      EXPECT_TRUE(key_number(result.report, task.measurement).starts_with(task.measurement)) << task.number;
    }
  }
}

TEST(Courses, key_numbers_contradict_a_publication_if_one_does) {
  Report report{.measured = {equal_to("first", 1, 1), contradicts("second", 5, 10), at_most("third", 3, 2)}};
  EXPECT_EQ(key_number(report), "second: 10 (published: 5)");
  EXPECT_EQ(key_number(report, "third"), "third: 2");
  EXPECT_EQ(key_number(report, "fourth"), "second: 10 (published: 5)");
  report.measured.erase(report.measured.begin() + 1);
  EXPECT_EQ(key_number(report), "first: 1");
}

TEST(Courses, pages_have_the_tables_of_an_experiment) {
  const Folder folder;
  const std::vector results{run_experiment("L35")};
  write_markdown(folder / "lab", results);
  const std::string page = get(folder / "lab/statistics.md");
  EXPECT_NE(page.find("**Derivatives at 1 z**\n\n| output | by z = -3 | by z = 1 | by z = 100 | by z = 5 | by z = -1 |\n"
                      "|---|---:|---:|---:|---:|---:|\n"),
            std::string::npos)
      << page;
}

}  // namespace
}  // namespace heed::test
