// The page of the lab in a real browser: figures, sliders and play buttons.
#include "tests/cli/program.h"
#include "tests/pages/browser.h"

namespace heed::test {
namespace {

// Moves every slider to its end and back, then plays the first one. A figure shows one frame at a time.
constexpr const char* kMoveSliders = R"(
  const shown = figure => [...figure.querySelectorAll('.frame')].findIndex(frame => !frame.hidden);
  const sliders = [...document.querySelectorAll('.slider')];
  verdict.sliders = sliders.length;
  verdict.moved = sliders.filter(slider => {
    const range = slider.querySelector('input'), figure = slider.closest('figure') || slider.parentElement;
    const set = value => { range.value = value; range.dispatchEvent(new Event('input', {bubbles: true})); return shown(figure); };
    return set(range.max) === +range.max && set(0) === 0;
  }).length;
  if (sliders.length) {
    const range = sliders[0].querySelector('input');
    sliders[0].querySelector('button').click();
    await new Promise(done => setTimeout(done, 1500));
    verdict.played = +range.value;
  }
)";

TEST(Browser, lab_page_moves_its_figures) {
  HEED_NEEDS_BROWSER();
  const Folder folder;
  const ProgramResult ran = run_heed("lab L1 L7 --quiet -o " + (folder / "lab").string());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const int width : {kLaptop, kPhone}) {
    const nlohmann::json seen = open_page(folder / "lab" / "index.html", width, kMoveSliders);
    expect_sound(seen);
    EXPECT_GE(seen["figures"], 3);
    ASSERT_GE(seen["sliders"], 1);
    EXPECT_EQ(seen["moved"], seen["sliders"]);
    EXPECT_GT(seen["played"], 0);
  }
}

}  // namespace
}  // namespace heed::test
