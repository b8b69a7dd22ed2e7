// The page of heads in a real browser: panels, a slider and a play button.
#include "tests/cli/program.h"
#include "tests/pages/browser.h"

namespace heed::test {
namespace {

constexpr const char* kMoveHeads = R"(
  const film = document.getElementById('film'), range = film.querySelector('input'), button = film.querySelector('.slider > button');
  const drawn = () => [...film.querySelectorAll('.panel .now')].map(dot => dot.getAttribute('cx') + ' ' + dot.getAttribute('cy')).join();
  const set = value => { range.value = value; range.dispatchEvent(new Event('input', {bubbles: true})); return drawn(); };
  verdict.panels = film.querySelectorAll('.panel').length;
  verdict.heads = film.querySelectorAll('.panel .head').length;
  verdict.caption = film.querySelector('output').textContent;
  const end = drawn(), start = set(0);
  verdict.moved = start !== end;
  verdict.start = film.querySelector('output').textContent;
  verdict.back = set(range.max) === end;
  button.click();
  await new Promise(done => setTimeout(done, 1500));
  verdict.played = +range.value;
  verdict.on_the_way = drawn() !== start && drawn() !== end;
  button.click();
  await new Promise(done => setTimeout(done, 100));
  const paused = drawn();
  await new Promise(done => setTimeout(done, 300));
  verdict.pauses = drawn() === paused && button.getAttribute('aria-label') === 'play';
  const hidden = part => getComputedStyle(film.querySelector('.' + part)).display === 'none';
  verdict.hides = [...film.querySelectorAll('[data-part]')].every(choice => {
    const part = choice.dataset.part, before = hidden(part);
    choice.click();
    const after = hidden(part);
    choice.click();
    return !before && after && !hidden(part);
  });
  film.querySelectorAll('.head')[1].dispatchEvent(new PointerEvent('pointerenter'));
  verdict.note = film.querySelector('.panel .note').textContent;
)";

TEST(Browser, heads_page_animates_the_positions_of_heads) {
  HEED_NEEDS_BROWSER();
  const Folder folder;
  const ProgramResult trained = run_heed(
      "train classify data=shapes:64 preset=gaussian-small layers=2 width=12 heads=3 patch=8 batch=16 epochs=5 pad=0 rate=1 --quiet --name "
      "seen "
      "--runs " +
      folder.path().string());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const ProgramResult ran = run_heed("lab heads " + (folder / "classify/seen").string());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("2 layers of 3 heads, 5 epochs"), std::string::npos) << ran.out;
  for (const int width : {kLaptop, kPhone}) {
    const nlohmann::json seen = open_page(folder / "classify/seen/heads/index.html", width, kMoveHeads);
    expect_sound(seen);
    EXPECT_EQ(seen["panels"], 2);
    EXPECT_EQ(seen["heads"], 6);
    EXPECT_GE(seen["figures"], 6);
    EXPECT_TRUE(seen["caption"].get<std::string>().starts_with("epoch 5accuracy ")) << seen["caption"];
    EXPECT_EQ(seen["start"], "startbefore the first step");
    EXPECT_TRUE(seen["note"].get<std::string>().starts_with("head 1: ")) << seen["note"];
    for (const char* what : {"moved", "back", "on_the_way", "pauses", "hides"}) EXPECT_TRUE(seen[what]) << what;
    EXPECT_GT(seen["played"], 0);
    EXPECT_LT(seen["played"], 5);
  }
}

}  // namespace
}  // namespace heed::test
