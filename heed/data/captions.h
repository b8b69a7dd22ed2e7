// Images with captions: synthetic scenes of coloured shapes, and image files listed in a table.
#pragma once

#include "heed/core/api.h"
#include "heed/data/image_data.h"
#include "heed/data/text_data.h"

namespace HEED_API heed {

// Captions, each of one image; an image may have several.
struct CaptionedImages {
  ImageData images = {};               // without classes: every label is 0
  std::vector<int64_t> image_of = {};  // the image of every caption
  std::vector<std::string> captions = {};
  std::string columns = {};  // the columns read from the table, to show to the user

  int64_t count() const { return std::ssize(captions); }  // captions
};

// Columns of a table: a header name or a number from 1; empty: found by name, as in TextColumns.
struct CaptionColumns {
  std::string image = {}, caption = {};
};

// where: "scenes" or "scenes:COUNT" (synthetic); a .tsv, .csv or .jsonl file (also .gz), whose rows are train; or a folder with train.*,
// metadata.* or captions.* of these types, or with one such table in each of train/, validation/ (or val/) and test/. Validation and test
// tables may be next to train.*. Paths of images are relative to the folder `images`, by default that of the table. A missing image file is
// an error, or with allow_missing only when the image is read.
CaptionedImages read_captions(const std::string& where, DataPart part, const CaptionColumns& columns = {}, const Path& images = {},
                              bool allow_missing = false);
// Whether the table, or the table in the folder, has a column of images and one of captions; false for anything else.
bool is_captioned(const std::string& where);

// The captions of the chosen images. Image images[i] of `data` becomes image i.
CaptionedImages chosen_images(const CaptionedImages& data, const std::vector<int64_t>& images);

// How many images of scenes, and their width and height in pixels.
struct ScenesOptions {
  int64_t count = 4000, side = 48;
  uint64_t seed = 1;
};
// One or two shapes in a corner or in the middle: "a large red circle at the top left and a small blue star at the bottom right". Image i
// is a function of (seed, i).
CaptionedImages synthetic_scenes(const ScenesOptions& options);

}  // namespace heed
