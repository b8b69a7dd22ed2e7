// The pages of heed inspect in a real browser: an image, a text and a translation, on a wide screen and on a phone.
#include "heed/data/image_data.h"
#include "tests/cli/program.h"
#include "tests/pages/browser.h"
#include "tests/pages/small_run.h"

namespace heed::test {
namespace {

constexpr const char* kTry = R"(
  const pixels = id => document.getElementById(id) ? document.getElementById(id).toDataURL() : '';
  const all = () => [...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL()).join();
  const change = (id, set, kind) => { const before = all(); set(document.getElementById(id)); document.getElementById(id).dispatchEvent(new Event(kind)); return all() !== before; };
  const looked = document.querySelector('.panel canvas'), key = name => looked.dispatchEvent(new KeyboardEvent('keydown', { key: name }));
  const query = () => document.getElementById('query').textContent;
  const start = query(), before = all();
  verdict.start = start;
  for (const name of ['ArrowDown', 'ArrowDown']) key(name);
  verdict.keys = query() !== start && all() !== before;
  verdict.label = looked.getAttribute('aria-label');
  key('Escape');
  verdict.back = query() === start && all() === before;
  const box = looked.getBoundingClientRect();
  looked.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX: box.left + box.width / 5, clientY: box.top + box.height * .7 }));
  verdict.pointed = all() !== before;
  document.getElementById('all').click();
  verdict.by_row = document.getElementById('by-row').checked;
  verdict.scale = document.getElementById('matrix-most').textContent;
  verdict.rows_change = change('by-row', each => { each.checked = !each.checked; }, 'change');
  verdict.other_scale = document.getElementById('matrix-most').textContent;
  verdict.layers_change = change('layer', each => { each.value = 0; }, 'change');
  verdict.legends = document.querySelectorAll('.panel .scale').length;
  verdict.columns = new Set([...document.querySelectorAll('.panel')].map(panel => Math.round(panel.getBoundingClientRect().left))).size;
  verdict.used = Math.max(...[...document.querySelectorAll('.panel')].map(panel => panel.getBoundingClientRect().right)) / innerWidth;
  verdict.wide = [...document.querySelectorAll('canvas')].every(canvas => canvas.getBoundingClientRect().width <= canvas.parentElement.clientWidth + 1);
  if (document.getElementById('over')) verdict.over_changes = change('over', each => { each.value = 0; }, 'input');
  verdict.answers = document.querySelector('.answers') ? document.querySelector('.answers').textContent : '';
)";

nlohmann::json inspect_in_browser(const std::string& arguments, int width) {
  const Folder folder;
  const ProgramResult ran = run_heed("inspect " + arguments + " --html " + (folder / "look.html").string());
  check(ran.exit_code == 0, "heed inspect: ", ran.err);
  const nlohmann::json seen = open_page(folder / "look.html", width, kTry);
  expect_sound(seen);
  for (const char* what : {"keys", "back", "pointed", "rows_change", "layers_change", "wide"})
    EXPECT_TRUE(seen[what]) << what << " at " << width;
  EXPECT_NE(seen["scale"], seen["other_scale"]);
  EXPECT_EQ(seen["columns"], width == kPhone ? 1 : width == kTablet ? 1 : 2);
  EXPECT_GT(seen["used"], 0.9);
  return seen;
}

std::string fixture_folder(const std::string& name) { return std::string(HEED_SOURCE_DIR) + "/tests/fixtures/" + name; }

TEST(Browser, inspect_shows_an_image_with_its_class) {
  HEED_NEEDS_BROWSER();
  const Folder folder;
  write_png(folder / "shape.png", read_images("shapes:400", DataPart::test).image(0));
  for (const int width : {kLaptop, kTablet, kPhone}) {
    const nlohmann::json seen =
        inspect_in_browser((small_run_report().parent_path() / "best").string() + " " + (folder / "shape.png").string(), width);
    EXPECT_TRUE(seen["over_changes"]);
    EXPECT_EQ(seen["legends"], 2);
    EXPECT_FALSE(seen["by_row"]);
    EXPECT_EQ(seen["start"], "[class]");
    EXPECT_TRUE(seen["answers"].get<std::string>().starts_with("\nPrediction: class")) << seen["answers"];
    EXPECT_NE(seen["answers"].get<std::string>().find(" %"), std::string::npos);
  }
}

TEST(Browser, inspect_scales_each_row_of_causal_models) {
  HEED_NEEDS_BROWSER();
  for (const int width : {kLaptop, kPhone}) {
    const nlohmann::json seen = inspect_in_browser(fixture_folder("gpt2-lm") + " --ids '5 6 7 8 9 10 11 12 13 14 15 16'", width);
    EXPECT_TRUE(seen["by_row"]);
    EXPECT_EQ(seen["scale"], "largest of its row");
    EXPECT_NE(seen["label"].get<std::string>().find(" attends to "), std::string::npos) << seen["label"];
  }
}

TEST(Browser, inspect_aligns_translations) {
  HEED_NEEDS_BROWSER();
  for (const int width : {kLaptop, kPhone})
    EXPECT_FALSE(inspect_in_browser(fixture_folder("marian-translate") + " --ids '5 6 7 8 9 10' --target '9 3 4 8 11 7'", width)["by_row"]);
}

}  // namespace
}  // namespace heed::test
